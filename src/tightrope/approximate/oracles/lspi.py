"""Least-squares policy iteration (Lagoudakis and Parr, 2003) on the surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.approximate import features as kinds
from tightrope.approximate import walk
from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.operators.bellman import greedy_in

if TYPE_CHECKING:
    from tightrope.approximate.problem import Problem
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray

#: Unknowns up to which a sparse system is solved by elimination.
SMALL = 2_000
#: Standard errors by which an earlier policy must be better than the last to be kept.
CLEAR = 2.0


@dataclass(frozen=True, eq=False)
class LSPI:
    """Policy iteration with q ≈ φ·θ from LSTD-Q on one batch of transitions; the best iterate is kept, because it may chatter.

    θ solves Φᵀ D (Φ - κγ P̂^π Φ) θ = Φᵀ D r̂ with D the weights of the batch. Whether an earlier policy was better than the last is
    decided by walks from ν, for which a fifth of the samples is set aside: it must be better by two standard errors. Use it when
    a linear architecture fits q and samples are dear: it uses each of them in every iteration and has no step size.

    Args:
        features: one row per pair [L, d] or per state [S, d] (then copied per action); None for a table, which is model-based RL.
        samples: transitions at most.
        rounds: policies tried at most; it stops earlier when the policy repeats itself.
        ridge: added to the diagonal, in units of its mean.
    """

    features: Any = None
    samples: int = 10_000
    rounds: int = 20
    ridge: float = 1e-6

    def __post_init__(self) -> None:
        validate.positive_integer(self.rounds, "rounds")
        validate.finite(self.ridge, "ridge", low=0.0)
        if validate.positive_integer(self.samples, "samples") < 10:
            raise InvalidArgument(f"LSPI needs at least 10 samples; found {self.samples}")

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:
        """The last policy, unless an earlier one earns more from ν."""
        pairs = problem.pairs
        phi = kinds.of_pairs(self.features, pairs)
        batch = walk.explore(problem, nu, self.samples - self.samples // 5, rng)
        weights = batch.counts / self.samples
        theta = lstd(phi, phi * 0.0, weights, batch.r, self.ridge)
        policies = [greedy_in(phi @ theta, pairs)]
        for _ in range(self.rounds - 1):
            ahead = problem.gamma * (batch.P @ (_live(problem, policies[-1]) @ phi))
            pi = greedy_in(phi @ lstd(phi, ahead, weights, batch.r, self.ridge), pairs)
            if any(pi == old for old in policies):  # from here on it repeats itself
                break
            policies.append(pi)
        return _best(problem, policies, nu, self.samples // 5, rng)

    def __repr__(self) -> str:
        return f"LSPI({kinds.described(self.features)}, samples={self.samples}, rounds={self.rounds})"


def lstd(phi: sp.csr_array, ahead: sp.csr_array, weights: FloatArray, r: FloatArray, ridge: float) -> FloatArray:
    """θ of the fixed point Φᵀ D (Φ - ahead) θ = Φᵀ D r, with D = diag(weights) and a ridge in units of the mean diagonal."""
    weighted = sp.csr_array((sp.diags_array(weights) @ phi).T)
    A = sp.csc_array(weighted @ (phi - ahead))
    size = float(np.abs(weighted @ phi).diagonal().mean()) or 1.0
    A = sp.csc_array(A + ridge * size * sp.identity(A.shape[0], format="csc"))
    b = weighted @ r
    if A.nnz > 0.1 * A.shape[0] * A.shape[1]:
        return np.asarray(np.linalg.lstsq(A.toarray(), b, rcond=None)[0])
    return _solve(A, b)


def _solve(A: Any, b: FloatArray) -> FloatArray:
    """A sparse system: by elimination when it is small, by iteration when fill-in would hurt (unless that fails)."""
    from scipy.sparse.linalg import bicgstab, spsolve  # noqa: PLC0415  (slow to load, and only here)

    if A.shape[0] > SMALL:
        scale = 1.0 / np.where(A.diagonal() == 0.0, 1.0, A.diagonal())
        theta, failed = bicgstab(sp.diags_array(scale) @ A, scale * b, rtol=1e-10, maxiter=500)
        if not failed:
            return np.asarray(theta)
    return np.asarray(spsolve(A, b))


def _live(problem: Problem, pi: Policy) -> sp.csr_array:
    """The averaging matrix of π [S, L] with terminal states left out: nothing is earned after the end."""
    return sp.csr_array(sp.diags_array(1.0 - problem.terminal) @ pi.averaging())


def _best(problem: Problem, policies: list[Policy], nu: FloatArray, samples: int, rng: np.random.Generator) -> Policy:
    """The last policy, or the one whose walks from the same states earn clearly more."""
    n = max(2, round(samples * (1.0 - problem.gamma) / len(policies)))
    if len(policies) == 1:
        return policies[0]
    states = walk.starts(nu, n, rng)
    earned = []
    for pi in policies:
        choose = walk.choosing(pi)
        earned.append(walk.returns(problem, choose(states, rng), choose, rng))
    more = np.array(earned) - earned[-1]
    lead = more.mean(axis=1) - CLEAR * more.std(axis=1, ddof=1) / np.sqrt(n)
    chosen = int(np.argmax(lead))
    return policies[chosen] if lead[chosen] > 0.0 else policies[-1]
