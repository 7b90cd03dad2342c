"""Rows of a transition matrix that are spread over ranks: a PETSc AIJ matrix that looks like an array to this rank."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.cluster.ranks import engines
from tightrope.errors import InvalidModel

if TYPE_CHECKING:
    from tightrope.model.validate import FloatArray, IntArray


class Rows:
    """This rank's rows of P: `rows @ v` takes this rank's part of v to its part of P v, and all ranks must ask for it together.

    `rows[numbers]` are some of the rows (of a policy, say), `weights @ rows` mixtures of them.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self._x, self._y = matrix.createVecs()
        self.n_rows, self.n_states = matrix.getLocalSize()
        freed_with(self, matrix, self._x, self._y)
        #: Products computed so far.
        self.products = 0

    @classmethod
    def of(cls, comm: Any, P: sp.csr_array, n_states: int) -> Rows:
        """From this rank's rows [rows, S] in canonical form; `n_states` of the columns are this rank's own."""
        PETSc, _ = engines()
        index = np.dtype(PETSc.IntType)
        totals = comm.allreduce(np.array([P.shape[0], P.nnz]))
        if index.itemsize == 4 and max(int(totals[0]), P.shape[1], comm.allreduce(P.nnz, op=engines()[1].MAX)) >= 2**31:
            raise InvalidModel(
                f"{int(totals[0]):,} pairs are more than this PETSc can number; install one built with 64-bit indices "
                "(Debian: libpetsc64-real-dev) and build petsc4py against it"
            )
        matrix = PETSc.Mat().createAIJ(
            ((P.shape[0], None), (n_states, P.shape[1])),
            csr=(P.indptr.astype(index, copy=False), P.indices.astype(index, copy=False), P.data),
            comm=comm,
        )
        return cls(matrix)

    def into(self, v: FloatArray) -> FloatArray:
        """P v in an array that the next product overwrites."""
        self._x.placeArray(v)
        self.matrix.mult(self._x, self._y)
        self._x.resetArray()
        self.products += 1
        return self._y.getArray(readonly=True)

    def __matmul__(self, v: FloatArray) -> FloatArray:
        return self.into(np.ascontiguousarray(v, dtype=np.float64)).copy()

    def __getitem__(self, rows: IntArray) -> Rows:
        PETSc, _ = engines()
        begin, _ = self.matrix.getOwnershipRange()
        comm = self.matrix.getComm()
        chosen = PETSc.IS().createGeneral(np.asarray(rows).astype(PETSc.IntType) + begin, comm=comm)
        first, last = self.matrix.getOwnershipRangeColumn()
        columns = PETSc.IS().createStride(last - first, first, 1, comm=comm)
        part = Rows(self.matrix.createSubMatrix(chosen, columns))
        chosen.destroy()
        columns.destroy()
        return part

    def __rmatmul__(self, weights: sp.csr_array) -> Rows:
        PETSc, _ = engines()
        first = self.matrix.getOwnershipRange()[0]
        csr = (weights.indptr.astype(PETSc.IntType), weights.indices.astype(PETSc.IntType) + first, weights.data)
        sizes = ((weights.shape[0], None), (self.n_rows, None))
        average = PETSc.Mat().createAIJ(sizes, csr=csr, comm=self.matrix.getComm())
        product = Rows(average.matMult(self.matrix))
        average.destroy()
        return product

    def local(self) -> sp.csr_array:
        """A copy of this rank's rows, columns numbered over all states."""
        indptr, indices, data = self.matrix.getValuesCSR()
        return sp.csr_array((data, indices, indptr), shape=(self.n_rows, self.matrix.getSize()[1]))

    def halo(self) -> int:
        """How many values of other ranks' states a product with this rank's rows needs."""
        first, last = self.matrix.getOwnershipRangeColumn()
        columns = self.local().indices
        return len(np.unique(columns[(columns < first) | (columns >= last)]))


def freed_with(owner: object, *parts: Any) -> None:
    """Free PETSc objects with the last reference to their owner.

    That is dropped at the same point of the program on every rank; what is left to the garbage collector, PETSc keeps.
    """
    weakref.finalize(owner, _destroy, *parts)


def _destroy(*parts: Any) -> None:
    for part in parts:
        part.destroy()
