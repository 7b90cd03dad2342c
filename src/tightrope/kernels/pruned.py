"""Bellman backups that compute only what may be best: where rows are wide, most actions are soon out of the question.

Each pair keeps a ceiling on what it can be worth. When values rise by no more than so much anywhere, neither does what a pair is
worth; one whose ceiling is below what another pair of its state is worth by now need not be computed. Nothing else changes: the
result is that of `serial.backup` to the last bit.
"""

from __future__ import annotations

import numpy as np

from tightrope.kernels.serial import ONE, TWO
from tightrope.kernels.tiers import in_fours, loop, uint64


@loop
def rise(v, before):
    """By how much v has risen anywhere, and how large values are; `before` becomes v."""
    most, size = -np.inf, 0.0
    for s in range(uint64(len(v))):
        most = max(most, v[s] - before[s])
        size = max(size, abs(v[s]), abs(before[s]))
        before[s] = v[s]
    return most, size


@loop
def backup(
    indptr, indices, data, r, first, gamma, v, out, rows, ceilings, lift, margin, runs,
    to_indptr, to_indices, to_data, to_r, lo, hi,
):  # fmt: skip
    """`serial.backup` of values by which no pair's ceiling rises by more than `lift`, `margin` being far more than rounding.

    In every state the pair in `rows` is computed first. Returns how many pairs were computed, too.
    """
    low, high = np.inf, -np.inf
    computed = 0
    begin, at = uint64(lo), uint64(0)
    if to_indptr is not None:
        to_indptr[0] = 0
    for s in range(uint64(lo), uint64(hi)):
        best = bar = -np.inf
        chosen = known = uint64(rows[s])
        start, stop = uint64(first[s]), uint64(first[s + ONE])
        for i in range(stop - start + ONE):
            l = known if i == 0 else start + i - ONE
            if i > 0:
                if l == known:
                    continue
                ceilings[l] += lift
                if ceilings[l] < bar:
                    continue
            k, end = uint64(indptr[l]), uint64(indptr[l + ONE])
            even, odd = 0.0, 0.0
            if runs is not None:
                even = in_fours(data, k, v, uint64(indices[k]), end - k)
                k = end
            while k + ONE < end:
                even += data[k] * v[indices[k]]
                odd += data[k + ONE] * v[indices[k + ONE]]
                k += TWO
            if k < end:
                even += data[k] * v[indices[k]]
            q = r[l] + gamma * (even + odd)
            ceilings[l] = q
            computed += 1
            if q > best or (q == best and l < chosen):
                best = q
                chosen = l
                bar = q - margin
        change = best - v[s]
        low = min(low, change)
        high = max(high, change)
        out[s] = best
        rows[s] = chosen
        if to_indptr is not None:
            for i in range(uint64(indptr[chosen]), uint64(indptr[chosen + ONE])):
                to_indices[at] = indices[i]
                to_data[at] = data[i]
                at += ONE
            to_r[s - begin] = r[chosen]
            to_indptr[s - begin + ONE] = at
    return low, high, computed
