"""E1: its numbers against the slow reference and the Tightrope's closed form; its verdict follows the records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reference
from bridge import weights_of
from tightrope.experiments import find, theorem_1
from tightrope.experiments.experiment import Answer, Record
from tightrope.experiments.families import draw
from tightrope.experiments.theorem_1 import ALPHAS, EXPERIMENT, ROPE

TINY = [{"family": family, **ahead} for family in (ROPE, "sparse", "deterministic") for ahead in ({"kappa": 0.5}, {"h": 4})]


def made(setting, seed):
    outcome = EXPERIMENT.run(setting, seed)
    return Record(setting, seed, outcome.result, outcome.measured)


@pytest.fixture(scope="module")
def records():
    return [made(setting, seed) for setting in TINY for seed in range(6)]


def case_of(mdp, kappa=1.0):
    """A model with equally many actions in every state as a reference case."""
    S, A = mdp.n_states, mdp.n_pairs // mdp.n_states
    P, r = mdp.P.toarray().reshape(S, A, S), mdp.r.reshape(S, A)
    blank = np.zeros((S, A))
    return reference.Case(P, r, np.ones((S, A), dtype=bool), mdp.gamma, kappa, np.zeros(S), np.zeros(S), blank, blank, "drawn")


def optimum(case, discount, r):
    """The optimal value of a case with this discount and reward, by value iteration to the last digit."""
    v = np.zeros(len(case.v))
    for _ in range(2_000):
        v = (r + discount * (case.P @ v)).max(axis=1)
    return v


@pytest.mark.parametrize("ahead", [{"kappa": 0.7}, {"kappa": 1.0}, {"h": 3}])
@pytest.mark.parametrize("family", ["sparse", "deterministic"])
def test_the_counts_are_those_of_the_slow_reference(family, ahead):
    mdp = draw(family, 3)
    case = case_of(mdp)
    best = optimum(case, mdp.gamma, case.r)
    worse, deepest = np.zeros(len(ALPHAS), dtype=int), np.zeros(len(ALPHAS))
    _, policies = theorem_1._random(family, 3)
    for policy in policies:
        pi = weights_of(case, policy)
        v = reference.value(case, pi)
        if "h" in ahead:
            w = v
            for _ in range(ahead["h"] - 1):
                w = (case.r + case.gamma * (case.P @ w)).max(axis=1)
            q = case.r + case.gamma * (case.P @ w)
        else:
            k = ahead["kappa"]
            shaped = case.r + (1 - k) * case.gamma * (case.P @ v)
            q = shaped + k * case.gamma * (case.P @ optimum(case, k * case.gamma, shaped))
        target = np.eye(q.shape[1])[q.argmax(axis=1)]
        for i, alpha in enumerate(ALPHAS):
            loss = (v - reference.value(case, (1 - alpha) * pi + alpha * target)).max()
            if loss > 1e-9:
                worse[i] += 1
                deepest[i] = max(deepest[i], loss / (best - v).max())
    found = EXPERIMENT.run({"family": family, **ahead}, 3).result
    assert found["n"] == theorem_1.POLICIES
    assert found["worse"] == worse.tolist()
    np.testing.assert_allclose(found["deepest"], deepest, rtol=1e-3)


def test_the_depth_on_the_rope_is_the_closed_form():
    # v'(s0) = αγ/(1-γ+αγ) γ(α - (1-α)c)/(1-γ) and v(s0) = 0; most is to gain at s1: γ(1+c)/(1-γ).
    for kappa, seed in ((0.3, 0), (0.9, 1), (1.0, 2)):
        setting = {"family": ROPE, "kappa": kappa}
        mdp, _ = theorem_1._rope(setting, seed)
        c, g, a = -mdp.r.min(), mdp.gamma, np.array(ALPHAS)
        change = a * g / (1 - g + a * g) * (a - (1 - a) * c) / (1 + c)
        found = EXPERIMENT.run(setting, seed).result
        np.testing.assert_allclose(found["deepest"], np.maximum(-change, 0.0), rtol=1e-3)
        assert found["worse"] == (np.array(ALPHAS) < kappa).astype(int).tolist()


def test_the_same_setting_and_seed_give_the_same_record(records):
    assert records[20] == made(records[20].setting, records[20].seed)
    assert find("theorem-1") is EXPERIMENT


def test_the_verdict_is_yes_with_the_interval_of_the_models(records):
    verdict = EXPERIMENT.analyse(records).verdict
    assert verdict.answer is Answer.YES
    assert verdict.estimate == verdict.low == 0.0
    assert verdict.high == pytest.approx(1 - 0.025 ** (1 / 12))  # none of 12 models, Clopper and Pearson


def doctored(records, family, ahead, i, worse):
    """One record of this kind with another count at the i-th step size."""
    where = next(n for n, x in enumerate(records) if x.setting["family"] == family and ahead in x.setting)
    found = records[where].result
    failed = [*found["worse"][:i], worse, *found["worse"][i + 1 :]]
    depth = [*found["deepest"][:i], 0.5 * bool(worse), *found["deepest"][i + 1 :]]
    return [*records[:where], replace(records[where], result={**found, "worse": failed, "deepest": depth}), *records[where + 1 :]]


def test_one_failure_of_a_safe_step_turns_the_verdict(records):
    at_kappa = ALPHAS.index(0.5)
    for ahead, i in (("kappa", at_kappa), ("h", len(ALPHAS) - 1)):
        found = EXPERIMENT.analyse(doctored(records, "sparse", ahead, i, 1))
        assert found.verdict.answer is Answer.NO
        assert found.verdict.estimate == pytest.approx(1 / 12)
        assert "contradict" in found.advice
    # just below the boundary the same failure is no surprise
    assert EXPERIMENT.analyse(doctored(records, "sparse", "kappa", at_kappa - 1, 1)).verdict.answer is Answer.YES


def test_one_unsafe_step_that_succeeds_on_the_tightrope_turns_the_verdict(records):
    assert EXPERIMENT.analyse(doctored(records, ROPE, "kappa", 0, 0)).verdict.answer is Answer.NO


def test_few_records_leave_it_open_and_none_do_not_break_it(records):
    assert EXPERIMENT.analyse([]).verdict.answer is Answer.OPEN
    assert EXPERIMENT.analyse(records[:6]).verdict.answer is Answer.OPEN  # the Tightrope alone
    assert EXPERIMENT.analyse(records[12:]).verdict.answer is Answer.OPEN  # no Tightrope
    for n in range(0, len(records), 5):
        EXPERIMENT.analyse(records[:n])


def test_every_kappa_is_a_step_size_and_both_forms_are_small():
    assert set(theorem_1.KAPPAS) <= set(ALPHAS)
    for quick in (True, False):
        assert len(EXPERIMENT.settings(quick)) * EXPERIMENT.seeds(quick) <= 3_000
