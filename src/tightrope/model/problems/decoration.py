"""What a problem carries beside its dynamics: where it starts, and names while the model is small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tightrope.model.validate import FloatArray

#: Models with more states than this carry no state names: a million strings cost more than the model.
NAMED = 10_000


def start_at(n_states: int, states: int | Iterable[int]) -> FloatArray:
    """The initial distribution [S] that is uniform over the given states."""
    start = np.zeros(n_states)
    chosen = np.atleast_1d(np.asarray(states if isinstance(states, int) else list(states)))
    start[chosen] = 1.0 / len(chosen)
    return start


def names(n_states: int, name: Callable[[int], str]) -> tuple[str, ...] | None:
    """name(s) of every state, or None for a model too large for names."""
    return tuple(name(s) for s in range(n_states)) if n_states <= NAMED else None
