"""The seam: the surrogate problem an oracle is asked to solve, and what an oracle is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tightrope.errors import InvalidArgument, InvalidPolicy
from tightrope.model import validate
from tightrope.model.mdp import MDP
from tightrope.model.policy import Policy
from tightrope.model.sampler import Source, source_of
from tightrope.model.validate import frozen
from tightrope.operators import T_kappa, surrogate, value

if TYPE_CHECKING:
    from tightrope.model.pairs import Pairs
    from tightrope.model.validate import BoolArray, FloatArray, IntArray


@dataclass(eq=False, slots=True)
class Meter:
    """How many samples were drawn; one meter is shared by a problem and all its surrogates."""

    samples: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """What an oracle solves: an MDP, or a source of samples, with shaped reward and discount κγ (Remark 1 of the paper).

    reward r(s,a) + (1-κ)γ v(s'), discount κγ. Whoever may look at the model finds it in `model`; everybody can draw from
    `sample`, and what was drawn is counted. Make one with `Problem.original(mdp_or_source)` and `.surrogate(v, kappa)`.

    `gamma` is the discount of this very problem (κγ for a surrogate). `v` [S] is the value at which the lookahead stops, a
    good place to start from; it is zero where an episode has ended, which `run` sees to. `model` is the surrogate as an MDP, or
    None where only samples can be had.
    """

    source: Source
    gamma: float
    v: FloatArray
    model: MDP | None
    #: (1-κ)γ v [S], added to the reward on arrival; None when κ = 1.
    bonus: FloatArray | None = None
    meter: Meter = field(default_factory=Meter)

    @classmethod
    def original(cls, mdp_or_source: Any) -> Problem:
        """The problem itself: the surrogate with κ = 1."""
        source = source_of(mdp_or_source)
        model = mdp_or_source if isinstance(mdp_or_source, MDP) else None
        return cls(source, source.gamma, frozen(np.zeros(source.pairs.n_states)), model)

    def surrogate(self, v: FloatArray, kappa: float) -> Problem:
        """The problem whose optimal policies are the κ-greedy ones with respect to v; samples go on the same meter."""
        stop = (1.0 - kappa) * self.gamma
        model = None if self.model is None else surrogate(self.model, v, kappa)
        bonus = frozen(stop * v) if stop > 0.0 else None
        return Problem(self.source, kappa * self.gamma, frozen(v), model, bonus, self.meter)

    @property
    def pairs(self) -> Pairs:
        """The feasible (state, action) pairs."""
        return self.source.pairs

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return self.pairs.n_states

    @property
    def terminal(self) -> BoolArray:
        """Which states end an episode [S]; their value is zero."""
        return self.source.terminal

    def uniform(self) -> Policy:
        """The policy that does anything."""
        return Policy.uniform(self)  # type: ignore[arg-type]  # its pairs are all that is needed

    def sample(self, rows: IntArray, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Shaped rewards and next states of the given pairs (rows of P), one independent sample each [n], [n]."""
        r, following = self._draw(rows, rng)
        return (r if self.bonus is None else r + self.bonus[following]), following

    def _draw(self, rows: IntArray, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Unshaped samples; a simulator is never asked what happens after the end of an episode."""
        ended = self._ended
        asked = None if ended is None or not ended[rows].any() else ~ended[rows]
        r, following = self.source.sample(rows if asked is None else rows[asked], rng)
        self.meter.samples += len(following)
        if asked is None:
            return r, following
        reward, states = np.zeros(len(rows)), self.pairs.states[rows]
        reward[asked], states[asked] = r, following
        return reward, states

    @cached_property
    def _ended(self) -> BoolArray | None:
        """Which pairs belong to terminal states [L]; None for a model, whose terminal states are absorbing by themselves."""
        return None if self.model is not None or not self.terminal.any() else self.terminal[self.pairs.states]

    def known(self, who: object) -> MDP:
        """The model, for an oracle that cannot do without."""
        if self.model is None:
            name = type(who).__name__
            raise InvalidArgument(
                f"{name} needs the model, but this source only gives samples. Pass an MDP, or use an oracle that learns from "
                "samples: SampledModel, ConservativePI(samples=...), FittedQ, LSPI or PolicySearch."
            )
        return self.model

    def __repr__(self) -> str:
        kind = "samples only" if self.model is None else "model known"
        return f"Problem({self.pairs.n_states:,} states, {self.pairs.n_pairs:,} pairs, gamma={self.gamma:g}, {kind})"


class Oracle(Protocol):
    """Anything that solves a surrogate problem, well or badly: the device behind G_{κ,δ,ν}(v).

    A plain function will do. An oracle must take all its randomness from `rng`, so that a run can be repeated, and should put
    its effort where ν puts its mass: its error is measured as ν(T_κ v - T_κ^π v). `testing.check_oracle` says whether it does.
    """

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator, /) -> Policy:
        """A policy of `problem.pairs` that is good from states drawn from ν [S]."""


class Evaluator(Protocol):
    """Anything that estimates the value of a policy in a problem, [S]; for κ-PSDP the problem is the surrogate."""

    def __call__(self, problem: Problem, pi: Policy, nu: FloatArray, rng: np.random.Generator, /) -> FloatArray:
        """An estimate of v^π of the problem [S]."""


def described(part: object) -> str:
    """How an oracle or an evaluation prints: a plain function by its name, without its address."""
    return str(part.__name__) if isinstance(part, FunctionType) else repr(part)


def ask(oracle: Oracle, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:
    """The oracle's answer, checked: third parties answer here."""
    pi = oracle(problem, nu, rng)
    if not isinstance(pi, Policy):
        raise InvalidPolicy(
            f"the oracle {described(oracle)} returned {type(pi).__name__}, not a Policy; "
            "wrap actions with Policy.deterministic(problem, actions), weights with Policy.stochastic(problem, weights)"
        )
    if not pi.pairs.same(problem.pairs):
        raise InvalidPolicy(f"the oracle {described(oracle)} returned a policy for another model: {pi!r}")
    first = problem.pairs.first
    if pi.rows is not None:
        if np.shape(pi.rows) != (problem.n_states,) or ((pi.rows < first[:-1]) | (pi.rows >= first[1:])).any():
            raise InvalidPolicy(f"the oracle {described(oracle)} returned rows that are not one pair of each state")
        return pi
    return Policy.stochastic(problem, pi.weights)  # type: ignore[arg-type]  # its pairs are all that is needed


def realised_delta(problem: Problem, pi: Policy, nu: FloatArray) -> float:
    """δ = ν(T_κ v - T_κ^π v) >= 0 of a policy in a surrogate whose model is known (Definition of G_{κ,δ,ν})."""
    model = problem.known(realised_delta)
    best = T_kappa(model, problem.v, 1.0)
    return max(0.0, float(nu @ (best - value(model, pi))))


def beginning(mu: object, mdp_or_source: Any, name: str) -> FloatArray:
    """A user's distribution of first states, checked; by default the model's own, uniform for a source that has none."""
    if mu is None and isinstance(mdp_or_source, MDP):
        return mdp_or_source.start
    return measure(mu, mdp_or_source, name)


def measure(nu: object, mdp_or_source: Any, name: str) -> FloatArray:
    """A user's measure over states, checked; uniform by default, so that no state is left out."""
    n = mdp_or_source.pairs.n_states
    return np.full(n, 1.0 / n) if nu is None else validate.distribution(nu, n, name)
