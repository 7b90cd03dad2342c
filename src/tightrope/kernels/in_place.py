"""Gauss-Seidel sweeps, in place: over a model, and over the chain of its greedy pairs that they keep.

Rows are summed as in `serial`, and written out in both kernels for the same reason. A chain that no cache holds is asked for
ahead of time as there; a Bellman sweep waits for the state before more than for memory.
"""

from __future__ import annotations

import numpy as np

from tightrope.kernels.serial import AHEAD, LINE, LINES, ONE, THREE, TWO, copy
from tightrope.kernels.tiers import announce, announced, give_way, loop, prefetch, uint64

#: States from which on both halves of a chain are swept side by side.
SIDE_BY_SIDE = uint64(1000)
#: By how much more than a move can reach one sweep stays behind another.
SLACK = uint64(4)
#: In how many pieces a pair of sweeps tells the next pair how far it has come.
PIECES = uint64(64)
#: How many places ahead of time a state, its pairs and their transitions are asked for where these lie all over memory.
LATER, LATE, SOON = uint64(24), uint64(16), uint64(8)
#: Largest constant that values are levelled by.
MOST = 1e300
#: Sweeps of a chain between two leaps, and the share of a sweep's change that one after a leap leaves where it was worth while.
BETWEEN, WORTH = 4, 0.7


@loop
def gauss_seidel(
    indptr, indices, data, r, first, gamma, v, rows, backwards, order, place, others,
    held, begin, to_indices, to_data, to_r, lo, hi,
):  # fmt: skip
    """One Bellman sweep in place, in order of the states or against it, that keeps the chain of its greedy pairs up to date.

    Unless they are None, `order` says which states come first, and `place` where each of them does; lo..hi-1 are places then.
    Every state sees the new values of the states before it in this range and those in `others` outside it (None: there is no
    outside). The chain, of places, is v = r' + P' v, solved for the chance of staying put: the diagonal of P' is zero. The row of
    a place has room of its own, from its `begin` to the next; zeros fill what it does not need. Where the pair `held` there is
    the best still, as it is almost everywhere after a few sweeps, nothing is copied; no pair has the number len(r). None is
    kept where `held` is None; where v is None there is no sweep, and the chain is that of the pairs in `rows`. Returns the
    largest change, by how much more likely the chain's moves to higher and to lower states have become, added up, and how far
    at most its new moves lead.
    """
    low, beyond, size = uint64(lo), uint64(hi), uint64(hi) - uint64(lo)
    largest, up, down, furthest = 0.0, 0.0, 0.0, uint64(0)
    for i in range(size):
        here = low + (size - ONE - i if backwards else i)
        s = here if order is None else uint64(order[here])
        if order is not None and i + LATER < size:
            prefetch(first, uint64(order[here - LATER if backwards else here + LATER]))
            prefetch(indptr, uint64(first[order[here - LATE if backwards else here + LATE]]))
            j = uint64(order[here - SOON if backwards else here + SOON])
            k, last = uint64(indptr[first[j]]), uint64(indptr[first[j + ONE]]) - ONE
            if v is not None:
                prefetch(v, j)
            prefetch(r, uint64(first[j]))
            prefetch(indices, k)
            prefetch(indices, last)
            prefetch(data, k)
            prefetch(data, k + LINE)
            prefetch(data, last)
        if v is None:
            chosen = uint64(rows[s])
        else:
            best = -np.inf
            chosen, stop = uint64(first[s]), uint64(first[s + ONE])
            k = uint64(indptr[chosen])
            for l in range(chosen, stop):
                last = uint64(indptr[l + ONE])
                even, odd = 0.0, 0.0
                if last == k + THREE and (
                    others is None
                    or (place is None and low <= uint64(indices[k]) and uint64(indices[k + TWO]) < beyond)  # columns are sorted
                ):
                    even = data[k] * v[indices[k]] + data[k + TWO] * v[indices[k + TWO]]
                    odd = data[k + ONE] * v[indices[k + ONE]]
                    k = last
                elif others is None and last == k + TWO:
                    even = data[k] * v[indices[k]]
                    odd = data[k + ONE] * v[indices[k + ONE]]
                    k = last
                else:
                    while k + ONE < last:
                        near, far = uint64(indices[k]), uint64(indices[k + ONE])
                        even += data[k] * (
                            v[near]
                            if others is None or low <= (near if place is None else uint64(place[near])) < beyond
                            else others[near]
                        )
                        odd += data[k + ONE] * (
                            v[far]
                            if others is None or low <= (far if place is None else uint64(place[far])) < beyond
                            else others[far]
                        )
                        k += TWO
                    if k < last:
                        near = uint64(indices[k])
                        even += data[k] * (
                            v[near]
                            if others is None or low <= (near if place is None else uint64(place[near])) < beyond
                            else others[near]
                        )
                        k += ONE
                q = r[l] + gamma * (even + odd)
                if q > best:
                    best = q
                    chosen = l
            largest = max(largest, abs(best - v[s]))
            v[s] = best
            rows[s] = chosen
        if held is None:
            continue
        if chosen != held[here]:
            start, limit = uint64(begin[here]), uint64(begin[here + ONE])
            if held[here] < len(r):
                for k in range(uint64(indptr[held[here]]), uint64(indptr[held[here] + ONE])):
                    j = uint64(indices[k])
                    if (j if place is None else uint64(place[j])) > here:
                        up -= data[k]
                    elif j != s:
                        down -= data[k]
            at, stay, there = start, 0.0, here
            for k in range(uint64(indptr[chosen]), uint64(indptr[chosen + ONE])):
                j = uint64(indices[k])
                there = j if place is None else uint64(place[j])
                to_indices[at] = there
                to_data[at] = gamma * data[k]
                if there > here:
                    up += data[k]
                    furthest = max(furthest, there - here)
                elif there < here:
                    down += data[k]
                    furthest = max(furthest, here - there)
                else:
                    stay = data[k]
                    to_data[at] = 0.0
                at += ONE
            scale = 1.0
            if stay > 0.0:
                scale = 1.0 / (1.0 - gamma * stay)
                for k in range(start, at):
                    to_data[k] *= scale
            while at < limit:
                to_indices[at] = there
                to_data[at] = 0.0
                at += ONE
            to_r[here] = scale * r[chosen]
            held[here] = chosen
    return largest, up, down, furthest


