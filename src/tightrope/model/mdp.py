"""The Markov decision process, in the one layout every algorithm works on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import kernels
from tightrope.kernels import unsigned
from tightrope.model import build, gym, validate
from tightrope.model.pairs import Pairs
from tightrope.model.rounding import Rounding
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from tightrope.model.validate import BoolArray, FloatArray, IntArray

#: Numbers that the second cache holds.
BLOCK = 65_536


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MDP:
    """A finite discounted MDP (S, A, P, r, γ): one row of P and one reward per feasible (state, action) pair.

    State s owns rows first[s]:first[s+1], so action sets may differ from state to state at no cost.
    Arrays are validated here once, then read-only; those that already fit are shared, not copied.
    A terminal state is explicit: absorbing, with reward zero.

    Args:
        P: transition probabilities [L, S], sparse or dense.
        r: expected rewards [L].
        gamma: discount in [0, 1).
        first: where each state's rows begin [S+1]; by default every state has L/S actions.
        start: initial distribution [S]; uniform by default.
        actions: action numbers [L], increasing within a state; by default 0, 1, ... in every state.
        state_names: optional decoration [S].
        action_names: optional decoration, one per action number.
    """

    P: sp.csr_array
    r: FloatArray
    gamma: float
    pairs: Pairs
    start: FloatArray
    #: The largest |row sum - 1|: rounding that the certificate accounts for.
    slack: float

    def __init__(
        self,
        P: Any,
        r: Any,
        gamma: float,
        first: Any = None,
        start: Any = None,
        *,
        actions: Any = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        discount = validate.gamma(gamma)
        matrix = validate.transitions(P)
        n_pairs, n_states = matrix.shape
        pairs = Pairs.checked(validate.first_pairs(first, n_states, n_pairs), actions, state_names, action_names)
        matrix, slack = validate.probabilities(matrix, pairs)
        rewards = validate.rewards(r, pairs, discount)
        begin = (
            np.broadcast_to(np.float64(1.0 / n_states), (n_states,))
            if start is None
            else validate.distribution(start, n_states, "start")
        )
        matrix.data, matrix.indices, matrix.indptr = frozen(matrix.data), frozen(matrix.indices), frozen(matrix.indptr)
        matrix.has_canonical_format = True
        self._set(matrix, frozen(rewards), discount, pairs, frozen(begin), slack)

    def _set(self, *values: Any) -> None:
        for name, value in zip(("P", "r", "gamma", "pairs", "start", "slack"), values, strict=True):
            object.__setattr__(self, name, value)

    def reshaped(self, r: FloatArray, gamma: float, reward_range: tuple[float, float] | None = None) -> MDP:
        """The same transitions with other rewards and discount; P is shared and nothing is checked again.

        `reward_range` bounds the rewards, where such bounds are known.
        """
        twin, rewards = object.__new__(MDP), frozen(r)
        indptr, indices, data, _, first, _ = self.arrays
        known = twin.__dict__
        known["P"], known["r"], known["gamma"], known["pairs"] = self.P, rewards, gamma, self.pairs
        known["start"], known["slack"] = self.start, self.slack
        known["arrays"] = indptr, indices, data, rewards, first, gamma
        known["first"], known["n_states"], known["n_pairs"] = self.first, self.n_states, self.n_pairs
        known["n_transitions"], known["width"], known["chain_room"] = self.n_transitions, self.width, self.chain_room
        known["has_sinks"], known["facts"] = self.has_sinks, self.facts
        if reward_range is not None:
            known["reward_range"] = reward_range
        return twin

    from_dense = classmethod(build.from_dense)
    from_actions = classmethod(build.from_actions)
    from_pairs = classmethod(build.from_pairs)
    from_function = classmethod(build.from_function)
    from_gymnasium = classmethod(gym.from_gymnasium)

    @cached_property
    def first(self) -> IntArray:
        """Where each state's rows begin [S+1]."""
        return self.pairs.first

    @cached_property
    def n_states(self) -> int:
        """Number of states, S."""
        return self.pairs.n_states

    @cached_property
    def n_pairs(self) -> int:
        """Number of feasible (state, action) pairs, L."""
        return self.pairs.n_pairs

    @cached_property
    def n_transitions(self) -> int:
        """Number of stored transitions."""
        return int(self.P.nnz)

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """What compiled loops take of a model: indptr, indices, data, r, first and γ, with indices as unsigned numbers."""
        return unsigned(self.P.indptr), unsigned(self.P.indices), self.P.data, self.r, unsigned(self.first), self.gamma

    @cached_property
    def terminal(self) -> BoolArray:
        """Which states are terminal [S]: every action stays there for sure with reward zero."""
        return np.logical_and.reduceat(self._stays & (self.r == 0.0), self.first[:-1])

    @property
    def _stays(self) -> BoolArray:
        """Which pairs stay where they are for sure [L]."""
        P = self.P
        only = np.flatnonzero(np.diff(P.indptr) == 1)
        stays = np.zeros(self.n_pairs, dtype=bool)
        stays[only] = P.indices[P.indptr[only]] == self.pairs.states[only]
        return stays

    @cached_property
    def has_sinks(self) -> bool:
        """Whether some state cannot be left, whatever its rewards."""
        return self._survey[0]

    @cached_property
    def width(self) -> int:
        """The largest number of successors of a pair."""
        return self._survey[1]

    @property
    def chain_begin(self) -> IntArray:
        """Where room for each state's row of a chain begins that is enough for its widest pair, and where the last ends [S+1]."""
        return self._survey[2]

    @cached_property
    def chain_room(self) -> int:
        """The largest number of transitions that the chain of a deterministic policy can have."""
        return int(self.chain_begin[-1])

    @property
    def _survey(self) -> tuple[bool, int, IntArray]:
        """What one pass over P finds out; once for a model and its twins."""
        if "survey" not in self.facts:
            indptr, indices, _, _, first, _ = self.arrays
            begin = np.empty(self.n_states + 1, indices.dtype)
            width, sinks = kernels.graph.survey(indptr, indices, first, begin)
            self.facts["survey"] = bool(sinks), int(width), begin
        found: tuple[bool, int, IntArray] = self.facts["survey"]
        return found

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Room for what the engine finds out about P; every reshaped twin shares it."""
        return {}

    @property
    def actions_range(self) -> tuple[int, int]:
        """The smallest and the largest number of actions of a state; found once for a model and its twins."""
        if "actions" not in self.facts:
            counts = self.pairs.counts
            self.facts["actions"] = int(counts.min()), int(counts.max())
        found: tuple[int, int] = self.facts["actions"]
        return found

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest reward, looked for block by block so that both come from one reading of memory."""
        ranges = [(block.min(), block.max()) for block in (self.r[i : i + BLOCK] for i in range(0, self.n_pairs, BLOCK))]
        return float(min(low for low, _ in ranges)), float(max(high for _, high in ranges))

    @cached_property
    def reward_size(self) -> float:
        """max |r|, the paper's R_max."""
        low, high = self.reward_range
        return max(abs(low), abs(high))

    @cached_property
    def rounding(self) -> Rounding:
        """What rounding does to backups of this model."""
        return Rounding.of(self.reward_size, self.gamma, self.slack, self.width)

    @property
    def nbytes(self) -> int:
        """Bytes of the model's arrays."""
        arrays = (self.P.data, self.P.indices, self.P.indptr, self.r, self.first)
        return sum(a.nbytes for a in arrays) + (0 if self.pairs.ids is None else self.pairs.ids.nbytes)

    def __repr__(self) -> str:
        return self._summary

    @cached_property
    def _summary(self) -> str:
        low, high = self.actions_range
        actions = f"{low}" if low == high else f"{low} to {high}"
        size = self.nbytes / 1e6
        return (
            f"MDP({self.n_states:,} states, {self.n_pairs:,} pairs ({actions} actions a state), "
            f"{self.P.nnz:,} transitions, gamma={self.gamma:g}, {size:,.{1 if size >= 0.1 else 4}f} MB)"
        )
