"""A logged data set of transitions, learned from in the order it was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    from tightrope.model.pairs import Pairs
    from tightrope.model.validate import FloatArray, IntArray


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Log:
    """Transitions (s, a, r, s') [n] of a problem with the given pairs and discount.

    Args:
        pairs: which actions each state offers: `mdp.pairs`, or `sizes(n_states, n_actions)`.
        gamma: discount in [0, 1).
        states: where each transition began [n].
        actions: the action number taken [n].
        rewards: what it earned [n].
        next_states: where it led [n]; a terminal state is one that keeps earning zero, or is logged as the end only.
    """

    pairs: Pairs
    gamma: float
    states: IntArray
    rows: IntArray
    rewards: FloatArray
    next_states: IntArray

    def __init__(self, pairs: Pairs, gamma: float, states: Any, actions: Any, rewards: Any, next_states: Any) -> None:
        begun, led = _states(states, pairs, "states"), _states(next_states, pairs, "next_states")
        earned = validate.vector(rewards, len(begun), "rewards", "transition")
        taken = np.ravel(validate.integers(actions, "actions")).astype(np.int64)
        for name, array in (("actions", taken), ("next_states", led)):
            if len(array) != len(begun):
                raise InvalidArgument(f"{name} has {len(array)} entries for {len(begun)} transitions")
        if not len(begun):
            raise InvalidArgument("the log is empty; there is nothing to learn from")
        values = (pairs, validate.gamma(gamma), begun, _rows(pairs, begun, taken), earned, led)
        names = ("pairs", "gamma", "states", "rows", "rewards", "next_states")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        seen = len(np.unique(self.rows))
        return f"Log({len(self):,} transitions, {seen:,} of {self.pairs.n_pairs:,} pairs seen, gamma={self.gamma:g})"


def _states(given: Any, pairs: Pairs, name: str) -> IntArray:
    """States of a log, each one known."""
    array = np.ravel(validate.integers(given, name)).astype(np.int64)
    bad = (array < 0) | (array >= pairs.n_states)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise InvalidArgument(
            f"transition {i} of the log has {name}[{i}] = {array[i]}; states are numbered 0 to {pairs.n_states - 1}"
        )
    return array


def _rows(pairs: Pairs, states: IntArray, actions: IntArray) -> IntArray:
    """The pair of each logged (state, action), or an error that names the transition and what its state offers."""
    width = pairs.n_actions + 1
    keys = pairs.states.astype(np.int64) * width + pairs.actions
    wanted = states.astype(np.int64) * width + np.clip(actions, -1, pairs.n_actions)
    rows = np.minimum(np.searchsorted(keys, wanted), pairs.n_pairs - 1)
    bad = keys[rows] != wanted
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        s = int(states[i])
        offers = pairs.actions[pairs.first[s] : pairs.first[s + 1]][:20].tolist()
        raise InvalidArgument(
            f"transition {i} of the log takes action {actions[i]} in {pairs.state(s)}, which offers {', '.join(map(str, offers))}"
        )
    return rows.astype(np.int64)
