"""E8: soft steps are what they say, never worse where model and v are known, and the verdict follows from the records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tightrope.approximate import ExactValue, KappaAPI, SampledModel, run
from tightrope.approximate.experimental import kappa_cpi
from tightrope.experiments.cpi import (
    ALPHAS,
    ENOUGH,
    EXACT,
    EXPERIMENT,
    ITERATIONS,
    KINDS,
    LEARNT,
    MODEL,
    PLAIN,
    SAMPLES,
    SampledCPI,
)
from tightrope.experiments.experiment import Answer, Record
from tightrope.experiments.families import draw


def made(values: str, kappa: float, seed: int = 0) -> dict[str, Any]:
    return dict(EXPERIMENT.run({"family": "sparse", "values": values, "kappa": kappa}, seed).result)


def records(gain: float, n: int = ENOUGH, **result: Any) -> list[Record]:
    """Made-up records in which the plain step α = 0.5 loses this much less than κ-API, and no cautious step fails."""
    rng = np.random.default_rng(0)
    calm = [0] * len(ALPHAS)
    return [
        Record(
            {"family": "sparse", "values": values, "kappa": 0.5},
            seed,
            {
                "plain_loss": [9.0, 5.0 - gain + 0.01 * rng.random(), 9.0, 5.0],
                "samples_loss": [9.0, 9.0, 9.0, 9.0],
                "model_loss": [1.0, 1.0, 1.0, 1.0],
                "plain_worse": [1, 2, 3, 4],
                "samples_worse": calm,
                "model_worse": calm,
                "plain_fall": 7.0,
                "samples_fall": 0.0,
                "model_fall": 0.0,
            }
            | result,
            {},
        )
        for values in (EXACT, LEARNT)
        for seed in range(n)
    ]


def test_the_plain_whole_step_is_kappa_api_and_plain_soft_steps_are_kappa_cpi() -> None:
    mdp = draw("sparse", 1)
    oracle, value = SampledModel(2), ExactValue()
    whole = run(mdp, SampledCPI(0.5, 1.0, cautious=False, n=2, iterations=4, evaluate=value), seed=3)
    assert whole.policies == run(mdp, KappaAPI(0.5, oracle, iterations=4), seed=3).policies
    soft = run(mdp, SampledCPI(0.5, 0.75, cautious=False, n=2, iterations=4, evaluate=value), seed=3)
    assert soft.policies == run(mdp, kappa_cpi(0.5, oracle, 0.75, cautious=False, iterations=4), seed=3).policies


def test_caution_by_samples_is_caution_by_the_model_where_one_sample_tells_all() -> None:
    mdp = draw("deterministic", 1)
    by_samples = run(mdp, SampledCPI(0.9, 0.5, cautious=True, n=1, iterations=4, evaluate=ExactValue()), seed=3)
    by_model = run(mdp, kappa_cpi(0.9, SampledModel(1), 0.5, iterations=4), seed=3)
    np.testing.assert_allclose(by_samples["loss"], by_model["loss"], rtol=1e-9, atol=1e-9)
    noisy = draw("sparse", 1)
    loose = run(noisy, SampledCPI(0.9, 0.5, cautious=True, n=1, iterations=4, evaluate=ExactValue()), seed=3)
    assert loose.loss != pytest.approx(run(noisy, kappa_cpi(0.9, SampledModel(1), 0.5, iterations=4), seed=3).loss, rel=1e-3)


def test_a_cautious_step_never_hurts_where_all_is_known_and_the_others_do() -> None:
    found = made(EXACT, 0.9)
    assert found["model_worse"] == [0] * len(ALPHAS)
    assert found["model_fall"] == 0.0
    assert any(found["plain_worse"])
    assert found["plain_fall"] > 0.0
    assert all(0 <= count <= ITERATIONS for kind in KINDS for count in found[f"{kind}_worse"])
    assert any(made(LEARNT, 0.9)["model_worse"])


def test_the_same_seed_gives_the_same_small_record() -> None:
    found = made(LEARNT, 0.0, 1)
    assert found == made(LEARNT, 0.0, 1)
    assert len(json.dumps(found, allow_nan=False)) <= 400


@pytest.mark.parametrize(("gain", "answer"), [(2.0, Answer.YES), (0.0, Answer.MIXED)])
def test_the_gain_decides(gain: float, answer: Answer) -> None:
    analysis = EXPERIMENT.analyse(records(gain))
    assert analysis.verdict.answer is answer
    assert analysis.verdict.low <= analysis.verdict.estimate <= analysis.verdict.high
    assert ("α = 0.5, no caution when v is known" in analysis.advice) == (gain > 0.0)
    assert "no cautious step made any state worse" in analysis.verdict.sentence


def test_a_step_from_samples_that_fails_makes_it_depend() -> None:
    analysis = EXPERIMENT.analyse(records(2.0, samples_worse=[0, 1, 0, 0]))
    assert analysis.verdict.answer is Answer.MIXED
    assert "in 0 to 100 % of the runs" in analysis.verdict.sentence


def test_one_cautious_step_that_fails_with_all_known_refutes_it() -> None:
    fine = records(2.0)
    index = next(i for i, record in enumerate(fine) if record.setting["values"] == EXACT)
    broken = list(fine)
    broken[index] = replace(fine[index], result=fine[index].result | {f"{MODEL}_worse": [0, 0, 1, 0]})
    verdict = EXPERIMENT.analyse(broken).verdict
    assert verdict.answer is Answer.NO
    assert "made some state worse in 12 % of the runs" in verdict.sentence


def test_a_step_that_only_looks_best_on_half_of_the_models_gains_nothing() -> None:
    """The step is chosen on one half and judged on the other: luck does not carry over."""
    lucky = [
        replace(
            record,
            result=record.result
            | {f"{PLAIN}_loss": [1.0 if record.seed % 2 else 9.0, 1.0 if not record.seed % 2 else 9.0, 9.0, 5.0]},
        )
        for record in records(0.0)
    ]
    verdict = EXPERIMENT.analyse(lucky).verdict
    assert verdict.answer is Answer.NO
    assert verdict.estimate == pytest.approx(4.0)
    assert SAMPLES in KINDS


def test_a_model_counts_once_however_many_records_it_has() -> None:
    """The same gain at another κ is not new evidence: the interval stays as wide."""
    once = records(2.0)
    twice = [*once, *(replace(record, setting={**record.setting, "kappa": 0.9}) for record in once)]
    one, two = EXPERIMENT.analyse(once).verdict, EXPERIMENT.analyse(twice).verdict
    assert (two.estimate, two.low, two.high) == pytest.approx((one.estimate, one.low, one.high))


def test_the_classes_that_gain_are_named() -> None:
    fine = records(2.0)
    mixed = [*fine, *(replace(record, setting={**record.setting, "family": "maze"}) for record in records(-3.0))]
    assert "loses less on sparse" in EXPERIMENT.analyse(fine).verdict.sentence
    # On average that step is now worse than κ-API, which is therefore chosen itself, and gains nothing anywhere.
    assert "By class" not in EXPERIMENT.analyse(mixed).verdict.sentence


def test_too_few_records_decide_nothing() -> None:
    assert EXPERIMENT.analyse(records(2.0, n=ENOUGH - 1)).verdict.answer is Answer.OPEN
    empty = EXPERIMENT.analyse([])
    assert (empty.verdict.answer, empty.figures, empty.tables) == (Answer.OPEN, (), ())


@pytest.mark.parametrize("quick", [True, False])
def test_the_grid_is_small_enough(quick: bool) -> None:
    assert len(EXPERIMENT.settings(quick)) * EXPERIMENT.seeds(quick) <= 3000