@loop
def extract_split(indptr, indices, data, r, rows, gamma, to_indptr, to_indices, to_data, to_r):
    """The chain a policy makes, solved for the chance of staying put: v = r' + P' v with no diagonal in P'.

    Returns how likely its moves to higher and to lower states are, added up, and how far they lead at most.
    """
    at = uint64(0)
    to_indptr[0] = 0
    up, down, far = 0.0, 0.0, uint64(0)
    for s in range(uint64(len(rows))):
        l = uint64(rows[s])
        begin = at
        stay = 0.0
        for k in range(uint64(indptr[l]), uint64(indptr[l + ONE])):
            j = uint64(indices[k])
            if j == s:
                stay = data[k]
            else:
                to_indices[at] = j
                to_data[at] = gamma * data[k]
                at += ONE
                if j > s:
                    up += data[k]
                    far = max(far, j - s)
                else:
                    down += data[k]
                    far = max(far, s - j)
        scale = 1.0 / (1.0 - gamma * stay)
        if stay > 0.0:
            for k in range(begin, at):
                to_data[k] *= scale
        to_r[s] = scale * r[l]
        to_indptr[s + ONE] = at
    return up, down, far


@loop
def split_gauss_seidel(v, backwards, keep, asked, indptr, indices, data, r, n, shift, begin, end):
    """The steps begin..end-1 of Gauss-Seidel sweeps of v = r + P v in place, in order of the n states or against it.

    At step i one of two lanes is at state i and the other `shift` states further on, or behind where that is negative, as far
    as there are such states: alone, each state would wait for the one before. Unless `keep` is None, that times v(s) is added in
    every state: where r and P are 1 - keep times as large as they should be, this is over-relaxation for keep < 0. Where r is
    None it is zero. Unless `asked` is None, the chain is asked for ahead of the first lane: no cache holds it. Returns the
    largest change on either lane.
    """
    size, shift = uint64(n), uint64(shift)
    first, second = 0.0, 0.0
    start = min(uint64(begin), size)
    ask = uint64(indptr[size - start if backwards else start])
    for i in range(uint64(begin), uint64(end)):
        for lane in range(TWO):
            at = i + lane * shift
            if 0 <= at < size:  # compiled, what is below zero is beyond everything
                s = size - ONE - at if backwards else at
                k, last = uint64(indptr[s]), uint64(indptr[s + ONE])
                if asked is not None and lane == 0:
                    if backwards:
                        while k + LINES <= ask:
                            ask -= LINES
                            prefetch(data, ask - AHEAD)
                            prefetch(data, ask - AHEAD + LINE)
                            prefetch(indices, ask - AHEAD)
                    else:
                        while ask < last:
                            prefetch(data, ask + AHEAD)
                            prefetch(data, ask + AHEAD + LINE)
                            prefetch(indices, ask + AHEAD)
                            ask += LINES
                even, odd = 0.0 if r is None else r[s] if keep is None else r[s] + keep * v[s], 0.0
                if last == k + THREE:
                    even = even + data[k] * v[indices[k]] + data[k + TWO] * v[indices[k + TWO]]
                    odd = data[k + ONE] * v[indices[k + ONE]]
                else:
                    while k + ONE < last:
                        even += data[k] * v[indices[k]]
                        odd += data[k + ONE] * v[indices[k + ONE]]
                        k += TWO
                    if k < last:
                        even += data[k] * v[indices[k]]
                total = even + odd
                change = abs(total - v[s])
                if lane == 0:
                    first = max(first, change)
                else:
                    second = max(second, change)
                v[s] = total
    return first, second


