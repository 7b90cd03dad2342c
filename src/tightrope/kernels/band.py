"""(I - γP) x = b where P is a narrow band but for a few columns, the hubs, that are split off.

I - γP is a diagonally dominant M-matrix, and stays one without rows and columns: elimination needs no pivots and loses no digits.
It goes from both ends towards the middle, so that two threads can share it. P is the row `rows[s]` of the matrix given for each
state s, or row s where rows is None.
"""

from __future__ import annotations

import numpy as np

from tightrope.kernels import tridiagonal
from tightrope.kernels.tiers import int64, loop, uint64

ONE = uint64(1)


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
def single_moves(indices, data, r, rows, gamma, v):
    """v = r + γ P v where every row has a single entry: paths are followed into cycles, and values carried back."""
    unknown, ahead = np.nan, np.inf
    path = np.empty(len(v), np.uint64)
    for i in range(len(v)):
        v[i] = unknown
    for begin in range(len(v)):
        s, n = uint64(begin), 0
        while np.isnan(v[s]):
            v[s] = ahead
            path[n] = s
            n += 1
            s = uint64(indices[s if rows is None else uint64(rows[s])])
        if v[s] == ahead:  # a cycle, on the way that led here
            total, weight, at = 0.0, 1.0, s
            while True:
                l = at if rows is None else uint64(rows[at])
                total += weight * r[l]
                weight *= gamma * data[l]
                at = uint64(indices[l])
                if at == s:
                    break
            v[s] = total / (1.0 - weight)
        while n > 0:
            n -= 1
            at = uint64(path[n])
            if v[at] == ahead:
                l = at if rows is None else uint64(rows[at])
                v[at] = r[l] + gamma * data[l] * v[indices[l]]


@loop
def middle(S, below, above):
    """Where elimination from both ends meets: rows before it go down, the rest goes up.

    At one end where that leaves nothing to eliminate, or there are too few rows to share.
    """
    if below > 0 and above > 0 and 4 * (below + above + 1) <= S:
        return S // 2
    return 0 if above == 0 else S


@loop
def eliminate(indptr, indices, data, r, rows, gamma, number, hubs, below, above, band, columns, first, old, lo, hi, down):
    """The rows lo..hi-1 of (I - γB) [x Y] = [r γC], each freed of those before it in the order of elimination, `down` or up.

    B is P without its hub columns C. What is left of row s is band[s, 1:] on the unknowns after it and band[s, 0] on its own,
    which is inverted because a product is quicker than a division; columns [S, 1 + hubs] are the right hand sides.

    Unless `first` is None, the policy is improved on the way: state s takes that of its rows first[s]..first[s+1]-1 which is best
    for it, given what the states before it have chosen to do until they are left, and what is `old` for those after it and hubs.
    """
    if max(below, above) == 1:
        tridiagonal.eliminate(indptr, indices, data, r, rows, gamma, number, hubs, band, columns, first, old, lo, hi, down, False)
        return
    behind, ahead = (uint64(below), uint64(above)) if down else (uint64(above), uint64(below))
    s, step = (uint64(lo), ONE) if down else (uint64(hi) - ONE, uint64(-1))  # backwards too: unsigned numbers wrap around
    row, right, at = np.zeros(below + 1 + above), np.zeros(1 + hubs), np.zeros(hubs)
    sides = uint64(1 + hubs)
    if first is not None:
        for j in range(len(number)):
            if number[j] >= 0:
                at[number[j]] = old[j]
    n = uint64(hi) - uint64(lo)
    for p in range(n):
        l = s if rows is None else uint64(rows[s])
        stop = l + ONE
        if first is not None:
            l, stop = uint64(first[s]), uint64(first[s + ONE])
        begin, best = l, 0.0
        while l < stop:
            row[behind] = 1.0
            right[0] = r[l]
            for i in range(ONE, sides):
                right[i] = 0.0
            for k in range(uint64(indptr[l]), uint64(indptr[l + ONE])):
                j = uint64(indices[k])
                if number[j] >= 0:
                    right[uint64(1 + number[j])] += gamma * data[k]
                else:
                    row[behind + step * (j - s)] -= gamma * data[k]
            for c in range(behind - min(behind, p), behind):
                t = s - step * (behind - c)
                share = row[c] * band[t, 0]
                row[c] = 0.0
                if share != 0.0:
                    for m in range(ONE, ahead + ONE):
                        row[c + m] -= share * band[t, m]
                    for i in range(sides):
                        right[i] -= share * columns[t, i]
            value = 0.0
            if first is not None:
                value = right[0]
                for i in range(ONE, sides):
                    value += right[i] * at[i - ONE]
                for m in range(ONE, min(ahead, n - ONE - p) + ONE):
                    value -= row[behind + m] * old[s + step * m]
                value /= row[behind]
            if l == begin or value > best:
                best = value
                if first is not None:
                    rows[s] = l
                band[s, 0] = 1.0 / row[behind]
                for m in range(ONE, ahead + ONE):
                    band[s, m] = row[behind + m]
                for i in range(sides):
                    columns[s, i] = right[i]
            for m in range(ONE, ahead + ONE):
                row[behind + m] = 0.0
            l += ONE
        s += step


