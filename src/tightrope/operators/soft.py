"""Soft updates: the cautious target b_s of Algorithm 1 (section 5 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.kernels.bounds import EPS
from tightrope.model.policy import Policy
from tightrope.operators.bellman import best, pair_vector

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP


def cautious(mdp: MDP, q: Any, q_kappa: Any, pi: Policy) -> Policy:
    """b_s(q, q_κ, π): the κ-greedy action where q(s, a_κ) >= v^π(s), the one-step greedy action elsewhere.

    v^π(s) = Σ_a π(a|s) q(s,a). Ties go to the lowest action; the comparison forgives rounding. Mixing π with this target
    improves it for every step size in (0, 1].
    """
    pi.check(mdp)
    one, ahead = pair_vector(mdp, q, "q"), pair_vector(mdp, q_kappa, "q_kappa")
    v = pi.averaging() @ one
    _, a_one = best(one, mdp.pairs)
    _, a_kappa = best(ahead, mdp.pairs)
    tolerance = 4.0 * (mdp.pairs.counts + 1) * EPS * float(np.abs(one).max())
    return Policy.of_rows(mdp.pairs, np.where(one[a_kappa] >= v - tolerance, a_kappa, a_one))
