"""Gauss-Seidel sweeps, in place: over a model, and over the chain that one of them leaves behind.

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
    to_indptr, to_indices, to_data, to_r, lo, hi,
):  # fmt: skip
    """One Bellman sweep in place, in order of the states or against it, that leaves the chain of its greedy pairs behind.

    Unless they are None, `order` says which states come first, and `place` where each of them does; lo..hi-1 are places then.
    Every state sees the new values of the states before it in this range and those in `others` outside it (None: there is no
    outside). In the pair that is best then, the chance of staying put is solved for:
    v(s) = (r + gamma Σ_{s' != s} P v(s'))/(1 - gamma P(s|s,a)). The chain is v = r' + P' v with no diagonal in P', its rows in
    the order of the sweep. Returns the largest change, and how likely the chain's moves to higher and to lower states are,
    added up.
    """
    begin, beyond, size = uint64(lo), uint64(hi), uint64(hi) - uint64(lo)
    largest, up, down = 0.0, 0.0, 0.0
    at = uint64(0)
    to_indptr[0] = 0
    for i in range(size):
        here = begin + (size - ONE - i if backwards else i)
        s = here if order is None else uint64(order[here])
        best = -np.inf
        chosen, stop = uint64(first[s]), uint64(first[s + ONE])
        k = uint64(indptr[chosen])
        for l in range(chosen, stop):
            end = uint64(indptr[l + ONE])
            even, odd = 0.0, 0.0
            if end == k + THREE and (
                others is None
                or (place is None and begin <= uint64(indices[k]) and uint64(indices[k + TWO]) < beyond)  # columns are sorted
            ):
                even = data[k] * v[indices[k]] + data[k + TWO] * v[indices[k + TWO]]
                odd = data[k + ONE] * v[indices[k + ONE]]
                k = end
            else:
                while k + ONE < end:
                    near, far = uint64(indices[k]), uint64(indices[k + ONE])
                    even += data[k] * (
                        v[near]
                        if others is None or begin <= (near if place is None else uint64(place[near])) < beyond
                        else others[near]
                    )
                    odd += data[k + ONE] * (
                        v[far]
                        if others is None or begin <= (far if place is None else uint64(place[far])) < beyond
                        else others[far]
                    )
                    k += TWO
                if k < end:
                    near = uint64(indices[k])
                    even += data[k] * (
                        v[near]
                        if others is None or begin <= (near if place is None else uint64(place[near])) < beyond
                        else others[near]
                    )
                    k += ONE
            q = r[l] + gamma * (even + odd)
            if q > best:
                best = q
                chosen = l
        stay, start = 0.0, at
        for k in range(uint64(indptr[chosen]), uint64(indptr[chosen + ONE])):
            j = uint64(indices[k])
            if j == s:
                stay = data[k]
            else:
                to_indices[at] = j
                to_data[at] = gamma * data[k]
                at += ONE
                if (j if place is None else uint64(place[j])) > here:
                    up += data[k]
                else:
                    down += data[k]
        to_r[i] = r[chosen]
        if stay > 0.0:
            scale = 1.0 / (1.0 - gamma * stay)
            to_r[i] *= scale
            best = to_r[i]
            for k in range(start, at):
                to_data[k] *= scale
                j = uint64(to_indices[k])
                best += to_data[k] * (
                    v[j] if others is None or begin <= (j if place is None else uint64(place[j])) < beyond else others[j]
                )
        to_indptr[i + ONE] = at
        largest = max(largest, abs(best - v[s]))
        v[s] = best
        rows[s] = chosen
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
def split_gauss_seidel(v, backwards, reverse, keep, order, place, others, indptr, indices, data, r, lo, hi):
    """One Gauss-Seidel sweep of v = r + P v in place, in order of the states or against it; returns the largest change.

    Unless `keep` is None, that times v(s) is added in every state: where r and P are 1 - keep times as large as they should be,
    this is over-relaxation for keep < 0. Where r is None it is zero.

    The rows of the chain are those of the states lo..hi-1, in `reverse` order or not. Where there are many, both halves are
    swept side by side: each state would otherwise wait for the one before.
    """
    begin, beyond, size = uint64(lo), uint64(hi), uint64(hi) - uint64(lo)
    length = (size + ONE) // TWO if size >= SIDE_BY_SIDE else size
    largest = 0.0
    for i in range(length):
        for lane in range(TWO):
            row = lane * length + (i if backwards == reverse else length - ONE - i)
            if row < size:
                s = begin + (size - ONE - row if reverse else row)
                if order is not None:
                    s = uint64(order[s])
                k, end = uint64(indptr[row]), uint64(indptr[row + ONE])
                even, odd = 0.0 if r is None else r[row] if keep is None else r[row] + keep * v[s], 0.0
                if end == k + THREE and (
                    others is None
                    or (place is None and begin <= uint64(indices[k]) and uint64(indices[k + TWO]) < beyond)  # columns are sorted
                ):
                    even = even + data[k] * v[indices[k]] + data[k + TWO] * v[indices[k + TWO]]
                    odd = data[k + ONE] * v[indices[k + ONE]]
                else:
                    while k + ONE < end:
                        near, far = uint64(indices[k]), uint64(indices[k + ONE])
                        even += data[k] * (
                            v[near]
                            if others is None or begin <= (near if place is None else uint64(place[near])) < beyond
                            else others[near]
                        )
                        odd += data[k + ONE] * (
                            v[far]
                            if others is None or begin <= (far if place is None else uint64(place[far])) < beyond
                            else others[far]
                        )
                        k += TWO
                    if k < end:
                        near = uint64(indices[k])
                        even += data[k] * (
                            v[near]
                            if others is None or begin <= (near if place is None else uint64(place[near])) < beyond
                            else others[near]
                        )
                total = even + odd
                largest = max(largest, abs(total - v[s]))
                v[s] = total
    return largest


@loop
def split_sweeps(indptr, indices, data, r, v, most, target, backwards, turn, reverse, keep, order):
    """Up to `most` Gauss-Seidel sweeps of v = r + P v in place, until no change exceeds target; `turn` makes them go to and fro.

    Returns how many there were and the largest change of the last one.
    """
    n = 0
    change = np.inf
    while n < most and change > target:
        change = split_gauss_seidel(v, backwards, reverse, keep, order, None, None, indptr, indices, data, r, 0, len(v))
        backwards = backwards ^ turn
        n += 1
    return n, change
