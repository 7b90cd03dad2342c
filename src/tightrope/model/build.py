"""Constructors of `MDP`: everything people have, converted into the one layout."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp

from tightrope import progress
from tightrope.errors import InvalidModel
from tightrope.model import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import BoolArray, FloatArray, IntArray


class Dynamics(Protocol):
    """What `MDP.from_function` calls: for states [n] and one action, successors, probabilities and rewards."""

    def __call__(self, states: IntArray, action: int, /) -> tuple[Any, Any, Any]:
        """Next states [n, k], probabilities broadcastable to [n, k], rewards [n] or [n, k] (-inf: not allowed)."""


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
    elsewhere = _BUILDER.get()
    if elsewhere is not None:
        return elsewhere(function)
    P, r, first, ids = function.rows(0, n_states)
    return cls(P, r, gamma, first, start, actions=ids, state_names=state_names, action_names=action_names)


@dataclass(frozen=True, eq=False)
class Function:
    """A model as a function over its states, of which any range can be built; the arguments of `from_function`."""

    dynamics: Dynamics
    n_states: int
    n_actions: int
    gamma: float
    terminal: Any = None
    start: Any = None
    state_names: Sequence[str] | None = None
    action_names: Sequence[str] | None = None
    chunk: int = 1 << 15
    show_progress: bool | None = None

    def __post_init__(self) -> None:
        for name in ("n_states", "n_actions", "chunk"):
            validate.positive_integer(getattr(self, name), name)
        validate.gamma(self.gamma)

    def rows(self, begin: int, end: int) -> tuple[sp.csr_array, FloatArray, IntArray, IntArray]:
        """P, r, first and the action numbers of the states begin..end-1; `first` starts at 0."""
        S, n = self.n_states, end - begin
        ends = _states_mask(self.terminal, S, begin, end)
        rows = _Rows(S, begin, n)
        with progress.bar("building", n, show=self.show_progress) as bar:
            for at in range(begin, end, self.chunk):
                states: IntArray = np.arange(at, min(end, at + self.chunk), dtype=np.int32 if S < 2**31 else np.int64)
                parts = [_evaluate(self.dynamics, states, a, S) for a in range(self.n_actions)]
                rows.append(states, parts, ends[states - begin])
                bar.advance(len(states))
        return rows.finish()


#: Who builds the models of functions, where not this process alone.
_BUILDER: ContextVar[Callable[[Function], Any] | None] = ContextVar("builder", default=None)


@contextmanager
def built_by(builder: Callable[[Function], Any]) -> Iterator[None]:
    """Within this context `from_function` hands the function to `builder`, so that a problem of the zoo can be built in parts."""
    token = _BUILDER.set(builder)
    try:
        yield
    finally:
        _BUILDER.reset(token)


def _evaluate(dynamics: Dynamics, states: IntArray, a: int, S: int) -> tuple[sp.csr_array, FloatArray]:
    """One action's canonical rows and expected rewards over a chunk of states."""
    n = len(states)
    answer = dynamics(states, a)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise InvalidModel(
            f"the function returned {type(answer).__name__} for action {a}; it must return three things: "
            "next states, probabilities, rewards"
        )
    successors, p, r = answer
    columns = validate.integers(successors, f"next states of action {a}")
    if columns.shape == (n,):
        columns = columns[:, None]
    if columns.ndim != 2 or len(columns) != n or columns.size == 0:
        raise InvalidModel(
            f"next states of action {a} have shape {columns.shape}; for these {n} states expected ({n}, k) with k >= 1"
        )
    shape = columns.shape
    try:
        weights = np.broadcast_to(validate.floats(p), shape)
        rewards = validate.floats(r)
        if rewards.shape == shape and rewards.ndim == 2:
            rewards = (weights * np.where(weights != 0, rewards, 0.0)).sum(axis=1)  # padding may hold anything
        rewards = np.broadcast_to(rewards, (n,))
    except (TypeError, ValueError):
        raise InvalidModel(
            f"action {a}: probabilities of shape {np.shape(p)} or rewards of shape {np.shape(r)} do not fit "
            f"next states of shape {shape}"
        ) from None
    live = (weights != 0) & (rewards != -np.inf)[:, None]
    out = live & ((columns < 0) | (columns >= S))
    if out.any():
        i, j = map(int, np.argwhere(out)[0])
        raise InvalidModel(f"state {states[i]}, action {a} leads to state {columns[i, j]}; states are numbered 0 to {S - 1}")
    index = np.int32 if max(S, columns.size) < 2**31 else np.int64
    indptr = np.arange(0, columns.size + 1, shape[1], dtype=index)
    flat = (np.where(live, weights, 0.0).ravel(), np.where(live, columns, 0).astype(index).ravel(), indptr)
    matrix = sp.csr_array(flat, shape=(n, S))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix, rewards


