"""How κ-API learns v^π, and κ-PSDP T_κ^π v: both are the value of a policy in a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.approximate import features as kinds
from tightrope.approximate import walk
from tightrope.approximate.oracles.fitted import backups
from tightrope.approximate.oracles.lspi import lstd
from tightrope.model import validate
from tightrope.operators import value

if TYPE_CHECKING:
    from tightrope.approximate.problem import Problem
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True)
class ExactValue:
    """v^π from the model, as exactly as floats allow: what the paper's Algorithms 2 and 3 assume."""

    def __call__(
        self,
        problem: Problem,
        pi: Policy,
        nu: FloatArray,  # noqa: ARG002  (the protocol)
        rng: np.random.Generator,  # noqa: ARG002  (the protocol)
    ) -> FloatArray:
        """The value of the policy [S]."""
        return value(problem.known(self), pi)


@dataclass(frozen=True)
class MonteCarloValue:
    """The mean of n walks from every state: no model, no features, noise of size 1/√n.

    Walks are cut after `horizon` steps, by default when the discount has fallen to 1e-3; a call costs n·S·horizon samples.
    """

    n: int = 10
    horizon: int | None = None

    def __post_init__(self) -> None:
        validate.positive_integer(self.n, "n")
        if self.horizon is not None:
            validate.positive_integer(self.horizon, "horizon")

    def __call__(
        self,
        problem: Problem,
        pi: Policy,
        nu: FloatArray,  # noqa: ARG002  (the protocol)
        rng: np.random.Generator,
    ) -> FloatArray:
        """The estimate [S]."""
        live = np.flatnonzero(~problem.terminal)
        v = np.zeros(problem.n_states)
        choose = walk.choosing(pi)
        horizon = self.horizon or backups(problem.gamma, 1e-3)
        width = max(1, walk.PIECE // self.n)
        for begin in range(0, len(live), width):
            states = live[begin : begin + width]
            rows = choose(np.repeat(states, self.n), rng)
            v[states] = walk.discounted(problem, rows, choose, horizon, rng).reshape(-1, self.n).mean(axis=1)
        return v


@dataclass(frozen=True, eq=False)
class LSTDValue:
    """v ≈ φ·θ by least-squares temporal differences, from about `samples` steps of π that start from ν.

    θ solves Φᵀ D (Φ - γ P̂^π Φ) θ = Φᵀ D r̂. Use it with few features and few samples; its bias is that of the features.
    `features` is one row per state [S, d], None for a table.
    """

    features: Any = None
    samples: int = 10_000
    ridge: float = 1e-6

    def __post_init__(self) -> None:
        validate.positive_integer(self.samples, "samples")
        validate.finite(self.ridge, "ridge", low=0.0)

    def __call__(self, problem: Problem, pi: Policy, nu: FloatArray, rng: np.random.Generator) -> FloatArray:
        """The estimate [S]."""
        S = problem.n_states
        phi = kinds.tabular(S) if self.features is None else kinds.checked(self.features, S, "features", "state")
        found = walk.follow(problem, pi, nu, self.samples, rng)
        live = sp.diags_array(1.0 - problem.terminal) @ phi
        theta = lstd(phi, problem.gamma * (found.P @ live), found.counts / self.samples, found.r, self.ridge)
        return np.asarray(phi @ theta)

    def __repr__(self) -> str:
        return f"LSTDValue({kinds.described(self.features)}, samples={self.samples})"
