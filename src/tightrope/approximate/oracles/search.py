"""Direct search in a parametric class of policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.approximate import features as kinds
from tightrope.approximate import walk
from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.model.policy import Policy
from tightrope.model.validate import frozen
from tightrope.operators.bellman import greedy_in

if TYPE_CHECKING:
    from tightrope.approximate.problem import Problem
    from tightrope.model.pairs import Pairs
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True, eq=False)
class PolicySearch:
    """Climb ν v^π over the softmax policies π_θ(a|s) ∝ exp(φ(s,a)·θ) by natural gradient, from walks that start from ν.

    Each round walks under π_θ, averages the rewards to go of every pair visited, fits them by compatible features
    ψ = φ - Σ_a π(a|s) φ (which yields the natural gradient), and steps. The answer is the most probable action of the last θ.
    Use it when the policy is simpler than the value: it never represents a value function, and it looks only where ν leads.

    Args:
        samples: steps walked in all, spread evenly over the rounds (on average: walks are finished, not cut).
        features: one row per pair [L, d] or per state [S, d] (then copied per action); None for a table.
        rounds: gradient steps.
        step: length of a step, in standard deviations of the rewards to go.
    """

    samples: int = 10_000
    features: Any = None
    rounds: int = 20
    step: float = 1.0

    def __post_init__(self) -> None:
        validate.positive_integer(self.samples, "samples")
        validate.positive_integer(self.rounds, "rounds")
        if not 0.0 < validate.real(self.step, "step") < np.inf:
            raise InvalidArgument(f"step must be a finite number > 0; found {self.step!r}")

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:
        """The most probable actions of the last policy."""
        pairs = problem.pairs
        phi = kinds.of_pairs(self.features, pairs)
        theta = np.zeros(phi.shape[1])
        for _ in range(self.rounds):
            pi = softmax(phi @ theta, pairs)
            seen = walk.walks(problem, nu, walk.choosing(pi), max(1, self.samples // self.rounds), rng)
            theta = theta + self.step * natural_gradient(phi, pi, seen)
        return greedy_in(phi @ theta, pairs)

    def __repr__(self) -> str:
        return f"PolicySearch({kinds.described(self.features)}, samples={self.samples}, rounds={self.rounds})"


def softmax(scores: FloatArray, pairs: Pairs) -> Policy:
    """π(a|s) ∝ exp(scores(s,a))."""
    begin, counts = pairs.first[:-1], pairs.counts
    weights = np.exp(scores - np.repeat(np.maximum.reduceat(scores, begin), counts))
    return Policy(pairs, None, frozen(weights / np.repeat(np.add.reduceat(weights, begin), counts)))


def natural_gradient(phi: sp.csr_array, pi: Policy, seen: walk.Steps) -> FloatArray:
    """The least-squares fit of the rewards to go by compatible features, in standard deviations of the rewards to go."""
    from scipy.sparse.linalg import lsmr  # noqa: PLC0415  (slow to load, and only here)

    pairs = pi.pairs
    tried = np.bincount(seen.rows, minlength=pairs.n_pairs)
    q = walk.sums(seen.rows, seen.to_go, pairs.n_pairs) / np.maximum(tried, 1)
    visits = np.add.reduceat(tried, pairs.first[:-1])
    earned = np.add.reduceat(tried * q, pairs.first[:-1]) / np.maximum(visits, 1)
    advantage = np.where(tried > 0, q - np.repeat(earned, pairs.counts), 0.0)
    spread = float(np.std(seen.to_go))
    if spread == 0.0:
        return np.zeros(phi.shape[1])
    mean = pi.averaging() @ phi
    psi = phi - mean[pairs.states]
    root = np.sqrt(tried)
    return np.asarray(lsmr(sp.diags_array(root) @ psi, root * advantage / spread, damp=1.0)[0])
