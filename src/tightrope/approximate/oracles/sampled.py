"""Learn a model from samples and solve it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope.approximate.walk import everywhere
from tightrope.model import validate
from tightrope.model.mdp import MDP
from tightrope.operators import kappa_greedy

if TYPE_CHECKING:
    import numpy as np

    from tightrope.approximate.problem import Problem
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True)
class SampledModel:
    """Draw n samples of every (state, action) pair, and solve the empirical surrogate exactly.

    Costs n·L samples a call. Use it when states can be visited at will (a simulator that can be set to any state) and are few
    enough to be listed; it wastes nothing on approximation, so it is the fair baseline for everything that learns from samples.
    """

    n: int

    def __post_init__(self) -> None:
        validate.positive_integer(self.n, "n")

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:  # noqa: ARG002  (the protocol)
        """The optimal policy of the empirical surrogate."""
        found = everywhere(problem, self.n, rng)
        pairs = problem.pairs
        model = MDP(found.P, found.r, problem.gamma, pairs.first, actions=pairs.ids)
        return kappa_greedy(model, problem.v, 1.0)
