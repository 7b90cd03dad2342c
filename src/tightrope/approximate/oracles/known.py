"""Oracles that look at the model: exact, as bad as allowed, disturbed, or short of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.engine import Sweeper
from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.model.policy import Policy
from tightrope.operators import T_kappa, kappa_greedy
from tightrope.operators.bellman import greedy_in, q_of

if TYPE_CHECKING:
    from tightrope.approximate.problem import Problem
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True)
class Exact:
    """An optimal policy of the surrogate, δ = 0: with it κ-API is κ-PI and κ-PSDP is κ-VI.

    Use it as the yardstick, and wherever the model is known and small enough to be solved.
    """

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:  # noqa: ARG002  (the protocol)
        """A member of G_κ(v), ties to the lowest action."""
        return kappa_greedy(problem.known(self), problem.v, 1.0)


@dataclass(frozen=True)
class Noisy:
    """The policy greedy in q + noise, where q is the optimal q-function of the surrogate and the noise N(0, sigma²) per pair.

    Use it as a stand-in for a learner whose errors are independent and unbiased: only states where actions are nearly as good as
    each other suffer. For the other extreme see `WorstCase`.
    """

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", validate.finite(self.sigma, "sigma", low=0.0))

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:  # noqa: ARG002  (the protocol)
        """The greedy policy of the disturbed q-function."""
        model = problem.known(self)
        q = q_of(model, T_kappa(model, problem.v, 1.0))
        return greedy_in(q + self.sigma * rng.standard_normal(len(q)), model.pairs)


@dataclass(frozen=True)
class ApproximateVI:
    """Value iteration on the surrogate, stopped early: after `sweeps` sweeps, or when the policy is provably `tolerance`-optimal.

    w <- T w from w = v, then the greedy policy. Use it when time, not data, is short: the error shrinks as (κγ)^sweeps, so the
    same number of sweeps serves a small κ better. With sweeps = 0 the answer is the one-step greedy policy, whatever κ.
    """

    sweeps: int | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if (self.sweeps is None) == (self.tolerance is None):
            raise InvalidArgument(
                f"give ApproximateVI either sweeps or tolerance; found sweeps={self.sweeps!r}, tolerance={self.tolerance!r}"
            )
        if self.tolerance is not None and validate.finite(self.tolerance, "tolerance", low=0.0) == 0.0:
            raise InvalidArgument("tolerance must be > 0; for an exact answer use Exact()")
        if self.sweeps is not None:
            validate.positive_integer(self.sweeps, "sweeps", low=0)

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:  # noqa: ARG002  (the protocol)
        """The policy greedy at the last w."""
        model = problem.known(self)
        g = model.gamma
        sweeper = Sweeper(model)
        w, out = np.array(problem.v), np.empty(model.n_states)
        rows = np.empty(model.n_states, dtype=model.first.dtype)
        done = 0
        while True:
            # each pass both backs up and finds the greedy pairs at w, so that the last one costs nothing extra
            low, high = sweeper.backup_into(w, out, rows)
            if done == self.sweeps or (self.tolerance is not None and g * (high - low) <= self.tolerance * (1.0 - g)):
                return Policy.of_rows(model.pairs, rows)
            w, out = out, w
            done += 1