class _Rows:
    """Rows of P gathered chunk by chunk into buffers that grow and are trimmed in place, never copied whole at the end."""

    def __init__(self, n_states: int, begin: int, n: int) -> None:
        self.S, self.begin, self.n = n_states, begin, n
        self.data, self.indices = np.empty(0), np.empty(0, dtype=np.int32)
        self.r, self.widths, self.ids = np.empty(0), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
        self.counts = np.zeros(n, dtype=np.int32)
        self.nnz = self.L = self.done = 0

    def append(self, states: IntArray, parts: list[tuple[sp.csr_array, FloatArray]], ends: BoolArray) -> None:
        n = len(states)
        block = sp.csr_array(sp.vstack([m for m, _ in parts], format="csr"))
        r = np.stack([rewards for _, rewards in parts], axis=1)
        allowed = (r != -np.inf) & ~ends[:, None]
        allowed[ends, 0] = True
        s, a = np.nonzero(allowed)
        block = block[a * n + s]
        r = r[s, a]
        if ends.any():
            block, r = _absorb(block, r, np.flatnonzero(ends[s]), states[s])
        self.done += n
        self._reserve(block.nnz, len(r))
        self.data[self.nnz : self.nnz + block.nnz] = block.data
        self.indices[self.nnz : self.nnz + block.nnz] = block.indices
        part = slice(self.L, self.L + len(r))
        self.r[part], self.widths[part], self.ids[part] = r, np.diff(block.indptr), a
        self.counts[states - self.begin] = np.bincount(s, minlength=n)
        self.nnz += block.nnz
        self.L += len(r)

    def _reserve(self, nnz: int, rows: int) -> None:
        """Room for this chunk and, if rows go on as so far, for all the rest."""
        ahead = self.n / self.done
        if self.nnz + nnz > len(self.data):
            size = int((self.nnz + nnz) * ahead * 1.02) + 1
            self.data.resize(size, refcheck=False)
            self.indices.resize(size, refcheck=False)
        if self.L + rows > len(self.r):
            size = int((self.L + rows) * ahead * 1.02) + 1
            for array in (self.r, self.widths, self.ids):
                array.resize(size, refcheck=False)

    def finish(self) -> tuple[sp.csr_array, FloatArray, IntArray, IntArray]:
        self.data.resize(self.nnz, refcheck=False)
        self.indices.resize(self.nnz, refcheck=False)
        for array in (self.r, self.widths, self.ids):
            array.resize(self.L, refcheck=False)
        index = np.int32 if max(self.nnz, self.S) < 2**31 else np.int64
        indptr = np.zeros(self.L + 1, dtype=index)
        np.cumsum(self.widths, out=indptr[1:])
        first: IntArray = np.zeros(self.n + 1, dtype=np.int32 if self.L < 2**31 else np.int64)
        np.cumsum(self.counts, out=first[1:])
        P = sp.csr_array((self.data, self.indices.astype(index, copy=False), indptr), shape=(self.L, self.S))
        P.has_canonical_format = True
        return P, self.r, first, self.ids


def _absorb(P: sp.csr_array, r: FloatArray, rows: IntArray, states: IntArray) -> tuple[sp.csr_array, FloatArray]:
    """The given rows replaced by staying put with reward zero."""
    keep = np.ones(P.shape[0])
    keep[rows] = 0.0
    kept = sp.csr_array((P.data * np.repeat(keep, np.diff(P.indptr)), P.indices, P.indptr), shape=P.shape)
    loops = sp.csr_array((np.ones(len(rows)), (rows, states[rows])), shape=P.shape)
    mended = sp.csr_array(kept + loops)
    mended.eliminate_zeros()
    return mended, r * keep


def _states_mask(states: Any, S: int, begin: int = 0, end: int | None = None) -> BoolArray:
    """Indices or a boolean mask of states, as a mask of the states begin..end-1 (all of them by default)."""
    stop = S if end is None else end
    mask = np.zeros(stop - begin, dtype=bool)
    if states is None:
        return mask
    array = np.asarray(states)
    if array.dtype == bool:
        if array.shape != (S,):
            raise InvalidModel(f"terminal as a mask must have shape ({S},); found {array.shape}")
        return array[begin:stop]
    if array.size:
        index = validate.integers(array, "terminal").ravel()
        if index.min() < 0 or index.max() >= S:
            raise InvalidModel(f"terminal names state {index.min() if index.min() < 0 else index.max()} of {S} states")
        mask[index[(index >= begin) & (index < stop)] - begin] = True
    return mask


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
    ends = _states_mask(terminal, S)
    allowed = allowed & ~ends[:, None]
    allowed[ends, 0] = True
    s, a = np.nonzero(allowed)
    rewards = r[s, a]
    if len(s) < r.size:
        P = P[s * r.shape[1] + a]
    if ends.any():
        P, rewards = _absorb(P, rewards, np.flatnonzero(ends[s]), s)
    first = np.concatenate(([0], np.cumsum(np.bincount(s, minlength=S))))
    return cls(P, rewards, gamma, first, start, actions=a, state_names=state_names, action_names=action_names)
