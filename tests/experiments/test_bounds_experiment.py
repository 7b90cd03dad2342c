"""E5: runs are held against their theorems honestly, and the verdict follows from the records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tightrope import theory
from tightrope.approximate import KappaAPI, SampledModel, run
from tightrope.experiments.bounds import ENOUGH, EXPERIMENT
from tightrope.experiments.bounds_runs import ALGORITHMS, EACH, GRIDS, HURRIED, IN_ALL, TOTAL, WORST, iterations
from tightrope.experiments.experiment import Answer, Record
from tightrope.experiments.families import GAMMA, draw, uniform
from tightrope.operators import xi


def made(oracle: str, family: str, algorithm: str, seed: int = 0) -> dict[str, Any]:
    setting = {"oracle": oracle, "family": family, "algorithm": algorithm, "grid": "coarse"}
    return dict(EXPERIMENT.run(setting, seed).result)


def records(oracle: str = WORST, n: int = ENOUGH, **result: Any) -> list[Record]:
    """Made-up records of both algorithms in which all is well."""
    fine = {"loss": [0.1, 0.05, 0.01], "bound": [1.0, 0.5, 0.1], "closest": 0.5, "printed": 0.6, "advice": 1.0}
    return [
        Record({"oracle": oracle, "family": "sparse", "algorithm": name, "grid": "coarse"}, seed, fine | result, {})
        for seed in range(n)
        for name in ALGORITHMS
    ]


@pytest.mark.parametrize(
    ("oracle", "family"), [(WORST, "corridor"), (WORST, "sparse"), (IN_ALL, "maze"), (EACH, "sparse"), (HURRIED, "maze")]
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_bounds_hold_in_small_records(oracle: str, family: str, algorithm: str) -> None:
    found = made(oracle, family, algorithm)
    assert 0.0 < found["closest"] <= 1.0 + 1e-9
    assert all(loss <= bound for loss, bound in zip(found["loss"], found["bound"], strict=True))
    assert len(found["loss"]) == len(GRIDS["coarse"])
    assert len(json.dumps(found, allow_nan=False)) <= 400


@pytest.mark.parametrize("oracle", [WORST, IN_ALL])
def test_the_same_seed_gives_the_same_record_and_another_does_not(oracle: str) -> None:
    found = made(oracle, "maze", "kappa-PSDP")
    assert found == made(oracle, "maze", "kappa-PSDP")
    assert found != made(oracle, "maze", "kappa-PSDP", 1)


def test_loss_and_bound_are_those_of_the_run_itself() -> None:
    """One κ of a record, made again by hand."""
    mdp, kappa = draw("sparse", 3), 0.8
    mu, column = uniform(mdp), GRIDS["coarse"].index(kappa)
    found = made(IN_ALL, "sparse", "kappa-API", 3)
    k = iterations(kappa)
    again = run(mdp, KappaAPI(kappa, SampledModel(round(TOTAL / k)), iterations=k), mu=mu, seed=7)
    start = again["loss"][0]
    assert found["loss"][column] == pytest.approx(again.loss / start, rel=1e-3)
    bound = theory.kappa_api_bound(theory.concentrability(mdp, mu, mu), kappa, again.delta, k, pi0=again.pi0)
    assert found["bound"][column] == pytest.approx(bound.value / start, rel=1e-3)


def test_the_printed_constant_fails_on_corridors() -> None:
    """Rewards of both signs: what the paper prints in place of V is too small, so some loss is above it."""
    exceeded = [made(WORST, "corridor", "kappa-API", seed) for seed in range(3)]
    assert max(found["printed"] for found in exceeded) > 1.05
    assert max(found["closest"] for found in exceeded) <= 1.0 + 1e-9


@pytest.mark.parametrize("kappa", [0.0, 0.5, 0.95, 1.0])
def test_runs_end_when_the_start_counts_for_a_twentieth(kappa: float) -> None:
    k = iterations(kappa)
    assert xi(GAMMA, kappa) ** k <= 0.05
    assert k == 1 or xi(GAMMA, kappa) ** (k - 1) > 0.05


def test_one_loss_above_its_bound_turns_the_verdict() -> None:
    fine = records()
    verdict = EXPERIMENT.analyse(fine).verdict
    assert verdict.answer is Answer.YES
    assert (verdict.estimate, verdict.low) == (0.0, 0.0)
    assert 0.05 < verdict.high < 0.1  # none of forty
    assert "never above" in verdict.sentence
    assert "10 times the loss" in verdict.sentence
    broken = [*fine[:-1], replace(fine[-1], result=fine[-1].result | {"closest": 1.001})]
    after = EXPERIMENT.analyse(broken)
    assert after.verdict.answer is Answer.NO
    assert after.verdict.low > 0.0
    assert after.figures[0].panels[0].title == "Some loss lies above its bound"


def test_too_few_records_decide_nothing() -> None:
    for few in ([], records(n=3)):
        analysis = EXPERIMENT.analyse(few)
        assert analysis.verdict.answer is Answer.OPEN
        assert analysis.verdict.high > 0.4
    assert EXPERIMENT.analyse([]).figures == ()


def test_a_paper_bound_that_fails_is_mentioned() -> None:
    assert "failed in 40" in EXPERIMENT.analyse(records(printed=1.2)).verdict.sentence
    assert "R_max" not in EXPERIMENT.analyse(records()).verdict.sentence


def test_looseness_is_the_quotient_by_class() -> None:
    table = EXPERIMENT.analyse(records(loss=[0.5, 0.25, 0.05], closest=0.8)).tables[0]
    assert table.rows == (("sparse", "2", "1.25", "2", "1.25"),)


def test_good_advice_and_bad_advice_are_told_apart() -> None:
    rng = np.random.default_rng(0)

    def sampled(advice: float) -> list[Record]:
        return [
            replace(record, result=record.result | {"loss": (np.array([0.3, 0.1, 0.2]) + 0.01 * rng.random(3)).tolist()})
            for record in records(EACH, advice=advice)
        ]

    good, bad = EXPERIMENT.analyse(sampled(0.8)), EXPERIMENT.analyse(sampled(1.0))
    assert [row[-1] for row in good.tables[-1].rows] == ["yes", "yes"]
    assert [row[-1] for row in bad.tables[-1].rows] == ["no", "no"]
    assert "in 2 of 2 comparisons" in good.advice
    assert "in 0 of 2 comparisons" in bad.advice
    assert [row[3] for row in bad.tables[-1].rows] == ["0.8", "0.8"]


@pytest.mark.parametrize("quick", [True, False])
def test_the_grid_is_small_enough_and_plain(quick: bool) -> None:
    grid = EXPERIMENT.settings(quick)
    assert len(grid) * EXPERIMENT.seeds(quick) <= 3000
    assert len({json.dumps(setting) for setting in grid}) == len(grid)
