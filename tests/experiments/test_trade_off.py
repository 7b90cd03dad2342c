"""E4: budgets that are equal when counted, and a verdict that follows from the records."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from tightrope.approximate import KappaAPI, SampledModel, run
from tightrope.experiments.experiment import Answer, Record
from tightrope.experiments.families import draw, uniform
from tightrope.experiments.trade_off import ENOUGH, EXPERIMENT
from tightrope.experiments.trade_off_runs import (
    CALL,
    CALLS,
    EACH,
    FITTED,
    FRESH,
    GRIDS,
    HURRIED,
    IN_ALL,
    PLACES,
    SAMPLED,
    TOTAL,
    arms,
    spend,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.experiments.trade_off_runs import Arm


def setting(budget: str = IN_ALL, oracle: str = SAMPLED, family: str = "maze", *, noise: bool = False) -> dict[str, Any]:
    return {"budget": budget, "oracle": oracle, "family": family, "noise": noise, "grid": "coarse"}


def records(loss: Callable[[float], float], delta: Callable[[float], float] = float, n: int = 2 * ENOUGH) -> list[Record]:
    """Made-up records in which a κ loses what `loss` says and errs by what `delta` says, more or less."""
    held = []
    for where in (setting(IN_ALL), setting(EACH), setting(EACH, HURRIED)):
        for seed in range(n):
            losses = [loss(arm.kappa) + 0.001 * ((7 * seed + i) % 5) for i, arm in enumerate(arms(where))]
            deltas = [delta(arm.kappa) + 0.001 * (seed % 3) for arm in arms(where)]
            result = {"loss": losses, "delta": deltas, "drawn": [60.0, 60.0]} | (
                {"first": deltas} if where["budget"] == EACH else {}
            )
            held.append(Record(where, seed, result, {}))
    return held


@pytest.mark.parametrize(("oracle", "family"), PLACES)
@pytest.mark.parametrize("noise", [False, True])
def test_samples_in_all_are_equal_when_counted(oracle: str, family: str, noise: bool) -> None:
    """Exactly where calls draw a fixed number; LSPI's walks end at random, and leave a fifth when there is nothing to choose."""
    where = setting(IN_ALL, oracle, family, noise=noise)
    mdp = draw(family, 1)
    live = int((~mdp.terminal[mdp.pairs.states]).sum())
    for arm in arms(where):
        samples = spend(mdp, where, arm, 1).samples
        if oracle == HURRIED:
            allowed = TOTAL[SAMPLED] // 2 * live if noise else 0
            assert allowed - arm.iterations <= samples <= allowed
        elif oracle == FITTED:
            assert 0.8 * TOTAL[FITTED] * live <= samples <= 1.2 * TOTAL[FITTED] * live
        else:
            assert TOTAL[SAMPLED] * live - arm.iterations <= samples <= TOTAL[SAMPLED] * live
            if not noise:
                assert samples == TOTAL[SAMPLED] * live


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("oracle", [SAMPLED, FITTED, HURRIED])
@pytest.mark.parametrize("noise", [False, True])
def test_calls_divide_the_budget_without_a_remainder(oracle: str, noise: bool, fine: bool) -> None:
    where = setting(IN_ALL, oracle, noise=noise) | {"grid": "fine" if fine else "coarse"}
    for arm in arms(where):
        total = TOTAL[oracle] // 2 if noise and arm.kappa < 1.0 and oracle != HURRIED else TOTAL[oracle]
        assert total % arm.iterations == 0
    assert [arm.iterations for arm in arms(where) if arm.kappa == 1.0] == [1, 1]
    assert {arm.kappa for arm in arms(where) if arm.algorithm == "PSDP"} == set(GRIDS[where["grid"]])


