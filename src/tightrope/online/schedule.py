"""Step sizes, and which conditions of two-timescale learning a pair of them meets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidArgument
from tightrope.model import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tightrope.model.policy import Policy
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


class MayGetStuck(UserWarning):
    """Some actions will be tried finitely often only, so that learning can stop short of the optimum."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of convergence: whether it holds (None: cannot be decided) and the sentence that says so."""

    name: str
    holds: bool | None
    sentence: str


@dataclass(frozen=True, slots=True)
class TwoTimescale:
    """What `check_two_timescale` found; printed, it is the list of sentences."""

    conditions: tuple[Condition, ...]

    @property
    def holds(self) -> bool:
        """Whether every condition is known to hold."""
        return all(condition.holds for condition in self.conditions)

    @property
    def may_get_stuck(self) -> bool:
        """Whether some action is known to be tried finitely often only."""
        return any(c.holds is False for c in self.conditions if c.name in _TRYING)

    @property
    def warning(self) -> str:
        """The sentences of the conditions that let a run get stuck."""
        return " ".join(c.sentence for c in self.conditions if c.name in _TRYING and c.holds is False)

    def __getitem__(self, name: str) -> Condition:
        return next(c for c in self.conditions if c.name == name)

    def __str__(self) -> str:
        mark = {True: "yes", False: "NO ", None: "?  "}
        return "\n".join(f"{mark[c.holds]}  {c.sentence}" for c in self.conditions)


_TRYING = ("slow starts below one", "every action is tried for ever", "support of pi_0")


def check_two_timescale(fast: StepSchedule, slow: StepSchedule, explore: float = 0.0, pi0: Policy | None = None) -> TwoTimescale:
    """Which conditions of Algorithm 1 hold: (B2) on the step sizes, and that every action is tried for ever.

    An action that b_s does not choose keeps probability π_0 Π_j (1 - μ_s(j)); it is tried infinitely often iff
    Σ_n Π_{j<=n} (1 - μ_s(j)) = ∞, which the step-size conditions of the paper do not give. Sampling a uniform action with
    probability `explore` > 0 does, and moves no fixed point.
    """
    e = validate.unit(explore, "explore")
    found = [
        _condition(f"{name} sums diverge", _diverges(mu, 1), f"Σ {mu} over visits", "diverges", "the {} step sizes", name)
        for name, mu in (("fast", fast), ("slow", slow))
    ]
    found += [
        _condition(f"{name} squares summable", _summable(mu), f"Σ ({mu})²", "is finite", "the {} step sizes", name)
        for name, mu in (("fast", fast), ("slow", slow))
    ]
    found.append(_separation(fast, slow))
    found += _trying(slow, e, pi0)
    return TwoTimescale(tuple(found))


def _condition(name: str, holds: bool | None, what: str, verb: str, of: str, which: str) -> Condition:
    """A condition on one schedule in words."""
    who = of.format(which)
    if holds is None:
        return Condition(name, None, f"Whether {what} {verb} cannot be decided for a custom schedule ({who}).")
    said = verb if holds else {"diverges": "does not diverge", "is finite": "is infinite"}[verb]
    return Condition(name, holds, f"{what} {said} ({who}).")


def _diverges(mu: StepSchedule, power: int) -> bool | None:
    """Whether Σ μ(n)^power = ∞: compare with Σ 1/n^p and Σ 1/(n log n), which diverge, and Σ 1/(n log² n), which does not."""
    if mu.function is not None:
        return None
    p = mu.p * power
    return p < 1.0 or (p == 1.0 and (not mu.log or power == 1))


def _summable(mu: StepSchedule) -> bool | None:
    """Whether Σ μ(n)² < ∞."""
    diverges = _diverges(mu, 2)
    return None if diverges is None else not diverges


def _separation(fast: StepSchedule, slow: StepSchedule) -> Condition:
    """Whether μ_s(n)/μ_f(n) -> 0."""
    name, ratio = "slow/fast vanishes", f"({slow}) / ({fast})"
    if fast.function is not None or slow.function is not None:
        return Condition(name, None, "Whether slow/fast tends to 0 cannot be decided for a custom schedule.")
    holds = slow.p > fast.p or (slow.p == fast.p and slow.log and not fast.log)
    if holds:
        return Condition(name, True, f"The ratio slow/fast = {ratio} tends to 0.")
    return Condition(name, False, f"The ratio slow/fast = {ratio} does not tend to 0: π moves as fast as its q is learned.")


def _trying(slow: StepSchedule, explore: float, pi0: Policy | None) -> list[Condition]:
    """The three conditions of note B11 that keep every action alive; any `explore` > 0 meets all of them."""
    if explore > 0.0:
        why = f"explore = {explore:g} tries every action for ever"
        return [
            Condition(_TRYING[0], True, f"{why}, whatever slow(1) is."),
            Condition(_TRYING[1], True, f"{why}, whatever the slow step sizes are."),
            Condition(_TRYING[2], True, f"{why}, whatever the support of π_0 is."),
        ]
    start = slow(1)
    remedy = "Set explore > 0."
    below = Condition(
        _TRYING[0],
        start < 1.0,
        f"slow(1) = {start:.4g} is below one."
        if start < 1.0
        else f"slow(1) = 1 erases the support of π_0 at the first visit of a state. {remedy}",
    )
    holds = _keeps_trying(slow)
    product = f"Σ_n Π_j<=n (1 - μ_s(j)) with μ_s = {slow}"
    sentence = {
        True: f"{product} is infinite: actions not chosen are still tried for ever, though ever more rarely.",
        False: f"{product} is finite: an action not chosen is tried finitely often, and learning can get stuck. {remedy}",
        None: f"Whether {product} is infinite cannot be decided for a custom schedule; explore > 0 makes it irrelevant.",
    }[holds]
    return [below, Condition(_TRYING[1], holds, sentence), _support(pi0, remedy)]


def _keeps_trying(slow: StepSchedule) -> bool | None:
    """Whether Σ_n Π_{j<=n} (1 - μ_s(j)) = ∞: the product falls like n^-c for c/n, like (log n)^-c for c/(n log n)."""
    if slow(1) >= 1.0:
        return False
    if slow.function is not None:
        return None
    return slow.p > 1.0 or (slow.p == 1.0 and (slow.log or slow.c <= 1.0))


def _support(pi0: Policy | None, remedy: str) -> Condition:
    """Whether π_0 gives every action a chance."""
    if pi0 is None:
        return Condition(_TRYING[2], True, "π_0 is uniform: every action has a chance.")
    never = pi0.weights <= 0.0
    if not never.any():
        return Condition(_TRYING[2], True, "π_0 gives every action a chance.")
    where = pi0.pairs.describe(int(np.flatnonzero(never)[0]))
    return Condition(_TRYING[2], False, f"π_0 never tries {where} (and {int(never.sum()) - 1} more pairs). {remedy}")
