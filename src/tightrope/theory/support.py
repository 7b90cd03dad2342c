"""Which states can be reached, and when: infinities are decided on the support graph, never on floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import kernels
from tightrope.kernels import unsigned

if TYPE_CHECKING:
    import scipy.sparse as sp

    from tightrope.model.validate import BoolArray, IntArray


class Support:
    """Where walks that start in `begin` [S] are after i steps, and whether they meet the forbidden states (ν = 0).

    The graph has an arrow from s to every successor of any of its pairs; state s owns rows first[s]:first[s+1] of P.
    """

    def __init__(self, P: sp.csr_array, first: IntArray, begin: BoolArray, forbidden: BoolArray) -> None:
        self._graph: tuple[Any, Any] = (unsigned(np.ascontiguousarray(P.indptr[first])), unsigned(P.indices))
        self._now = begin.copy()
        self._forbidden = forbidden
        self._meets = [bool((begin & forbidden).any())]
        self._later: dict[int, bool] = {}
        #: Every state that is ever reached [S].
        self.reachable = begin.copy()
        kernels.theory.close(*self._graph, self.reachable)
        #: Whether any walk ever meets a forbidden state; mostly not, and then nothing more is asked.
        self.ever = bool((self.reachable & forbidden).any())

    def meets_at(self, i: int) -> bool:
        """Whether some walk of exactly i steps ends in a forbidden state."""
        if not self.ever:
            return False
        while len(self._meets) <= i:
            self._later[len(self._meets) - 1] = self._ahead()
            following = np.empty_like(self._now)
            kernels.theory.successors(*self._graph, self._now, following)
            self._now = following
            self._meets.append(bool((following & self._forbidden).any()))
        return self._meets[i]

    def meets_from(self, i: int) -> bool:
        """Whether some walk of i steps or more ends in a forbidden state."""
        if not self.ever or i == 0:
            return self.ever
        self.meets_at(i)
        return self._later[i] if i in self._later else self._ahead()

    def _ahead(self) -> bool:
        """Whether the present states can reach a forbidden one, now or later."""
        members = self._now.copy()
        kernels.theory.close(*self._graph, members)
        return bool((members & self._forbidden).any())
