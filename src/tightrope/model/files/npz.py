"""Our own format: the arrays of the model as they lie in memory, checksummed, and mapped from disk when large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import archive
from tightrope.errors import InvalidFile
from tightrope.model import validate
from tightrope.model.files.reading import Reading, Wishes, assemble

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import IntArray

NAME = "Tightrope .npz"
KIND = "mdp"
#: Files from this size on are left on disk and mapped into memory.
MAPPED_FROM = 1 << 28


def read(path: Path, wishes: Wishes) -> Reading:
    """The model of a file written by `write`."""
    header, arrays = archive.load(path, KIND, mapped=path.stat().st_size >= MAPPED_FROM)
    names = _texts(path, header, "state_names"), _texts(path, header, "action_names")
    label_names = _texts(path, header, "labels") or []
    try:
        data, indices, indptr = (np.asarray(arrays[name]) for name in ("data", "indices", "indptr"))
        r, first = np.asarray(arrays["r"]), np.asarray(arrays["first"])
        labels = {name: validate.integers(arrays[f"label_{i}"], f"label {name}") for i, name in enumerate(label_names)}
        P = csr(path, data, indices, indptr, len(first) - 1)
    except (KeyError, ValueError, TypeError) as error:
        raise InvalidFile(f"{path} is not a complete model: {error}") from None
    for name, states in labels.items():
        if states.size and not 0 <= states.min() <= states.max() < P.shape[1]:
            raise InvalidFile(f"{path}: label {name!r} names a state outside 0 to {P.shape[1] - 1}")
    return assemble(
        path,
        NAME,
        wishes,
        gamma=header.get("gamma") if isinstance(header.get("gamma"), float | int) else None,
        P=P,
        r=r,
        first=first,
        actions=arrays.get("actions"),
        start=arrays.get("start"),
        state_names=names[0],
        action_names=names[1],
        labels=labels,
    )


def write(mdp: MDP, path: Path, labels: Mapping[str, IntArray]) -> None:
    """The model, whole: names, start and labels included."""
    pairs, P = mdp.pairs, mdp.P
    arrays: dict[str, Any] = {"data": P.data, "indices": P.indices, "indptr": P.indptr, "r": mdp.r, "first": mdp.first}
    if pairs.ids is not None:
        arrays["actions"] = pairs.ids
    if not (mdp.start == 1.0 / mdp.n_states).all():
        arrays["start"] = mdp.start
    arrays |= {f"label_{i}": states for i, states in enumerate(labels.values())}
    header = {
        "gamma": mdp.gamma,
        "state_names": pairs.state_names,
        "action_names": pairs.action_names,
        "labels": list(labels),
    }
    archive.save(path, KIND, header, arrays)


def csr(path: object, data: Any, indices: Any, indptr: Any, n_states: int) -> sp.csr_array:
    """A CSR matrix from arrays nobody has checked: SciPy's own check does not look at every row."""
    for name, array in (("data", data), ("indices", indices), ("indptr", indptr)):
        if array.ndim != 1 or array.dtype.kind not in ("f" if name == "data" else "iu"):
            raise InvalidFile(f"{path}: {name} must be a vector of numbers; found {array.dtype} {array.shape}")
    steps = np.diff(indptr.astype(np.int64))
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != len(data) or len(indices) != len(data) or (steps < 0).any():
        raise InvalidFile(f"{path}: row offsets do not run from 0 to the number of transitions ({len(data)})")
    if len(indices) and not 0 <= indices.min() <= indices.max() < n_states:
        raise InvalidFile(f"{path}: a transition leads to a state outside 0 to {n_states - 1}")
    index = np.int32 if max(len(data), n_states) < 2**31 else np.int64
    parts = (data.astype(np.float64, copy=False), indices.astype(index, copy=False), indptr.astype(index, copy=False))
    return sp.csr_array(parts, shape=(len(indptr) - 1, n_states), copy=False)


def _texts(path: object, header: dict[str, Any], key: str) -> list[str] | None:
    found = header.get(key)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise InvalidFile(f"{path}: {key} in the header must be a list of names")
    return found
