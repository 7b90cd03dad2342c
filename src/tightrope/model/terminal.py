"""Terminal states as users name them, and what becomes of them: absorbing, with reward zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidModel
from tightrope.model import validate

if TYPE_CHECKING:
    from tightrope.model.validate import BoolArray, FloatArray, IntArray


def absorb(P: sp.csr_array, r: FloatArray, rows: IntArray, states: IntArray) -> tuple[sp.csr_array, FloatArray]:
    """The given rows replaced by staying put with reward zero."""
    keep = np.ones(P.shape[0])
    keep[rows] = 0.0
    kept = sp.csr_array((P.data * np.repeat(keep, np.diff(P.indptr)), P.indices, P.indptr), shape=P.shape)
    loops = sp.csr_array((np.ones(len(rows)), (rows, states[rows])), shape=P.shape)
    mended = sp.csr_array(kept + loops)
    mended.eliminate_zeros()
    return mended, r * keep


def states_mask(states: Any, S: int, begin: int = 0, end: int | None = None) -> BoolArray:
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
