"""How sure the records make us: intervals for means and proportions, and which of several choices is best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope.errors import InvalidArgument
from tightrope.theory.sampled import binomial_limits

if TYPE_CHECKING:
    from tightrope.model.validate import FloatArray

#: Resamples of a bootstrap: enough for a tail of one in a thousand.
RESAMPLES = 4000


class Estimate(NamedTuple):
    """A number and the ends of its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True)
class Best:
    """Which of several columns of losses is best, and how sure that is."""

    #: The column with the smallest mean.
    column: int
    #: How often each column has the smallest mean when the rows are drawn again [k]; sums to one, ties shared.
    share: tuple[float, ...]
    #: The mean loss above that of the best column, with its interval, row by row [k].
    behind: tuple[Estimate, ...]
    #: Columns that cannot be told from the best, itself among them, in order.
    rivals: tuple[int, ...]

    @property
    def clear(self) -> bool:
        """Whether the best column is better than every other."""
        return len(self.rivals) == 1


def mean_interval(x: Any, confidence: float = 0.95) -> Estimate:
    """The mean of independent numbers x [n] with Student's interval; one number alone says nothing about its spread."""
    numbers = _finite(x, 1, "x")
    n = len(numbers)
    if n == 0:
        return Estimate(math.nan, -math.inf, math.inf)
    mean = float(numbers.mean())
    if n == 1:
        return Estimate(mean, -math.inf, math.inf)
    from scipy.special import stdtrit  # noqa: PLC0415  (loads with the first interval)

    reach = float(stdtrit(n - 1, 0.5 + 0.5 * _level(confidence)) * numbers.std(ddof=1) / math.sqrt(n))
    return Estimate(mean, mean - reach, mean + reach)


def proportion_interval(hits: int, n: int, confidence: float = 0.95) -> Estimate:
    """The proportion hits/n with the exact interval of Clopper and Pearson, which is right for none of n and for all of them."""
    if not 0 <= hits <= n:
        raise InvalidArgument(f"{hits} hits of {n} are not a proportion")
    if n == 0:
        return Estimate(math.nan, 0.0, 1.0)
    low, high = binomial_limits(np.array([hits]), n, 0.5 * (1.0 - _level(confidence)))
    return Estimate(hits / n, float(low[0]), float(high[0]))


def best_of(losses: Any, rng: np.random.Generator, confidence: float = 0.95) -> Best:
    """Which column of losses [n, k] has the smallest mean: rows (models, seeds) are drawn again with replacement, whole.

    Row by row, because what makes one model harder than another makes it harder for every column. A column is a rival unless its
    mean is above the best one's in all but a fraction (1-confidence)/(k-1) of the resamples: together, the columns that are told
    from the best err with probability 1-confidence.
    """
    table = _finite(losses, 2, "losses")
    n, k = table.shape
    if n == 0 or k == 0:
        raise InvalidArgument(f"losses has shape {table.shape}: there is nothing to compare")
    level = _level(confidence)
    column = int(table.mean(axis=0).argmin())
    table = table - table[:, [column]]  # what all columns share cancels before it is rounded
    means = rng.multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES) @ table / n
    least = means <= means.min(axis=1, keepdims=True)
    share = (least / least.sum(axis=1, keepdims=True)).mean(axis=0)
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(means, (tail, 1.0 - tail), axis=0)
    floor = np.quantile(means, (1.0 - level) / max(k - 1, 1), axis=0)
    behind = tuple(Estimate(*(float(x) for x in each)) for each in zip(table.mean(axis=0), low, high, strict=True))
    rivals = tuple(j for j in range(k) if j == column or n == 1 or floor[j] <= 0.0)
    return Best(column, tuple(share.tolist()), behind, rivals)


def _finite(x: Any, dimensions: int, name: str) -> FloatArray:
    array = np.asarray(x, dtype=np.float64)
    if array.ndim != dimensions or not np.isfinite(array).all():
        raise InvalidArgument(f"{name} must be finite numbers in {dimensions} dimension(s); found {array!r}")
    return array


def _level(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise InvalidArgument(f"confidence must lie in (0, 1); found {confidence!r}. 0.95 is common")
    return confidence
