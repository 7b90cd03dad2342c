"""The value of one Markov chain that is spread over ranks, v = r + γ P v: by sweeps, or by a Krylov method where that pays.

Each is tried for a round and judged by how far it brought the residual down; a round that did not is undone. Every decision
follows from numbers that are the same on all ranks, so that all of them take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import kernels
from tightrope.cluster import ranks
from tightrope.cluster.matrix import freed_with
from tightrope.kernels.bounds import EPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.cluster.matrix import Rows
    from tightrope.model.validate import FloatArray

#: Sweeps in one round, the most iterations of a Krylov round, and the vectors it may keep.
ROUND, ITERATIONS, RESTART = 24, 60, 20
#: What one Krylov iteration (a product, a triangular solve, orthogonalisation) and its set-up cost, in products with P.
ITERATION, SET_UP = 4.0, 20.0
#: Products left at the present rate from which on a Krylov round is worth a try.
LONG = 100.0
#: How fast a method that did badly is given another chance, and rounds without progress after which rounding is to blame.
FORGIVENESS, PATIENCE = 1.25, 3


def chain_value(
    comm: Any,
    P: Rows,
    r: FloatArray,
    gamma: float,
    v: FloatArray,
    goal: float,
    *,
    most: float = np.inf,
    pause: Callable[[FloatArray], bool] = lambda _: False,
) -> tuple[FloatArray, str]:
    """v = r + γ P v to within `goal` (0: as exactly as floats allow), in at most about `most` products; and the best method.

    `pause` is called between rounds with the present v, and says whether to stop.
    """
    work = _Rounds(comm, P, r, gamma, v)
    gains: dict[str, float] = {}
    method, stalled = "sweeps", 0
    spread = work.measure(1)
    while True:
        target = max(2.0 * goal, 8.0 * EPS * work.size() / (1.0 - gamma))
        if spread <= target or work.cost >= most or stalled >= PATIENCE or pause(work.v):
            return work.centred(), method
        if gains:
            method = max(gains, key=gains.__getitem__)
            left = np.log(spread / target) / gains[method] if gains[method] > 0.0 else np.inf
            if len(gains) == 1 and left > LONG and work.cost + LONG < most:
                method = "krylov"
        before, cost = spread, work.cost
        spread = work.sweeps(spread, target) if method == "sweeps" else work.krylov(spread, target)
        gains = {name: FORGIVENESS * gain for name, gain in gains.items()}
        gains[method] = np.log(before / spread) / (work.cost - cost) if spread > 0.0 else np.inf
        stalled = stalled + 1 if spread > 0.9 * before and len(gains) == 2 else 0


class _Rounds:
    """v on its way to the value of a chain."""

    def __init__(self, comm: Any, P: Rows, r: FloatArray, gamma: float, v: FloatArray) -> None:
        self.comm, self.P, self.r, self.gamma, self.v = comm, P, r, gamma, v
        self._reach = gamma / (1.0 - gamma)
        self._shift = 0.0
        self._krylov: _Krylov | None = None
        #: What was spent so far, in products with P.
        self.cost = 0.0

    def size(self) -> float:
        """max |v|."""
        low, high = ranks.extremes(self.comm, float(self.v.min(initial=np.inf)), float(self.v.max(initial=-np.inf)))
        return max(abs(low), abs(high))

    def measure(self, n: int) -> float:
        """n sweeps; a bound on the spread of the error, from the last of them."""
        low, high = 0.0, 0.0
        for _ in range(n):
            low, high = kernels.shares.step(self.P.into(self.v), self.r, self.gamma, self.v)
        self.cost += n
        low, high = ranks.extremes(self.comm, low, high)
        self._shift = 0.5 * (low + high) * self._reach
        return (high - low) * self._reach

    def centred(self) -> FloatArray:
        """v with the constant part of its error, which the sweeps have measured, taken off."""
        self.v += self._shift
        return self.v

    def sweeps(self, spread: float, target: float) -> float:
        """A round of plain sweeps, looked at after 1, 2, 4, ... of them."""
        n = 1
        while spread > target and n < ROUND:
            spread = self.measure(n)
            n *= 2
        return spread

    def krylov(self, spread: float, target: float) -> float:
        """A round of GMRES on what is missing, undone where it did not help."""
        if self._krylov is None:
            self._krylov = _Krylov(self.P, self.gamma)
            self.cost += SET_UP
        before = self.v.copy()
        missing = self.r + self.gamma * self.P.into(self.v) - self.v
        step, iterations = self._krylov.solve(missing, min(0.2 * target / spread, 0.1))
        self.v += step
        self.cost += 1.0 + ITERATION * iterations
        after = (
            self.measure(2) if np.isfinite(ranks.extremes(self.comm, 0.0, float(np.abs(step).max(initial=0.0)))[1]) else np.inf
        )
        if after < spread:
            return after
        self.v[:] = before
        return self.measure(1)


class _Krylov:
    """(I - γP) x = b by GMRES, preconditioned in blocks: an incomplete factorisation of each rank's own part."""

    def __init__(self, P: Rows, gamma: float) -> None:
        PETSc, _ = ranks.engines()
        rows, n = P.local(), P.n_rows
        begin = P.matrix.getOwnershipRangeColumn()[0]
        # The diagonal is added here: Mat.shift of PETSc 3.18 fails on rows that have none.
        unit = sp.csr_array(
            (np.ones(n), np.arange(begin, begin + n, dtype=rows.indices.dtype), np.arange(n + 1)), shape=rows.shape
        )
        A = sp.csr_array(unit - gamma * rows)
        A.sort_indices()
        csr = (A.indptr.astype(PETSc.IntType), A.indices.astype(PETSc.IntType), A.data)
        self._A = PETSc.Mat().createAIJ(((n, None), (n, None)), csr=csr, comm=P.matrix.getComm())
        self._ksp = PETSc.KSP().create(P.matrix.getComm())
        self._ksp.setOptionsPrefix("tightrope_")
        self._ksp.setOperators(self._A)
        self._ksp.setType("gmres")
        self._ksp.setGMRESRestart(RESTART)
        self._ksp.getPC().setType("bjacobi")
        self._ksp.setFromOptions()
        self._x, self._b = self._A.createVecs()
        freed_with(self, self._ksp, self._A, self._x, self._b)

    def solve(self, b: FloatArray, rtol: float) -> tuple[FloatArray, int]:
        """x and the number of iterations; a breakdown is an x that does not help."""
        self._b.setArray(b)
        self._ksp.setTolerances(rtol=rtol, atol=0.0, max_it=ITERATIONS)
        self._ksp.solve(self._b, self._x)
        return self._x.getArray().copy(), int(self._ksp.getIterationNumber()) + 1