@loop
def meet(band, columns, below, above, v):
    """The unknowns on both sides of the middle that are known from nowhere else; nothing to do where that is at an end.

    `below` rows before the middle and `above` rows after it hold no others. x goes to v as well.
    """
    S = len(v)
    half, n = middle(S, below, above), below + above
    if half in (0, S):
        return
    begin, m = half - below, columns.shape[1]
    A = np.zeros((n, n + m))
    for i in range(n):
        A[i, i] = 1.0 / band[begin + i, 0]
        reach, sign = (above, 1) if i < below else (below, -1)
        for c in range(1, reach + 1):
            A[i, i + sign * c] = band[begin + i, c]
        for j in range(m):
            A[i, n + j] = columns[begin + i, j]
    dense(A)
    for i in range(n):
        v[begin + i] = A[i, n]
        for j in range(m):
            columns[begin + i, j] = A[i, n + j]


@loop
def substitute(band, columns, below, above, v, lo, hi, down):
    """[x Y] in the rows lo..hi-1 from the inner end outwards, once the unknowns at the middle are known; x goes to v as well.

    Nothing needs to be known if those are all rows there are.
    """
    S = len(columns)
    ahead, known, sign = (above, below, 1) if down else (below, above, -1)
    if max(below, above) == 1 and columns.shape[1] == 1:
        known = known if hi - lo < S else 0
        if known < hi - lo:  # otherwise nothing is left, or was there to begin with
            tridiagonal.substitute(band, columns, v, lo if down else lo + known, hi - known if down else hi, down, False)
        return
    last = hi - lo - 1 - (known if hi - lo < S else 0)
    for i in range(columns.shape[1]):
        s = lo + last if down else hi - 1 - last
        total = columns[s + sign, i] if 0 <= s + sign < S else 0.0
        for _ in range(last + 1):
            total = columns[s, i] - (band[s, 1] * total if ahead > 0 else 0.0)
            for c in range(2, min(ahead, S - 1 - s if down else s) + 1):
                total -= band[s, c] * columns[s + sign * c, i]
            total *= band[s, 0]
            columns[s, i] = total
            if i == 0:
                v[s] = total
            s -= sign


@loop
def hub_values(number, hubs, columns):
    """(I - Y) y = x at the hubs, an M-matrix again: solved, with y as the last column [hubs, hubs + 1]."""
    A = np.zeros((hubs, hubs + 1))
    for s in range(len(number)):
        n = number[s]
        if n >= 0:
            A[n, hubs] = columns[s, 0]
            for i in range(hubs):
                A[n, i] = -columns[s, 1 + i]
            A[n, n] += 1.0
    dense(A)
    return A


@loop
def combine(columns, at_hubs, v, lo, hi):
    """v = x + Y v(hubs) in the states lo..hi-1; the values of the hubs are the last column of `at_hubs`."""
    hubs = len(at_hubs)
    for s in range(lo, hi):
        total = columns[s, 0]
        for i in range(hubs):
            total += columns[s, 1 + i] * at_hubs[i, hubs]
        v[s] = total


@loop
def dense(A):
    """[M Y] becomes [. M^-1 Y], M a small square M-matrix."""
    n, m = A.shape
    for k in range(n):
        for i in range(k + 1, n):
            share = A[i, k] / A[k, k]
            for j in range(k + 1, m):
                A[i, j] -= share * A[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(n, m):
            total = A[k, j]
            for i in range(k + 1, n):
                total -= A[k, i] * A[i, j]
            A[k, j] = total / A[k, k]


@loop
def value(indptr, indices, data, r, rows, gamma, number, hubs, below, above, band, columns, v):
    """v = r + γ P v for a chain whose hubs and band are known, by elimination.

    With P = B + C, C the hub columns, v = x + Y v(hubs), where (I - γB) [x Y] = [r γC]: that is one elimination with 1 + h right
    hand sides, and a dense system of h equations. Less than no hubs mean that every state makes a single move. `band` and
    `columns` are scratch.
    """
    if hubs < 0:
        single_moves(indices, data, r, rows, gamma, v)
        return
    S = len(v)
    half = middle(S, below, above)
    for lo, hi, down in ((0, half, True), (half, S, False)):
        if lo < hi:
            eliminate(
                indptr, indices, data, r, rows, gamma, number, hubs, below, above, band, columns, None, None, lo, hi, down
            )  # fmt: skip
    meet(band, columns, below, above, v)
    substitute(band, columns, below, above, v, 0, half, True)
    substitute(band, columns, below, above, v, half, S, False)
    if hubs > 0:
        combine(columns, hub_values(number, hubs, columns), v, 0, S)


@loop
def improve(indptr, indices, data, r, first, gamma, v, rows, number, hubs, below, above, band, columns, down):
    """A policy that states choose on the way through the band from one end to the other, and v = r + γ P v for it.

    Where v <= T v it comes to no less than T v. At its turn a state may do what is greedy at v, and what has been chosen before
    is worth no less than v until it leads back here or further on, by induction. A greedy policy changes by a state at a time
    where what is best for one depends on what the next will do; here all that are passed change with it.
    """
    eliminate(indptr, indices, data, r, rows, gamma, number, hubs, below, above, band, columns, first, v, 0, len(v), down)
    substitute(band, columns, below, above, v, 0, len(v), down)
    if hubs > 0:
        combine(columns, hub_values(number, hubs, columns), v, 0, len(v))


@loop
def way(below, above, times):
    """Whether to go down after so many `times`: forth and back by turns, but always to an end that nothing leads beyond."""
    return below > 0 and (above == 0 or times % 2 == 0)
