"""What one Bellman residual proves about v*, rounding included."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope import kernels

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray


class Certificate(NamedTuple):
    """base + low <= v^π <= v* <= base + high, for the policy π greedy at the vector that was backed up.

    With u = Tv and m <= u - v <= M (componentwise): u + γ m/(1-γ) <= v^π <= v* <= u + γ M/(1-γ), the bounds of MacQueen and
    Porteus. Rounding of the backup, rows that sum to one only up to rounding, and rounding of these very formulas are added
    outwards, so that the statement holds for the model with exactly the stored numbers.
    """

    base: FloatArray
    low: float
    high: float
    #: The value scale max(|lower|, |upper|).
    scale: float
    #: The part of the gap that rounding alone accounts for; no algorithm gets below it.
    floor: float
    #: The smallest and the largest entry of the whole base, of which this process may hold a part only.
    extent: tuple[float, float]

    @property
    def gap(self) -> float:
        """A bound on max(v* - v^π), and on max(upper - lower)."""
        return self.high - self.low

    @property
    def relative_gap(self) -> float:
        """The gap divided by the value scale max(|lower|, |upper|)."""
        gap = self.high - self.low
        return gap / self.scale if 0.0 < gap < inf else gap

    def copy(self) -> Certificate:
        """The same certificate with a base of its own."""
        return self._replace(base=self.base.copy())

    @property
    def lower(self) -> FloatArray:
        """A lower bound on v* and on the value of the policy [S]."""
        return np.nextafter(self.base + self.low, -np.inf)

    @property
    def upper(self) -> FloatArray:
        """An upper bound on v* [S]."""
        return np.nextafter(self.base + self.high, np.inf)

    @property
    def off_centre(self) -> bool:
        """Whether rounding rules the gap only because the vector backed up is far from v* by a constant, which costs digits."""
        return self.floor >= 0.25 * self.gap and abs(self.low + self.high) > 0.2 * self.scale

    @property
    def range(self) -> tuple[float, float]:
        """Where v* lies: the smallest lower and the largest upper bound of any state."""
        low, high = self.extent
        return float(np.nextafter(low + self.low, -np.inf)), float(np.nextafter(high + self.high, np.inf))

    @property
    def value(self) -> FloatArray:
        """The middle of both bounds [S]."""
        return self.base + 0.5 * (self.low + self.high)


def certify(mdp: MDP, u: FloatArray, m: float, M: float, extent: tuple[float, float] | None = None) -> Certificate:
    """The certificate of u = Tv with m <= Tv - v <= M, as computed in floating point; `extent` is that of u, where known."""
    within = extent or kernels.extent(u)
    low, high, scale, floor = kernels.bounds.bounds(*within, m, M, *mdp.rounding)
    return Certificate(u, low, high, scale, floor, within)
