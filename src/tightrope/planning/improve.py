"""Improvement: from a value function to a better policy, looking one step, h steps or κ-weighted steps ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tightrope import kernels
from tightrope.engine import Status, Sweep, machine
from tightrope.model import validate
from tightrope.model.policy import Policy
from tightrope.operators.kappa import blended, xi

if TYPE_CHECKING:
    from tightrope.engine import Monitor
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray
    from tightrope.planning.iteration import Iterate


#: How much of what an iteration can gain is spent on not solving its surrogate exactly.
FORCING = 0.3


@dataclass(frozen=True, eq=False, slots=True)
class Improvement:
    """A policy, the value its evaluation is defined from, and a guess at the result to start computing from."""

    policy: Policy
    base: FloatArray
    guess: FloatArray
    #: Whether the guess is T^π base, so that the first backup of an evaluation is already done.
    backed_up: bool = True
    #: The certified gap that the improvement may leave; an evaluation that is much more exact is wasted.
    gap: float = 0.0


class Improve(Protocol):
    """How a policy is improved."""

    @property
    def least_step(self) -> float:
        """The smallest α for which a soft update is safe in every MDP (Theorem 1)."""

    def improve(self, mdp: MDP, now: Iterate, monitor: Monitor, goal: float) -> Improvement:
        """A policy that is greedy, in this sense, with respect to now.v; `goal` is the gap the whole run is after."""


@dataclass(frozen=True)
class OneStep:
    """The one-step greedy policy, a member of G(v)."""

    @property
    def least_step(self) -> float:
        """Every α in (0, 1] improves."""
        return 0.0

    def improve(self, mdp: MDP, now: Iterate, monitor: Monitor, goal: float) -> Improvement:  # noqa: ARG002  (a protocol)
        """The iterate was backed up once already: its greedy policy and T v are known."""
        return Improvement(now.greedy, now.v, now.Tv, gap=now.certificate.gap)


@dataclass(frozen=True)
class Lookahead:
    """The h-greedy policy, a member of G_h(v): greedy with respect to T^{h-1} v, from which its evaluation starts."""

    h: int

    def __post_init__(self) -> None:
        validate.horizon(self.h)

    @property
    def least_step(self) -> float:
        """Only hard updates improve in every MDP once h > 1."""
        return 0.0 if self.h == 1 else 1.0

    def improve(self, mdp: MDP, now: Iterate, monitor: Monitor, goal: float) -> Improvement:  # noqa: ARG002  (a protocol)
        """h-1 more backups after the one that made the iterate."""
        if self.h == 1:
            return Improvement(now.greedy, now.v, now.Tv, gap=now.certificate.gap)
        ahead = now.Tv
        for _ in range(self.h - 2):
            ahead = machine(monitor).backup(mdp, ahead, monitor).u
        last = machine(monitor).backup(mdp, ahead, monitor)
        monitor.backups += (self.h - 1) * mdp.n_pairs
        return Improvement(Policy.of_rows(mdp.pairs, last.rows), ahead, last.u, gap=now.certificate.gap)


@dataclass(frozen=True)
class Kappa:
    """The κ-greedy policy, a member of G_κ(v): optimal for the surrogate MDP with discount κγ and reward r + (1-κ)γ P v.

    The surrogate is solved to within `forcing` of what this iteration can gain; 0 solves it as exactly as floats allow.
    """

    kappa: float
    forcing: float = FORCING

    def __post_init__(self) -> None:
        validate.kappa(self.kappa)
        validate.unit(self.forcing, "forcing")

    def __repr__(self) -> str:
        return f"Kappa({self.kappa:g})" if self.forcing == FORCING else f"Kappa({self.kappa:g}, forcing={self.forcing:g})"

    @property
    def least_step(self) -> float:
        """α must be at least κ."""
        return self.kappa

    def improve(self, mdp: MDP, now: Iterate, monitor: Monitor, goal: float) -> Improvement:
        """Solve the surrogate, blended, from v, whose backup is known already."""
        kappa, v, gap = self.kappa, now.v, now.certificate.gap
        # The loss shrinks to ξ of itself, and an ε-optimal surrogate policy adds ε/(1-ξ): more exactness than this is wasted.
        rate = xi(mdp.gamma, kappa)
        waste = self.forcing * max(rate * gap, goal)
        nothing_known = now.policy is None and mdp.has_sinks and v.min() == v.max()
        # The backup of v proves its greedy policy κ-greedy to within κ(1-ξ) gap.
        if kappa == 0.0 or (kappa * gap <= waste < np.inf and not nothing_known):
            return Improvement(now.greedy, v, now.Tv, gap=rate * gap)
        limit = kappa * (1.0 - rate) * waste
        watch = monitor.inner(limit if limit < np.inf else 0.0)  # nothing is proved where 1-γ is lost in rounding
        inner = blended(mdp, v, kappa, monitor.room.rewards(mdp), (v[0], v[0]) if nothing_known else now.extent)
        if nothing_known:  # values are to spread from the sinks
            status = machine(monitor).optimise(inner, watch, None)
        else:
            low, high = now.change
            ahead = np.empty_like(v)
            kernels.towards(v, now.Tv, kappa, ahead)
            look = Sweep(ahead, np.asarray(now.greedy.rows), kappa * low, kappa * high)
            status = machine(monitor).optimise(inner, watch, v, look)
        monitor.backups += watch.backups
        if status is Status.INTERRUPTED:  # the engine kept its best; here the whole run is to end
            raise KeyboardInterrupt
        # What the engine ends with, unshifted: a constant would have to leave through the sinks again, sweep by sweep.
        rows, certificate = watch.best
        x = certificate.base
        kernels.towards(v, x, 1.0 / kappa, x)
        return Improvement(Policy.of_rows(mdp.pairs, rows), v, x, backed_up=False, gap=rate * gap)
