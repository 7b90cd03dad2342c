"""Compiled loops for concentrability: best reach probabilities, the flow of one chain, and the support graph.

All of them release the lock and write only what they are given, so that blocks can run on threads with identical results.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Probabilities below this are lost mass: they are far below what can move a coefficient, and their ratios mean nothing.
TINY = 1e-200


@njit(cache=True, nogil=True)
def reach(indptr, indices, data, first, mu, U, reached, top, bottom):
    """Advance U[x, s] <- max_a sum_y P(y|x,a) U[y, s] once per row of `reached` [steps, B], for B target states s at once.

    reached[j] = mu U after j+1 steps; top and bottom [B] are max_x and min_x of the last U, which replaces the given one.
    """
    S, B = U.shape
    W = np.empty_like(U)
    best = np.empty(B)
    total = np.empty(B)
    here, there = U, W
    for j in range(len(reached)):
        reached[j, :] = 0.0
        for x in range(S):
            for l in range(first[x], first[x + 1]):
                k, end = indptr[l], indptr[l + 1]
                p, source = data[k], here[indices[k]]
                if k + 1 < end:
                    p_2, source_2 = data[k + 1], here[indices[k + 1]]
                    for b in range(B):
                        total[b] = p * source[b] + p_2 * source_2[b]
                    k += 2
                else:
                    for b in range(B):
                        total[b] = p * source[b]
                    k += 1
                while k + 1 < end:
                    p, source = data[k], here[indices[k]]
                    p_2, source_2 = data[k + 1], here[indices[k + 1]]
                    for b in range(B):
                        total[b] += p * source[b] + p_2 * source_2[b]
                    k += 2
                if k < end:
                    p, source = data[k], here[indices[k]]
                    for b in range(B):
                        total[b] += p * source[b]
                if l == first[x]:
                    for b in range(B):
                        best[b] = total[b]
                else:
                    for b in range(B):
                        best[b] = max(best[b], total[b])
            weight = mu[x]
            for b in range(B):
                there[x, b] = best[b]
                reached[j, b] += weight * best[b]
        here, there = there, here
    if len(reached) % 2:
        U[:] = W
    top[:] = U[0]
    bottom[:] = U[0]
    for x in range(1, S):
        for b in range(B):
            top[b] = max(top[b], U[x, b])
            bottom[b] = min(bottom[b], U[x, b])


@njit(cache=True, nogil=True)
def flow(indptr, indices, data, begin, end, x, y, per_nu, weight, visits):
    """y = x P for states begin:end, P given by columns; adds weight*y to visits; returns max y/nu and the extreme ratios y/x."""
    largest, grow, shrink = 0.0, 0.0, np.inf
    for s in range(begin, end):
        total = 0.0
        for k in range(indptr[s], indptr[s + 1]):
            total += data[k] * x[indices[k]]
        y[s] = total
        visits[s] += weight * total
        largest = max(largest, total * per_nu[s])
        if x[s] >= TINY:
            ratio = total / x[s]
            grow = max(grow, ratio)
            shrink = min(shrink, ratio)
        elif total >= TINY:
            grow = np.inf
    return largest, grow, shrink


@njit(cache=True, nogil=True)
def largest_entries(indices, data, out):
    """out[s] = the largest probability of moving to s in one step, over all pairs."""
    out[:] = 0.0
    for k in range(len(data)):
        out[indices[k]] = max(out[indices[k]], data[k])


@njit(cache=True, nogil=True)
def successors(indptr, indices, members, out):
    """out = the states that some member moves to in one step; row s of the graph is indices[indptr[s]:indptr[s+1]]."""
    out[:] = False
    for s in range(len(members)):
        if members[s]:
            for k in range(indptr[s], indptr[s + 1]):
                out[indices[k]] = True


@njit(cache=True, nogil=True)
def close(indptr, indices, members):
    """Add to `members` every state that can be reached from them."""
    S = len(members)
    stack = np.empty(S, dtype=np.int64)
    size = 0
    for s in range(S):
        if members[s]:
            stack[size] = s
            size += 1
    while size > 0:
        size -= 1
        s = stack[size]
        for k in range(indptr[s], indptr[s + 1]):
            t = indices[k]
            if not members[t]:
                members[t] = True
                stack[size] = t
                size += 1
