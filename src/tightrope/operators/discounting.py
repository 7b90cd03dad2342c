"""Where a chain spends its discounted time, as a linear operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.linalg import LinearOperator

from tightrope.engine import chain_flow, chain_value

if TYPE_CHECKING:
    import scipy.sparse as sp

    from tightrope.model.validate import FloatArray


class Discounting(LinearOperator):  # type: ignore[misc]
    """(1-β)(I - βP)^-1 [S, S] for a chain P and a discount β, with 1-β given apart to keep its digits: a stochastic matrix."""

    def __init__(self, P: sp.csr_array, discount: float, room: float) -> None:
        self._P, self._discount, self._room = P, discount, room
        super().__init__(dtype=np.float64, shape=P.shape)

    def _matvec(self, x: FloatArray) -> FloatArray:
        return chain_value(self._P, self._room * np.ravel(x), self._discount)

    def _rmatvec(self, x: FloatArray) -> FloatArray:
        return chain_flow(self._P, self._room * np.ravel(x), self._discount)

    def toarray(self) -> FloatArray:
        """The dense matrix [S, S]."""
        S = self.shape[0]
        return self._room * np.linalg.inv(np.eye(S) - self._discount * self._P.toarray())
