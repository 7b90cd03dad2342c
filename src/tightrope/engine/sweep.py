"""One Bellman backup of a whole model, through the fused kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope import kernels
from tightrope.kernels import unsigned

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray


class Sweep(NamedTuple):
    """u = T v, its greedy pairs, and low <= T v - v <= high."""

    u: FloatArray
    rows: IntArray
    low: float
    high: float


class Sweeper:
    """Backs up value functions of one model; arrays are prepared once."""

    def __init__(self, mdp: MDP) -> None:
        P = mdp.P
        self._first = mdp.first
        self._arrays = (unsigned(P.indptr), unsigned(P.indices), P.data, mdp.r, unsigned(mdp.first), mdp.gamma)

    def backup(self, v: FloatArray) -> Sweep:
        """T v in fresh arrays."""
        u = np.empty_like(v)
        rows = np.empty(len(v), dtype=self._first.dtype)
        return Sweep(u, rows, *self.backup_into(v, u, rows))

    def backup_into(self, v: FloatArray, u: FloatArray, rows: IntArray) -> tuple[float, float]:
        """T v into the given arrays; returns the smallest and largest change."""
        low, high = kernels.backup(*self._arrays, v, u, unsigned(rows))
        return low, high
