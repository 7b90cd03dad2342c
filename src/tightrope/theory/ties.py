"""Ties in π*: the starred coefficients depend on which optimal policy is followed, and every bound holds for each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.engine import optimal
from tightrope.model.mdp import MDP
from tightrope.model.policy import Policy
from tightrope.operators.bellman import maximisers, q_of
from tightrope.theory import rates
from tightrope.theory.concentrability import concentrability
from tightrope.theory.interval import INFINITE, Interval, outwards

if TYPE_CHECKING:
    from tightrope.model.validate import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class EasiestOptimal:
    """An optimal policy with the smallest C_κ^{π*}, and that minimum over all optimal policies as a certified interval."""

    policy: Policy
    C_star_kappa: Interval


def easiest_optimal(mdp: MDP, mu: Any = None, nu: Any = None, kappa: float = 0.0, *, rtol: float = 1e-3) -> EasiestOptimal:
    """The optimal policy, stochastic ones included, that ν covers best: min over π* of max_s d_{κ,μ}^{π*}(s)/ν(s).

    A linear program over the visits y of the optimal pairs: min t with Σ_a y(s,a) - γ Σ_l P(s|l) y(l) = (1-γ)μ(s) and
    w μ(s) + (1-w) Σ_a y(s,a) <= t ν(s). The policy found proves the upper end; the prices u of the covering constraints prove
    the lower one, as the discounted cost (1-w)u of the cheapest optimal policy. Arguments as in `concentrability`.
    """
    base = concentrability(mdp, mu, nu, rtol=rtol)
    stay = rates.stay_weight(mdp.gamma, kappa)
    v = optimal(mdp, tol=0.0).value
    allowed = maximisers(q_of(mdp, v), mdp, mdp.gamma)
    if stay == 1.0 or mdp.gamma == 0.0:
        return EasiestOptimal(base.pi_star, base.C_star_kappa(kappa))
    safe, kept = _covered(mdp, allowed, base.nu)
    if (base.mu[~safe] > 0.0).any():
        return EasiestOptimal(base.pi_star, INFINITE)
    small = _restricted(mdp, safe, kept)
    visits, prices = _program(small, base.mu[safe], base.nu[safe], stay)
    weights = np.zeros(mdp.n_pairs)
    weights[kept] = visits
    policy = _policy(mdp, weights, np.where(safe[mdp.pairs.states], kept, allowed))
    upper = concentrability(mdp, base.mu, base.nu, policy, rtol=rtol).C_star_kappa(kappa).upper
    lower = _priced(small, base.mu[safe], base.nu[safe], stay, prices)
    return EasiestOptimal(policy, Interval(min(max(1.0, lower), upper), upper))


def _covered(mdp: MDP, allowed: BoolArray, nu: FloatArray) -> tuple[BoolArray, BoolArray]:
    """States from which some optimal policy never meets ν = 0, and the optimal pairs that keep it so: decided on the support."""
    safe = nu > 0.0
    while True:
        kept = allowed & safe[mdp.pairs.states] & ~((mdp.P @ (~safe).astype(np.float64)) > 0.0)
        still = safe & np.logical_or.reduceat(kept, mdp.first[:-1])
        if (still == safe).all():
            return safe, kept
        safe = still


def _restricted(mdp: MDP, safe: BoolArray, kept: BoolArray) -> MDP:
    """The model of the kept pairs between safe states, without rewards."""
    counts = np.add.reduceat(kept.astype(np.int64), mdp.first[:-1])[safe]
    P = sp.csr_array(mdp.P[kept][:, np.flatnonzero(safe)])
    return MDP(P, np.zeros(P.shape[0]), mdp.gamma, first=np.concatenate(([0], np.cumsum(counts))))


def _program(small: MDP, mu: FloatArray, nu: FloatArray, stay: float) -> tuple[FloatArray, FloatArray]:
    """The visits of each pair and the prices of the covering constraints, by HiGHS."""
    from scipy.optimize import linprog  # noqa: PLC0415  (loads a solver that little else needs)

    S, L = small.n_states, small.n_pairs
    own = sp.csr_array((np.ones(L), (small.pairs.states, np.arange(L))), shape=(S, L))
    conserve = sp.hstack([own - small.gamma * sp.csr_array(small.P.T), sp.csr_array((S, 1))])
    cover = sp.hstack([(1.0 - stay) * sp.diags_array(1.0 / nu) @ own, sp.csr_array(-np.ones((S, 1)))])
    cost = np.zeros(L + 1)
    cost[-1] = 1.0
    found = linprog(
        cost,
        A_ub=sp.csr_matrix(cover),
        b_ub=-stay * mu / nu,
        A_eq=sp.csr_matrix(conserve),
        b_eq=(1.0 - small.gamma) * mu,
        bounds=[(0.0, None)] * L + [(None, None)],
        method="highs",
    )
    if found.x is None:  # the solver gave up: any optimal policy and any prices still prove an interval
        return np.ones(L), np.ones(S)
    return np.maximum(found.x[:-1], 0.0), np.maximum(-found.ineqlin.marginals, 0.0)


def _policy(mdp: MDP, visits: FloatArray, fallback: BoolArray) -> Policy:
    """π(a|s) proportional to the visits; where there are none, the first admissible action."""
    first, counts = mdp.first, mdp.pairs.counts
    rows = np.arange(mdp.n_pairs)
    lowest = np.minimum.reduceat(np.where(fallback, rows, mdp.n_pairs), first[:-1])
    total = np.add.reduceat(visits, first[:-1])
    weights = np.divide(visits, np.repeat(total, counts), out=np.zeros_like(visits), where=np.repeat(total > 1e-12, counts))
    weights[lowest[total <= 1e-12]] = 1.0
    return Policy.stochastic(mdp, weights)


def _priced(small: MDP, mu: FloatArray, nu: FloatArray, stay: float, prices: FloatArray) -> float:
    """Weak duality: for u >= 0 with Σ u ν = 1, every optimal policy has max_s d_κ/ν >= Σ u d_κ >= w μu + (1-γ) μ z."""
    total = float(prices.sum())
    if not 0.0 < total < math.inf:
        return 1.0
    u = prices / total / nu
    costs = np.repeat((1.0 - stay) * u, small.pairs.counts)
    z = -optimal(small.reshaped(-costs, small.gamma), tol=0.0).certificate.upper
    return outwards(float(stay * (mu @ u) + (1.0 - small.gamma) * (mu @ z)), 0.0, steps=len(mu)).lower
