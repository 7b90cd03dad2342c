"""One step: T, T^π, the greedy policies, and the value of a policy (section 2 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import kernels
from tightrope.engine import chain_value
from tightrope.kernels import unsigned
from tightrope.kernels.bounds import EPS
from tightrope.model import validate
from tightrope.model.policy import Policy

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.pairs import Pairs
    from tightrope.model.validate import BoolArray, FloatArray


def T(mdp: MDP, v: Any) -> FloatArray:
    """The optimal Bellman operator: (T v)(s) = max_a r(s,a) + γ Σ P(s'|s,a) v(s'); [S] to [S]."""
    return best(q_of(mdp, state_vector(mdp, v)), mdp.pairs)[0]


def T_pi(mdp: MDP, pi: Policy, v: Any) -> FloatArray:
    """The Bellman operator of a policy: T^π v = r^π + γ P^π v; [S] to [S]."""
    P, r = pi.induced(mdp)
    return r + mdp.gamma * (P @ state_vector(mdp, v))


def greedy(mdp: MDP, v: Any) -> Policy:
    """A one-step greedy policy, a member of G(v) = {π : T^π v = T v}; ties go to the lowest action."""
    return greedy_in(q_of(mdp, state_vector(mdp, v)), mdp.pairs)


def greedy_set(mdp: MDP, v: Any) -> BoolArray:
    """G(v) as one boolean per pair [L]: the pairs a greedy policy may use, up to a rounding tolerance."""
    return maximisers(q_of(mdp, state_vector(mdp, v)), mdp)


def value(mdp: MDP, pi: Policy) -> FloatArray:
    """v^π = (I - γ P^π)^-1 r^π [S], the fixed point of T^π, as exactly as floats allow."""
    P, r = pi.induced(mdp)
    return chain_value(P, r, mdp.gamma)


def q_value(mdp: MDP, pi: Policy) -> FloatArray:
    """q^π(s,a) = r(s,a) + γ Σ P(s'|s,a) v^π(s') [L], one number per pair."""
    return q_of(mdp, value(mdp, pi))


def state_vector(mdp: MDP, v: Any) -> FloatArray:
    """A user's v, checked: finite, one entry per state."""
    return validate.vector(v, mdp.n_states, "v", "state")


def pair_vector(mdp: MDP, q: Any, name: str) -> FloatArray:
    """A user's q, checked: finite, one entry per pair."""
    return validate.vector(q, mdp.n_pairs, name, "(state, action) pair")


def q_of(mdp: MDP, v: FloatArray) -> FloatArray:
    """r + γ P v [L]."""
    return mdp.r + mdp.gamma * (mdp.P @ v)


def best(q: FloatArray, pairs: Pairs) -> tuple[FloatArray, Any]:
    """max_a q(s,a) [S] and the lowest pair that attains it [S]."""
    top = np.empty(pairs.n_states)
    rows = np.empty(pairs.n_states, dtype=pairs.first.dtype)
    kernels.best_pairs(q, unsigned(pairs.first), top, rows, 0, len(top))
    return top, rows


def greedy_in(q: FloatArray, pairs: Pairs) -> Policy:
    """The policy that maximises q, ties to the lowest action."""
    return Policy.of_rows(pairs, best(q, pairs)[1])


def maximisers(q: FloatArray, mdp: MDP, discount: float = 0.0) -> BoolArray:
    """Pairs whose q is the state's maximum up to max|q| ε/(1 - discount), the error of a q solved for at that discount."""
    top, _ = best(q, mdp.pairs)
    tolerance = 4.0 * (mdp.width + 4) * EPS * float(np.abs(q).max()) / (1.0 - discount)
    return q >= np.repeat(top, mdp.pairs.counts) - tolerance
