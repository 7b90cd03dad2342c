"""(I - γP) x = b where P is a narrow band but for a few columns, the hubs, that are split off.

I - γP is a diagonally dominant M-matrix, and stays one without rows and columns: elimination needs no pivots and loses no digits.
"""

from __future__ import annotations

import numpy as np

from tightrope.kernels.tiers import int64, loop, uint64


@loop
def far_columns(indptr, indices, first, near, most, number):
    """Number the columns that some row of state s reaches from further away than `near`; gives up past `most` of them.

    State s owns the rows first[s]..first[s+1]-1, whose columns are sorted. number [S] becomes 0, 1, 2, ... for hubs and -1
    elsewhere. Returns how many hubs there are (more than `most`: do not use them), and how far the rest of the band reaches
    below and above the diagonal.
    """
    for s in range(len(number)):
        number[s] = -1
    hubs = 0
    for s in range(len(first) - 1):
        for l in range(first[s], first[s + 1]):
            # Columns are sorted: the far ones are at both ends of a row.
            begin, end = int64(indptr[l]), int64(indptr[l + 1])
            k, step = begin, 1
            while begin <= k < end:
                j = int64(indices[k])
                if abs(j - s) <= near:
                    if step < 0:
                        break
                    k, step = end - 1, -1
                    continue
                if number[j] < 0:
                    if hubs == most:
                        return most + 1, 0, 0
                    number[j] = hubs
                    hubs += 1
                k += step
    below, above = int64(0), int64(0)
    for s in range(len(first) - 1):
        for l in range(first[s], first[s + 1]):
            begin, end = int64(indptr[l]), int64(indptr[l + 1])
            while begin < end and number[indices[begin]] >= 0:
                begin += 1
            while begin < end and number[indices[end - 1]] >= 0:
                end -= 1
            if begin < end:
                below = max(below, s - int64(indices[begin]))
                above = max(above, int64(indices[end - 1]) - s)
    return hubs, below, above


@loop
def single_moves(indices, data, r, gamma, v):
    """v = r + γ P v where every state moves to one other for sure: paths are followed into cycles, and values carried back."""
    unknown, ahead = np.nan, np.inf
    path = np.empty(len(r), np.uint64)
    for i in range(len(v)):
        v[i] = unknown
    for begin in range(len(r)):
        s, n = uint64(begin), 0
        while np.isnan(v[s]):
            v[s] = ahead
            path[n] = s
            n += 1
            s = uint64(indices[s])
        if v[s] == ahead:  # a cycle, on the way that led here
            total, weight, at = 0.0, 1.0, s
            while True:
                total += weight * r[at]
                weight *= gamma * data[at]
                at = uint64(indices[at])
                if at == s:
                    break
            v[s] = total / (1.0 - weight)
        while n > 0:
            n -= 1
            at = uint64(path[n])
            if v[at] == ahead:
                v[at] = r[at] + gamma * data[at] * v[indices[at]]


@loop
def value(indptr, indices, data, r, gamma, number, hubs, below, above, v):
    """v = r + γ P v for a chain whose hubs and band are known, by elimination.

    With P = B + C, C the hub columns, v = x + Y v(hubs), where (I - γB) [x Y] = [r γC]: that is one elimination with 1 + h right
    hand sides, and a dense system of h equations. Less than no hubs mean that every state makes a single move.
    """
    if hubs < 0:
        single_moves(indices, data, r, gamma, v)
        return
    S, width = len(r), below + 1 + above
    band = np.zeros((S, width))
    columns = np.zeros((S, 1 + hubs))
    for s in range(S):
        columns[s, 0] = r[s]
        band[s, below] = 1.0
        for k in range(uint64(indptr[s]), uint64(indptr[s + 1])):
            j = int64(indices[k])
            if number[j] >= 0:
                columns[s, 1 + number[j]] += gamma * data[k]
            else:
                band[s, below + j - s] -= gamma * data[k]
        for m in range(min(below, s), 0, -1):
            share = band[s, below - m] * band[s - m, below]
            if share != 0.0:
                to, of = band[s, below - m + 1 : width - m], band[s - m, below + 1 :]
                for c in range(uint64(above)):
                    to[c] -= share * of[c]
                for i in range(1 + hubs):
                    columns[s, i] -= share * columns[s - m, i]
        band[s, below] = 1.0 / band[s, below]  # inverted: a product is quicker than a division
    for s in range(S - 1, -1, -1):
        for c in range(1, min(above, S - 1 - s) + 1):
            share = band[s, below + c]
            if share != 0.0:
                for i in range(1 + hubs):
                    columns[s, i] -= share * columns[s + c, i]
        for i in range(1 + hubs):
            columns[s, i] *= band[s, below]
    at_hubs = hub_values(number, hubs, columns)
    for s in range(S):
        total = columns[s, 0]
        for i in range(hubs):
            total += columns[s, 1 + i] * at_hubs[i]
        v[s] = total


@loop
def hub_values(number, hubs, columns):
    """The values at the hubs: (I - Y) y = x there, by elimination; it is an M-matrix again."""
    A = np.zeros((hubs, hubs))
    y = np.zeros(hubs)
    for s in range(len(number)):
        n = number[s]
        if n >= 0:
            y[n] = columns[s, 0]
            for i in range(hubs):
                A[n, i] = -columns[s, 1 + i]
            A[n, n] += 1.0
    for n in range(hubs):
        for m in range(n + 1, hubs):
            share = A[m, n] / A[n, n]
            y[m] -= share * y[n]
            for i in range(n + 1, hubs):
                A[m, i] -= share * A[n, i]
    for n in range(hubs - 1, -1, -1):
        for i in range(n + 1, hubs):
            y[n] -= A[n, i] * y[i]
        y[n] /= A[n, n]
    return y
