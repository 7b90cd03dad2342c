"""Algorithms 2 and 3 of the paper: κ-API and κ-PSDP, as what changes and what stays from one iteration to the next."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from tightrope.approximate.evaluation import ExactValue
from tightrope.approximate.problem import ask, described
from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.operators import T_kappa_pi, value

if TYPE_CHECKING:
    from tightrope.approximate.problem import Evaluator, Oracle, Problem
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray


class Improved(NamedTuple):
    """One iteration: the surrogate that was asked about, what the oracle answered, the next policy and the next v."""

    problem: Problem
    answer: Policy
    pi: Policy
    v: FloatArray


class Algorithm(Protocol):
    """What `run` iterates."""

    @property
    def kappa(self) -> float:
        """The parameter of the κ-greedy step."""

    @property
    def nu(self) -> Any:
        """The measure of the improvement [S], or None for uniform."""

    @property
    def iterations(self) -> int:
        """How many iterations to make."""

    @property
    def evaluate(self) -> Evaluator:
        """How values are estimated."""

    @property
    def switching(self) -> bool:
        """Whether the result is the non-stationary policy made of all iterates (σ), not the last one."""

    @property
    def soft(self) -> bool:
        """Whether an iteration goes only part of the way to the oracle's answer, so that one is not enough even with κ = 1."""

    def step(self, original: Problem, pi: Policy, v: FloatArray, nu: FloatArray, rng: np.random.Generator) -> Improved:
        """One iteration from (π_{k-1}, v)."""

    def exact(self, mdp: MDP, pi: Policy, v: FloatArray) -> FloatArray:
        """The exact value of the result so far, given the exact value v before this iteration."""


@dataclass(frozen=True, eq=False)
class KappaAPI:
    """κ-approximate policy iteration (Algorithm 2): π_k <- G_{κ,δ,ν}(v), v <- v^{π_k}; returns the last policy.

    κ = 0 is approximate policy iteration as it was known; κ = 1 calls the oracle once, on the original problem.

    Args:
        kappa: in [0, 1].
        oracle: solves surrogates, exactly or not: one of `tightrope.approximate`'s, or any function
            (problem, nu, rng) -> Policy.
        nu: the measure under which the oracle's error counts [S]; uniform by default, so that no state is left out.
        iterations: how many; `theory.iterations_needed` says how many the theorem asks for.
        evaluate: how v^π is found: `ExactValue()`, `MonteCarloValue(n)`, `LSTDValue(features)` or any function
            (problem, pi, nu, rng) -> v [S].
    """

    kappa: float
    oracle: Oracle
    nu: Any = field(default=None, repr=False)
    iterations: int = 20
    evaluate: Evaluator = field(default_factory=ExactValue)

    #: The result is the last policy, which is the oracle's answer.
    switching = False
    soft = False

    def __post_init__(self) -> None:
        check(self)

    def __repr__(self) -> str:
        return printed(self)

    def step(self, original: Problem, pi: Policy, v: FloatArray, nu: FloatArray, rng: np.random.Generator) -> Improved:  # noqa: ARG002  (the protocol)
        """One iteration."""
        problem = original.surrogate(v, self.kappa)
        answer = ask(self.oracle, problem, nu, rng)
        return Improved(problem, answer, answer, self.evaluate(original, answer, nu, rng))

    def exact(self, mdp: MDP, pi: Policy, v: FloatArray) -> FloatArray:  # noqa: ARG002  (the protocol)
        """v^{π_k} [S]."""
        return value(mdp, pi)


@dataclass(frozen=True, eq=False)
class KappaPSDP:
    """κ-policy search by dynamic programming (Algorithm 3): π_k <- G_{κ,δ,ν}(v), v <- T_κ^{π_k} v; returns σ_{κ,k}.

    The result is the `SwitchingPolicy` of all iterates. κ = 0 is PSDP as it was known; κ = 1 calls the oracle once, on the
    original problem. Its bound is better than that of κ-API, at the price of storing every policy.

    Arguments as for `KappaAPI`; `evaluate` is asked for T_κ^π v, which is the value of π in the surrogate.
    """

    kappa: float
    oracle: Oracle
    nu: Any = field(default=None, repr=False)
    iterations: int = 20
    evaluate: Evaluator = field(default_factory=ExactValue)

    #: The result is made of all policies, each the oracle's answer.
    switching = True
    soft = False

    def __post_init__(self) -> None:
        check(self)

    def __repr__(self) -> str:
        return printed(self)

    def step(self, original: Problem, pi: Policy, v: FloatArray, nu: FloatArray, rng: np.random.Generator) -> Improved:  # noqa: ARG002  (the protocol)
        """One iteration."""
        problem = original.surrogate(v, self.kappa)
        answer = ask(self.oracle, problem, nu, rng)
        return Improved(problem, answer, answer, self.evaluate(problem, answer, nu, rng))

    def exact(self, mdp: MDP, pi: Policy, v: FloatArray) -> FloatArray:
        """v^{σ_{κ,k}} = T_κ^{π_k} v^{σ_{κ,k-1}} [S]."""
        return T_kappa_pi(mdp, pi, v, self.kappa)


def printed(algorithm: Any) -> str:
    """An algorithm with its settings, functions by name; ν is left out, it may be long."""
    shown = ((f.name, getattr(algorithm, f.name)) for f in fields(algorithm) if f.repr)
    return f"{type(algorithm).__name__}({', '.join(f'{name}={described(part)}' for name, part in shown)})"


def check(algorithm: Any) -> None:
    """Refuse settings that cannot be run; ν is checked against the model when one is there."""
    object.__setattr__(algorithm, "kappa", validate.kappa(algorithm.kappa))
    validate.positive_integer(algorithm.iterations, "iterations")
    for name in ("oracle", "evaluate"):
        part = getattr(algorithm, name)
        if not callable(part) or isinstance(part, type):
            hint = f"; did you mean {part.__name__}(...)?" if isinstance(part, type) else ""
            raise InvalidArgument(f"{name} must be a function or one of the ready-made ones; found {part!r}{hint}")
    if algorithm.nu is not None:
        n = len(algorithm.nu) if np.ndim(algorithm.nu) == 1 else 0
        validate.distribution(algorithm.nu, n, "nu")
