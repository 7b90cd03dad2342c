"""Slow, obvious truths about section 6: σ as a chain on (stage, state), κ-PI and κ-VI by enumeration, the bound by matrices.

Shares no code with src; see `reference` for what a case is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import reference

if TYPE_CHECKING:
    from collections.abc import Sequence


def sigma_value(case: reference.Case, policies: Sequence[np.ndarray], pi0: np.ndarray, kappa: float) -> np.ndarray:
    """v^σ [S] from the chain on (stage, state): at stage j run Π[j] (π_0 at stage 0), and fall to j-1 after a step w.p. 1-κ."""
    chains = [reference.chain(case, pi) for pi in (pi0, *policies)]
    k, S = len(policies), len(case.v)
    P, r = np.zeros((k + 1, S, k + 1, S)), np.zeros((k + 1, S))
    for j, (P_j, r_j) in enumerate(chains):
        r[j] = r_j
        P[j, :, j] += (kappa if j else 1.0) * P_j
        if j:
            P[j, :, j - 1] += (1 - kappa) * P_j
    n = (k + 1) * S
    v = np.linalg.solve(np.eye(n) - case.gamma * P.reshape(n, n), r.reshape(n))
    return v.reshape(k + 1, S)[k]


def sigma_value_from_zero(case: reference.Case, policies: Sequence[np.ndarray], pi0: np.ndarray, kappa: float) -> np.ndarray:
    """The wrong convention N >= 0: a coin is thrown before the first step of a policy too, P(N=n) = (1-κ)κ^n."""
    v = reference.value(case, pi0)
    for pi in policies:
        v = kappa * reference.T_kappa_pi(case, pi, v, kappa) + (1 - kappa) * v
    return v


def kappa_pi(case: reference.Case, pi0: np.ndarray, kappa: float, iterations: int) -> list[np.ndarray]:
    """The values of κ-PI: v^{π_k}, π_k any κ-greedy policy by enumeration (the lowest actions among the best)."""
    v, values = reference.value(case, pi0), []
    for _ in range(iterations):
        v = reference.value(case, greedy_policy(case, v, kappa))
        values.append(v)
    return values


def kappa_vi(case: reference.Case, v: np.ndarray, kappa: float, iterations: int) -> list[np.ndarray]:
    """The values of κ-VI: v <- T_κ v."""
    values = []
    for _ in range(iterations):
        v = reference.T_kappa(case, v, kappa)
        values.append(v)
    return values


def greedy_policy(case: reference.Case, v: np.ndarray, kappa: float) -> np.ndarray:
    """The κ-greedy policy that is best everywhere, [S, A]."""
    returns = reference.kappa_returns(case, v, kappa)
    return case.policies[int(returns.sum(axis=1).argmax())]


def delta(case: reference.Case, v: np.ndarray, pi: np.ndarray, nu: np.ndarray, kappa: float) -> float:
    """ν(T_κ v - T_κ^π v)."""
    return float(nu @ (reference.T_kappa(case, v, kappa) - reference.T_kappa_pi(case, pi, v, kappa)))


def psdp_bound(case: reference.Case, mu: np.ndarray, nu: np.ndarray, kappa: float, error: float, k: int, V: float) -> float:
    """Statement 1 of the κ-PSDP theorem: ((1-κ) Σ γ^i c^{π*}(i) + κ c(0)) δ + ξ^k V (notes C2, B1)."""
    best = greedy_policy(case, case.v_star, 1.0)
    P, _ = reference.chain(case, best)
    total, reach = 0.0, mu.copy()
    for i in range(2_000):
        total += case.gamma**i * max(1.0, float((reach / nu).max()))
        reach = reach @ P
    total += case.gamma**2_000 / (1 - case.gamma) * float(1.0 / nu.min())
    c_0 = max(1.0, float((mu / nu).max()))
    return ((1 - kappa) * total + kappa * c_0) * error + reference.xi(case.gamma, kappa) ** k * V
