"""v = r + γ P v by factorisation, and what that would cost.

Many chains are a narrow band but for a few columns everybody jumps to (a new machine, an empty queue, the order-up-to level).
Those hubs are split off: with P = B + C, C the hub columns, v = x + Y v(hubs) where (I - γB) x = r and (I - γB) Y = γC, and the
values of the hubs follow from a small dense system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.validate import FloatArray, IntArray

    Solver = Callable[[FloatArray], FloatArray]

#: Widest band that is worth a band solver.
NARROW = 40
#: Most hubs that are worth splitting off.
HUBS = 40
#: Largest model whose ordering is computed only to learn what a factorisation would cost.
ORDERED = 200_000


def solve_chain(P: sp.csr_array, r: FloatArray, gamma: float) -> FloatArray:
    """The value of a chain by factorisation, with one step of refinement."""
    hubs = far_columns(P)
    solver = _sparse(P, gamma) if hubs is None else _band_and_hubs(P, gamma, hubs)
    v = solver(r)
    v += solver(r + gamma * (P @ v) - v)
    return v


def far_columns(P: sp.csr_array) -> IntArray | None:
    """The columns reached from outside the narrow band around the diagonal; None when they are too many to be hubs."""
    rows = np.repeat(np.arange(P.shape[0], dtype=np.int32), np.diff(P.indptr))
    is_hub = np.zeros(P.shape[1], dtype=bool)
    is_hub[P.indices[np.abs(rows - P.indices) > NARROW // 2]] = True
    hubs = np.flatnonzero(is_hub)
    return hubs if len(hubs) <= HUBS else None


def _band_and_hubs(P: sp.csr_array, gamma: float, hubs: IntArray) -> Solver:
    """LAPACK's band factorisation, and a dense system for the hubs."""
    from scipy.linalg.lapack import dgbtrf, dgbtrs  # noqa: PLC0415  (loads with the first factorisation)

    S, h = P.shape[0], len(hubs)
    rows = np.repeat(np.arange(S), np.diff(P.indptr))
    number = np.full(S, -1)
    number[hubs] = np.arange(h)
    hub = number[P.indices]
    near = hub < 0
    i, j = rows[near], P.indices[near].astype(np.int64)
    below, above = int(max((i - j).max(initial=0), 0)), int(max((j - i).max(initial=0), 0))
    band = np.zeros((2 * below + above + 1, S), order="F")
    band[below + above + i - j, j] = -gamma * P.data[near]
    band[below + above] += 1.0
    factors, pivots, _ = dgbtrf(band, below, above, overwrite_ab=True)

    def solve_band(b: FloatArray) -> FloatArray:
        return np.asarray(dgbtrs(factors, below, above, b, pivots)[0])

    if not h:
        return solve_band
    C = np.zeros((S, h), order="F")
    C[rows[~near], hub[~near]] = gamma * P.data[~near]
    Y = solve_band(C)
    small = np.linalg.inv(np.eye(h) - Y[hubs])

    def solve(b: FloatArray) -> FloatArray:
        x = solve_band(b)
        return x + Y @ (small @ x[hubs])

    return solve


def _sparse(P: sp.csr_array, gamma: float) -> Solver:
    """Sparse LU: I - γP is a diagonally dominant M-matrix, so no pivoting is needed and a symmetric ordering is right."""
    from scipy.sparse.linalg import splu  # noqa: PLC0415  (loads with the first factorisation)

    A = sp.csc_array(sp.identity(P.shape[0], format="csc") - gamma * P.tocsc())
    lu: Any = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return lu.solve


def factor_cost(P: sp.csr_array) -> float:
    """About how many multiplications a factorisation takes: S b^2 for a band of width b, 10 b^3 for a planar graph of width b."""
    S, b = P.shape[0], NARROW
    hubs = far_columns(P)
    if hubs is not None:
        return float(S * (60 + b + 4 * len(hubs)))
    if S > ORDERED:
        return np.inf
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # noqa: PLC0415  (rarely needed)

    place = np.empty(S, dtype=np.int64)
    place[reverse_cuthill_mckee(sp.csr_matrix(P), symmetric_mode=False)] = np.arange(S)
    width = float(np.abs(np.repeat(place, np.diff(P.indptr)) - place[P.indices]).max()) + 1.0
    return min(S * width * width, 10.0 * width**3 + 100.0 * P.nnz)
