"""Constructors of `MDP`: everything people have, converted into the one layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidModel
from tightrope.model import validate
from tightrope.model.function import BUILDER, Function
from tightrope.model.terminal import absorb, states_mask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.model.function import Dynamics
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import BoolArray, FloatArray


def from_dense(
    cls: type[MDP],
    P: Any,
    r: Any,
    gamma: float,
    *,
    feasible: Any = None,
    terminal: Any = None,
    start: Any = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
) -> MDP:
    """An MDP from P[S, A, S] and rewards [S, A], [S, A, S] or [S].

    Args:
        cls: the class.
        P: probabilities [S, A, S].
        r: rewards; -inf marks a pair that is not allowed.
        gamma: discount in [0, 1).
        feasible: boolean [S, A], False where an action is not allowed.
        terminal: states (indices or a boolean mask) made absorbing with reward zero, whatever P and r say there.
        start: initial distribution [S].
        state_names: optional decoration.
        action_names: optional decoration.
    """
    try:
        dense = validate.floats(P)
    except (TypeError, ValueError):
        raise InvalidModel("P must be an array of numbers of shape [S, A, S]") from None
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2]:
        hint = " This looks like [A, S, S]: use MDP.from_actions(P, r, gamma)." if dense.ndim == 3 else ""
        raise InvalidModel(f"P must have shape [S, A, S]; found {dense.shape}.{hint}")
    S, A, _ = dense.shape
    if S == 0 or A == 0:
        raise InvalidModel(f"P has shape {dense.shape}; a model has at least one state, and every state at least one action")
    rewards = _table(r, S, A, dense)
    allowed = _feasible(feasible, rewards)
    matrix = sp.csr_array(dense.reshape(S * A, S))
    return _from_grid(cls, matrix, rewards, allowed, gamma, terminal, start, state_names, action_names)


def from_actions(
    cls: type[MDP],
    P: Sequence[Any],
    r: Any,
    gamma: float,
    *,
    feasible: Any = None,
    terminal: Any = None,
    start: Any = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
) -> MDP:
    """An MDP from one transition matrix [S, S] per action (sparse or dense) and rewards [S, A] or [S].

    Arguments as in `from_dense`.
    """
    matrices = [validate.transitions(Pa) for Pa in P]
    if not matrices:
        raise InvalidModel("P lists no action; give one [S, S] matrix per action")
    S, A = matrices[0].shape[1], len(matrices)
    for a, Pa in enumerate(matrices):
        if Pa.shape != (S, S):
            raise InvalidModel(f"P[{a}] has shape {Pa.shape}; every action needs a square matrix [{S}, {S}]")
    by_state = (np.arange(A)[None, :] * S + np.arange(S)[:, None]).ravel()
    matrix = sp.csr_array(sp.vstack(matrices, format="csr"))[by_state]
    rewards = _table(r, S, A, None)
    return _from_grid(cls, matrix, rewards, _feasible(feasible, rewards), gamma, terminal, start, state_names, action_names)


def from_pairs(
    cls: type[MDP],
    states: Any,
    actions: Any,
    P: Any,
    r: Any,
    gamma: float,
    *,
    start: Any = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
) -> MDP:
    """An MDP from a list of feasible pairs in any order.

    Args:
        cls: the class.
        states: the state of each pair [L].
        actions: the action number of each pair [L].
        P: probabilities [L, S], one row per pair.
        r: rewards [L].
        gamma: discount in [0, 1).
        start: initial distribution [S].
        state_names: optional decoration.
        action_names: optional decoration.
    """
    s, a = validate.integers(states, "states"), validate.integers(actions, "actions")
    matrix = validate.transitions(P)
    L, S = matrix.shape
    if L == 0:
        raise InvalidModel("P has no rows; a model has at least one (state, action) pair")
    try:
        rewards = validate.floats(r)
    except (TypeError, ValueError):
        raise InvalidModel("r must be an array of numbers") from None
    for name, array in (("states", s), ("actions", a), ("r", rewards)):
        if array.shape != (L,):
            raise InvalidModel(f"{name} must have shape ({L},), one entry per row of P; found {array.shape}")
    if s.min() < 0 or s.max() >= S:
        raise InvalidModel(f"states holds {s.min() if s.min() < 0 else s.max()}, but states are numbered 0 to {S - 1}")
    order = np.lexsort((a, s))
    s, a = s[order], a[order]
    twice = np.flatnonzero((np.diff(s) == 0) & (np.diff(a) == 0))
    if len(twice):
        at = int(twice[0])
        raise InvalidModel(
            f"state {s[at]}, action {a[at]} is listed twice (rows {order[at]} and {order[at + 1]} of P); merge them"
        )
    first = np.concatenate(([0], np.cumsum(np.bincount(s, minlength=S))))
    sorted_already = np.array_equal(order, np.arange(L))
    return cls(
        matrix if sorted_already else matrix[order],
        rewards[order],
        gamma,
        first,
        start,
        actions=a,
        state_names=state_names,
        action_names=action_names,
    )


def from_function(
    cls: type[MDP],
    dynamics: Dynamics,
    n_states: int,
    n_actions: int,
    gamma: float,
    *,
    terminal: Any = None,
    start: Any = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    chunk: int = 1 << 15,
    show_progress: bool | None = None,
) -> MDP:
    """A large MDP from a function over arrays of states, called in chunks: `dynamics(states, action)`.

    It returns next states [n, k], probabilities broadcastable to [n, k] and rewards [n] (or [n, k], averaged).
    A reward of -inf says that the action is not allowed there. Successors may repeat (they are summed) and may
    have probability zero (they are dropped, so rows can be padded). Memory stays near that of the final arrays.

    Args:
        cls: the class.
        dynamics: the function.
        n_states: number of states.
        n_actions: number of actions; the function is called with 0, 1, ..., n_actions - 1.
        gamma: discount in [0, 1).
        terminal: states (indices or a boolean mask) that are absorbing with reward zero; the function's word there is ignored.
        start: initial distribution [S].
        state_names: optional decoration.
        action_names: optional decoration.
        chunk: states per call.
        show_progress: draw a progress bar; by default on a terminal only.
    """
    function = Function(dynamics, n_states, n_actions, gamma, terminal, start, state_names, action_names, chunk, show_progress)
    elsewhere = BUILDER.get()
    if elsewhere is not None:
        return elsewhere(function)
    P, r, first, ids = function.rows(0, n_states)
    return cls(P, r, gamma, first, start, actions=ids, state_names=state_names, action_names=action_names)


def _table(r: Any, S: int, A: int, P: FloatArray | None) -> FloatArray:
    """Rewards as [S, A], from [S, A], [S] or (given P) [S, A, S]."""
    try:
        array = validate.floats(r)
    except (TypeError, ValueError):
        raise InvalidModel("r must be an array of numbers") from None
    if array.shape == (S, A):
        return array
    if array.shape == (S,):
        return np.repeat(array[:, None], A, axis=1)
    if P is not None and array.shape == (S, A, S):
        reached = P != 0
        return np.where(reached, np.where(reached, P, 0.0) * np.where(reached, array, 0.0), 0.0).sum(axis=2)
    either = "[S, A], [S, A, S] or [S]" if P is not None else "[S, A] or [S]"
    raise InvalidModel(f"r must have shape {either} with S={S}, A={A}; found {array.shape}")


def _feasible(mask: Any, r: FloatArray) -> BoolArray:
    """Which pairs are allowed [S, A]: the mask, less those with reward -inf."""
    allowed = r != -np.inf
    if mask is not None:
        given = np.asarray(mask)
        if given.dtype != bool or given.shape != r.shape:
            raise InvalidModel(f"feasible must be a boolean array of shape {r.shape}; found {given.dtype} {given.shape}")
        allowed &= given
    return allowed


def _from_grid(
    cls: type[MDP],
    P: sp.csr_array,
    r: FloatArray,
    allowed: BoolArray,
    gamma: float,
    terminal: Any,
    start: Any,
    state_names: Sequence[str] | None,
    action_names: Sequence[str] | None,
) -> MDP:
    """An MDP from rows s*A + a, of which only the allowed ones are kept."""
    S = r.shape[0]
    ends = states_mask(terminal, S)
    allowed = allowed & ~ends[:, None]
    allowed[ends, 0] = True
    s, a = np.nonzero(allowed)
    rewards = r[s, a]
    if len(s) < r.size:
        P = P[s * r.shape[1] + a]
    if ends.any():
        P, rewards = absorb(P, rewards, np.flatnonzero(ends[s]), s)
    first = np.concatenate(([0], np.cumsum(np.bincount(s, minlength=S))))
    return cls(P, rewards, gamma, first, start, actions=a, state_names=state_names, action_names=action_names)
