"""PETSc binary pairs, as madupite stores a model: the matrix P [S*A, S] (row s*A + a) and the stage costs g [S, A].

Read after PETSc's MatLoad and VecLoad: big-endian, a class id, sizes, row lengths, columns, values; -1 entries mean dense.
The costs lie beside P under the same name with g for P (P.bin and g.bin), and are minimised: r = -g.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import archive
from tightrope.errors import InvalidFile, NotStored
from tightrope.model.files.npz import csr
from tightrope.model.files.reading import Reading, Wishes, assemble, rectangular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import IntArray

NAME = "PETSc pair"
MATRIX, VECTOR = 1211216, 1211214


def read(path: Path, wishes: Wishes) -> Reading:
    """The model of P and g; 32- and 64-bit indices."""
    P = _matrix(path)
    S = P.shape[1]
    A = actions(path, P.shape[0], S)
    beside = costs_path(path)
    if not beside.is_file():
        raise InvalidFile(f"{path}: the costs are expected beside it in {beside.name}, which is not there")
    g = _matrix(beside, vector=True)
    if g.shape not in ((S, A), (S * A, 1)):
        raise InvalidFile(f"{beside} is a matrix {g.shape}; costs of {S} states and {A} actions expected")
    costs = np.asarray(g.toarray() if sp.issparse(g) else g, dtype=np.float64).reshape(-1)
    first = np.arange(0, S * A + 1, A)
    return assemble(path, NAME, wishes, gamma=None, P=P, r=costs, first=first, costs=True)


def actions(path: Path, rows: int, n_states: int) -> int:
    """How many actions each state has in a matrix of that shape."""
    if rows % n_states or not rows:
        raise InvalidFile(
            f"{path} is a matrix {(rows, n_states)}; the rows of P are a multiple of its columns "
            "(this may be the cost matrix: name the file of P)"
        )
    return rows // n_states


def write(mdp: MDP, path: Path, labels: Mapping[str, IntArray]) -> None:
    """P and, beside it, g = -r; every state must offer every action."""
    A = rectangular(mdp, path)
    named = mdp.pairs.state_names is not None or mdp.pairs.action_names is not None
    uniform = (mdp.start == 1.0 / mdp.n_states).all()
    lost = [name for name, there in (("names", named), ("start", not uniform), ("labels", bool(labels))) if there]
    if lost:
        warnings.warn(f"{path}: PETSc files have no place for {', '.join(lost)}", NotStored, stacklevel=3)
    index = ">i4" if max(mdp.P.nnz, *mdp.P.shape) < 2**31 else ">i8"
    S = mdp.n_states
    grid = np.tile(np.arange(A), S)
    _save(path, index, (S * A, S), np.diff(mdp.P.indptr), mdp.P.indices, mdp.P.data)
    _save(costs_path(path), index, (S, A), np.full(S, A), grid, 0.0 - mdp.r)


def costs_path(path: Path) -> Path:
    """Where the costs of P lie: the last P that stands alone in the name becomes g, else _g is appended."""
    stem = re.sub(r"^(.*)(?<![A-Za-z])P(?![A-Za-z])", r"\1g", path.stem)
    return path.with_name((stem if stem != path.stem else f"{path.stem}_g") + path.suffix)


def _save(path: Path, index: str, shape: tuple[int, int], widths: Any, columns: Any, values: Any) -> None:
    with archive.replacing(path) as file:
        file.write(np.array([MATRIX, *shape, len(values)], dtype=index).tobytes())
        file.write(np.asarray(widths).astype(index).tobytes())
        file.write(np.asarray(columns).astype(index).tobytes())
        file.write(np.asarray(values).astype(">f8").tobytes())


def _matrix(path: Path, *, vector: bool = False) -> Any:
    """The whole matrix (or vector) of a file: CSR, or a dense array."""
    part = Part(path, vector=vector)
    return part.read(0, part.rows, 0)


class Part:
    """A matrix in a file, or a vector where that is expected, of which any rows can be read."""

    def __init__(self, path: Path, *, vector: bool = False) -> None:
        self.path, self.size = path, path.stat().st_size
        wide = self.size >= 8 and int(np.fromfile(path, ">i8", 1)[0]) in (MATRIX, VECTOR)
        self.index = ">i8" if wide else ">i4"
        self.unit = int(self.index[2])
        kind = int(np.fromfile(path, self.index, 1)[0]) if self.size >= self.unit else -1
        if kind != MATRIX and not (kind == VECTOR and vector):
            raise InvalidFile(f"{path}, byte 0: the class id {MATRIX} of a PETSc matrix expected; found {kind}")
        counts = 1 if kind == VECTOR else 3
        #: Where what follows the header begins.
        self.begin = self.unit * (1 + counts)
        if self.size < self.begin:
            raise InvalidFile(f"{path}, byte {self.unit}: it ends within the header")
        self.rows, self.columns, self.entries = (*self._read(self.index, self.unit, counts).astype(np.int64).tolist(), 1, -1)[:3]
        if kind == VECTOR:
            self._wanted(max(self.rows, 0) * 8, f"{self.rows} values expected", self.rows)
            return
        if self.rows < 1 or self.columns < 1:
            raise InvalidFile(f"{path}, byte {self.unit}: a matrix {self.rows} x {self.columns} is empty")
        if self.entries == -1:
            self._wanted(self.rows * self.columns * 8, f"{self.rows * self.columns} values expected", 0)
            return
        wanted = self.rows * self.unit + self.entries * (self.unit + 8)
        self._wanted(wanted, f"{wanted} bytes expected for {self.rows} rows and {self.entries} entries", self.entries)

    def widths(self, begin: int, end: int) -> IntArray:
        """How many entries the rows begin..end-1 hold."""
        if self.entries == -1:
            return np.full(end - begin, self.columns, dtype=np.int64)
        found: IntArray = self._read(self.index, self.begin + begin * self.unit, end - begin).astype(np.int64)
        total = int(found.sum())
        if (found < 0).any() or total > self.entries or (end - begin == self.rows and total != self.entries):
            raise InvalidFile(
                f"{self.path}, byte {self.unit * 4}: row lengths that sum to {self.entries} expected; they sum to {total}"
            )
        return found

    def read(self, begin: int, end: int, before: int) -> Any:
        """The rows begin..end-1, which `before` entries come before: CSR, or a dense array where the file holds one."""
        if self.entries == -1:
            count = (end - begin) * self.columns
            values = self._read(">f8", self.begin + begin * self.columns * 8, count).astype(np.float64)
            return values.reshape(end - begin, self.columns)
        widths = self.widths(begin, end)
        count = int(widths.sum())
        columns = self.begin + self.rows * self.unit
        values = columns + self.entries * self.unit
        targets = self._read(self.index, columns + before * self.unit, count).astype(np.int64)
        numbers = self._read(">f8", values + before * 8, count).astype(np.float64)
        return csr(self.path, numbers, targets, np.concatenate(([0], np.cumsum(widths))), self.columns)

    def _read(self, dtype: str, at: int, count: int) -> Any:
        found = np.fromfile(self.path, dtype, count, offset=at)
        if len(found) != count:
            raise InvalidFile(f"{self.path}, byte {at}: {count} numbers expected; {len(found)} there")
        return found

    def _wanted(self, size: int, what: str, entries: int) -> None:
        """Refuse a file that is shorter than its header says before memory is asked for."""
        if entries < 0 or self.size - self.begin < size:
            raise InvalidFile(f"{self.path}, byte {self.begin}: {what}; {self.size - self.begin} there")
