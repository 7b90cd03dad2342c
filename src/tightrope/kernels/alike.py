"""Pairs that lead alike: the distinct rows of P, and Bellman backups that multiply each of them once.

What is done often matters only for where it leads: a stock after the order, cars after they were moved. All pairs that lead there
have the same row.
"""

from __future__ import annotations

import numpy as np

from tightrope.kernels.serial import ONE, TWO
from tightrope.kernels.tiers import in_fours, loop, uint64

#: What signatures of rows are mixed with, and kept to 64 bits by, compiled or not.
MIX, ALL = uint64(0x9E3779B97F4A7C15), uint64(0xFFFFFFFFFFFFFFFF)
HALF, NONE = uint64(32), uint64(0)


@loop
def signature(indptr, indices, bits, l):
    """A number that is the same for equal rows: of their length, and of their first, middle and last entry."""
    k, end = uint64(indptr[l]), uint64(indptr[l + ONE])
    h = end - k
    for i in (k, (k + end) // TWO, end - ONE):
        h = ((h ^ uint64(indices[i])) * MIX) & ALL
        h = (((h ^ (h >> HALF)) ^ uint64(bits[i])) * MIX) & ALL
        h ^= h >> HALF
    return h


@loop
def find(indptr, indices, bits, most, table, at, owners):
    """Which of the distinct rows each row is, `at` [L], in the order in which they come, and the first row that is so, `owners`.

    `bits` are the numbers in rows as integers: to be alike is to have the same bits throughout. The table is of zeros, a power of
    two and twice as many as owners at the least. Returns how many there are and their transitions; none if there are more than
    `owners` has room for or `most`, or too many have the same signature.
    """
    mask, number, transitions, spent = uint64(len(table)) - ONE, NONE, NONE, NONE
    for l in range(uint64(len(at))):
        k = uint64(indptr[l])
        length = uint64(indptr[l + ONE]) - k
        slot = signature(indptr, indices, bits, l) & mask
        while True:
            m = uint64(table[slot])
            if m == NONE:  # a new one
                if number == len(owners) or transitions + length > most:
                    return NONE, NONE
                owners[number] = l
                at[l] = number
                number, transitions = number + ONE, transitions + length
                table[slot] = number
                break
            j = uint64(indptr[owners[m - ONE]])
            if uint64(indptr[uint64(owners[m - ONE]) + ONE]) - j == length:
                different = NONE
                for i in range(length):  # to the end, always: the processor compares several at once so
                    different |= uint64(indices[k + i] ^ indices[j + i]) | uint64(bits[k + i] ^ bits[j + i])
                if different == NONE:
                    at[l] = m - ONE
                    break
                spent += length
                if spent > len(indices):
                    return NONE, NONE
            slot = (slot + ONE) & mask
    return number, transitions


@loop
def product(indptr, indices, data, v, out, runs, lo, hi):
    """out = P v in the rows lo..hi-1, summed as backups sum them."""
    k = uint64(indptr[lo])
    for m in range(uint64(lo), uint64(hi)):
        end = uint64(indptr[m + ONE])
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
            k += ONE
        out[m] = even + odd


@loop
def backup(
    indptr, indices, data, at, ahead, r, first, gamma, v, out, rows, to_indptr, to_indices, to_data, to_r, lo, hi
):  # fmt: skip
    """`serial.backup` where the `product` of the distinct rows and v is `ahead`, and pair l leads as row at[l] of these does."""
    low, high = np.inf, -np.inf
    begin, to = uint64(lo), uint64(0)
    if to_indptr is not None:
        to_indptr[0] = 0
    l = uint64(first[lo])
    for s in range(begin, uint64(hi)):
        best, chosen, stop = -np.inf, l, uint64(first[s + ONE])
        while l < stop:
            q = r[l] + gamma * ahead[at[l]]
            if q > best:
                best = q
                chosen = l
            l += ONE
        change = best - v[s]
        low, high = min(low, change), max(high, change)
        out[s] = best
        rows[s] = chosen
        if to_indptr is not None:
            m = uint64(at[chosen])
            for i in range(uint64(indptr[m]), uint64(indptr[m + ONE])):
                to_indices[to] = indices[i]
                to_data[to] = data[i]
                to += ONE
            to_r[s - begin] = r[chosen]
            to_indptr[s - begin + ONE] = to
    return low, high
