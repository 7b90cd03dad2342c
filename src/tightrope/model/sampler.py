"""The generative model: sources that answer "what happens after action a in state s" with a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from tightrope import kernels
from tightrope.errors import InvalidArgument, InvalidModel
from tightrope.kernels import unsigned
from tightrope.model import validate
from tightrope.model.gym import _size
from tightrope.model.mdp import MDP
from tightrope.model.pairs import Pairs
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tightrope.model.validate import BoolArray, FloatArray, IntArray


@runtime_checkable
class Source(Protocol):
    """Anything that samples r, s' ~ P(.|s,a): the generative model G of the paper without its ν and π.

    `pairs` says which actions each state offers, `gamma` is the discount, `terminal` [S] which states end an episode.
    """

    @property
    def pairs(self) -> Pairs:
        """The feasible (state, action) pairs."""

    @property
    def gamma(self) -> float:
        """The discount in [0, 1)."""

    @property
    def terminal(self) -> BoolArray:
        """Which states end an episode [S]."""

    def sample(self, rows: Any, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Rewards and next states of the given pairs (numbers of rows), one independent sample each [n], [n]."""

    def sample_one(self, s: int, a: int, rng: np.random.Generator) -> tuple[float, int]:
        """The reward and the next state of one (state, action)."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelSource:
    """Samples from a known MDP, compiled: millions a second.

    Next states follow P(.|s,a); the reward is the expected one r(s,a), all that an `MDP` stores. Learning from expected
    rewards has the same fixed points and less noise than learning from drawn ones.
    """

    mdp: MDP

    @property
    def pairs(self) -> Pairs:
        """The feasible (state, action) pairs of the model."""
        return self.mdp.pairs

    @property
    def gamma(self) -> float:
        """The discount of the model."""
        return self.mdp.gamma

    @property
    def terminal(self) -> BoolArray:
        """Which states end an episode [S]."""
        return self.mdp.terminal

    @cached_property
    def tables(self) -> tuple[Any, Any]:
        """What `kernels.sampling.column` draws from: where rows begin [L+1], and the alias table [nnz]."""
        return alias_table(self.mdp.P)

    def sample(self, rows: Any, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Rewards and next states of the given pairs, one independent sample each."""
        index = rows_in_range(rows, self.pairs)
        following = np.empty(len(index), dtype=self.mdp.P.indices.dtype)
        kernels.sampling.columns(*self.tables, unsigned(index), rng.random(len(index)), unsigned(following))
        return self.mdp.r[index], following

    def sample_one(self, s: int, a: int, rng: np.random.Generator) -> tuple[float, int]:
        """The expected reward and a next state of one (state, action)."""
        row = pair_row(self.pairs, s, a)
        return float(self.mdp.r[row]), int(kernels.sampling.column(*self.tables, np.uint64(row), rng.random()))

    def __repr__(self) -> str:
        return f"ModelSource({self.mdp!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Simulator:
    """Samples from a function step(s, a, rng) -> (r, s'), for an engineer with a simulator and no model.

    Args:
        pairs: which actions each state offers; `sizes(n_states, n_actions)` when all offer the same.
        gamma: discount in [0, 1).
        step: draws a reward and a next state; all its randomness should come from `rng`, or runs cannot be repeated.
        terminal: which states end an episode [S]; none by default.
    """

    pairs: Pairs
    gamma: float
    step: Callable[[int, int, np.random.Generator], tuple[float, int]]
    terminal: BoolArray

    def __init__(
        self,
        pairs: Pairs,
        gamma: float,
        step: Callable[[int, int, np.random.Generator], tuple[float, int]],
        terminal: npt.ArrayLike | None = None,
    ) -> None:
        ends = np.zeros(pairs.n_states, dtype=bool) if terminal is None else np.asarray(terminal)
        if ends.dtype != bool or ends.shape != (pairs.n_states,):
            raise InvalidModel(
                f"terminal must be a boolean per state, shape ({pairs.n_states},); found {ends.dtype} {ends.shape}"
            )
        values = (pairs, validate.gamma(gamma), step, frozen(ends))
        for name, value in zip(("pairs", "gamma", "step", "terminal"), values, strict=True):
            object.__setattr__(self, name, value)

    def sample(self, rows: Any, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Rewards and next states of the given pairs, one call of the simulator each."""
        states, actions = self.pairs.states, self.pairs.actions
        drawn = [self.sample_one(int(states[row]), int(actions[row]), rng) for row in rows_in_range(rows, self.pairs)]
        return np.array([r for r, _ in drawn], dtype=np.float64), np.array([s for _, s in drawn], dtype=np.int64)

    def sample_one(self, s: int, a: int, rng: np.random.Generator) -> tuple[float, int]:
        """One call of the simulator, its answer checked."""
        r, following = self.step(s, a, rng)
        if not math.isfinite(r):
            raise InvalidArgument(f"the simulator's reward after state {s}, action {a} is {r}; rewards must be finite")
        if not 0 <= following < self.pairs.n_states:
            raise InvalidArgument(
                f"the simulator's next state after state {s}, action {a} is {following}; "
                f"states are numbered 0 to {self.pairs.n_states - 1}"
            )
        return float(r), int(following)

    def __repr__(self) -> str:
        name = getattr(self.step, "__name__", type(self.step).__name__)
        return f"Simulator({name}, {self.pairs.n_states:,} states, {self.pairs.n_pairs:,} pairs, gamma={self.gamma:g})"


def gymnasium_source(env: Any, gamma: float) -> Source:
    """A Gymnasium environment as a source: its table P when it has one, else its settable state `env.unwrapped.s`.

    Without a table, a step that terminates leads to one further state, the last, which ends the episode.
    """
    inner = env.unwrapped
    if hasattr(inner, "P"):
        return ModelSource(MDP.from_gymnasium(env, gamma))
    n, n_actions = _size(env, "observation_space"), _size(env, "action_space")
    env.reset()
    if not hasattr(inner, "s"):
        raise InvalidModel(
            f"{type(inner).__name__} has neither a transition table P nor a settable state s, so it cannot be asked what "
            "follows an action in a given state. Record its transitions and learn from a Log instead."
        )

    def step(s: int, a: int, rng: np.random.Generator) -> tuple[float, int]:
        if s == n:
            return 0.0, n
        inner.np_random, inner.s = rng, s
        following, r, terminated, _, _ = env.step(a)
        return float(r), n if terminated else int(following)

    return Simulator(sizes(n + 1, n_actions), gamma, step, np.arange(n + 1) == n)


def sizes(n_states: int, n_actions: int) -> Pairs:
    """The pairs of a problem with the same number of actions in every state."""
    S, A = validate.positive_integer(n_states, "n_states"), validate.positive_integer(n_actions, "n_actions")
    return Pairs.checked(validate.first_pairs(None, S, S * A), None, None, None)


def rows_in_range(rows: Any, pairs: Pairs) -> IntArray:
    """A user's numbers of pairs, checked [n]."""
    wanted = np.ravel(validate.integers(rows, "rows"))
    if wanted.size and (wanted.min() < 0 or wanted.max() >= pairs.n_pairs):
        bad = wanted.min() if wanted.min() < 0 else wanted.max()
        raise InvalidArgument(f"rows are numbered 0 to {pairs.n_pairs - 1}, one per pair; found {bad}")
    return np.ascontiguousarray(wanted, dtype=pairs.first.dtype)


def pair_row(pairs: Pairs, s: int, a: int) -> int:
    """The pair of one (state, action), with an error for a state that does not exist."""
    if not 0 <= s < pairs.n_states:
        raise InvalidArgument(f"there is no state {s}; states are numbered 0 to {pairs.n_states - 1}")
    if pairs.ids is None and 0 <= a < pairs.first[s + 1] - pairs.first[s]:
        return int(pairs.first[s]) + int(a)  # the common case, six times as fast as the search below
    return pairs.row(int(s), int(a))


def alias_table(P: Any) -> tuple[Any, Any]:
    """A CSR matrix whose rows are distributions, ready to draw from: indptr and the alias table [nnz].

    An entry holds its own column, the other column it stands for, and where in [0, 1] the one gives way to the other.
    """
    indptr, indices = unsigned(P.indptr), unsigned(P.indices)
    # One record an entry, so that a draw touches one line of memory.
    alias = np.empty(P.nnz, dtype=[("cut", np.float64), ("own", indices.dtype), ("other", indices.dtype)])
    kernels.sampling.alias_table(indptr, indices, P.data, alias)
    return indptr, alias


def source_of(model: Any) -> Source:
    """A model as a source of samples; a source stays what it is."""
    if isinstance(model, MDP):
        return ModelSource(model)
    if isinstance(model, Source):
        return model
    raise InvalidArgument(
        f"a source of samples is an MDP, a Simulator or anything with pairs, gamma, terminal, sample and sample_one; "
        f"found {type(model).__name__}"
    )
