"""Step sizes, and which conditions of convergence they meet."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from tightrope import Policy
from tightrope.errors import InvalidArgument
from tightrope.model import problems
from tightrope.online import MayGetStuck, OnlineKappaPI, QLearning, StepSchedule, check_two_timescale, learn

FAST = StepSchedule(0.6)


@pytest.mark.parametrize(
    ("schedule", "formula", "text"),
    [
        (StepSchedule(0.6), lambda n: n**-0.6, "1/n^0.6"),
        (StepSchedule.polynomial(0.7, 0.5, 3), lambda n: 0.5 / (n + 3) ** 0.7, "0.5/(n+3)^0.7"),
        (StepSchedule.harmonic(), lambda n: 1 / (n + 1), "1/(n+1)"),
        (StepSchedule.log_harmonic(), lambda n: 1 / ((n + 1) * math.log(n + 1)), "1/((n+1) log(n+1))"),
        (StepSchedule.constant(0.2), lambda _: 0.2, "0.2"),
        (StepSchedule.custom(lambda n: 1 / (1 + n) ** 2), lambda n: 1 / (1 + n) ** 2, "<lambda>"),
    ],
)
def test_values(schedule, formula, text):
    for n in (1, 2, 10, 12345):
        assert schedule(n) == pytest.approx(formula(n), rel=1e-14)
    np.testing.assert_allclose(schedule(np.arange(1, 50)), [formula(n) for n in range(1, 50)], rtol=1e-14)
    assert str(schedule) == text


def test_a_custom_function_may_take_one_number_at_a_time():
    schedule = StepSchedule.custom(lambda n: 0.5 if n < 10 else 1 / n)
    assert schedule(np.array([1, 9, 10, 20])).tolist() == [0.5, 0.5, 0.1, 0.05]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StepSchedule(0.6, c=1.5), "the step size at visit 1 is 1.5"),
        (lambda: StepSchedule.constant(0.0), r"must lie in \(0, 1\]"),
        (lambda: StepSchedule.constant(float("nan")), r"must lie in \(0, 1\]"),
        (lambda: StepSchedule(-0.1), "p must be a number >= 0"),
        (lambda: StepSchedule(1.0, 1.0, -1.0), "n0 must be a number > -1"),
        (lambda: StepSchedule.log_harmonic(0.0), "n0 must be > 0"),
        (lambda: StepSchedule("fast"), "p must be a number"),
        (lambda: StepSchedule.custom(lambda n: n), "the step size at visit 2 is 2"),
        (lambda: FAST(0), "visits are counted from 1"),
    ],
)
def test_values_outside_the_unit_interval_are_refused(make, message):
    with pytest.raises(InvalidArgument, match=message):
        learn(problems.tightrope(2, 0.9), OnlineKappaPI(0.5, fast=make()), 100)


def test_a_learner_takes_schedules_or_functions_only():
    assert OnlineKappaPI(0.5, fast=lambda n: 1 / n).fast(4) == 0.25
    with pytest.raises(InvalidArgument, match=r"StepSchedule.constant\(c\)"):
        OnlineKappaPI(0.5, fast=0.1)


def partial_sums(schedule, terms=2_000_000):
    """Σ μ, Σ μ², Σ_n Π_j (1-μ): at half the terms and at all of them."""
    mu = schedule(np.arange(1, terms + 1))
    kept = np.cumprod(1 - mu)
    return [(x[: terms // 2].sum(), x.sum()) for x in (mu, mu**2, kept)]


@pytest.mark.parametrize(
    ("slow", "diverges", "squares", "tried"),
    [
        (StepSchedule(1.0, 1.0, 1.0), True, True, True),
        (StepSchedule(1.0, 0.5, 1.0), True, True, True),
        (StepSchedule(1.0, 2.0, 5.0), True, True, False),
        (StepSchedule(0.7, 0.5), True, True, False),
        (StepSchedule(0.4, 0.5), True, False, False),
        (StepSchedule(1.5, 0.5), False, True, True),
        (StepSchedule.log_harmonic(), True, True, True),
        (StepSchedule.constant(0.1), True, False, False),
    ],
)
def test_conditions_agree_with_partial_sums(slow, diverges, squares, tried):
    found = check_two_timescale(FAST, slow)
    assert found["slow sums diverge"].holds is diverges
    assert found["slow squares summable"].holds is squares
    assert found["every action is tried for ever"].holds is tried
    (half, whole), (half_squares, whole_squares), (half_kept, whole_kept) = partial_sums(slow)
    assert bool(whole - half > 0.02) is diverges
    assert bool(whole_squares - half_squares < 1e-3) is squares
    assert bool(whole_kept - half_kept > 0.3) is tried


def test_squares_of_root_n_times_log_n_are_summable():
    """Σ 1/(n log² n) is finite although Σ 1/n is not."""
    assert check_two_timescale(StepSchedule(0.5, 1.0, 2.0, log=True), FAST)["fast squares summable"].holds
    assert not check_two_timescale(StepSchedule(0.5), FAST)["fast squares summable"].holds


@pytest.mark.parametrize(
    ("slow", "holds"),
    [
        (StepSchedule(0.8), True),
        (StepSchedule(0.6), False),
        (StepSchedule(0.5), False),
        (StepSchedule(0.6, 1, 2, log=True), True),
    ],
)
def test_separation_of_timescales(slow, holds):
    found = check_two_timescale(FAST, slow)["slow/fast vanishes"]
    assert found.holds is holds
    ratio = slow(10**9) / FAST(10**9)
    assert bool(ratio < 0.2) is holds


def test_what_keeps_actions_alive():
    mdp = problems.tightrope(2, 0.9)
    hesitant = Policy.deterministic(mdp, 0)
    assert check_two_timescale(FAST, StepSchedule.harmonic()).holds
    erased = check_two_timescale(FAST, StepSchedule.harmonic(0.0))
    assert erased.may_get_stuck
    assert "slow(1) = 1 erases the support of π_0" in erased.warning
    never = check_two_timescale(FAST, StepSchedule.harmonic(), 0.0, hesitant)
    assert never.may_get_stuck
    assert "π_0 never tries state 0 (s0), action 1 (a1)" in never.warning
    assert "Set explore > 0" in never.warning
    for slow in (StepSchedule.harmonic(0.0), StepSchedule(0.7)):
        assert not check_two_timescale(FAST, slow, 0.1, hesitant).may_get_stuck


def test_custom_schedules_are_not_guessed_at():
    custom = StepSchedule.custom(lambda n: 0.5 / n)
    found = check_two_timescale(custom, custom)
    assert {c.name: c.holds for c in found.conditions if c.holds is not None} == {
        "slow starts below one": True,
        "support of pi_0": True,
    }
    assert not found.holds
    assert not found.may_get_stuck
    assert "cannot be decided for a custom schedule" in str(found)


def test_the_report_reads_as_sentences():
    text = str(check_two_timescale(FAST, StepSchedule(0.7, 0.5)))
    assert "NO   Σ_n Π_j<=n (1 - μ_s(j)) with μ_s = 0.5/n^0.7 is finite" in text
    assert "yes  The ratio slow/fast = (0.5/n^0.7) / (1/n^0.6) tends to 0." in text


def test_learn_warns_before_a_run_that_can_get_stuck():
    mdp = problems.tightrope(2, 0.9)
    with pytest.warns(MayGetStuck, match="erases the support"):
        learn(mdp, OnlineKappaPI(0.5, slow=StepSchedule.harmonic(0.0), explore=0.0), 10)
    with pytest.warns(MayGetStuck, match="π_0 never tries state 0"):
        learn(mdp, QLearning(explore=0.0), 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(mdp, OnlineKappaPI(0.5, slow=StepSchedule.harmonic(0.0), explore=0.1), 10)
        learn(mdp, OnlineKappaPI(0.5, explore=0.0), 10)
