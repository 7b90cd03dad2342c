"""Evaluation: from an improved policy to the value function the next improvement starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tightrope.engine import machine
from tightrope.model import validate
from tightrope.operators.kappa import blended

if TYPE_CHECKING:
    from tightrope.engine import Monitor
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray
    from tightrope.planning.improve import Improvement

#: How much of the gap the run is after, and of the gap there is, may be spent on not evaluating exactly.
SHARE, PRESENT = 0.25, 5e-5
#: The first of these for T_λ^π, whose errors an iteration does not leave behind.
FINE = 0.01
#: A λ below this would cost a blended surrogate a digit.
LITTLE = 0.1


class Evaluate(Protocol):
    """How a policy is evaluated."""

    def evaluate(self, mdp: MDP, found: Improvement, monitor: Monitor, goal: float) -> FloatArray:
        """A value function nearer that of found.policy; `goal` is the gap the whole run is after (0: be exact)."""


@dataclass(frozen=True)
class Exact:
    """v^π, the fixed point of T^π, as exactly as anything will show.

    That is to within a quarter of the gap the run is after, of which it then takes half at most, or 5e-5 of the gap that the
    improvement may leave where that is more.
    """

    def evaluate(self, mdp: MDP, found: Improvement, monitor: Monitor, goal: float) -> FloatArray:
        """By elimination, Gauss-Seidel or sweeps, whichever this chain is made for."""
        aim = max(SHARE * goal, PRESENT * found.gap) if 0.0 < goal < np.inf else 0.0
        return machine(monitor).policy_value(mdp, found.policy, found.guess, aim, monitor)


@dataclass(frozen=True)
class Sweeps:
    """(T^π)^m, m backups of the policy; m = 1 is value iteration."""

    m: int

    def __post_init__(self) -> None:
        validate.positive_integer(self.m, "m")

    def evaluate(self, mdp: MDP, found: Improvement, monitor: Monitor, goal: float) -> FloatArray:  # noqa: ARG002  (a protocol)
        """One sweep less where T^π base came with the improvement."""
        v, m = (found.guess, self.m - 1) if found.backed_up else (found.base, self.m)
        if m == 0:
            return v
        P, r = found.policy.induced(mdp)
        return machine(monitor).sweep_chain(P, r, mdp.gamma, v, m, monitor)


@dataclass(frozen=True)
class Lambda:
    """T_λ^π = (I - λγ P^π)^-1 (r^π + (1-λ)γ P^π v), from one backup (λ = 0) to exact evaluation (λ = 1)."""

    lam: float

    def __post_init__(self) -> None:
        validate.unit(self.lam, "lam")

    def evaluate(self, mdp: MDP, found: Improvement, monitor: Monitor, goal: float) -> FloatArray:
        """The value of the policy in the surrogate with discount λγ, blended."""
        lam, v = self.lam, found.base
        if lam < LITTLE:
            P, r = found.policy.induced(mdp)
            shaped = r + ((1.0 - lam) * mdp.gamma) * (P @ v)
            monitor.backups += mdp.n_states
            return machine(monitor).chain_value(P, shaped, lam * mdp.gamma, found.guess, FINE * goal, monitor)
        guess = v + lam * (found.guess - v)
        y = machine(monitor).policy_value(blended(mdp, v, lam), found.policy, guess, lam * FINE * goal, monitor)
        return v + (y - v) / lam
