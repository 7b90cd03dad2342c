"""Certified numbers: an interval that is known to contain a non-negative quantity."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.kernels.bounds import EPS


@dataclass(frozen=True, slots=True)
class Interval:
    """lower <= x <= upper for a quantity x >= 0; both ends are inf when x is known to be infinite.

    Sums and multiples are rounded outwards. A weight of zero annihilates infinity (0·∞ = 0, as κ = 1 needs it); an error
    δ = 0 does not: see `at_error`.
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """upper - lower; 0 when both are infinite."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def relative_width(self) -> float:
        """(upper - lower)/lower."""
        if self.lower == self.upper:
            return 0.0
        return self.width / self.lower if self.lower > 0.0 else math.inf

    @property
    def finite(self) -> bool:
        """Whether the quantity is known to be finite."""
        return self.upper < math.inf

    def __contains__(self, x: float) -> bool:
        return self.lower <= x <= self.upper

    def __add__(self, other: Interval) -> Interval:
        return outwards(self.lower + other.lower, self.upper + other.upper)

    def __rmul__(self, weight: float) -> Interval:
        return Interval(0.0, 0.0) if weight == 0.0 else outwards(weight * self.lower, weight * self.upper)

    def at_error(self, delta: float) -> Interval:
        """δ times this coefficient, where 0·∞ = ∞: an infinite coefficient leaves the policy somewhere unconstrained."""
        return self if self.lower == math.inf else outwards(_times(delta, self.lower), _times(delta, self.upper))

    def __str__(self) -> str:
        if self.lower == math.inf:
            return "inf"
        if self.relative_width <= 1e-6:
            return f"{self.lower:.6g}"
        return f"[{self.lower:.6g}, {self.upper:.6g}]"


INFINITE = Interval(math.inf, math.inf)


def outwards(lower: float, upper: float, steps: int = 1) -> Interval:
    """The interval widened by the rounding of a few operations, `steps` times."""
    slip = 4.0 * EPS * steps
    return Interval(lower * (1.0 - slip), upper * (1.0 + slip))


def _times(delta: float, x: float) -> float:
    return math.inf if x == math.inf else delta * x
