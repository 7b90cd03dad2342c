"""Arrays as MDPtoolbox has them: P and R in a MATLAB v5 file (.mat) or a NumPy .npz.

P is (A, S, S) in Python and (S, S, A) in MATLAB, or one matrix per action in a cell; R is (S, A), (S,), or of P's shape:
r(s,a) = Σ P(s'|s,a) R(s,a,s'). The discount, where there is one, is called discount or gamma.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import archive
from tightrope.errors import InvalidFile, NotStored
from tightrope.model.files.matlab import load
from tightrope.model.files.reading import Reading, Wishes, assemble, expected, rectangular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray

NAME = "MDPtoolbox arrays"
_P = ("P", "T", "transitions", "transition_probabilities")
_R = ("R", "r", "reward", "rewards")
_HOW = "read(path, reward=...), or --reward"


def read(path: Path, wishes: Wishes) -> Reading:
    """The model of the arrays P and R of a file."""
    matlab = not zipfile.is_zipfile(path)
    found = load(path) if matlab else archive.read_arrays(path)
    name = next((name for name in _P if name in found), None)
    if name is None:
        raise InvalidFile(f"{path} has no array P of transition probabilities; it has {', '.join(found) or 'nothing'}")
    notes: list[str] = []
    matrices = _by_action(path, found[name], notes, matlab=matlab)
    S, A = matrices[0].shape[1], len(matrices)
    by_state = (np.arange(A)[None, :] * S + np.arange(S)[:, None]).ravel()
    P = sp.csr_array(sp.vstack(matrices, format="csr"))[by_state]
    r = _rewards(path, _choose(path, wishes, found), P, S, A, matlab=matlab)
    gamma = next((_scalar(path, found[key], key) for key in ("discount", "gamma") if key in found), None)
    return assemble(
        path,
        NAME,
        wishes,
        gamma=gamma,
        P=P,
        r=r,
        first=np.arange(0, S * A + 1, A),
        start=_numbers(path, found["start"], "start").reshape(-1) if "start" in found else None,
        state_names=_names(found.get("state_names")),
        action_names=_names(found.get("action_names")),
        notes=notes,
    )


def write(mdp: MDP, path: Path, labels: Mapping[str, IntArray]) -> None:
    """A MATLAB v5 file: a cell of sparse matrices P{a}, R (S, A), discount, start, names; every state must offer every action."""
    from scipy.io import savemat  # noqa: PLC0415  (scipy.io takes long to load)

    A = rectangular(mdp, path)
    if labels:
        warnings.warn(f"{path}: a .mat file of this form has no place for labels", NotStored, stacklevel=3)
    cells = np.empty((1, A), dtype=object)
    for a in range(A):
        cells[0, a] = sp.csc_matrix(mdp.P[np.arange(a, mdp.n_pairs, A)])
    content: dict[str, Any] = {"P": cells, "R": mdp.r.reshape(-1, A), "discount": mdp.gamma, "start": mdp.start.reshape(-1, 1)}
    for key in ("state_names", "action_names"):
        names = getattr(mdp.pairs, key)
        if names is not None:
            content[key] = np.array(names, dtype=object).reshape(-1, 1)
    buffer = io.BytesIO()
    savemat(buffer, content, format="5", do_compression=False)
    with archive.replacing(path) as file:
        file.write(buffer.getvalue())


def _by_action(path: Path, found: Any, notes: list[str], *, matlab: bool) -> list[Any]:
    """One CSR matrix [S, S] per action."""
    if sp.issparse(found) or (isinstance(found, np.ndarray) and found.ndim == 2):
        cells = [found]
    elif isinstance(found, list):
        cells = found
    elif isinstance(found, np.ndarray) and found.ndim == 3:
        array = _numbers(path, found, "P")
        cells = list(np.moveaxis(array, 2, 0) if _actions_last(array, notes, matlab=matlab) else array)
    else:
        raise InvalidFile(f"{path}: P must be an array (A, S, S) or (S, S, A), or a cell of matrices")
    if not cells:
        raise InvalidFile(f"{path}: P has no actions")
    matrices = []
    for a, cell in enumerate(cells):
        if not (sp.issparse(cell) or isinstance(cell, np.ndarray)) or cell.dtype.kind not in "fiub" or cell.ndim != 2:
            raise InvalidFile(f"{path}: P of action {a} is not a matrix of numbers")
        matrix = sp.csr_array(cell).astype(np.float64)
        if matrix.shape != (cells[0].shape[0],) * 2 or not matrix.shape[0]:
            raise InvalidFile(f"{path}: P of action {a} has shape {matrix.shape}; square matrices of one size expected")
        matrices.append(matrix)
    return matrices


def _actions_last(P: FloatArray, notes: list[str], *, matlab: bool) -> bool:
    """Whether P is (S, S, A): by its shape, else by which rows sum to one, else by the file's home."""
    first, last = P.shape[1] == P.shape[2], P.shape[0] == P.shape[1]
    if first != last:
        return last
    sums = [np.abs(P.sum(axis=axis) - 1.0).max(initial=0.0) < 1e-5 for axis in (2, 1)]
    if sums[0] != sums[1]:
        return bool(sums[1])
    notes.append(f"P could be (A, S, S) or (S, S, A); it was read as {'(S, S, A)' if matlab else '(A, S, S)'}")
    return matlab


