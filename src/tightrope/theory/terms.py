"""A sequence of concentrability terms c(0), c(1), ...: the first n known, all later ones bounded; and its discounted sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.kernels.bounds import EPS
from tightrope.theory.interval import Interval, outwards

if TYPE_CHECKING:
    from tightrope.model.validate import FloatArray

#: A term counts as known when its bracket is this narrow, beyond the rounding of its steps.
EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class Terms:
    """lower[i] <= c(i) <= upper[i] for i < n, and tail.lower <= c(i) <= tail.upper for every i >= n.

    With `growth`, also anchor·growth.lower^(i-n) <= c(i) <= anchor·growth.upper^(i-n), which is sharper once a chain mixes.
    `slip` is the largest |row sum - 1|: the bounds of the tail drift by that factor a step. `noise` is the relative rounding of
    one step, which known terms are widened by.
    """

    gamma: float
    lower: FloatArray
    upper: FloatArray
    tail: Interval
    slip: float = 0.0
    noise: float = 0.0
    anchor: Interval | None = None
    growth: Interval | None = None

    @property
    def n(self) -> int:
        """How many terms are known."""
        return len(self.lower)

    def term(self, i: int) -> Interval:
        """c(i)."""
        if i < self.n:
            return Interval(float(self.lower[i]), float(self.upper[i]))
        return self._later(i - self.n)

    @property
    def rounding(self) -> float:
        """The relative width that more terms cannot remove; infinite when 1-γ is lost in the rounding of P's rows."""
        if self.gamma * self.slip >= 1.0 - self.gamma:
            return math.inf
        return 16.0 * (self.n + 2) * (self.noise + EPS)

    def knows(self, i: int) -> bool:
        """Whether the bracket of c(i) is as narrow as the rounding of i steps."""
        return self.term(i).relative_width <= EXACT + 4.0 * self.noise * (i + 2)

    def single(self) -> Interval:
        """Σ_i γ^i c(i), the paper's C^(1)/(1-γ)."""
        g, n = self.gamma, self.n
        weights = np.power(g, np.arange(n, dtype=np.float64))
        known = _dot(weights, self.lower, self.upper)
        if g == 0.0:
            return known
        room, reach = 1.0 - g, g**n
        down, up = room + g * self.slip, room - g * self.slip
        low = self.tail.lower / down
        high = self.tail.upper / up if up > 0.0 else math.inf
        if self.anchor is not None and self.growth is not None:
            low = max(low, self.anchor.lower / (1.0 - g * self.growth.lower) if g * self.growth.lower < 1.0 else 0.0)
            left = 1.0 - g * self.growth.upper
            high = min(high, self.anchor.upper / left if left > 0.0 else math.inf)
        return known + outwards(reach * low, reach * high, steps=2)

    def double(self, k: int = 0) -> Interval:
        """Σ_{i,j} γ^{i+j} c(i+j+k) = Σ_m (m+1) γ^m c(m+k), the paper's C^(2,k)/(1-γ)^2."""
        g, known_terms = self.gamma, max(self.n - k, 0)
        steps = np.arange(known_terms)
        weights = (steps + 1.0) * g**steps
        known = _dot(weights, self.lower[k:], self.upper[k:])
        if g == 0.0 and known_terms:
            return known
        down, up = g * (1.0 - self.slip), g * (1.0 + self.slip)
        high = self.tail.upper * (_double_tail(up, known_terms) if up < 1.0 else math.inf)
        if known_terms == 0 and k > self.n:  # the tail bounds have drifted for k - n steps already
            high *= (1.0 + self.slip) ** (k - self.n)
        return known + outwards(max(self.tail.lower * _double_tail(down, known_terms), 0.0), high, steps=4)

    def _later(self, steps: int) -> Interval:
        drift = (1.0 + self.slip) ** steps
        low, high = self.tail.lower / drift, self.tail.upper * drift
        if self.anchor is not None and self.growth is not None:
            low = max(low, self.anchor.lower * self.growth.lower**steps)
            high = min(high, _power(self.anchor.upper, self.growth.upper, steps))
        return outwards(max(low, 1.0), max(high, 1.0))


def _power(x: float, base: float, steps: int) -> float:
    """x·base^steps, infinite instead of an overflow."""
    size = math.log(x) + (steps * math.log(base) if base > 0.0 else 0.0)
    return math.inf if size > 700.0 else x * base**steps


def _double_tail(g: float, n: int) -> float:
    """Σ_{m>=n} (m+1) g^m = g^n (1 + n(1-g))/(1-g)^2."""
    return float(g**n * (1.0 + n * (1.0 - g)) / (1.0 - g) ** 2)


def _dot(weights: FloatArray, lower: FloatArray, upper: FloatArray) -> Interval:
    """Both weighted sums, with the rounding of a long sum added outwards."""
    if len(weights) == 0:
        return Interval(0.0, 0.0)
    return outwards(float(weights @ lower), float(weights @ upper), steps=len(weights) + 2)
