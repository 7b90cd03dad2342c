"""Gauss-Seidel sweeps, in place: over a model, and over the chain of its greedy pairs that they keep.

Rows are summed as in `serial`, and written out in both kernels for the same reason.
"""

from __future__ import annotations

import numpy as np

from tightrope.kernels.serial import ONE, THREE, TWO
from tightrope.kernels.tiers import loop, uint64

#: States from which on both halves of a chain are swept side by side.
SIDE_BY_SIDE = uint64(1000)


@loop
def gauss_seidel(
    indptr, indices, data, r, first, gamma, v, rows, backwards, order, place, others,
    held, begin, to_indices, to_data, to_r, lo, hi,
):  # fmt: skip
    """One Bellman sweep in place, in order of the states or against it, that keeps the chain of its greedy pairs up to date.

    Unless they are None, `order` says which states come first, and `place` where each of them does; lo..hi-1 are places then.
    Every state sees the new values of the states before it in this range and those in `others` outside it (None: there is no
    outside). The chain is v = r' + P' v, solved for the chance of staying put, so that the diagonal of P' is zero. The row of a
    place has room of its own, from its `begin` to the next; zeros fill what it does not need. Where the pair that is `held` there
    is the best still, as it is almost everywhere after a few sweeps, nothing is copied; no pair has the number len(r). Returns
    the largest change, and by how much more likely the chain's moves to higher and to lower states have become, added up.
    """
    low, beyond, size = uint64(lo), uint64(hi), uint64(hi) - uint64(lo)
    largest, up, down = 0.0, 0.0, 0.0
    for i in range(size):
        here = low + (size - ONE - i if backwards else i)
        s = here if order is None else uint64(order[here])
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
        if chosen != held[here]:
            start, limit = uint64(begin[here]), uint64(begin[here + ONE])
            if held[here] < len(r):
                for k in range(uint64(indptr[held[here]]), uint64(indptr[held[here] + ONE])):
                    j = uint64(indices[k])
                    if (j if place is None else uint64(place[j])) > here:
                        up -= data[k]
                    elif j != s:
                        down -= data[k]
            at, stay, j = start, 0.0, s
            for k in range(uint64(indptr[chosen]), uint64(indptr[chosen + ONE])):
                j = uint64(indices[k])
                to_indices[at] = j
                to_data[at] = gamma * data[k]
                if (j if place is None else uint64(place[j])) > here:
                    up += data[k]
                elif j != s:
                    down += data[k]
                else:
                    stay = data[k]
                    to_data[at] = 0.0
                at += ONE
            scale = 1.0
            if stay > 0.0:
                scale = 1.0 / (1.0 - gamma * stay)
                for k in range(start, at):
                    to_data[k] *= scale
            while at < limit:  # columns stay sorted
                to_indices[at] = j
                to_data[at] = 0.0
                at += ONE
            to_r[here] = scale * r[chosen]
            held[here] = chosen
    return largest, up, down


@loop
def extract_split(indptr, indices, data, r, rows, gamma, to_indptr, to_indices, to_data, to_r):
    """The chain a policy makes, solved for the chance of staying put: v = r' + P' v with no diagonal in P'.

    Returns how likely its moves to higher and to lower states are, added up.
    """
    at = uint64(0)
    to_indptr[0] = 0
    up, down = 0.0, 0.0
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
                else:
                    down += data[k]
        scale = 1.0 / (1.0 - gamma * stay)
        if stay > 0.0:
            for k in range(begin, at):
                to_data[k] *= scale
        to_r[s] = scale * r[l]
        to_indptr[s + ONE] = at
    return up, down


@loop
def split_gauss_seidel(v, backwards, keep, order, place, others, indptr, indices, data, r, lo, hi):
    """One Gauss-Seidel sweep of v = r + P v in place, in order of the places or against it; returns the largest change.

    Unless `keep` is None, that times v(s) is added in every state: where r and P are 1 - keep times as large as they should be,
    this is over-relaxation for keep < 0. Where r is None it is zero.

    Where there are many places in lo..hi-1, both halves are swept side by side: each state would otherwise wait for the one
    before.
    """
    low, beyond, size = uint64(lo), uint64(hi), uint64(hi) - uint64(lo)
    length = (size + ONE) // TWO if size >= SIDE_BY_SIDE else size
    largest = 0.0
    for i in range(length):
        for lane in range(TWO):
            here = low + lane * length + (length - ONE - i if backwards else i)
            if here < beyond:
                s = here if order is None else uint64(order[here])
                k, last = uint64(indptr[here]), uint64(indptr[here + ONE])
                even, odd = 0.0 if r is None else r[here] if keep is None else r[here] + keep * v[s], 0.0
                if last == k + THREE and (
                    others is None
                    or (place is None and low <= uint64(indices[k]) and uint64(indices[k + TWO]) < beyond)  # columns are sorted
                ):
                    even = even + data[k] * v[indices[k]] + data[k + TWO] * v[indices[k + TWO]]
                    odd = data[k + ONE] * v[indices[k + ONE]]
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
                total = even + odd
                largest = max(largest, abs(total - v[s]))
                v[s] = total
    return largest


@loop
def split_sweeps(indptr, indices, data, r, v, most, target, backwards, turn, keep, order):
    """Up to `most` Gauss-Seidel sweeps of v = r + P v in place, until no change exceeds target; `turn` makes them go to and fro.

    Returns how many there were and the largest change of the last one.
    """
    n = 0
    change = np.inf
    while n < most and change > target:
        change = split_gauss_seidel(v, backwards, keep, order, None, None, indptr, indices, data, r, 0, len(v))
        backwards = backwards ^ turn
        n += 1
    return n, change
