"""Random numbers with an explicit state, and draws from the rows of a matrix in constant time.

The generator is xoshiro256++: four unsigned 64-bit words that the caller owns, so that a run can be saved between two
draws and continues with the same bits. Rows are drawn from with alias tables (Walker, Vose): one uniform number, one
comparison, whatever the number of successors.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_17 = np.uint64(17)
_19 = np.uint64(19)
_23 = np.uint64(23)
_41 = np.uint64(41)
_45 = np.uint64(45)
_11 = np.uint64(11)
_1 = np.uint64(1)
_TO_UNIT = 2.0**-53


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def next_word(a, b, c, d):
    """The next 64 random bits and the four words after them: for loops that keep the words in registers."""
    total = a + d
    result = ((total << _23) | (total >> _41)) + a
    c ^= a
    d ^= b
    return result, a ^ d, b ^ c, c ^ (b << _17), (d << _45) | (d >> _19)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def unit_of(word):
    """64 random bits as a number in [0, 1) with 53 of them."""
    return np.float64(word >> _11) * _TO_UNIT


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def random_word(words):
    """The next 64 random bits; `words` [4] is the state of the generator and moves on."""
    result, words[0], words[1], words[2], words[3] = next_word(words[0], words[1], words[2], words[3])
    return result


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def random_unit(words):
    """The next uniform number in [0, 1)."""
    return unit_of(random_word(words))


@njit(cache=True, nogil=True, error_model="numpy")
def alias_table(indptr, indices, data, alias):
    """Fill the alias table of every row: entry k keeps its own column below alias[k].cut and gives the rest to other."""
    longest = np.int64(0)
    for l in range(len(indptr) - 1):
        longest = max(longest, np.int64(indptr[l + 1]) - np.int64(indptr[l]))
    small = np.empty(longest, dtype=np.int64)
    large = np.empty(longest, dtype=np.int64)
    for l in range(len(indptr) - 1):
        begin, end = np.int64(indptr[l]), np.int64(indptr[l + 1])
        total = 0.0
        for k in range(begin, end):
            total += data[k]
        n_small, n_large = 0, 0
        for k in range(begin, end):
            alias[k].own = alias[k].other = indices[k]
            alias[k].cut = data[k] * (end - begin) / total
            if alias[k].cut < 1.0:
                small[n_small] = k
                n_small += 1
            else:
                large[n_large] = k
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            low, high = small[n_small], large[n_large - 1]
            alias[low].other = alias[high].own
            alias[high].cut = (alias[high].cut + alias[low].cut) - 1.0
            if alias[high].cut < 1.0:
                n_large -= 1
                small[n_small] = high
                n_small += 1
        for i in range(n_small):  # what rounding left over is full
            alias[small[i]].cut = 1.0
        for i in range(n_large):
            alias[large[i]].cut = 1.0


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def place_in(indptr, row, unit):
    """The entry of the alias table that the uniform number `unit` falls on in `row`, and how far into it, in [0, 1)."""
    begin = np.uint64(indptr[row])
    place = unit * (indptr[row + _1] - begin)
    whole = np.uint64(place)
    return begin + whole, place - np.float64(whole)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def column(indptr, alias, row, unit):
    """The column of `row` that the uniform number `unit` selects."""
    k, part = place_in(indptr, row, unit)
    own, other = alias[k].own, alias[k].other  # both read, so that no branch has to be guessed
    return own if part < alias[k].cut else other


@njit(cache=True, nogil=True, error_model="numpy")
def columns(indptr, alias, rows, units, out):
    """out[i] = the column of rows[i] that units[i] selects."""
    for i in range(len(rows)):
        out[i] = column(indptr, alias, rows[i], units[i])
