"""Slow truths about concentrability: enumeration of policy sequences, dense series, and worst-case oracles. No code of src."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

#: What rounding may add to an oracle's error, relative to the value scale.
SLACK = 1e-13


@dataclass(frozen=True, eq=False)
class Dense:
    """A small MDP with P[S, A, S], r[S, A], γ, and two distributions."""

    P: np.ndarray
    r: np.ndarray
    gamma: float
    mu: np.ndarray
    nu: np.ndarray

    @cached_property
    def chains(self):
        """P^π [N, S, S] and r^π [N, S] of every deterministic policy."""
        S, A, _ = self.P.shape
        actions = np.array(list(itertools.product(range(A), repeat=S)))
        return self.P[np.arange(S), actions], self.r[np.arange(S), actions]

    @cached_property
    def values(self):
        """v^π of every deterministic policy [N, S]."""
        P, r = self.chains
        return np.linalg.solve(np.eye(P.shape[1]) - self.gamma * P, r[..., None])[..., 0]

    @cached_property
    def star(self):
        """An optimal policy's number, the first that attains v* in every state."""
        return int(np.argmin((self.values.max(axis=0) - self.values).max(axis=1)))

    @property
    def v_star(self):
        return self.values[self.star]

    @property
    def P_star(self):
        return self.chains[0][self.star]

    @property
    def V(self):
        """(max r - min r)/(1-γ)."""
        return (self.r.max() - self.r.min()) / (1 - self.gamma)


def random_dense(rng, S=None, A=2, *, kind=None, gamma=None):
    """Dense, sparse or deterministic; rewards of both signs; μ and ν generic, equal, or points."""
    S = int(rng.integers(2, 5)) if S is None else S
    kind = rng.choice(["dense", "sparse", "deterministic"]) if kind is None else kind
    if kind == "dense":
        P = rng.dirichlet(np.ones(S), size=(S, A))
    elif kind == "sparse":
        P = rng.random((S, A, S)) * (rng.random((S, A, S)) < 0.4)
        P[np.arange(S)[:, None], np.arange(A), rng.integers(0, S, (S, A))] += 0.1
        P /= P.sum(axis=2, keepdims=True)
    else:
        P = np.eye(S)[rng.integers(0, S, (S, A))]
    gamma = float(rng.choice([0.3, 0.8, 0.95])) if gamma is None else gamma
    mu, nu = rng.dirichlet(np.ones(S), size=2)
    return Dense(P, rng.normal(size=(S, A)), gamma, mu, nu)


def ratio(x, nu):
    """The smallest C >= 1 with x <= C ν."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return max(1.0, float(np.max(np.where(x > 0, np.where(nu > 0, x / nu, np.inf), 0.0))))


def enumerated_c(d, i):
    """c(i) by walking every sequence of i deterministic policies."""
    rows = d.mu[None, :]
    for _ in range(i):
        rows = np.einsum("ns,pst->npt", rows, d.chains[0]).reshape(-1, len(d.mu))
    return max(ratio(row, d.nu) for row in rows)


def c_terms(d, n):
    """c(0), ..., c(n-1) by the dense recursion over target states."""
    U, found = np.eye(len(d.mu)), []
    for _ in range(n):
        found.append(ratio(d.mu @ U, d.nu))
        U = (d.P @ U).max(axis=1)
    return np.array(found)


def c_star_terms(d, n):
    """c^{π*}(0), ..., c^{π*}(n-1)."""
    x, found = d.mu, []
    for _ in range(n):
        found.append(ratio(x, d.nu))
        x = x @ d.P_star
    return np.array(found)


def X(d, P, kappa):
    """ξ D_κ P = γ(1-κ)(I - κγP)^-1 P."""
    return d.gamma * (1 - kappa) * np.linalg.solve(np.eye(len(P)) - kappa * d.gamma * P, P)


def d_kappa(d, kappa):
    """d_{κ,μ}^{π*} = (1-ξ) μ (I - ξ D_κ P^{π*})^-1, as the paper writes it."""
    S = len(d.mu)
    xi = d.gamma * (1 - kappa) / (1 - d.gamma * kappa)
    D = (1 - kappa * d.gamma) * np.linalg.inv(np.eye(S) - kappa * d.gamma * d.P_star)
    return (1 - xi) * d.mu @ np.linalg.inv(np.eye(S) - xi * D @ d.P_star)


def kappa_backup(d, v, kappa):
    """T_κ^π v of every deterministic policy [N, S]."""
    P, r = d.chains
    right = r + (1 - kappa) * d.gamma * (P @ v)
    return np.linalg.solve(np.eye(P.shape[1]) - kappa * d.gamma * P, right[..., None])[..., 0]


def admissible(d, backed, delta):
    """Which policies are in G_{κ,δ,ν}(v), given T_κ^π v of every policy; rounding must not leave the set empty."""
    return (d.nu * (backed.max(axis=0) - backed)).sum(axis=1) <= delta + SLACK * (1 + d.V)


def worst_api(d, kappa, delta, k, start):
    """The losses μ(v* - v^{π_i}), i = 1..k, of κ-API whose oracle always returns the admissible policy that is worst for μ."""
    v, losses = d.values[start], []
    for _ in range(k):
        allowed = admissible(d, kappa_backup(d, v, kappa), delta)
        v = d.values[np.where(allowed, d.values @ d.mu, np.inf).argmin()]
        losses.append(d.mu @ (d.v_star - v))
    return np.array(losses)


def worst_psdp(d, kappa, delta, k, start):
    """The losses μ(v* - v^{σ_i}), i = 1..k, of κ-PSDP whose oracle always returns the admissible policy that is worst for μ."""
    v, losses = d.values[start], []
    for _ in range(k):
        backed = kappa_backup(d, v, kappa)
        v = backed[np.where(admissible(d, backed, delta), backed @ d.mu, np.inf).argmin()]
        losses.append(d.mu @ (d.v_star - v))
    return np.array(losses)


def saturating_values(d, v, kappa, delta):
    """v^π of stochastic policies in G_{κ,δ,ν}(v): the greedy one mixed with every other as far as δ allows (bisection) [N, S]."""
    P, r = d.chains
    eye, backed = np.eye(len(v)), kappa_backup(d, v, kappa)
    best = backed.max(axis=0)
    greedy = int((best - backed).max(axis=1).argmin())

    def mixed(t):
        return (1 - t)[:, None, None] * P[greedy] + t[:, None, None] * P, (1 - t)[:, None] * r[greedy] + t[:, None] * r

    low, high = np.zeros(len(P)), np.ones(len(P))
    for t in [np.ones(len(P)), *[None] * 30]:
        at = 0.5 * (low + high) if t is None else t
        M, b = mixed(at)
        reached = np.linalg.solve(eye - kappa * d.gamma * M, (b + (1 - kappa) * d.gamma * (M @ v))[..., None])[..., 0]
        ok = ((best - reached) @ d.nu) <= delta
        low, high = np.where(ok, at, low), np.where(ok, high, at)
    M, b = mixed(low)
    return np.linalg.solve(eye - d.gamma * M, b[..., None])[..., 0]
