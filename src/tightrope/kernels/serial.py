"""Sweeps over the states lo..hi-1 of a model; disjoint ranges can run on threads of their own.

Loop counters are unsigned 64-bit throughout: mixed with numba's signed literals they would turn into floats or cost the
wrap-around test of negative indices on every access. Each row is summed in two interleaved halves, always in the same order,
so that results do not depend on how states are split over threads. The first three numbers of a row are summed without a loop,
whose bookkeeping took a fifth of a sweep: rows of two and three are what walks, queues and grids are made of.

Where the successors of every pair are neighbours, and many, as of stocks and in dense models, rows are `runs`: their numbers are
summed four at a time, and of who the successors are the first is enough, so that a sweep takes a third to a half of the time.
`runs` is () then, and None otherwise.

Models that no cache holds are asked for ahead of time, two lines of probabilities and one of successors at once: the processor
does that by itself, but not early enough, and a sweep takes a quarter to a half less so. Nothing else leaves the caches for what
is read once, and chains that are copied from such a model pass the caches by. `asked` is None where a cache holds the model, or
rows are runs, which would be read half as fast; v where no cache holds the values either, and these lie all over: they are asked
for too then. Otherwise it is (): compiled, a loop need not ask itself. Where a cache holds values as many as can be are under way
anyway, and to ask for them would cost a tenth to a fifth of a sweep.

This is written out in every kernel: as a function of its own it would count references to three arrays on every row, which made a
sweep ten times slower.
"""

from __future__ import annotations

import numpy as np

from tightrope.kernels.tiers import in_fours, loop, pass_by, passed_by, prefetch, prefetch_once, row, row_end, uint64

ONE = uint64(1)
TWO = uint64(2)
THREE = uint64(3)
FOUR = uint64(4)
#: How many transitions, and pairs, ahead of time a model is asked for, and values; a line's numbers, and those asked for at once.
AHEAD, AHEAD_PAIRS, SOON, LINE, LINES = uint64(2048), uint64(256), uint64(32), uint64(8), uint64(16)


@loop
def backup(indptr, indices, data, r, first, gamma, v, out, rows, asked, runs, to_indptr, to_indices, to_data, to_r, lo, hi):
    """One fused Bellman backup: out = T v, rows = its greedy pairs (ties to the lowest), returns min and max of T v - v.

    `indptr` may be the number of successors where all pairs have as many, or None where they have one, and `first` the number of
    pairs where all states have as many; `asked` and `runs` are above. Unless `to_indptr` is None, the rows of P and r that the
    greedy policy uses are copied together while they are at hand.
    """
    low, high = np.inf, -np.inf
    begin, at = uint64(lo), uint64(0)
    if to_indptr is not None:
        to_indptr[0] = 0
    l = row(first, uint64(lo))
    k = row(indptr, l)
    ask = k + AHEAD
    for s in range(uint64(lo), uint64(hi)):
        best = -np.inf
        chosen = l
        stop = row_end(first, l, s + ONE)
        while l < stop:
            even, odd = 0.0, 0.0
            end = row_end(indptr, k, l + ONE)
            if asked is not None and ask < end + AHEAD:
                if ask < uint64(len(indices)):
                    for i in range(ask - AHEAD + SOON, ask - AHEAD + SOON + LINES):
                        prefetch(asked, uint64(indices[i]))
                prefetch_once(data, ask)
                prefetch_once(data, ask + LINE)
                prefetch_once(indices, ask)
                prefetch_once(r, l + AHEAD_PAIRS)
                if indptr is None:
                    prefetch_once(r, l + AHEAD_PAIRS + LINE)
                ask += LINES
                if end > k + LINES:
                    while ask < end + AHEAD:
                        prefetch_once(data, ask)
                        prefetch_once(data, ask + LINE)
                        prefetch_once(indices, ask)
                        ask += LINES
            if indptr is None:
                even = data[l] * v[indices[l]]
                k = end
            elif runs is not None:
                even = in_fours(data, k, v, uint64(indices[k]), end - k)
                k = end
            elif end - k > ONE:
                even = data[k] * v[indices[k]]
                odd = data[k + ONE] * v[indices[k + ONE]]
                k += TWO
                if k < end:
                    even += data[k] * v[indices[k]]
                    k += ONE
                    while k < end:
                        odd += data[k] * v[indices[k]]
                        k += ONE
                        if k < end:
                            even += data[k] * v[indices[k]]
                            k += ONE
            elif k < end:
                even = data[k] * v[indices[k]]
                k += ONE
            q = r[l] + gamma * (even + odd)
            if q > best:
                best = q
                chosen = l
            l += ONE
        change = best - v[s]
        low = min(low, change)
        high = max(high, change)
        out[s] = best
        rows[s] = chosen
        if to_indptr is not None:
            i, end = row(indptr, chosen), row(indptr, chosen + ONE)
            while i < end:
                if asked is None:
                    to_indices[at] = indices[i]
                    to_data[at] = data[i]
                else:
                    pass_by(to_indices, at, indices[i])
                    pass_by(to_data, at, data[i])
                at += ONE
                i += ONE
            to_r[s - begin] = r[chosen]
            to_indptr[s - begin + ONE] = at
    if asked is not None and to_indptr is not None:
        passed_by()
    return low, high


@loop
def copy(v, out):
    """out = v; an assignment of slices would take a second to compile, most of it for an error message that never comes."""
    for s in range(uint64(len(out))):
        out[s] = v[s]


@loop
def fill(array, x, lo, hi):
    """array[lo:hi] = x; that too would take long to compile."""
    for s in range(uint64(lo), uint64(hi)):
        array[s] = x


@loop
def gather(v, order, lo, n, out):
    """out[i] = v[order[lo + i]] for i < n."""
    for i in range(uint64(n)):
        out[i] = v[order[uint64(lo) + i]]


