"""Which actions each state offers: the index set of (state, action) pairs that models and policies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidModel, InvalidPolicy
from tightrope.model import validate
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.model.validate import IntArray


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Pairs:
    """State s owns the pairs (rows of P) first[s]:first[s+1].

    `first` [S+1]; `ids` [L] the number of each pair's action, or None when actions are numbered 0, 1, ... in every state;
    names are decoration.
    """

    first: IntArray
    ids: IntArray | None = None
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None
    #: The number of the first state, where these are the pairs of a part of the states.
    begin: int = 0

    @classmethod
    def checked(
        cls,
        first: IntArray,
        ids: object | None,
        state_names: Sequence[str] | None,
        action_names: Sequence[str] | None,
    ) -> Pairs:
        """The pairs with validated action numbers (distinct and increasing within a state) and names."""
        n_pairs, n_states = int(first[-1]), len(first) - 1
        numbers = None
        if ids is not None:
            numbers = validate.integers(ids, "actions")
            if numbers.shape != (n_pairs,):
                raise InvalidModel(f"actions must have shape ({n_pairs},), one per pair; found {numbers.shape}")
            if numbers.min() < 0 or numbers.max() >= 2**31:
                bad = numbers.min() if numbers.min() < 0 else numbers.max()
                raise InvalidModel(f"actions are numbered from 0 to at most {2**31 - 1}; found {bad}")
            rising = np.diff(numbers.astype(np.int64)) > 0
            rising[first[1:-1] - 1] = True
            if not rising.all():
                row = int(np.flatnonzero(~rising)[0]) + 1
                state = int(np.searchsorted(first, row, side="right")) - 1
                raise InvalidModel(
                    f"state {state} lists action {numbers[row]} after action {numbers[row - 1]}; within a state, actions must be "
                    "distinct and increasing. MDP.from_pairs sorts them for you."
                )
            numbers = None if _is_local(numbers, first) else np.ascontiguousarray(numbers, dtype=np.int32)
        if state_names is not None and len(state_names) != n_states:
            raise InvalidModel(f"state_names has {len(state_names)} entries for {n_states} states")
        n_actions = int(np.diff(first).max()) if numbers is None else int(numbers.max()) + 1
        if action_names is not None and len(action_names) < n_actions:
            raise InvalidModel(f"action_names has {len(action_names)} entries for {n_actions} actions")
        return cls(
            frozen(first),
            None if numbers is None else frozen(numbers),
            None if state_names is None else tuple(map(str, state_names)),
            None if action_names is None else tuple(map(str, action_names)),
        )

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return len(self.first) - 1

    @property
    def n_pairs(self) -> int:
        """Number of feasible (state, action) pairs, L."""
        return int(self.first[-1])

    @property
    def n_actions(self) -> int:
        """One more than the largest action number."""
        return int(self.counts.max()) if self.ids is None else int(self.ids.max()) + 1

    @property
    def counts(self) -> IntArray:
        """How many actions each state has [S]."""
        return np.diff(self.first)

    @property
    def states(self) -> IntArray:
        """The state of each pair [L]."""
        return np.repeat(np.arange(self.n_states, dtype=self.first.dtype), self.counts)

    @property
    def actions(self) -> IntArray:
        """The action number of each pair [L]."""
        if self.ids is not None:
            return self.ids
        return np.arange(self.n_pairs, dtype=self.first.dtype) - np.repeat(self.first[:-1], self.counts)

    def rows(self, actions: IntArray) -> IntArray:
        """The pair of each state's action [S], or an error that names the state and what it offers."""
        first = self.first
        if self.ids is None:
            rows = first[:-1] + actions
            bad = (actions < 0) | (rows >= first[1:])
        else:
            keys = self.states.astype(np.int64) * (self.n_actions + 1) + self.ids
            wanted = np.arange(self.n_states, dtype=np.int64) * (self.n_actions + 1) + np.clip(actions, -1, self.n_actions)
            rows = np.minimum(np.searchsorted(keys, wanted), self.n_pairs - 1)
            bad = keys[rows] != wanted
        if bad.any():
            s = int(np.flatnonzero(bad)[0])
            offers = np.arange(first[s + 1] - first[s]) if self.ids is None else self.ids[first[s] : first[s + 1]]
            raise InvalidPolicy(f"{self.state(s)} has no action {actions[s]}; it offers {', '.join(map(str, offers[:20]))}")
        return rows.astype(first.dtype)

    def row(self, state: int, action: int) -> int:
        """The pair of one (state, action)."""
        begin, end = int(self.first[state]), int(self.first[state + 1])
        offers = np.arange(end - begin) if self.ids is None else self.ids[begin:end]
        found = np.flatnonzero(offers == action)
        if not len(found):
            raise InvalidPolicy(f"{self.state(state)} has no action {action}; it offers {', '.join(map(str, offers[:20]))}")
        return begin + int(found[0])

    def state(self, s: int) -> str:
        """How a message names a state."""
        return f"state {self.begin + s}" + (f" ({self.state_names[s]})" if self.state_names else "")

    def describe(self, row: int) -> str:
        """How a message names a pair: its state and action."""
        s = int(np.searchsorted(self.first, row, side="right")) - 1
        a = int(row - self.first[s]) if self.ids is None else int(self.ids[row])
        return f"{self.state(s)}, action {a}" + (f" ({self.action_names[a]})" if self.action_names else "")

    def same(self, other: Pairs) -> bool:
        """Whether both describe the same feasible pairs (names do not count)."""
        if self is other:
            return True
        ids_alike = (self.ids is None) == (other.ids is None) and (
            self.ids is None or np.array_equal(self.ids, np.asarray(other.ids))
        )
        return bool(ids_alike and (self.first is other.first or np.array_equal(self.first, other.first)))


def _is_local(ids: IntArray, first: IntArray) -> bool:
    """Whether actions are numbered 0, 1, ... within every state, so that the numbers need not be stored."""
    steps: Any = np.diff(ids.astype(np.int64)) == 1
    steps[first[1:-1] - 1] = True
    return bool(steps.all() and (ids[first[:-1]] == 0).all())
