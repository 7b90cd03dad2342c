"""E7: both algorithms at equal samples, and a verdict that follows from the records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tightrope.approximate import KappaAPI, KappaPSDP, SampledModel, run
from tightrope.experiments.api_psdp import ENOUGH, EXACT, EXPERIMENT, GRIDS, LEARNT, TOTAL, iterations
from tightrope.experiments.experiment import Answer, Record
from tightrope.experiments.families import draw, uniform


def made(values: str, steps: str = "few", seed: int = 0) -> dict[str, Any]:
    return dict(EXPERIMENT.run({"family": "sparse", "values": values, "steps": steps, "grid": "coarse"}, seed).result)


def records(known: float = 0.0, learnt: float = 0.0, n: int = ENOUGH) -> list[Record]:
    """Made-up records in which κ-PSDP loses this much more, in points, with v known and with v learnt; "few" steps do better."""
    return [
        Record(
            {"family": "sparse", "values": values, "steps": steps, "grid": "coarse"},
            seed,
            {
                "api": [5.0 + worse, 3.0 + worse, 1.0],
                "psdp": [5.0 + worse + more + 0.1 * (seed - (n - 1) / 2), 3.0 + worse + more + 0.1 * (seed - (n - 1) / 2), 1.0],
                "kept": [20 + worse, 5, 1],
                "samples": [100, 100, 100],
            },
            {},
        )
        for values, more in ((EXACT, known), (LEARNT, learnt))
        for steps, worse in (("few", 0), ("many", 1))
        for seed in range(n)
    ]


@pytest.mark.parametrize("values", [EXACT, LEARNT])
def test_the_same_seed_gives_the_same_record_and_kappa_one_is_one_algorithm(values: str) -> None:
    found = made(values)
    assert found == made(values)
    assert found["api"][-1] == found["psdp"][-1]
    assert found["api"][0] != found["psdp"][0]
    assert all(kept <= iterations(kappa, "few") for kept, kappa in zip(found["kept"], GRIDS["coarse"], strict=True))
    assert len(json.dumps(found, allow_nan=False)) <= 400


@pytest.mark.parametrize("steps", ["few", "many"])
@pytest.mark.parametrize("values", [EXACT, LEARNT])
def test_every_kappa_draws_about_the_same_number_of_samples(values: str, steps: str) -> None:
    """Whole samples of every pair do not divide evenly over the steps, and v0 is learnt before the first: a third at most."""
    samples = made(values, steps)["samples"]
    assert all(abs(n - TOTAL) <= TOTAL / 3 for n in samples)


def test_losses_are_those_of_runs_made_by_hand() -> None:
    mdp, kappa = draw("sparse", 2), 0.8
    mu, k = uniform(mdp), iterations(kappa, "few")
    oracle = SampledModel(round(TOTAL / k))
    found = made(EXACT, seed=2)
    for name, kind in (("api", KappaAPI), ("psdp", KappaPSDP)):
        again = run(mdp, kind(kappa, oracle, iterations=k), mu=mu, seed=2)
        assert found[name][1] == pytest.approx(100.0 * again.loss / again["loss"][0], rel=1e-3)


@pytest.mark.parametrize(
    ("known", "learnt", "answer"),
    [(-2.0, -2.0, Answer.YES), (2.0, 2.0, Answer.NO), (2.0, -2.0, Answer.MIXED), (-0.01, 0.01, Answer.OPEN)],
)
def test_the_verdict_follows_the_records(known: float, learnt: float, answer: Answer) -> None:
    analysis = EXPERIMENT.analyse(records(known, learnt))
    verdict = analysis.verdict
    assert verdict.answer is answer
    assert verdict.low <= verdict.estimate <= verdict.high
    assert verdict.estimate == pytest.approx((known + learnt) / 2)
    assert "stores 20 policies at κ = 0 and 5 at κ = 0.8" in verdict.sentence


def test_the_number_of_steps_that_does_better_is_taken() -> None:
    rows = EXPERIMENT.analyse(records(2.0, 2.0)).tables[0].rows
    assert rows[0][2] == f"5 % ({iterations(0.0, 'few')})"
    assert rows[0][-1] == "20"


def test_the_advice_names_where_kappa_psdp_did_better() -> None:
    advice = EXPERIMENT.analyse(records(2.0, -2.0)).advice
    assert "κ-PSDP did better on sparse with v learnt." in advice
    assert "κ = 1" in advice
    assert "did better" not in EXPERIMENT.analyse(records(2.0, 2.0)).advice


def test_classes_that_differ_make_it_depend() -> None:
    """κ-PSDP better on one class and worse on another, though the mean is clear."""
    worse = [replace(record, setting={**record.setting, "family": "maze"}) for record in records(-9.0, -9.0)]
    verdict = EXPERIMENT.analyse([*records(2.0, 2.0), *worse]).verdict
    assert verdict.answer is Answer.MIXED
    assert "less on maze (v known), maze (v learnt), and more on sparse (v known)" in verdict.sentence


def test_too_few_records_decide_nothing() -> None:
    assert EXPERIMENT.analyse(records(5.0, 5.0, n=3)).verdict.answer is Answer.OPEN
    empty = EXPERIMENT.analyse([])
    assert (empty.verdict.answer, empty.figures, empty.tables) == (Answer.OPEN, (), ())
    partial = EXPERIMENT.analyse([record for record in records(5.0, 5.0) if record.setting["steps"] == "few"])
    assert partial.verdict.answer is Answer.NO


@pytest.mark.parametrize("quick", [True, False])
def test_the_grid_is_small_enough(quick: bool) -> None:
    assert len(EXPERIMENT.settings(quick)) * EXPERIMENT.seeds(quick) <= 3000
