"""Slow, obvious truths: dense arrays, enumeration of every deterministic policy, exact fractions.

Shares no code with src. A policy is an array of weights [S, A]; a batch of policies carries leading axes. Pairs that are
not offered have weight zero.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

EPS = 2.0**-52
GAMMAS = (0.0, 0.1, 0.5, 0.9, 0.99, 0.999999)
KAPPAS = (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)
KINDS = ("dense", "sparse", "deterministic", "ties")


@dataclass(frozen=True, eq=False)
class Case:
    """A small MDP with a κ, two vectors and two policies to try statements on."""

    P: np.ndarray  # [S, A, S]; rows of pairs that are not offered are zero
    r: np.ndarray  # [S, A]
    ok: np.ndarray  # [S, A] which pairs are offered
    gamma: float
    kappa: float
    v: np.ndarray  # [S]
    w: np.ndarray  # [S]
    pi: np.ndarray  # [S, A] stochastic
    pi_2: np.ndarray  # [S, A] deterministic
    kind: str

    @cached_property
    def policies(self) -> np.ndarray:
        """Every deterministic policy [N, S, A]."""
        S, A = self.r.shape
        actions = np.array(list(itertools.product(*[np.flatnonzero(self.ok[s]) for s in range(S)])))
        return np.eye(A)[actions]

    @cached_property
    def chains(self) -> tuple[np.ndarray, np.ndarray]:
        """P^π [N, S, S] and r^π [N, S] of every deterministic policy."""
        return chain(self, self.policies)

    @cached_property
    def v_star(self) -> np.ndarray:
        """v* [S], the largest value of any deterministic policy."""
        return T_kappa(self, np.zeros(len(self.v)), 1.0)

    @cached_property
    def v_pi(self) -> np.ndarray:
        """The value of the case's stochastic policy [S]."""
        return value(self, self.pi)

    def slack(self, *arrays: np.ndarray) -> float:
        """What rounding may do to a fixed point of this size: ε size/(1-γ), times a constant."""
        size = max(float(np.abs(a).max()) for a in (self.r, *arrays))
        return 200.0 * EPS * size / (1.0 - self.gamma) + 1e-300


def random_case(rng: np.random.Generator, *, gamma: float | None = None, kappa: float | None = None) -> Case:
    """Dense, sparse, deterministic or full of ties; half ragged; rewards of both signs; corners of γ and κ included."""
    S, A = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    kind = str(rng.choice(KINDS))
    gamma = float(rng.choice(GAMMAS)) if gamma is None else gamma
    kappa = float(rng.choice(KAPPAS)) if kappa is None else kappa
    ok = np.ones((S, A), dtype=bool)
    if rng.random() < 0.5:
        ok = rng.random((S, A)) < 0.7
        ok[np.arange(S), rng.integers(0, A, S)] = True
    if kind == "dense":
        P = rng.dirichlet(np.ones(S), size=(S, A))
    elif kind == "sparse":
        weight = rng.random((S, A, S)) * (rng.random((S, A, S)) < 0.4)
        weight[np.arange(S)[:, None], np.arange(A), rng.integers(0, S, (S, A))] += 0.1
        P = weight / weight.sum(axis=2, keepdims=True)
    elif kind == "deterministic":
        P = np.eye(S)[rng.integers(0, S, (S, A))]
    else:  # quarters, so that equal returns are equal floats too
        P = np.eye(S)[rng.integers(0, S, (S, A, 4))].mean(axis=2)
    if kind == "ties":
        r = rng.integers(-1, 2, (S, A)).astype(float)
        v, w = rng.integers(-2, 3, (2, S)).astype(float)
        if A > 1:  # one action twice
            P[:, 1], r[:, 1] = P[:, 0], r[:, 0]
    else:
        r = rng.normal(size=(S, A)) * 10.0 ** rng.integers(-2, 3)
        v, w = rng.normal(size=(2, S)) * 10.0 ** rng.integers(-1, 3)
    P, r = P * ok[:, :, None], r * ok
    pi = rng.dirichlet(np.ones(A), size=S) * ok + 1e-3 * ok
    pi /= pi.sum(axis=1, keepdims=True)
    pi_2 = np.eye(A)[[rng.choice(np.flatnonzero(row)) for row in ok]]
    return Case(P, r, ok, gamma, kappa, v, w, pi, pi_2, kind)


