"""E3: honest runs, learners that see the same numbers, and a verdict that follows from the records."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from tightrope.experiments.experiment import Answer, Record
from tightrope.experiments.online import ENOUGH, EXPERIMENT
from tightrope.experiments.online_runs import EVERY, FEW, FRESH, KAPPAS, PROBLEMS, RACE, ROPES, SMALL, Choice, points
from tightrope.model.problems import hesitant, tightrope
from tightrope.online import OnlineKappaPI, StepSchedule, learn
from tightrope.operators import q_value

SAMPLES = 1_600


def made(problem: str, choice: Choice, seed: int = 0, samples: int = SAMPLES) -> dict[str, Any]:
    return dict(EXPERIMENT.run({**choice.on(problem), "samples": samples}, seed).result)


def records(ours: float, zero: float, baseline: float, left: float = 0.0, n: int = ENOUGH) -> list[Record]:
    """Made-up races on two problems: the loss on the way of κ > 0, of κ = 0 and of Q-learning, and what all of them leave."""
    height = {None: baseline, 0.0: zero}
    return [
        Record(
            {**choice.on(problem), "samples": 400},
            seed,
            {"nu": [height.get(choice.kappa, ours) + 0.01 * seed, 0.2, left], "max": [1.0, 0.5, left], "used": 400},
            {},
        )
        for problem in ("garnet", "lake")
        for choice in RACE
        for seed in range(n)
    ]


@pytest.mark.parametrize("problem", list(PROBLEMS))
def test_the_same_seed_gives_the_same_small_record_and_draws_what_it_may(problem: str) -> None:
    for choice in (Choice(0.9), Choice(None)):
        found = made(problem, choice)
        assert found == made(problem, choice)
        assert found["used"] == SAMPLES
        assert len(found["nu"]) == len(found["max"]) == len(points(SAMPLES))
        assert len(json.dumps(found, allow_nan=False)) < 400
    assert made(problem, Choice(0.9), seed=1) != made(problem, Choice(0.9))


def test_losses_are_those_of_a_run_made_by_hand() -> None:
    mdp = tightrope(20.0, 0.9)
    learner = OnlineKappaPI(0.9, StepSchedule(0.6), StepSchedule.harmonic(20.0), 0.2, cautious=False)
    state = learner.init(mdp, pi0=hesitant(mdp), q0=q_value(mdp, hesitant(mdp)))
    run = learn(mdp, learner, SAMPLES, np.random.SeedSequence(FRESH + 3), state=state)
    found = made("steep tightrope", Choice(0.9, cautious=False, slow=SMALL), seed=3)
    kept = np.isin(run.trace["step"], points(SAMPLES))
    assert found["max"] == pytest.approx((run.trace["loss"] / 189.0)[kept], rel=1e-3, abs=1e-6)  # (1 + c) γ / (1-γ) at s1
    assert found["nu"] == pytest.approx((run.trace["loss_nu"] / (0.25 * (189.0 + 8.1)))[kept], rel=1e-3, abs=1e-6)
    assert max(found["start"]) > 1.0, "without caution things get worse first"


def test_with_two_actions_every_cautious_kappa_is_the_same_learner_and_never_makes_things_worse() -> None:
    found = [made("steep tightrope", Choice(kappa, slow=SMALL)) for kappa in KAPPAS]
    assert all(each == found[0] for each in found)
    assert max(found[0]["start"]) <= 1.0


def test_every_learner_of_a_problem_has_as_many_samples() -> None:
    for quick in (True, False):
        settings = EXPERIMENT.settings(quick)
        assert len({setting["samples"] for setting in settings}) == 1
        assert len(settings) * EXPERIMENT.seeds(quick) <= 4_000
        texts = [json.dumps(dict(setting), sort_keys=True) for setting in settings]
        assert len(set(texts)) == len(texts)
        assert points(settings[0]["samples"])[-1] == settings[0]["samples"]
    assert {str(choice) for choice in FEW} <= {str(choice) for choice in EVERY}


@pytest.mark.parametrize(
    ("ours", "zero", "baseline", "left", "answer"),
    [
        (0.3, 0.5, 0.5, 0.0, Answer.YES),
        (0.5, 0.3, 0.5, 0.9, Answer.NO),
        (0.5, 0.5, 0.3, 0.0, Answer.MIXED),
        (0.3, 0.5, 0.5, 0.9, Answer.MIXED),
    ],
)
def test_the_verdict_follows_the_records(ours: float, zero: float, baseline: float, left: float, answer: Answer) -> None:
    verdict = EXPERIMENT.analyse(records(ours, zero, baseline, left)).verdict
    assert verdict.answer is answer
    assert verdict.low <= verdict.estimate <= verdict.high
    assert verdict.estimate == pytest.approx((ours - baseline) / 3)
    won = 2 if ours < min(zero, baseline) else 0
    assert f"on {won} of 2 problems" in verdict.sentence


def test_the_advice_names_who_lost_least() -> None:
    assert "Begin with Q-learning" in EXPERIMENT.analyse(records(0.5, 0.5, 0.3)).advice
    assert "Begin with Algorithm 1 with κ = 0:" in EXPERIMENT.analyse(records(0.5, 0.2, 0.3)).advice


def test_half_a_run_leaves_the_question_open() -> None:
    nothing = EXPERIMENT.analyse([])
    assert nothing.verdict.answer is Answer.OPEN
    assert not nothing.figures
    assert not nothing.tables
    assert math.isnan(nothing.verdict.estimate)
    assert EXPERIMENT.analyse(records(0.3, 0.5, 0.5, n=ENOUGH - 1)).verdict.answer is Answer.OPEN
    only = [record for record in records(0.3, 0.5, 0.5) if record.setting["learner"] == "Algorithm 1"]
    assert EXPERIMENT.analyse(only).verdict.answer is Answer.OPEN
    alone = EXPERIMENT.analyse(records(0.3, 0.5, 0.5)[:1])
    assert alone.verdict.answer is Answer.OPEN
    assert alone.figures


def test_runs_that_barely_arrive_decide_nothing() -> None:
    """Nine in ten arrive, which is the line itself."""
    doctored = records(0.3, 0.5, 0.5)
    for record in doctored[:: len(doctored) // 5]:
        record.result["nu"][-1] = 0.9
    assert EXPERIMENT.analyse(doctored).verdict.answer is Answer.OPEN


def test_figures_and_tables_of_real_records() -> None:
    held = [
        Record({**choice.on(problem), "samples": 400}, seed, made(problem, choice, seed, 400), {})
        for problem in (*ROPES, "lake")
        for choice in FEW
        for seed in range(2)
    ]
    analysis = EXPERIMENT.analyse(held)
    assert [figure.name for figure in analysis.figures] == ["online-race", "online-caution", "online-choices"]
    for figure in analysis.figures:
        for panel in figure.panels:
            for line in panel.series:
                assert len(line.x) == len(line.y) == len(line.low) == len(line.high) > 0
                assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    assert [len(table.rows) for table in analysis.tables] == [len(FEW)]
    assert "Always explore" in analysis.advice
