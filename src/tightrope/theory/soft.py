"""Is a soft update safe? Theorem 1 for all MDPs at once, and its proof's quantities for the very MDP and policy at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.engine import chain_value
from tightrope.errors import InvalidArgument, UnsafeUpdate
from tightrope.kernels.bounds import EPS
from tightrope.model import validate
from tightrope.model.policy import mix
from tightrope.operators import T_pi, h_greedy, kappa_greedy, value, xi

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True, eq=False)
class Case:
    """What the update (1-α)π + απ' does in one MDP, π' being the lowest-index κ- or h-greedy policy at v^π.

    `change` [S] is v' - v, computed as α(I - γP')^-1 (T^{π'}v - v); `slope` [S] is its derivative at α = 0,
    (I - γP^π)^-1 (T^{π'}v - v); `advantage` [S] is T^{π'}v - v. Signs within the tolerances are rounding.
    """

    change: FloatArray
    slope: FloatArray
    advantage: FloatArray
    tolerance: float

    @property
    def improves(self) -> bool:
        """Whether v' >= v in every state, for this alpha."""
        return bool(self.change.min() >= -self.tolerance)

    @property
    def improves_for_every_alpha(self) -> bool:
        """Whether T^{π'}v >= v, which is sufficient for v' >= v at every alpha in (0, 1]."""
        return bool(self.advantage.min() >= -self.tolerance)

    @property
    def improves_for_small_alpha(self) -> bool:
        """Whether the slope is >= 0, which decides small alpha (where it is exactly 0 the second order does)."""
        return bool(self.slope.min() >= -self.tolerance)

    @property
    def worst(self) -> int:
        """The state whose value changes for the worse the most (or improves the least)."""
        return int(self.change.argmin())

    def __str__(self) -> str:
        s = self.worst
        if self.improves:
            gain = float(self.change.max())
            here = (
                f"In this MDP and from this policy no state loses; the largest gain is {gain:.4g}."
                if gain > self.tolerance
                else "In this MDP and from this policy nothing changes: the policy is optimal already."
            )
        else:
            here = f"In this MDP and from this policy state {s} loses {-self.change[s]:.4g}."
        if self.improves_for_every_alpha:
            return f"{here} No alpha in (0, 1] can do harm here, because T^pi' v >= v."
        if self.improves_for_small_alpha:
            return f"{here} Small enough steps are monotone here, because (I - gamma P^pi)^-1 (T^pi' v - v) >= 0."
        return f"{here} No small step is monotone here: (I - gamma P^pi)^-1 (T^pi' v - v) has negative entries."


@dataclass(frozen=True, eq=False)
class SoftUpdate:
    """The answer of `soft_update_is_safe`: it prints as a sentence and is true when the update is safe.

    `always` says whether v' >= v holds in every MDP; `case`, when a model and a policy were given, what happens there.
    """

    alpha: float
    kappa: float | None
    h: int | None
    case: Case | None = None

    @property
    def always(self) -> bool:
        """Whether Theorem 1 guarantees v^{(1-α)π+απ'} >= v^π in every MDP and from every policy."""
        return self.alpha >= self.least_alpha

    @property
    def least_alpha(self) -> float:
        """The smallest step that Theorem 1 guarantees: κ, or 1 for h > 1."""
        if self.kappa is not None:
            return self.kappa
        return 0.0 if self.h == 1 else 1.0

    def __bool__(self) -> bool:
        return self.always or (self.case is not None and self.case.improves)

    def __str__(self) -> str:
        if self.kappa is not None:
            which, rule = f"kappa = {self.kappa:g}", "alpha >= kappa"
        else:
            which, rule = (
                f"h = {self.h}",
                "alpha = 1" if self.h != 1 else "every alpha, h = 1 being the one-step greedy policy",
            )
        general = (
            f"Safe in every MDP: alpha = {self.alpha:g}, {which}; Theorem 1 guarantees v' >= v for {rule}."
            if self.always
            else f"Not safe in every MDP: alpha = {self.alpha:g}, {which}; Theorem 1 guarantees v' >= v only for {rule}, "
            "and the Tightrope MDP is a counterexample otherwise."
        )
        return general if self.case is None else f"{general} {self.case}"


def soft_update_is_safe(
    alpha: float,
    *,
    kappa: float | None = None,
    h: int | None = None,
    mdp: MDP | None = None,
    pi: Policy | None = None,
) -> SoftUpdate:
    """Whether (1-α)π + απ' is at least as good as π, for π' κ-greedy (give `kappa`) or h-greedy (give `h`) at v^π.

    Theorem 1: v' >= v in every MDP iff α >= κ; for h > 1 iff α = 1. Given a model and a policy, also what happens there.
    """
    step = validate.alpha(alpha)
    if (kappa is None) == (h is None):
        raise InvalidArgument("give either kappa=... or h=..., the policy that the update moves towards")
    if (mdp is None) != (pi is None):
        raise InvalidArgument("give both mdp=... and pi=..., or neither: one model says nothing without a policy to start from")
    k = None if kappa is None else validate.kappa(kappa)
    ahead = None if h is None else validate.horizon(h)
    case = None if mdp is None or pi is None else _case(mdp, pi, step, k, ahead)
    return SoftUpdate(step, k, ahead, case)


def soft_rate(gamma: float, kappa: float, alpha: float) -> float:
    """The factor by which a safe soft update shrinks the loss: max(v* - v') <= (1 - α(1-ξ)) max(v* - v), for α >= κ.

    It follows from v' - v >= α(T_κ v - v), the quantitative form of Theorem 1; α = 1 gives κ-PI's ξ.
    """
    modulus, step = xi(gamma, kappa), validate.alpha(alpha)
    if step < kappa:
        raise UnsafeUpdate(
            f"alpha = {step:g} < kappa = {kappa:g}: Theorem 1 guarantees improvement only for alpha >= kappa, so there "
            "is no rate. Take a larger alpha, or ask soft_update_is_safe about your model."
        )
    return (1.0 - step) + step * modulus


def _case(mdp: MDP, pi: Policy, alpha: float, kappa: float | None, h: int | None) -> Case:
    v = value(mdp, pi)
    target = kappa_greedy(mdp, v, kappa) if kappa is not None else h_greedy(mdp, v, h or 1)
    ahead = T_pi(mdp, target, v)
    advantage = ahead - v
    slope = chain_value(pi.induced(mdp)[0], advantage, mdp.gamma)
    change = alpha * chain_value(mix(pi, target, alpha).induced(mdp)[0], advantage, mdp.gamma)
    size = max(float(np.abs(v).max()), float(np.abs(ahead).max()), mdp.reward_size)
    # The residual of a solved v is a few ulps of |v|; (I - γP)^-1 multiplies it by at most 1/(1-γ).
    return Case(change, slope, advantage, 16.0 * (mdp.width + 4) * EPS * size / (1.0 - mdp.gamma))
