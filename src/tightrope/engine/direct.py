"""v = r + γ P v by factorisation: a band solver where P is a band, sparse LU elsewhere, and what either would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from tightrope.model.validate import FloatArray

#: Widest band that is worth a band solver.
NARROW = 48


def solve_chain(P: sp.csr_array, r: FloatArray, gamma: float) -> FloatArray:
    """The value of a chain by factorisation, with one step of refinement."""
    below, above = bandwidths(P)
    solver = _band(P, gamma, below, above) if below + above <= NARROW else _sparse(P, gamma)
    v = solver(r)
    v += solver(r + gamma * (P @ v) - v)
    return v


def _sparse(P: sp.csr_array, gamma: float):  # type: ignore[no-untyped-def]  # noqa: ANN202  (SciPy has no types)
    """Sparse LU: I - γP is a diagonally dominant M-matrix, so no pivoting is needed and a symmetric ordering is right."""
    from scipy.sparse.linalg import splu  # noqa: PLC0415  (loads with the first factorisation)

    A = sp.csc_array(sp.identity(P.shape[0], format="csc") - gamma * P.tocsc())
    return splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve


def _band(P: sp.csr_array, gamma: float, below: int, above: int):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """LAPACK's band factorisation."""
    from scipy.linalg.lapack import dgbtrf, dgbtrs  # noqa: PLC0415  (loads with the first factorisation)

    S = P.shape[0]
    band = np.zeros((2 * below + above + 1, S), order="F")
    rows = np.repeat(np.arange(S), np.diff(P.indptr))
    band[below + above + rows - P.indices, P.indices] = -gamma * P.data
    band[below + above] += 1.0
    factors, pivots, _ = dgbtrf(band, below, above, overwrite_ab=True)

    def solve(b: FloatArray) -> FloatArray:
        x, _ = dgbtrs(factors, below, above, b, pivots)
        return np.asarray(x)

    return solve


def bandwidths(P: sp.csr_array) -> tuple[int, int]:
    """How far below and above the diagonal P reaches; columns are sorted, so the ends of each row that is not empty tell."""
    rows = np.flatnonzero(np.diff(P.indptr))  # a transposed chain has empty rows
    below = int((rows - P.indices[P.indptr[rows]]).max(initial=0))
    above = int((P.indices[P.indptr[rows + 1] - 1] - rows).max(initial=0))
    return below, above


def factor_cost(P: sp.csr_array) -> float:
    """About how many multiplications a factorisation takes, from the bandwidth b: S b^2 for a band, 10 b^3 for a planar graph."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # noqa: PLC0415  (rarely needed)

    S = P.shape[0]
    below, above = bandwidths(P)
    if below + above <= NARROW:
        return float(S * (below + 1) * (below + above + 1))
    place = np.empty(S, dtype=np.int64)
    place[reverse_cuthill_mckee(sp.csr_matrix(P), symmetric_mode=False)] = np.arange(S)
    b = float(np.abs(np.repeat(place, np.diff(P.indptr)) - place[P.indices]).max()) + 1.0
    return min(S * b * b, 10.0 * b**3 + 100.0 * P.nnz)
