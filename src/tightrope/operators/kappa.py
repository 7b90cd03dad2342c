"""κ-weighted lookahead: the surrogate MDP, T_κ, T_κ^π, the κ-greedy policies and their q-functions (sections 3 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import kernels
from tightrope.engine import chain_value, optimal
from tightrope.kernels import unsigned
from tightrope.model import validate
from tightrope.operators.bellman import best, greedy_in, maximisers, pair_vector, q_of, state_vector, value

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.validate import BoolArray, FloatArray
    from tightrope.operators.discounting import Discounting


def xi(gamma: float, kappa: float) -> float:
    """The contraction modulus ξ = γ(1-κ)/(1-γκ) of T_κ, with 1-γκ computed as (1-κ) + κ(1-γ) to keep its digits."""
    g, k = validate.gamma(gamma), validate.kappa(kappa)
    return g * (1.0 - k) / ((1.0 - k) + k * (1.0 - g))


def surrogate(mdp: MDP, v: Any, kappa: float) -> MDP:
    """The MDP whose optimal policies are the κ-greedy ones: discount κγ, reward r + (1-κ)γ P v, sharing P (Remark 1)."""
    k = validate.kappa(kappa)
    shaped = mdp.r + ((1.0 - k) * mdp.gamma) * (mdp.P @ state_vector(mdp, v)) if k < 1.0 else mdp.r
    return mdp.reshaped(shaped, k * mdp.gamma)


def blended(
    mdp: MDP, v: FloatArray, kappa: float, out: FloatArray | None = None, extent: tuple[float, float] | None = None
) -> MDP:
    """The surrogate one step earlier: discount κγ, reward κ r + (1-κ) v(s), optimum x = (1-κ) v + κ T_κ v; no product with P.

    x = (1-κ) v + κ T x, and T x = T_κ v: an action is optimal here if and only if it is in the surrogate, and what is wrong by
    ε there is wrong by κε here. v is trusted, and so are the bounds `extent` on it; rewards are written to `out`, if given.
    """
    r = np.empty_like(mdp.r) if out is None else out
    kernels.blend(mdp.r, unsigned(mdp.first), v, kappa, r)
    if extent is None:
        return mdp.reshaped(r, kappa * mdp.gamma)
    low, high = (kappa * x + (1.0 - kappa) * y for x, y in zip(mdp.reward_range, extent, strict=True))
    return mdp.reshaped(r, kappa * mdp.gamma, (low, high))


def T_kappa(mdp: MDP, v: Any, kappa: float) -> FloatArray:
    """T_κ v = max_π (I - κγ P^π)^-1 (r^π + (1-κ)γ P^π v): the optimal value of the surrogate; a ξ-contraction [S] to [S]."""
    inner = surrogate(mdp, v, kappa)
    return value(inner, optimal(inner, tol=0.0, v0=state_vector(mdp, v)).policy)


def T_kappa_pi(mdp: MDP, pi: Policy, v: Any, kappa: float) -> FloatArray:
    """T_κ^π v = (I - κγ P^π)^-1 (r^π + (1-κ)γ P^π v) [S] to [S]; follow π, and stop with probability 1-κ at v."""
    k = validate.kappa(kappa)
    P, r = pi.induced(mdp)
    return chain_value(P, r + ((1.0 - k) * mdp.gamma) * (P @ state_vector(mdp, v)), k * mdp.gamma)


def kappa_greedy(mdp: MDP, v: Any, kappa: float) -> Policy:
    """A member of G_κ(v) = {π : T_κ^π v = T_κ v}; ties go to the lowest action."""
    return greedy_in(_q_ahead(mdp, v, kappa), mdp.pairs)


def kappa_greedy_set(mdp: MDP, v: Any, kappa: float) -> BoolArray:
    """G_κ(v) as one boolean per pair [L]: the policies made of these pairs are the κ-greedy ones, up to rounding."""
    return maximisers(_q_ahead(mdp, v, kappa), mdp, validate.kappa(kappa) * mdp.gamma)


def q_kappa(mdp: MDP, pi: Policy, kappa: float) -> FloatArray:
    """q_κ^π [L], the optimal q-function of the surrogate at v^π; q_0^π = q^π and q_1^π = q*."""
    return _q_ahead(mdp, value(mdp, pi), kappa)


def H_kappa(mdp: MDP, pi: Policy, q: Any, q_kappa: Any, kappa: float) -> tuple[FloatArray, FloatArray]:
    """The fast-timescale mapping H_κ^π of Definition 1, [L] and [L]; a γ-contraction with fixed point (q^π, q_κ^π).

    H(q, q_κ) = (r + γ P v, r + (1-κ)γ P v + κγ P max_a q_κ) with v(s) = Σ_a π(a|s) q(s,a).
    """
    k = validate.kappa(kappa)
    pi.check(mdp)
    v = pi.averaging() @ pair_vector(mdp, q, "q")
    w, _ = best(pair_vector(mdp, q_kappa, "q_kappa"), mdp.pairs)
    return q_of(mdp, v), q_of(mdp, (1.0 - k) * v + k * w)


def D_kappa(mdp: MDP, pi: Policy, kappa: float) -> Discounting:
    """The stochastic matrix D_κ^π = (1-κγ)(I - κγ P^π)^-1 [S, S] as a linear operator; `toarray` forms it for small S."""
    from tightrope.operators.discounting import Discounting  # noqa: PLC0415  (scipy.sparse.linalg costs 70 ms)

    k = validate.kappa(kappa)
    return Discounting(pi.induced(mdp)[0], k * mdp.gamma, (1.0 - k) + k * (1.0 - mdp.gamma))


def _q_ahead(mdp: MDP, v: Any, kappa: float) -> FloatArray:
    """r + γ P((1-κ) v + κ T_κ v) [L], the optimal q-function of the surrogate at v."""
    k = validate.kappa(kappa)
    here = state_vector(mdp, v)
    return q_of(mdp, here if k == 0.0 else (1.0 - k) * here + k * T_kappa(mdp, here, k))
