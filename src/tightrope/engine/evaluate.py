"""The value of one Markov chain: v = r + γ P v, by sparse LU or by sweeps, whichever this chain is made for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from tightrope import kernels
from tightrope.engine.certificate import EPS
from tightrope.kernels import unsigned

if TYPE_CHECKING:
    from tightrope.model.validate import FloatArray

#: Below this many states a factorisation costs less than deciding whether to make one.
SMALL = 2_000
#: Sweeps between two looks at how fast they converge.
LOOK = 16


def evaluate(
    P: sp.csr_array, r: FloatArray, gamma: float, v: FloatArray | None = None, goal: float = 0.0
) -> tuple[FloatArray, int]:
    """The solution of v = r + γ P v to within `goal` (0: as exactly as floats allow), and the sweeps it cost."""
    if len(r) <= SMALL and goal == 0.0:
        return factorised(P, r, gamma), 1
    return swept(P, r, gamma, np.array(r if v is None else v), goal)


def factorised(P: sp.csr_array, r: FloatArray, gamma: float) -> FloatArray:
    """By sparse LU with one step of refinement; I - γP is a diagonally dominant M-matrix and needs no pivoting."""
    A = sp.csc_array(sp.identity(len(r), format="csc") - gamma * P.tocsc())
    lu = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    v = lu.solve(r)
    v += lu.solve(r + gamma * (P @ v) - v)
    return np.asarray(v)


def swept(P: sp.csr_array, r: FloatArray, gamma: float, v: FloatArray, goal: float) -> tuple[FloatArray, int]:
    """By sweeps, stopped on the span of the residual; by LU as soon as that is predicted to be cheaper."""
    out = np.empty_like(v)
    arrays = (unsigned(P.indptr), unsigned(P.indices), P.data)
    sweeps, before, cost = 0, np.inf, None
    while True:
        for _ in range(LOOK):
            low, high = kernels.policy_backup(*arrays, r, gamma, v, out)
            v, out = out, v
        sweeps += LOOK
        span = (high - low) * gamma / (1.0 - gamma)
        floor = 8.0 * EPS * max(float(np.abs(v).max()), EPS) / (1.0 - gamma)
        if span <= max(2.0 * goal, floor):
            v += 0.5 * (low + high) * gamma / (1.0 - gamma)
            return v, sweeps
        rate = (span / before) ** (1.0 / LOOK)
        remaining = np.log(max(2.0 * goal, floor) / span) / np.log(min(rate, gamma)) if rate < 1.0 else np.inf
        before = span
        if remaining > 4 * LOOK:
            cost = _factor_cost(P) if cost is None else cost
            if cost < remaining * P.nnz:
                return factorised(P, r, gamma), sweeps


def _factor_cost(P: sp.csr_array) -> float:
    """Operations of a sparse LU, guessed from the bandwidth b after reordering: S b^2 for a band, 10 b^3 for a planar graph."""
    S = P.shape[0]
    order = reverse_cuthill_mckee(sp.csr_matrix(P), symmetric_mode=False)
    place = np.empty(S, dtype=np.int64)
    place[order] = np.arange(S)
    b = float(np.abs(np.repeat(place, np.diff(P.indptr)) - place[P.indices]).max()) + 1.0
    return min(S * b * b, 10.0 * b**3 + 100.0 * P.nnz)
