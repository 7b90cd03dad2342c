"""Which conditions of two-timescale learning a pair of step sizes meets, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.model import validate

if TYPE_CHECKING:
    from tightrope.model.policy import Policy
    from tightrope.online.schedule import StepSchedule


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
    """The three conditions that keep every action alive; any `explore` > 0 meets all of them."""
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
