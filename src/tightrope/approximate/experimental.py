"""Experimental: soft updates of an approximate κ-greedy policy, asked for in the paper's discussion, proved by nobody yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.approximate.algorithms import Improved, check, printed
from tightrope.approximate.evaluation import ExactValue
from tightrope.approximate.problem import ask
from tightrope.errors import UnsafeUpdate
from tightrope.kernels.bounds import EPS
from tightrope.model import validate
from tightrope.model.policy import Policy, mix
from tightrope.model.validate import frozen
from tightrope.operators import value
from tightrope.operators.bellman import best, q_of

if TYPE_CHECKING:
    from tightrope.approximate.problem import Evaluator, Oracle, Problem
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True, eq=False)
class ExperimentalKappaCPI:
    """π_k = (1-α)π_{k-1} + α b, where b is the oracle's answer, cautious or not. Make one with `kappa_cpi`."""

    kappa: float
    oracle: Oracle
    alpha: float
    cautious: bool = True
    nu: Any = field(default=None, repr=False)
    iterations: int = 20
    evaluate: Evaluator = field(default_factory=ExactValue)

    #: The result is the last policy, which is on its way to the oracle's answers.
    switching = False
    soft = True

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "alpha", validate.alpha(self.alpha))
        if not self.cautious and self.alpha < self.kappa:
            raise UnsafeUpdate(
                f"alpha={self.alpha:g} is below kappa={self.kappa:g}: a soft update may then make the policy worse (Theorem 1). "
                "Take alpha >= kappa, or cautious=True, which improves for every alpha."
            )

    def __repr__(self) -> str:
        return printed(self)

    def step(self, original: Problem, pi: Policy, v: FloatArray, nu: FloatArray, rng: np.random.Generator) -> Improved:
        """One iteration."""
        problem = original.surrogate(v, self.kappa)
        answer = ask(self.oracle, problem, nu, rng)
        target = cautious_target(original.known(self), v, answer) if self.cautious else answer
        new = mix(pi, target, self.alpha)
        return Improved(problem, answer, new, self.evaluate(original, new, nu, rng))

    def exact(self, mdp: MDP, pi: Policy, v: FloatArray) -> FloatArray:  # noqa: ARG002  (the protocol)
        """v^{π_k} [S]."""
        return value(mdp, pi)


def kappa_cpi(
    kappa: float,
    oracle: Oracle,
    alpha: float,
    *,
    cautious: bool = True,
    nu: Any = None,
    iterations: int = 20,
    evaluate: Evaluator | None = None,
) -> ExperimentalKappaCPI:
    """κ-CPI, experimental: soft updates towards an approximate κ-greedy policy.

    With `cautious` (which needs the model) the target is the oracle's answer where T^π' v >= v and the one-step greedy action
    elsewhere, so that with exact v every α in (0, 1] improves the policy at every state, whatever the oracle answers. Without,
    α >= κ is asked for, which Theorem 1 proves safe for an exact oracle; an approximate one may still make the policy worse.
    """
    return ExperimentalKappaCPI(kappa, oracle, alpha, cautious, nu, iterations, evaluate or ExactValue())


def cautious_target(mdp: MDP, v: FloatArray, answer: Policy) -> Policy:
    """The answer where it does not lose in one step, (T^π' v)(s) >= v(s); the one-step greedy action elsewhere."""
    q = q_of(mdp, v)
    keeps = answer.averaging() @ q >= v - 4.0 * (mdp.pairs.counts + 1) * EPS * float(np.abs(q).max())
    _, rows = best(q, mdp.pairs)
    if answer.rows is not None:
        return Policy.of_rows(mdp.pairs, np.where(keeps, answer.rows, rows))
    greedy = np.zeros(mdp.n_pairs)
    greedy[rows] = 1.0
    return Policy(mdp.pairs, None, frozen(np.where(np.repeat(keeps, mdp.pairs.counts), answer.weights, greedy)))
