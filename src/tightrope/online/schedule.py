"""Step sizes: how far the n-th visit moves what is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidArgument
from tightrope.model import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tightrope.model.validate import FloatArray


@dataclass(frozen=True, repr=False, slots=True)
class StepSchedule:
    """A step size for each visit count n >= 1: μ(n) = c / ((n + n0)^p log(n + n0)^[log]), or a function of n.

    `StepSchedule(0.6)` is n^-0.6; `harmonic`, `log_harmonic`, `constant` and `custom` name the other forms.
    Every value must lie in (0, 1].
    """

    p: float = 1.0
    c: float = 1.0
    n0: float = 0.0
    log: bool = False
    function: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        for name in ("p", "c", "n0"):
            object.__setattr__(self, name, validate.real(getattr(self, name), name))
        if not (self.p >= 0.0 and math.isfinite(self.p)):
            raise InvalidArgument(f"p must be a number >= 0, so that step sizes do not grow; found {self.p!r}")
        if not (self.n0 > -1.0 and math.isfinite(self.n0)):
            raise InvalidArgument(f"n0 must be a number > -1, so that n + n0 > 0 for n = 1; found {self.n0!r}")
        if self.log and self.n0 <= 0.0:
            raise InvalidArgument(f"with log=True, n0 must be > 0, or log(1 + n0) is not positive; found {self.n0!r}")
        self(1)

    @classmethod
    def polynomial(cls, p: float, c: float = 1.0, n0: float = 0.0) -> StepSchedule:
        """μ(n) = c / (n + n0)^p."""
        return cls(p, c, n0)

    @classmethod
    def harmonic(cls, n0: float = 1.0, c: float = 1.0) -> StepSchedule:
        """μ(n) = c / (n + n0)."""
        return cls(1.0, c, n0)

    @classmethod
    def log_harmonic(cls, n0: float = 1.0, c: float = 1.0) -> StepSchedule:
        """μ(n) = c / ((n + n0) log(n + n0)), slow enough to keep trying every action."""
        return cls(1.0, c, n0, log=True)

    @classmethod
    def constant(cls, c: float) -> StepSchedule:
        """μ(n) = c."""
        return cls(0.0, c)

    @classmethod
    def custom(cls, function: Callable[[Any], Any]) -> StepSchedule:
        """μ(n) = function(n); the function may take a number or an array of them."""
        return cls(function=function)

    def __call__(self, n: Any) -> Any:
        """The step size at visit n (a number, or an array of them)."""
        counts = np.asarray(n)
        if counts.size and not counts.min() >= 1:
            raise InvalidArgument(f"visits are counted from 1; found n = {counts.min()}")
        values = self._values(counts)
        wrong = ~((values > 0.0) & (values <= 1.0))
        if wrong.any():
            at = int(np.flatnonzero(wrong.ravel())[0])
            raise InvalidArgument(
                f"the step size at visit {counts.ravel()[at]} is {values.ravel()[at]:.6g}; step sizes must lie in (0, 1]. "
                "Choose a smaller c or a larger n0."
            )
        return float(values) if counts.ndim == 0 else values

    def _values(self, counts: Any) -> FloatArray:
        if self.function is not None:
            try:
                values = np.asarray(self.function(counts if counts.ndim else counts.item()), dtype=np.float64)
            except (TypeError, ValueError):
                values = np.empty(0)
            if values.shape != counts.shape:
                function = self.function
                flat = [float(function(n)) for n in counts.ravel().tolist()]
                values = np.array(flat, dtype=np.float64).reshape(counts.shape)
            return values
        x = counts + self.n0
        values = np.asarray(self.c / x**self.p, dtype=np.float64)
        return values / np.log(x) if self.log else values

    def to_json(self) -> dict[str, Any]:
        """What a file holds of this schedule; a function is only named."""
        if self.function is not None:
            return {"custom": getattr(self.function, "__name__", "function")}
        return {"p": self.p, "c": self.c, "n0": self.n0, "log": self.log}

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> StepSchedule:
        """The schedule a file holds."""
        if "custom" in held:
            raise InvalidArgument(
                f"the step size was the function {held['custom']}, which a file cannot hold; "
                "give the learner again: Run.load(path, learner=...)"
            )
        return cls(**held)

    def __repr__(self) -> str:
        return f"StepSchedule({self})"

    def __str__(self) -> str:
        if self.function is not None:
            return getattr(self.function, "__name__", "custom")
        if self.p == 0.0 and not self.log:
            return f"{self.c:g}"
        base = f"(n+{self.n0:g})" if self.n0 else "n"
        below = base if self.p == 1.0 else f"{base}^{self.p:g}"
        return f"{self.c:g}/({below} log{base})" if self.log else f"{self.c:g}/{below}"
