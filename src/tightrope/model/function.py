"""A model as a function over its states: called in chunks, any range of states on its own."""

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
from tightrope.model.terminal import absorb, states_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tightrope.model.validate import BoolArray, FloatArray, IntArray


class Dynamics(Protocol):
    """What `MDP.from_function` calls: for states [n] and one action, successors, probabilities and rewards."""

    def __call__(self, states: IntArray, action: int, /) -> tuple[Any, Any, Any]:
        """Next states [n, k], probabilities broadcastable to [n, k], rewards [n] or [n, k] (-inf: not allowed)."""


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
        ends = states_mask(self.terminal, S, begin, end)
        rows = _Rows(S, begin, n)
        with progress.bar("building", n, show=self.show_progress) as bar:
            for at in range(begin, end, self.chunk):
                states: IntArray = np.arange(at, min(end, at + self.chunk), dtype=np.int32 if S < 2**31 else np.int64)
                parts = [_evaluate(self.dynamics, states, a, S) for a in range(self.n_actions)]
                rows.append(states, parts, ends[states - begin])
                bar.advance(len(states))
        return rows.finish()


#: Who builds the models of functions, where not this process alone.
BUILDER: ContextVar[Callable[[Function], Any] | None] = ContextVar("builder", default=None)


@contextmanager
def built_by(builder: Callable[[Function], Any]) -> Iterator[None]:
    """Within this context `from_function` hands the function to `builder`, so that a problem of the zoo can be built in parts."""
    token = BUILDER.set(builder)
    try:
        yield
    finally:
        BUILDER.reset(token)


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
            block, r = absorb(block, r, np.flatnonzero(ends[s]), states[s])
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
