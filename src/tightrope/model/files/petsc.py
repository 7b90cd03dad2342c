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
    if P.shape[0] % S or not P.shape[0]:
        hint = " (this may be the cost matrix: name the file of P)" if P.shape[0] < S or P.shape[0] % S else ""
        raise InvalidFile(f"{path} is a matrix {P.shape}; the rows of P are a multiple of its columns{hint}")
    A = P.shape[0] // S
    beside = costs_path(path)
    if not beside.is_file():
        raise InvalidFile(f"{path}: the costs are expected beside it in {beside.name}, which is not there")
    g = _matrix(beside, values=S * A)
    if g.shape not in ((S, A), (S * A, 1)):
        raise InvalidFile(f"{beside} is a matrix {g.shape}; costs of {S} states and {A} actions expected")
    costs = np.asarray(g.toarray() if sp.issparse(g) else g, dtype=np.float64).reshape(-1)
    first = np.arange(0, S * A + 1, A)
    return assemble(path, NAME, wishes, gamma=None, P=P, r=costs, first=first, costs=True)


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


def _matrix(path: Path, values: int | None = None) -> Any:
    """A matrix or vector of a file: CSR, or a dense array; `values` allows a vector of that many entries."""
    data = np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.empty(0, dtype=np.uint8)
    index = ">i8" if len(data) >= 8 and int(data[:8].view(">i8")[0]) in (MATRIX, VECTOR) else ">i4"
    size = int(index[2])
    kind = int(data[:size].view(index)[0]) if len(data) >= size else -1
    if kind == VECTOR and values is not None:
        n, rest = _counts(path, data[size:], index, 1)
        return _values(path, rest, n[0], size * 2).reshape(-1, 1)
    if kind != MATRIX:
        raise InvalidFile(f"{path}, byte 0: the class id {MATRIX} of a PETSc matrix expected; found {kind}")
    (rows, columns, entries), rest = _counts(path, data[size:], index, 3)
    if rows < 1 or columns < 1:
        raise InvalidFile(f"{path}, byte {size}: a matrix {rows} x {columns} is empty")
    if entries == -1:
        return _values(path, rest, rows * columns, size * 4).reshape(rows, columns)
    wanted = rows * size + entries * (size + 8)
    if entries < 0 or len(rest) < wanted:
        raise InvalidFile(
            f"{path}, byte {size * 4}: {wanted} bytes expected for {rows} rows and {entries} entries; {len(rest)} there"
        )
    widths = rest[: rows * size].view(index).astype(np.int64)
    if (widths < 0).any() or int(widths.sum()) != entries:
        raise InvalidFile(f"{path}, byte {size * 4}: row lengths that sum to {entries} expected; they sum to {widths.sum()}")
    at = rows * size
    targets = rest[at : at + entries * size].view(index).astype(np.int64)
    numbers = _values(path, rest[at + entries * size :], entries, 0)
    return csr(path, numbers, targets, np.concatenate(([0], np.cumsum(widths))), columns)


def _counts(path: Path, data: Any, index: str, count: int) -> tuple[list[int], Any]:
    size = int(index[2]) * count
    if len(data) < size:
        raise InvalidFile(f"{path}, byte {index[2]}: it ends within the header")
    return data[:size].view(index).astype(np.int64).tolist(), data[size:]


def _values(path: Path, data: Any, count: int, at: int) -> Any:
    if count < 0 or len(data) < count * 8:
        raise InvalidFile(f"{path}, byte {at}: {count} values expected; {len(data) // 8} there")
    return data[: count * 8].view(">f8").astype(np.float64)
