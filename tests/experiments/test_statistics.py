"""Intervals that cover, proportions against the binomial itself, and which column is best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tightrope.errors import InvalidArgument
from tightrope.experiments.statistics import best_of, mean_interval, proportion_interval


def test_the_mean_has_students_interval() -> None:
    x = np.array([1.0, 2.0, 4.0, 9.0])
    found = mean_interval(x, 0.9)
    low, high = stats.t.interval(0.9, 3, loc=4.0, scale=x.std(ddof=1) / 2.0)
    assert found == pytest.approx((4.0, low, high), rel=1e-12)


def test_the_interval_of_a_mean_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((2000, 5)) + 3.0
    hits = sum(low <= 3.0 <= high for _, low, high in (mean_interval(x, 0.8) for x in draws))
    assert 0.77 < hits / 2000 < 0.83


def test_one_number_has_no_spread_and_none_has_no_mean() -> None:
    assert mean_interval([2.0]) == (2.0, -math.inf, math.inf)
    assert math.isnan(mean_interval([]).value)
    assert mean_interval([2.0, 2.0, 2.0]) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (3, 7), (1, 400), (0, 1)])
def test_the_ends_of_a_proportion_make_the_count_just_unlikely(hits: int, n: int) -> None:
    found = proportion_interval(hits, n, 0.95)
    assert found.value == hits / n
    assert found.low == 0.0 if hits == 0 else stats.binom.sf(hits - 1, n, found.low) == pytest.approx(0.025)
    assert found.high == 1.0 if hits == n else stats.binom.cdf(hits, n, found.high) == pytest.approx(0.025)


def test_a_proportion_of_nothing_is_unknown() -> None:
    value, low, high = proportion_interval(0, 0)
    assert math.isnan(value)
    assert (low, high) == (0.0, 1.0)
    with pytest.raises(InvalidArgument, match="3 hits of 2"):
        proportion_interval(3, 2)


def test_pairing_finds_a_small_gain_that_is_the_same_everywhere() -> None:
    rng = np.random.default_rng(1)
    hard = rng.exponential(10.0, (60, 1))
    losses = hard + np.array([0.3, 0.0, 0.31]) + 0.1 * rng.standard_normal((60, 3))
    found = best_of(losses, np.random.default_rng(2))
    assert found.column == 1
    assert found.clear
    assert found.rivals == (1,)
    assert found.share[1] > 0.999
    assert found.behind[1] == (0.0, 0.0, 0.0)
    assert found.behind[0].low > 0.2
    # Without the pairing the same gain is lost in how much the models differ.
    apart = np.column_stack([rng.permutation(column) for column in losses.T])
    assert len(best_of(apart, np.random.default_rng(2)).rivals) > 1


def test_equal_columns_are_rivals_and_share() -> None:
    losses = np.repeat(np.arange(5.0)[:, None], 2, axis=1)
    found = best_of(losses, np.random.default_rng(0))
    assert found.rivals == (0, 1)
    assert found.share == (0.5, 0.5)
    assert best_of(np.array([[1.0, 5.0]]), np.random.default_rng(0)).rivals == (0, 1)


def test_noise_is_rarely_taken_for_a_winner() -> None:
    rng = np.random.default_rng(3)
    clear = sum(best_of(rng.standard_normal((50, 4)), rng).clear for _ in range(40))
    assert clear <= 6  # the best of four is chosen after looking, so a little more than five in a hundred


def test_the_same_generator_gives_the_same_answer() -> None:
    losses = np.random.default_rng(4).standard_normal((30, 3))
    assert best_of(losses, np.random.default_rng(5)) == best_of(losses, np.random.default_rng(5))


@pytest.mark.parametrize("losses", [[[1.0, math.nan]], [1.0, 2.0], np.empty((0, 2))])
def test_what_cannot_be_compared_is_refused(losses: object) -> None:
    with pytest.raises(InvalidArgument):
        best_of(losses, np.random.default_rng(0))


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(InvalidArgument, match="confidence must lie in"):
        mean_interval([1.0, 2.0], confidence)
