"""What a file of Cassandra's format says, kept sparse, and the MDP it means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidFile

if TYPE_CHECKING:
    from tightrope.model.validate import FloatArray

#: Wildcards and keywords such as `uniform` may stand for this many entries in one file.
ENTRIES = 20_000_000


@dataclass(frozen=True, slots=True)
class Things:
    """States, actions or observations: how many, and their names where they have any."""

    count: int
    names: list[str] | None = None
    index: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.count


@dataclass(slots=True)
class Model:
    """What a file says. T and O map (action, state) to {entry: probability}; R lists (action, s, s', o, value) in order."""

    path: object
    discount: float | None = None
    costs: bool = False
    states: Things = field(default_factory=lambda: Things(0))
    actions: Things = field(default_factory=lambda: Things(0))
    observations: Things | None = None
    start: FloatArray | None = None
    T: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    O: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    R: list[tuple[int, int, int, int, float]] = field(default_factory=list)

    def transitions(self) -> sp.csr_array:
        """P [S*A, S], row s*A + a."""
        S, A = len(self.states), len(self.actions)
        empty: dict[int, float] = {}
        rows = [self.T.get((a, s), empty) for s in range(S) for a in range(A)]
        indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
        columns = np.fromiter((t for row in rows for t in row), dtype=np.int64)
        p = np.fromiter((x for row in rows for x in row.values()), dtype=np.float64)
        P = sp.csr_array((p, columns, indptr), shape=(S * A, S))
        P.eliminate_zeros()
        P.sort_indices()
        return P

    def rewards(self, P: sp.csr_array) -> FloatArray:
        """Expected rewards [S*A] of the rows of P."""
        S, A = len(self.states), len(self.actions)
        seen = self.observations is not None and any(o >= 0 for *_, o, _ in self.R)
        width = len(self.observations) if seen and self.observations is not None else 1
        if P.nnz * width > 5 * ENTRIES:
            raise InvalidFile(f"{self.path}: rewards of {P.nnz:,} transitions for {width} observations are too many to expand")
        values = np.zeros((P.nnz, width))
        places, work = _Places(P, A), 0
        for a, s, t, o, value in self.R:
            entries = places.of(a, s, t)
            work += len(range(*entries.indices(P.nnz))) if isinstance(entries, slice) else len(entries)
            if work > 50 * ENTRIES:
                raise InvalidFile(f"{self.path}: its R lines with wildcards touch too many transitions; use a sparse format")
            values[entries, slice(None) if o < 0 else o] = value
        weights = np.ones((P.nnz, 1)) if width == 1 else self._seen(P, A, width)
        row = np.repeat(np.arange(S * A), np.diff(P.indptr))
        low, high = np.full(S * A, np.inf), np.full(S * A, -np.inf)
        np.minimum.at(low, row, values.min(axis=1, initial=np.inf))
        np.maximum.at(high, row, values.max(axis=1, initial=-np.inf))
        mean = np.bincount(row, P.data * (weights * values).sum(axis=1), minlength=S * A)
        return np.where(low == high, low, mean)

    def _seen(self, P: sp.csr_array, A: int, width: int) -> FloatArray:
        """O(o|a,s') for every transition [nnz, O]."""
        weights = np.zeros((P.nnz, width))
        row = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        for k, (l, t) in enumerate(zip(row.tolist(), P.indices.tolist(), strict=True)):
            given = self.O.get((l % A, t), {})
            weights[k, list(given)] = list(given.values())
        off = np.flatnonzero(np.abs(weights.sum(axis=1) - 1.0) > 1e-5)
        if len(off):
            a, t = int(row[off[0]]) % A, int(P.indices[off[0]])
            raise InvalidFile(
                f"{self.path}: rewards depend on observations, but the probabilities O of action {a}, state {t} "
                f"sum to {weights[off[0]].sum():.6g}"
            )
        return weights


class _Places:
    """Finds the transitions (entries of P) that an R line speaks of; -1 stands for any action, state or next state."""

    def __init__(self, P: sp.csr_array, A: int) -> None:
        self.P, self.A = P, A
        row = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        self.state, self.action = np.divmod(row, A)
        self.by_target = np.argsort(P.indices, kind="stable")
        self.targets = np.concatenate(([0], np.cumsum(np.bincount(P.indices, minlength=P.shape[1]))))
        self.by_action = np.argsort(self.action, kind="stable")
        self.actions = np.concatenate(([0], np.cumsum(np.bincount(self.action, minlength=A))))

    def of(self, a: int, s: int, t: int) -> Any:
        """An index into the entries."""
        indptr, A = self.P.indptr, self.A
        if t >= 0:
            found = self.by_target[self.targets[t] : self.targets[t + 1]]
            found = found if a < 0 else found[self.action[found] == a]
            return found if s < 0 else found[self.state[found] == s]
        if s >= 0:
            return slice(indptr[s * A + max(a, 0)], indptr[(s + 1) * A if a < 0 else s * A + a + 1])
        return slice(None) if a < 0 else self.by_action[self.actions[a] : self.actions[a + 1]]