def random_cases(n: int, seed: int, **fixed: float) -> list[Case]:
    """n random cases, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return [random_case(rng, **fixed) for _ in range(n)]


def tightrope(c: float, gamma: float, kappa: float = 1.0) -> Case:
    """The Tightrope Walking MDP of the paper; `pi` hesitates (a0 everywhere), `pi_2` is confident (a1 in s0 and s1)."""
    P, r, ok = np.zeros((4, 2, 4)), np.zeros((4, 2)), np.array([[1, 1], [1, 1], [1, 0], [1, 0]], dtype=bool)
    for s, a, t in ((0, 0, 0), (0, 1, 1), (1, 0, 3), (1, 1, 2), (2, 0, 2), (3, 0, 3)):
        P[s, a, t] = 1.0
    r[2, 0], r[3, 0] = 1.0, -c
    hesitant, confident = np.eye(2)[[0, 0, 0, 0]], np.eye(2)[[1, 1, 0, 0]]
    return Case(P, r, ok, gamma, kappa, np.zeros(4), np.ones(4), hesitant, confident, "tightrope")


def chain(case: Case, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P^π [..., S, S] and r^π [..., S]."""
    return np.einsum("...sa,sat->...st", pi, case.P), np.einsum("...sa,sa->...s", pi, case.r)


def T_pi(case: Case, pi: np.ndarray, v: np.ndarray) -> np.ndarray:
    """T^π v."""
    P, r = chain(case, pi)
    return r + case.gamma * (P @ v)


def T(case: Case, v: np.ndarray) -> np.ndarray:
    """T v, the largest T^π v of any deterministic policy."""
    return (case.chains[1] + case.gamma * (case.chains[0] @ v)).max(axis=0)


def T_h(case: Case, v: np.ndarray, h: int) -> np.ndarray:
    """T^h v: the best h-step return, by the plainest recursion over states and actions."""

    def best(s: int, steps: int) -> float:
        if steps == 0:
            return float(v[s])
        later = [best(t, steps - 1) if case.P[s, case.ok[s], t].any() else 0.0 for t in range(len(v))]
        return max(float(case.r[s, a] + case.gamma * (case.P[s, a] @ later)) for a in np.flatnonzero(case.ok[s]))

    return np.array([best(s, h) for s in range(len(v))])


def value(case: Case, pi: np.ndarray) -> np.ndarray:
    """v^π = (I - γ P^π)^-1 r^π."""
    return T_kappa_pi(case, pi, np.zeros(len(case.v)), 1.0)


def q_of(case: Case, v: np.ndarray) -> np.ndarray:
    """r + γ P v at the pairs that are offered, in the order of states and then actions [L]."""
    return (case.r + case.gamma * (case.P @ v))[case.ok]


def xi(gamma: float, kappa: float) -> float:
    """ξ = γ(1-κ)/(1-γκ), from exact fractions."""
    g, k = Fraction(gamma), Fraction(kappa)
    return float(g * (1 - k) / (1 - g * k))


def T_kappa_pi(case: Case, pi: np.ndarray, v: np.ndarray, kappa: float) -> np.ndarray:
    """T_κ^π v = (I - κγ P^π)^-1 (r^π + (1-κ)γ P^π v), by a dense solve with one refinement."""
    P, r = chain(case, pi)
    return _resolvent(P, r + (1 - kappa) * case.gamma * (P @ v), kappa * case.gamma)


def T_kappa(case: Case, v: np.ndarray, kappa: float) -> np.ndarray:
    """T_κ v, the largest T_κ^π v of any deterministic policy."""
    return kappa_returns(case, v, kappa).max(axis=0)


def kappa_returns(case: Case, v: np.ndarray, kappa: float) -> np.ndarray:
    """T_κ^π v of every deterministic policy [N, S]."""
    P, r = case.chains
    return _resolvent(P, r + (1 - kappa) * case.gamma * (P @ v), kappa * case.gamma)


def _resolvent(P: np.ndarray, b: np.ndarray, discount: float) -> np.ndarray:
    A = np.eye(P.shape[-1]) - discount * P
    x = np.linalg.solve(A, b[..., None])[..., 0]
    residual = b - (A @ x[..., None])[..., 0]
    return x + np.linalg.solve(A, residual[..., None])[..., 0]


def q_kappa(case: Case, pi: np.ndarray, kappa: float) -> np.ndarray:
    """q_κ^π [L]: take the pair, then follow the best deterministic policy of the surrogate at v^π."""
    v = value(case, pi)
    return q_of(case, (1 - kappa) * v + kappa * T_kappa(case, v, kappa))


def D_kappa(case: Case, pi: np.ndarray, kappa: float) -> np.ndarray:
    """D_κ^π = (1-κγ)(I - κγ P^π)^-1 [S, S]."""
    P, _ = chain(case, pi)
    return (1 - kappa * case.gamma) * np.linalg.inv(np.eye(len(P)) - kappa * case.gamma * P)


