"""E2: costs against independent counts, instances against the reference, and a verdict that follows the records."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import tightrope as tr
from tightrope.experiments import planning
from tightrope.experiments.experiment import Answer, Record
from tightrope.experiments.planning import ENGINE, EXPERIMENT, FAMILIES, H_PI, KAPPA_LAMBDA_PI, KAPPA_PI, KAPPA_VI

SMALL = {"side": 20, "gamma": 0.9}
RUNS = [{"algorithm": KAPPA_PI, "kappa": k} for k in (0.0, 0.9, 1.0)] + [{"algorithm": H_PI, "h": 4}, {"algorithm": ENGINE}]


def made(setting, seed):
    outcome = EXPERIMENT.run(setting, seed)
    return Record(setting, seed, outcome.result, outcome.measured)


@pytest.fixture(scope="module")
def records():
    return [made({"family": family, **SMALL, **run}, seed) for family in ("garnet", "queue") for run in RUNS for seed in range(4)]


@pytest.mark.parametrize("family", FAMILIES)
def test_instances_differ_by_seed_and_only_by_seed(family):
    setting = {"family": family, **SMALL, **RUNS[0]}
    one, other = planning.instance(setting, 0), planning.instance({**setting, **RUNS[3]}, 0)
    assert (one.P != other.P).nnz == 0
    assert (one.r == other.r).all()
    next_one = planning.instance(setting, 1)
    assert one.P.shape != next_one.P.shape or (one.P != next_one.P).nnz or (one.r != next_one.r).any()
    assert 250 <= one.n_states <= 450


def howard(mdp):
    """Policy iteration by dense solves, from the greedy policy of v = 0 until Bellman's equation nearly holds."""
    P, v, n, gap = mdp.P.toarray(), np.zeros(mdp.n_states), 0, math.inf
    while gap > planning.TOL:
        q = mdp.r + mdp.gamma * (P @ v)
        rows = np.array([a + int(q[a:b].argmax()) for a, b in pairwise(mdp.first)])
        v, n = np.linalg.solve(np.eye(len(v)) - mdp.gamma * P[rows], mdp.r[rows]), n + 1
        ahead = np.maximum.reduceat(mdp.r + mdp.gamma * (P @ v), mdp.first[:-1])
        gap = np.ptp(ahead - v) / (1 - mdp.gamma) / np.abs(v).max()
    return n


@pytest.mark.parametrize("family", ["garnet", "deterministic", "queue"])
def test_iterations_are_those_of_a_dense_policy_iteration(family):
    setting = {"family": family, **SMALL, "algorithm": KAPPA_PI, "kappa": 0.0}
    assert made(setting, 2).result["iterations"] == howard(planning.instance(setting, 2))


@pytest.mark.parametrize("family", ["gridworld", "maze"])
def test_iterations_on_maps_too_where_no_two_actions_tie(family):
    """On a map most actions tie at first, and rounding decides between them; rewards off by a little leave nothing to decide."""
    mdp = planning.instance({"family": family, **SMALL}, 2)
    noise = 0.01 * np.random.default_rng(0).normal(size=mdp.n_pairs) * ~mdp.terminal[mdp.pairs.states]
    untied = mdp.reshaped(mdp.r + noise, mdp.gamma)
    assert tr.solve(untied, tr.kappa_pi(0.0), tol=planning.TOL, threads=1).iterations == howard(untied)


def test_algorithms_are_those_of_the_settings():
    expected = {
        H_PI: ({"h": 8}, tr.h_pi(8)),
        KAPPA_PI: ({"kappa": 0.5}, tr.kappa_pi(0.5)),
        KAPPA_VI: ({"kappa": 0.5}, tr.kappa_vi(0.5)),
        KAPPA_LAMBDA_PI: ({"kappa": 0.5}, tr.kappa_lambda_pi(0.5, 0.75)),
        ENGINE: ({}, None),
    }
    for name, (ahead, algorithm) in expected.items():
        assert planning._algorithm({"algorithm": name, **ahead}) == algorithm


def test_results_are_the_same_again(records):
    for n in (0, 7, 13, 19, 30):
        assert made(records[n].setting, records[n].seed).result == records[n].result
        assert records[n].result["converged"]


def with_costs(records, seconds, iterations=1.0):
    """The records as if lookahead κ = .9 changed costs by these factors of policy iteration's, a little noise beside."""
    found = []
    for record in records:
        noise = 1.0 + 0.01 * record.seed
        ahead = record.setting.get("kappa") == 0.9
        factor = seconds[record.setting["family"]] if ahead else 1.0
        result = {**record.result, "iterations": round(100 * (iterations if ahead else 1.0)), "backups": 1_000}
        found.append(replace(record, result=result, measured={"solve": 0.01 * factor * noise if ahead else 0.01}))
    return found


@pytest.mark.parametrize(
    ("garnet", "queue", "answer"),
    [
        (0.5, 0.6, Answer.YES),
        (2.0, 1.5, Answer.NO),
        (0.5, 2.0, Answer.MIXED),
        (2.0, 0.25, Answer.MIXED),
        (0.1, 1.05, Answer.MIXED),
    ],
)
def test_the_verdict_follows_the_seconds(records, garnet, queue, answer):
    found = EXPERIMENT.analyse(with_costs(records, {"garnet": garnet, "queue": queue}, 0.25)).verdict
    assert found.answer is answer
    assert found.low <= found.estimate <= found.high
    noise = np.prod([1.0 + 0.01 * seed for seed in range(4)]) ** 0.25
    assert found.estimate == pytest.approx(math.sqrt(garnet * queue) * noise, rel=1e-9)
    assert "0.25 [0.25, 0.25] times the iterations" in found.sentence


def test_no_difference_is_open_and_runs_that_did_not_converge_are_told(records):
    even = [
        replace(x, measured={"solve": 0.01 * (1.0 + 0.2 * (-1) ** x.seed)})
        for x in with_costs(records, {"garnet": 1.0, "queue": 1.0})
    ]
    plain = [replace(x, measured={"solve": 0.01}) if x.setting.get("kappa") == 0.0 else x for x in even]
    assert EXPERIMENT.analyse(plain).verdict.answer is Answer.OPEN
    failed = [*records[:-1], replace(records[-1], result={**records[-1].result, "converged": False})]
    assert "1 runs did not converge" in EXPERIMENT.analyse(failed).verdict.sentence


def test_few_records_leave_it_open_and_none_do_not_break_it(records):
    for n in (0, 1, 3, 5, 9, 17, 25, 33):
        assert EXPERIMENT.analyse(records[:n]).verdict.answer is Answer.OPEN or n >= 7
    assert EXPERIMENT.analyse([]).verdict.answer is Answer.OPEN


def test_both_forms_are_small():
    for quick in (True, False):
        assert len(EXPERIMENT.settings(quick)) * EXPERIMENT.seeds(quick) <= 3_000