@loop
def scatter(x, order, lo, n, v):
    """v[order[lo + i]] = x[i] for i < n: what `gather` has taken, put back."""
    for i in range(uint64(n)):
        v[order[uint64(lo) + i]] = x[i]


@loop
def reach(indptr, indices, first):
    """The largest distance between the numbers of a state and a successor; columns are sorted."""
    furthest = uint64(0)
    for s in range(uint64(len(first) - 1)):
        for l in range(uint64(first[s]), uint64(first[s + ONE])):
            low, high = uint64(indices[indptr[l]]), uint64(indices[indptr[l + ONE] - ONE])
            if low < s:
                furthest = max(furthest, s - low)
            if high > s:
                furthest = max(furthest, high - s)
    return furthest


@loop
def extent(v):
    """The smallest and the largest entry, in four lanes: each comparison would otherwise wait for the one before."""
    least, low, lower, lowest = np.inf, np.inf, np.inf, np.inf
    most, high, higher, highest = -np.inf, -np.inf, -np.inf, -np.inf
    n = uint64(len(v))
    s = n % FOUR
    for i in range(s):
        least, most = min(least, v[i]), max(most, v[i])
    while s < n:
        least, most = min(least, v[s]), max(most, v[s])
        low, high = min(low, v[s + ONE]), max(high, v[s + ONE])
        lower, higher = min(lower, v[s + TWO]), max(higher, v[s + TWO])
        lowest, highest = min(lowest, v[s + TWO + ONE]), max(highest, v[s + TWO + ONE])
        s += FOUR
    return min(least, low, lower, lowest), max(most, high, higher, highest)


@loop
def policy_backup(gamma, v, out, asked, runs, indptr, indices, data, r, lo, hi):
    """One fused backup of a chain: out = r + gamma P v, returns min and max of out - v. Its rows are of states lo..hi-1.

    `asked` and `runs` are above.
    """
    low, high = np.inf, -np.inf
    begin, k, ask = uint64(lo), uint64(0), AHEAD
    for s in range(begin, uint64(hi)):
        end = uint64(indptr[s - begin + ONE])
        even, odd = 0.0, 0.0
        if asked is not None and ask < end + AHEAD:
            if ask < uint64(len(indices)):
                for i in range(ask - AHEAD + SOON, ask - AHEAD + SOON + LINES):
                    prefetch(asked, uint64(indices[i]))
            prefetch_once(data, ask)
            prefetch_once(data, ask + LINE)
            prefetch_once(indices, ask)
            ask += LINES
            if end > k + LINES:
                while ask < end + AHEAD:
                    prefetch_once(data, ask)
                    prefetch_once(data, ask + LINE)
                    prefetch_once(indices, ask)
                    ask += LINES
        if runs is not None:
            even = in_fours(data, k, v, uint64(indices[k]), end - k)
            k = end
        elif k + ONE < end:
            even = data[k] * v[indices[k]]
            odd = data[k + ONE] * v[indices[k + ONE]]
            k += TWO
            if k < end:
                even += data[k] * v[indices[k]]
                k += ONE
                while k < end:
                    odd += data[k] * v[indices[k]]
                    k += ONE
                    if k < end:
                        even += data[k] * v[indices[k]]
                        k += ONE
        elif k < end:
            even = data[k] * v[indices[k]]
            k += ONE
        q = r[s - begin] + gamma * (even + odd)
        change = q - v[s]
        low = min(low, change)
        high = max(high, change)
        out[s] = q
    return low, high


@loop
def policy_sweeps(indptr, indices, data, r, gamma, v, out, runs, most, target):
    """Up to `most` backups of a chain, fewer once the span of the change is <= target; the result is in v, `out` is scratch.

    Returns the number of sweeps and the smallest and largest change of the last one.
    """
    low, high = -np.inf, np.inf
    n = 0
    while n < most and high - low > target:
        low, high = policy_backup(gamma, v, out, None, runs, indptr, indices, data, r, 0, len(r))
        v, out = out, v
        n += 1
    if n % 2:
        copy(v, out)
    return n, low, high


@loop
def extract(indptr, indices, data, r, rows, to_indptr, to_indices, to_data, to_r, lo, hi):
    """The rows of P and r that a policy uses in the states lo..hi-1, copied together."""
    begin, at = uint64(lo), uint64(0)
    to_indptr[0] = 0
    for s in range(begin, uint64(hi)):
        l = uint64(rows[s])
        for k in range(uint64(indptr[l]), uint64(indptr[l + ONE])):
            to_indices[at] = indices[k]
            to_data[at] = data[k]
            at += ONE
        to_r[s - begin] = r[l]
        to_indptr[s - begin + ONE] = at


@loop
def best_pairs(q, first, out, rows, lo, hi):
    """The maximum of q over the pairs of each of the states lo..hi-1, and the lowest pair that attains it."""
    for s in range(uint64(lo), uint64(hi)):
        best = -np.inf
        chosen = uint64(first[s])
        for l in range(uint64(first[s]), uint64(first[s + ONE])):
            if q[l] > best:
                best = q[l]
                chosen = l
        out[s] = best
        rows[s] = chosen


@loop
def blend(r, first, v, kappa, out):
    """out = kappa r + (1 - kappa) v, v being that of the state a pair belongs to."""
    rest = 1.0 - kappa
    for s in range(uint64(len(v))):
        here = rest * v[s]
        for l in range(uint64(first[s]), uint64(first[s + ONE])):
            out[l] = kappa * r[l] + here


@loop
def towards(v, x, share, out):
    """out = v + share (x - v), which may take the place of x."""
    for s in range(uint64(len(v))):
        out[s] = v[s] + share * (x[s] - v[s])
