"""h steps ahead: T^h, T_h^π and the h-greedy policies (section 3 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tightrope.model import validate
from tightrope.operators.bellman import T, T_pi, greedy, greedy_set, state_vector

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.validate import BoolArray, FloatArray


def T_h(mdp: MDP, v: Any, h: int) -> FloatArray:
    """T^h v: the best h-step return that ends with v; a γ^h-contraction with fixed point v*."""
    return T(mdp, _ahead(mdp, v, h))


def T_h_pi(mdp: MDP, pi: Policy, v: Any, h: int) -> FloatArray:
    """T_h^π v = T^π T^{h-1} v: take π once, then act optimally for h-1 steps."""
    return T_pi(mdp, pi, _ahead(mdp, v, h))


def h_greedy(mdp: MDP, v: Any, h: int) -> Policy:
    """A member of G_h(v) = {π : T_h^π v = T^h v}: greedy with respect to T^{h-1} v; ties go to the lowest action."""
    return greedy(mdp, _ahead(mdp, v, h))


def h_greedy_set(mdp: MDP, v: Any, h: int) -> BoolArray:
    """G_h(v) as one boolean per pair [L], up to a rounding tolerance."""
    return greedy_set(mdp, _ahead(mdp, v, h))


def _ahead(mdp: MDP, v: Any, h: int) -> FloatArray:
    """T^{h-1} v."""
    ahead = state_vector(mdp, v)
    for _ in range(validate.horizon(h) - 1):
        ahead = T(mdp, ahead)
    return ahead
