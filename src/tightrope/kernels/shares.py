"""What is left of a backup once P v is known: one rank's states, after PETSc has multiplied."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

ONE = uint64(1)


@njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def best(Pv, r, first, gamma, v, out, rows):
    """out = max_a r + gamma P v, rows = the greedy pairs (ties to the lowest); returns min and max of out - v."""
    low, high = np.inf, -np.inf
    l = uint64(0)
    for s in range(uint64(len(out))):
        top = -np.inf
        chosen = l
        stop = uint64(first[s + ONE])
        while l < stop:
            q = r[l] + gamma * Pv[l]
            if q > top:
                top = q
                chosen = l
            l += ONE
        change = top - v[s]
        low = min(low, change)
        high = max(high, change)
        out[s] = top
        rows[s] = chosen
    return low, high


@njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def step(Pv, r, gamma, v):
    """v = r + gamma P v in place; returns min and max of the change."""
    low, high = np.inf, -np.inf
    for s in range(uint64(len(v))):
        new = r[s] + gamma * Pv[s]
        change = new - v[s]
        low = min(low, change)
        high = max(high, change)
        v[s] = new
    return low, high