def _choose(path: Path, wishes: Wishes, found: dict[str, Any]) -> Any:
    candidates = [name for name in found if name in _R]
    if wishes.reward is not None:
        if wishes.reward not in found:
            raise InvalidFile(f"{path} has no array {wishes.reward!r}; it has {', '.join(found)}")
        return found[wishes.reward]
    if not candidates:
        raise InvalidFile(
            f"{path} has no array R of rewards; it has {', '.join(found)}. Name one: read(path, reward=...), or --reward"
        )
    if len(candidates) > 1:
        raise InvalidFile(
            f"{path} has several reward arrays: {', '.join(candidates)}; choose one: read(path, reward=...), or --reward"
        )
    return found[candidates[0]]


def _rewards(path: Path, R: Any, P: sp.csr_array, S: int, A: int, *, matlab: bool) -> FloatArray:
    """Rewards of the rows s*A + a of P."""
    if isinstance(R, list):
        cells = [_numbers(path, cell, "R") for cell in R]
        if len({cell.shape for cell in cells}) != 1:
            raise InvalidFile(f"{path}: the matrices of the cell R differ in shape")
        R, matlab = np.stack(cells), False
    array = _numbers(path, R, "R")
    if array.shape == (S, A):
        return np.ascontiguousarray(array).reshape(-1)
    if array.size == S and array.ndim <= 2:
        return np.repeat(array.reshape(-1), A)
    if array.ndim == 3 and array.shape in ((A, S, S), (S, S, A)):
        last = array.shape == (S, S, A) and (matlab or array.shape != (A, S, S))
        full = np.moveaxis(array, 2, 0) if last else array
        P.sum_duplicates()
        row = np.repeat(np.arange(S * A), np.diff(P.indptr))
        return expected(P, full[row % A, row // A, P.indices])
    raise InvalidFile(f"{path}: R has shape {array.shape}; ({S}, {A}), ({S},) or that of P expected")


def _numbers(path: Path, found: Any, what: str) -> FloatArray:
    if sp.issparse(found):
        if math.prod(found.shape) > 100 * found.nnz + 1_000_000:
            raise InvalidFile(f"{path}: {what} is a sparse array {found.shape}, too empty to be written out")
        found = found.toarray()
    array = np.asarray(found)
    if isinstance(found, list | str) or array.dtype.kind not in "fiub":
        raise InvalidFile(f"{path}: {what} must be numbers")
    return array.astype(np.float64)


def _scalar(path: Path, found: Any, what: str) -> float:
    array = _numbers(path, found, what)
    if array.size != 1:
        raise InvalidFile(f"{path}: {what} must be one number; found shape {array.shape}")
    return float(array.reshape(-1)[0])


def _names(found: Any) -> list[str] | None:
    return found if isinstance(found, list) and found and all(isinstance(name, str) for name in found) else None
