"""Kernels on one thread."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def backup(indptr, indices, data, r, first, gamma, v, out, rows):
    """One fused Bellman backup: out = T v, rows = its greedy pairs (ties to the lowest), returns min and max of T v - v."""
    low, high = np.inf, -np.inf
    k = indptr[0]
    for s in range(len(first) - 1):
        best = -np.inf
        chosen = first[s]
        for l in range(first[s], first[s + 1]):
            end = indptr[l + 1]
            even, odd = 0.0, 0.0
            while k + 1 < end:
                even += data[k] * v[indices[k]]
                odd += data[k + 1] * v[indices[k + 1]]
                k += 2
            if k < end:
                even += data[k] * v[indices[k]]
                k += 1
            q = r[l] + gamma * (even + odd)
            if q > best:
                best = q
                chosen = l
        change = best - v[s]
        low = min(low, change)
        high = max(high, change)
        out[s] = best
        rows[s] = chosen
    return low, high


@njit(cache=True, nogil=True)
def policy_backup(indptr, indices, data, r, gamma, v, out):
    """One fused backup of a chain: out = r + gamma P v, returns min and max of out - v."""
    low, high = np.inf, -np.inf
    k = indptr[0]
    for s in range(len(r)):
        end = indptr[s + 1]
        even, odd = 0.0, 0.0
        while k + 1 < end:
            even += data[k] * v[indices[k]]
            odd += data[k + 1] * v[indices[k + 1]]
            k += 2
        if k < end:
            even += data[k] * v[indices[k]]
            k += 1
        q = r[s] + gamma * (even + odd)
        change = q - v[s]
        low = min(low, change)
        high = max(high, change)
        out[s] = q
    return low, high


@njit(cache=True, nogil=True)
def best_pairs(q, first, out, rows):
    """The maximum of q over each state's pairs and the lowest pair that attains it."""
    for s in range(len(first) - 1):
        best = -np.inf
        chosen = first[s]
        for l in range(first[s], first[s + 1]):
            if q[l] > best:
                best = q[l]
                chosen = l
        out[s] = best
        rows[s] = chosen