def distances(case: Case, v: np.ndarray, kappa: float) -> np.ndarray:
    """How far each deterministic policy is from being κ-greedy: max_s (T_κ v - T_κ^π v)(s) [N]."""
    returns = kappa_returns(case, v, kappa)
    return (returns.max(axis=0) - returns).max(axis=1)


def h_distances(case: Case, v: np.ndarray, h: int) -> np.ndarray:
    """How far each deterministic policy is from being h-greedy: max_s (T^h v - T^π T^{h-1} v)(s) [N]."""
    P, r = case.chains
    returns = r + case.gamma * (P @ (T_h(case, v, h - 1) if h > 1 else v))
    return (returns.max(axis=0) - returns).max(axis=1)


def cautious(q: np.ndarray, q_k: np.ndarray, pi: np.ndarray, ok: np.ndarray, tolerance: float) -> np.ndarray:
    """b_s as the paper writes it, one state after the other, from tables [S, A]: the action of each state [S]."""
    chosen = []
    for s in range(len(ok)):
        offers = [int(a) for a in np.flatnonzero(ok[s])]
        a_kappa = max(offers, key=lambda a: (q_k[s, a], -a))
        a_one = max(offers, key=lambda a: (q[s, a], -a))
        v = sum(pi[s, a] * q[s, a] for a in offers)
        chosen.append(a_kappa if q[s, a_kappa] >= v - tolerance else a_one)
    return np.array(chosen)


def with_rewards(case: Case, r: np.ndarray) -> Case:
    """The same case with other rewards."""
    return replace(case, r=r * case.ok)


# --- exact rational arithmetic, from the very floats a model stores


@dataclass(frozen=True)
class Exact:
    """An MDP in fractions: rows[s] lists that state's pairs as (reward, probabilities [S])."""

    rows: list[list[tuple[Fraction, list[Fraction]]]]
    gamma: Fraction

    def value(self, chosen: list[int]) -> list[Fraction]:
        """v^π of the policy that takes the pair chosen[s] of state s, by Gaussian elimination."""
        n = len(self.rows)
        table = []
        for s, pick in enumerate(chosen):
            reward, p = self.rows[s][pick]
            table.append([(s == t) - self.gamma * p[t] for t in range(n)] + [reward])
        for i in range(n):  # I - γP is diagonally dominant: no pivot is zero
            for j in range(i + 1, n):
                if table[j][i]:
                    factor = table[j][i] / table[i][i]
                    table[j] = [x - factor * y for x, y in zip(table[j], table[i], strict=True)]
        v = [Fraction(0)] * n
        for i in reversed(range(n)):
            v[i] = (table[i][n] - sum(table[i][j] * v[j] for j in range(i + 1, n))) / table[i][i]
        return v

    def q(self, v: list[Fraction]) -> list[list[Fraction]]:
        """r + γ P v of every pair."""
        mean = [[sum(a * b for a, b in zip(p, v, strict=True) if a) for _, p in pairs] for pairs in self.rows]
        return [[r + self.gamma * m for (r, _), m in zip(*both, strict=True)] for both in zip(self.rows, mean, strict=True)]

    def optimum(self, chosen: list[int]) -> tuple[list[Fraction], list[int]]:
        """v* and an optimal choice, by policy iteration; it ends only where Bellman's equation holds exactly."""
        while True:
            v = self.value(chosen)
            q = self.q(v)
            better = [max(range(len(qs)), key=qs.__getitem__) for qs in q]
            if all(max(qs) <= x for qs, x in zip(q, v, strict=True)):
                return v, chosen
            chosen = [b if qs[b] > x else c for b, c, qs, x in zip(better, chosen, q, v, strict=True)]


def exact(P: np.ndarray, r: np.ndarray, first: np.ndarray, gamma: float) -> Exact:
    """The fractions behind the floats P [L, S], r [L]: state s owns rows first[s]:first[s+1]."""
    pairs = [(Fraction(float(x)), [Fraction(float(p)) for p in row]) for x, row in zip(r, P, strict=True)]
    return Exact([pairs[a:b] for a, b in itertools.pairwise(map(int, first))], Fraction(gamma))


def optimum(mdp) -> np.ndarray:
    """v* [S] of a model by policy iteration on dense arrays, changing an action only where that is clearly better."""
    P, r, first, S = mdp.P.toarray(), np.asarray(mdp.r), np.asarray(mdp.first), mdp.n_states
    rows = first[:-1].copy()
    while True:
        v = np.linalg.solve(np.eye(S) - mdp.gamma * P[rows], r[rows])
        q = r + mdp.gamma * P @ v
        best = np.array([first[s] + q[first[s] : first[s + 1]].argmax() for s in range(S)])
        better = q[best] > q[rows] + 1e-10 * np.abs(q).max()
        if not better.any():
            return v
        rows[better] = best[better]