@loop
def split_sweep(v, backwards, halves, keep, indptr, indices, data, r, n):
    """One Gauss-Seidel sweep of v = r + P v in place, if asked of both `halves` side by side where there are many states.

    Side by side is faster where each state would wait for the one before, and brings values half as far. Returns the largest
    change.
    """
    size = uint64(n)
    length = (size + ONE) // TWO if halves and size >= SIDE_BY_SIDE else size
    return max(split_gauss_seidel(v, backwards, keep, None, indptr, indices, data, r, n, length, 0, length))


@loop
def level(v, backwards, halves, indptr, indices, data, r, before, change):
    """Take out of v what is wrong with it everywhere alike, where that is most of it: sweeps take longest to get rid of that.

    The constant is the one for which the changes that v = r + P v would make add up to zero. It is kept if a sweep then changes
    no more than the last one, `change`. Returns what the last sweep that was kept changed. `before` is scratch.
    """
    copy(v, before)
    excess, leak = 0.0, 0.0
    for s in range(uint64(len(v))):
        total, kept = r[s], 0.0
        for k in range(uint64(indptr[s]), uint64(indptr[s + ONE])):
            total += data[k] * v[indices[k]]
            kept += data[k]
        excess += total - v[s]
        leak += 1.0 - kept
    if leak <= 0.0 or not abs(excess) < MOST * leak:  # lost in rounding, where discounting is next to none
        return change
    for s in range(uint64(len(v))):
        v[s] += excess / leak
    now = split_sweep(v, backwards, halves, None, indptr, indices, data, r, len(v))
    if now > change:
        copy(before, v)
        return change
    return now


@loop
def apart(v, before):
    """How far apart two value functions are, added up over the states."""
    total = 0.0
    for s in range(uint64(len(v))):
        total += abs(v[s] - before[s])
    return total


@loop
def leap(v, backwards, halves, indptr, indices, data, r, before):
    """Two sweeps of v = r + P v in place, and v where more of them would take it if each changed it by the same factor less.

    Where that was not worth while v is levelled. Either is kept if the next sweep changes no more than the one before. Returns
    the largest change of the last sweep that was kept, whether this was worth while, and what it took, in sweeps. `before` is
    scratch.
    """
    copy(v, before)
    split_sweep(v, backwards, halves, None, indptr, indices, data, r, len(v))
    first = apart(v, before)
    copy(v, before)
    change = split_sweep(v, backwards, halves, None, indptr, indices, data, r, len(v))
    second = apart(v, before)
    n, rate = 2, 1.0
    if second < first:
        n, rate = 3, second / first
        for s in range(uint64(len(v))):
            ahead = v[s] + rate / (1.0 - rate) * (v[s] - before[s])
            before[s] = v[s]
            v[s] = ahead
        now = split_sweep(v, backwards, halves, None, indptr, indices, data, r, len(v))
        if now < WORTH * rate * change:
            return now, True, n
        if now <= change:
            change = now
        else:
            copy(before, v)
    now = level(v, backwards, halves, indptr, indices, data, r, before, change)
    return now, now < WORTH * rate * change, n + 2


@loop
def behind(far, n):
    """How far behind a sweep the next may follow at once if moves lead no further than `far`; 0 where it had better wait."""
    lag = uint64(far) + SLACK
    return lag if TWO * lag <= uint64(n) else uint64(0)


@loop
def split_pair(v, backwards, asked, indptr, indices, data, r, lag, progress, number):
    """Two Gauss-Seidel sweeps of v = r + P v in place, the second `lag` behind the first; returns the second's largest change.

    They are a pair of several, the `number`-th, and as far behind those before as `progress` says that these have come.
    """
    size, lag = uint64(len(v)), uint64(lag)
    steps, piece = size + lag, max(lag, size // PIECES)
    begin, change = uint64(0), 0.0
    while begin < steps:
        end = min(begin + piece, steps)
        if number > 0:
            while announced(progress, number - 1) < min(end + TWO * lag, steps):
                give_way()
        _, more = split_gauss_seidel(v, backwards, None, asked, indptr, indices, data, r, size, -lag, begin, end)
        change = max(change, more)
        announce(progress, number, end)
        begin = end
    return change


@loop
def split_sweeps(indptr, indices, data, r, v, most, target, backwards, turn, halves, keep, far):
    """Up to `most` Gauss-Seidel sweeps of v = r + P v in place, until no change exceeds target; `turn` makes them go to and fro.

    No move leads further than `far` states. Where that is not far, sweeps go in pairs, the second right behind the first: it
    meets just what it would have met later, and each lane works while the other waits. Returns how many there were, the largest
    change of the last one, and which way to go next.
    """
    n, change = 0, np.inf
    lag = behind(far, len(v)) if len(v) < SIDE_BY_SIDE else uint64(0)
    while n < most and change > target:
        if lag > 0:
            steps = uint64(len(v)) + lag
            _, change = split_gauss_seidel(v, backwards, keep, None, indptr, indices, data, r, len(v), -lag, 0, steps)
            n += 2
        else:
            change = split_sweep(v, backwards, halves, keep, indptr, indices, data, r, len(v))
            n += 1
        backwards = backwards ^ turn
    return n, change, backwards