def test_each_call_draws_the_same_and_losses_are_those_of_runs_made_by_hand() -> None:
    where, mdp = setting(EACH, SAMPLED, "sparse"), draw("sparse", FRESH + 2)
    found = EXPERIMENT.run(where, 2).result
    for i, kappa in enumerate(GRIDS["coarse"]):
        again = run(mdp, KappaAPI(kappa, SampledModel(CALL[SAMPLED]), iterations=CALLS), mu=uniform(mdp), seed=2)
        start = again["loss"][0]
        assert again.samples == CALL[SAMPLED] * mdp.n_pairs * (1 if kappa == 1.0 else CALLS)
        assert found["loss"][i] == pytest.approx(again.loss / start, rel=1e-3, abs=1e-6)
        assert found["first"][i] == pytest.approx(again["delta"][1] / start, rel=1e-3, abs=1e-6)
        assert found["delta"][i] == pytest.approx(again["delta"][1:].mean() / start, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("budget", [IN_ALL, EACH])
def test_the_same_seed_gives_the_same_small_record(budget: str) -> None:
    where = setting(budget, HURRIED, noise=True)
    found = dict(EXPERIMENT.run(where, 0).result)
    assert found == dict(EXPERIMENT.run(where, 0).result)
    assert found != dict(EXPERIMENT.run(where, 1).result)
    assert len(json.dumps(found, allow_nan=False)) < 400


def test_kappa_one_is_one_algorithm_and_is_not_disturbed_by_learning_values_that_it_does_not_use() -> None:
    for noise in (False, True):
        where = setting(IN_ALL, SAMPLED, "sparse", noise=noise)
        last = [loss for loss, arm in zip(EXPERIMENT.run(where, 0).result["loss"], arms(where), strict=True) if arm.kappa == 1.0]
        assert last[0] == last[1]
        exact = spend(draw("sparse", FRESH), where | {"noise": False}, arms(where)[-1], 0)
        assert last[0] == pytest.approx(exact.loss / exact["loss"][0], rel=1e-3, abs=1e-6)


def test_settings_are_all_different_and_the_full_form_has_200_models_of_each() -> None:
    for quick in (True, False):
        texts = [json.dumps(dict(where), sort_keys=True) for where in EXPERIMENT.settings(quick)]
        assert len(set(texts)) == len(texts)
        assert len(texts) * EXPERIMENT.seeds(quick) <= 4_000
        assert EXPERIMENT.seeds(quick) >= ENOUGH
    assert EXPERIMENT.seeds(False) >= 200


@pytest.mark.parametrize(
    ("loss", "answer", "said"),
    [
        (lambda kappa: abs(kappa - 0.5), Answer.YES, "between 0 and 1 in 4 of 4"),
        (lambda kappa: 1.0 - kappa, Answer.NO, "at an end in 4 (κ = 0: 0, κ = 1: 4)"),
        (lambda kappa: kappa, Answer.NO, "at an end in 4 (κ = 0: 4, κ = 1: 0)"),
        (lambda _: 0.5, Answer.OPEN, "could not be told in 4"),
    ],
)
def test_the_verdict_follows_the_records(loss: Callable[[float], float], answer: Answer, said: str) -> None:
    verdict = EXPERIMENT.analyse(records(loss)).verdict
    assert verdict.answer is answer
    assert said in verdict.sentence
    assert verdict.low <= verdict.estimate <= verdict.high
    saved = min(loss(0.0), loss(1.0)) - min(loss(0.5), loss(0.9))
    assert verdict.estimate == pytest.approx(saved, abs=0.004)


def test_records_that_disagree_make_it_depend() -> None:
    mixed = [r for r in records(lambda kappa: abs(kappa - 0.5)) if r.setting["budget"] == EACH]
    mixed += [r for r in records(lambda kappa: 1.0 - kappa) if r.setting["budget"] == IN_ALL]
    analysis = EXPERIMENT.analyse(mixed)
    assert analysis.verdict.answer is Answer.MIXED
    assert "for κ-API where only the total counts κ = 1 (" in analysis.advice
    assert "for κ-API where each call of the oracle is limited κ = 0.5 (" in analysis.advice


def test_a_few_comparisons_out_of_many_decide_nothing() -> None:
    """One at an end, three that cannot be told."""
    told = [r for r in records(lambda kappa: 1.0 - kappa) if (r.setting["budget"], r.setting["oracle"]) == (EACH, SAMPLED)]
    rest = [r for r in records(lambda _: 0.5) if (r.setting["budget"], r.setting["oracle"]) != (EACH, SAMPLED)]
    verdict = EXPERIMENT.analyse([*told, *rest]).verdict
    assert "at an end in 1 (κ = 0: 0, κ = 1: 1), and could not be told in 3" in verdict.sentence
    assert verdict.answer is Answer.OPEN


def test_delta_is_said_to_grow_or_to_fall_as_it_does() -> None:
    assert "clearly grew in 2 of 2 cases and fell in 0" in EXPERIMENT.analyse(records(float)).verdict.sentence
    fell = records(float, lambda kappa: 1.0 - kappa)
    assert "clearly grew in 0 of 2 cases and fell in 2" in EXPERIMENT.analyse(fell).verdict.sentence


def test_differences_that_nobody_would_notice_are_not_told() -> None:
    """Always better, by a hundred-thousandth of what acting at random loses."""
    for record in (close := records(lambda _: 0.5)):
        record.result["loss"][:] = [0.5 - 1e-5 * arm.kappa for arm in arms(record.setting)]
    assert EXPERIMENT.analyse(close).verdict.answer is Answer.OPEN


def test_each_kappa_has_the_number_of_iterations_that_suits_it_chosen_on_other_models() -> None:
    """More iterations are a disaster for every κ: were they not left out, κ = 1, which has no choice, would be best."""

    def bad(arm: Arm) -> bool:
        return any(other[:2] == arm[:2] and other.iterations < arm.iterations for other in arms(setting()))

    doctored = records(lambda kappa: abs(kappa - 0.5))
    for record in doctored:
        if record.setting["budget"] == IN_ALL:
            every = arms(record.setting)
            record.result["loss"][:] = [x + 5.0 * bad(arm) for x, arm in zip(record.result["loss"], every, strict=True)]
    assert EXPERIMENT.analyse(doctored).verdict.answer is Answer.YES


def test_half_a_run_leaves_the_question_open() -> None:
    nothing = EXPERIMENT.analyse([])
    assert nothing.verdict.answer is Answer.OPEN
    assert math.isnan(nothing.verdict.estimate)
    assert not nothing.figures
    assert not nothing.tables
    few = EXPERIMENT.analyse(records(float, n=ENOUGH - 1))
    assert few.verdict.answer is Answer.OPEN
    some = [record for record in records(float) if record.setting["oracle"] == HURRIED or record.seed < 2]
    assert EXPERIMENT.analyse(some).verdict.answer is Answer.NO, "what is complete is judged"


def test_figures_and_tables_show_what_there_is() -> None:
    analysis = EXPERIMENT.analyse(records(lambda kappa: abs(kappa - 0.5)))
    assert [figure.name for figure in analysis.figures] == ["trade-off-in-all", "trade-off-each-call", "trade-off-delta"]
    for figure in analysis.figures:
        for panel in figure.panels:
            for line in panel.series:
                assert len(line.x) == len(line.y) == len(panel.ticks) == len(GRIDS["coarse"])
    where, budgets = analysis.tables
    assert len(where.rows) == 4
    assert all(row[-1] == "in between" for row in where.rows)
    assert len(budgets.rows) == 1
