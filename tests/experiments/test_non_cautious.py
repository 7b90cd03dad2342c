"""E6: tiny models against the slow reference, the counterexample in exact fractions, and a verdict that follows the records."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of
from tightrope.experiments import hunt, non_cautious
from tightrope.experiments.experiment import Answer, Record
from tightrope.experiments.hunt import SCHEMES, drawn
from tightrope.experiments.non_cautious import ADVERSARIAL, CAUTIOUS, EXPERIMENT, FREE, KNOWN, ONE, RANDOM
from tightrope.experiments.tiny import Batch, fair_cycles, follow

TINY = [
    {"search": KNOWN, "scheme": "unequal", "target": FREE},
    {"search": KNOWN, "scheme": "unequal", "target": CAUTIOUS},
    *[{"search": RANDOM, "kind": "deterministic", "n": 200, "scheme": x, "target": FREE} for x in ("equal", "vanishing", ONE)],
    {"search": RANDOM, "kind": "deterministic", "n": 200, "scheme": ONE, "target": CAUTIOUS},
]


def made(setting, seed):
    outcome = EXPERIMENT.run(setting, seed)
    return Record(setting, seed, outcome.result, outcome.measured)


@pytest.fixture(scope="module")
def records():
    return [made(setting, seed) for setting in TINY for seed in range(2)]


def cases(batch):
    ok = np.ones(batch.r.shape[1:], dtype=bool)
    for P, r, g, k, pi in zip(batch.P, batch.r, batch.gamma, batch.kappa, batch.start, strict=True):
        yield reference.Case(P, r, ok, float(g), float(k), np.zeros(len(r)), np.zeros(len(r)), pi, pi, "drawn")


@pytest.mark.parametrize("kind", non_cautious.KINDS)
def test_targets_and_values_are_those_of_the_reference(kind):
    batch = drawn(np.random.default_rng(1), 60, 3, 2, kind, "equal")
    v = batch.value(batch.start)
    ahead, careful = batch.kappa_greedy(v), batch.cautious(v)
    for b, case in enumerate(cases(batch)):
        slack = case.slack(v[b], case.v_star)
        np.testing.assert_allclose(v[b], case.v_pi, atol=slack)
        np.testing.assert_allclose(batch.best[b], case.v_star, atol=slack)
        target = np.eye(2)[ahead[b]]
        reached = reference.T_kappa_pi(case, target, case.v_pi, case.kappa)
        np.testing.assert_allclose(reached, reference.T_kappa(case, case.v_pi, case.kappa), atol=slack)
        q = case.r + case.gamma * (case.P @ case.v_pi)
        q_k = reference.q_kappa(case, case.pi, case.kappa).reshape(q.shape)
        assert careful[b].tolist() == reference.cautious(q, q_k, case.pi, case.ok, slack).tolist()


@pytest.mark.parametrize("cautious", [False, True])
def test_following_is_what_the_library_does_step_by_step(cautious):
    batch = drawn(np.random.default_rng(2), 8, 4, 2, "deterministic", "equal")
    steps = 25
    found = follow(batch, steps + 1, steps + 1, cautious=cautious)
    for b, case in enumerate(cases(batch)):
        mdp = mdp_of(case)
        pi = tr.Policy.stochastic(mdp, case.pi)
        values = [tr.value(mdp, pi)]
        for _ in range(steps):
            q, q_kappa = tr.q_value(mdp, pi), tr.q_kappa(mdp, pi, case.kappa)
            target = tr.cautious(mdp, q, q_kappa, pi) if cautious else tr.kappa_greedy(mdp, values[-1], case.kappa)
            pi = tr.mix(pi, target, float(batch.step[b, 0]))
            values.append(tr.value(mdp, pi))
        losses = [(case.v_star - v).max() / batch.stake[b] for v in values]
        fall = max((old - new).max() for old, new in itertools.combinations(values, 2)) / batch.stake[b]
        if losses[-1] >= 1e-5:  # a run that has converged is put away
            assert found.loss[b] == pytest.approx(losses[-1], rel=1e-6)
        assert found.fall[b] == pytest.approx(max(fall, 0.0), abs=1e-6)
        assert found.area[b] == pytest.approx(np.mean(losses), abs=1e-5)


def test_the_known_counterexample_cycles_for_ever_in_exact_fractions():
    """Two policies that lead to each other and neither of which is optimal: no tolerance, no rounding."""
    g, k, a = Fraction(99, 100), Fraction(6, 10), Fraction(1, 10)
    go, leave, back, stay, rest = [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]
    rows = [[(Fraction(-1), go), (Fraction(1), leave)], [(Fraction(0), back), (Fraction(1), stay)], [(Fraction(3, 10), rest)]]
    model = reference.Exact(rows, g)
    best, _ = model.optimum([0, 0, 0])

    def targets(s0, p):
        """The κ-greedy pairs at the policy that takes pair s0 in state 0 and stays in state 1 with probability p."""
        mixed = (p * 1, [(1 - p) * x + p * y for x, y in zip(back, stay, strict=True)])
        v = reference.Exact([[rows[0][s0]], [mixed], rows[2]], g).value([0, 0, 0])
        assert v[0] < best[0]
        assert v[1] < best[1]
        shaped = [
            [(r + (1 - k) * g * sum(x * y for x, y in zip(row, v, strict=True)), row) for r, row in pairs] for pairs in rows
        ]
        inner = reference.Exact(shaped, k * g)
        w, chosen = inner.optimum([0, 0, 0])
        q = inner.q(w)
        assert all(q[s][1 - chosen[s]] < w[s] for s in (0, 1))  # no ties
        return chosen[:2]

    low, high = (1 - a) / (2 - a), 1 / (2 - a)
    assert targets(1, low) == [0, 1]  # it leaves: go, and stay
    assert low + a * (1 - low) == high
    assert targets(0, high) == [1, 0]  # it goes: leave, and come back
    assert high + a * (0 - high) == low


def test_the_known_counterexample_attracts_and_caution_cures_it():
    batch = hunt.known(np.random.default_rng(3), 30)
    assert (follow(batch, 3_000, 0).loss > 0.1).all()
    assert (follow(batch, 3_000, 0, cautious=True).loss < 1e-6).all()
    equal = replace(batch, step=np.full_like(batch.step, 0.1))
    assert (follow(equal, 3_000, 0).loss < 1e-6).all()


def test_fair_cycles_are_found_by_walking_too():
    """Whoever walks at random, one state at a time, ends up in a set that is never left; a fair cycle of a model is real."""
    batch = drawn(np.random.default_rng(5), 1_000, 3, 2, "deterministic", "equal")
    loss = fair_cycles(batch)
    found = np.flatnonzero(loss)
    assert 1 <= len(found) < 30
    assert not fair_cycles(batch, cautious=True).any()
    for b in found:
        target = {
            tuple(actions): tuple(batch.take([b]).kappa_greedy(v[None])[0])
            for actions, v in zip(batch.actions.tolist(), batch.values[b], strict=True)
        }
        assert any(_fair(target, cycle) for cycle in _cycles(target))


def _after(target, policy, s):
    return (*policy[:s], int(target[policy][s]), *policy[s + 1 :])


def _cycles(target):
    """Sets of policies that can all be reached from each other by updates of one state, found by searching from each."""

    def reached(policy):
        seen, todo = set(), [policy]
        while todo:
            here = todo.pop()
            for s in range(len(here)):
                there = _after(target, here, s)
                if there != here and there not in seen:
                    seen.add(there)
                    todo.append(there)
        return seen

    reach = {policy: reached(policy) for policy in target}
    return [{other for other in reach[policy] if policy in reach[other]} for policy in target if policy in reach[policy]]


def _fair(target, cycle):
    return all(any(_after(target, policy, s) in cycle for policy in cycle) for s in range(len(next(iter(cycle)))))


def test_a_policy_that_is_its_own_target_is_optimal():
    """Why only cycles can be counterexamples: v^π = T_κ^π v^π = T_κ v^π has the one solution v*."""
    batch = drawn(np.random.default_rng(6), 300, 3, 2, "sparse", "equal")
    own = np.stack(
        [(batch.kappa_greedy(batch.values[:, n]) == batch.actions[n]).all(axis=1) for n in range(len(batch.actions))], 1
    )
    loss = (batch.best[:, None] - batch.values).max(axis=2) / batch.stake[:, None]
    assert own.any(axis=1).all()
    assert (loss[own] < 1e-9).all()


def test_the_adversary_makes_it_worse(monkeypatch):
    monkeypatch.setattr(hunt, "ROUNDS", 12)
    rng = np.random.default_rng(7)
    rule = SCHEMES["equal"]
    hard = follow(hunt.hunted(rng, 3, 2, "equal"), rule.steps, 100)
    easy = follow(drawn(rng, 48, 3, 2, "sparse", "equal"), rule.steps, 100)
    assert np.median(hard.area) > 1.5 * np.median(easy.area)


def test_the_same_setting_and_seed_give_the_same_record(records, monkeypatch):
    monkeypatch.setattr(hunt, "ROUNDS", 3)
    for n in (5, 8):
        assert records[n] == made(records[n].setting, records[n].seed)
    hunted = {"search": ADVERSARIAL, "scheme": "unequal", "target": FREE}
    assert made(hunted, 0) == made(hunted, 0)


def doctored(records, n, **change):
    return [*records[:n], replace(records[n], result={**records[n].result, **change}), *records[n + 1 :]]


def test_the_verdict_follows_the_records(records):
    found = EXPERIMENT.analyse(records).verdict
    assert found.answer is Answer.MIXED
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 800))  # none of 800 runs, Clopper and Pearson
    equal = next(n for n, record in enumerate(records) if record.setting["scheme"] == "equal")
    worse = EXPERIMENT.analyse(doctored(records, equal, lost=1, loss=0.2))
    assert worse.verdict.answer is Answer.NO
    assert worse.verdict.estimate == pytest.approx(1 / 800)
    assert "even equal" in worse.advice
    careful = next(n for n, record in enumerate(records) if record.setting["target"] == CAUTIOUS)
    assert "contradict" in EXPERIMENT.analyse(doctored(records, careful, lost=1)).advice
    none = [replace(record, result={**record.result, "lost": 0}) for record in records]
    assert EXPERIMENT.analyse(none).verdict.answer is Answer.OPEN
    assert "no proof" in EXPERIMENT.analyse(none).verdict.sentence


def test_few_records_leave_it_open_and_none_do_not_break_it(records):
    for n in range(len(records)):
        found = EXPERIMENT.analyse(records[:n])
        assert n > 5 or found.verdict.answer is Answer.OPEN


def test_both_forms_are_small():
    for quick in (True, False):
        assert len(EXPERIMENT.settings(quick)) * EXPERIMENT.seeds(quick) <= 3_000


def test_a_batch_can_be_taken_apart_and_mixed():
    batch = drawn(np.random.default_rng(8), 4, 3, 2, "dense", "equal")
    other = drawn(np.random.default_rng(9), 4, 3, 2, "dense", "equal")
    mixed = batch.replaced(np.array([True, False, False, True]), other)
    assert isinstance(mixed, Batch)
    np.testing.assert_array_equal(mixed.take([0, 3]).P, other.take([0, 3]).P)
    np.testing.assert_array_equal(mixed.take([1, 2]).step, batch.take([1, 2]).step)
