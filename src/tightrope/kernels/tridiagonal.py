"""Elimination in the narrowest band, where moves are to the next state at most, but for hubs, as in queues: see `band`."""

from __future__ import annotations

from tightrope.kernels.tiers import loop, uint64

ONE = uint64(1)


@loop
def eliminate(indptr, indices, data, r, rows, gamma, number, hubs, band, columns, first, old, lo, hi, down, resumed):
    """`band.eliminate` in less time.

    What a row needs of the one before it stays out of memory, its columns are met in the order in which they are stored, and
    values are compared as fractions: one division a state is enough. If `resumed`, rows follow those next to them, and the rest
    is known as soon as a row comes to what is there already; there must be no hubs.
    """
    s, step = (uint64(lo), ONE) if down else (uint64(hi) - ONE, uint64(-1))
    inverse, link, x, worth, t = 0.0, 0.0, 0.0, 0.0, s
    if resumed:
        t = s - step
        inverse, link, x, worth = band[t, 0], -band[t, 1], columns[t, 0], columns[t, 0]
    for _ in range(uint64(hi) - uint64(lo)):
        l = s if rows is None else uint64(rows[s])
        stop, ahead = l + ONE, 0.0
        if first is not None:
            l, stop = uint64(first[s]), uint64(first[s + ONE])
            if 0 <= s + step < uint64(len(old)):
                ahead = old[s + step]
        begin, chosen, best = l, l, 0.0
        share, pivot, after, of_chosen = 0.0, 1.0, 0.0, 0.0
        while l < stop:
            k, end = uint64(indptr[l]), uint64(indptr[l + ONE])
            lower, own, upper, total = 0.0, 1.0, 0.0, r[l]
            if hubs == 0:
                if k < end and uint64(indices[k]) < s:
                    lower = gamma * data[k]
                    k += ONE
                if k < end and uint64(indices[k]) == s:
                    own -= gamma * data[k]
                    k += ONE
                if k < end:
                    upper = gamma * data[k]
            else:
                while k < end:
                    j, weight = uint64(indices[k]), gamma * data[k]
                    if number[j] >= 0:
                        if first is not None:
                            total += weight * old[j]
                    elif j < s:
                        lower = weight
                    elif j == s:
                        own -= weight
                    else:
                        upper = weight
                    k += ONE
            back, on = (lower, upper) if down else (upper, lower)
            back *= inverse
            own -= back * link
            value = 0.0
            if first is not None:
                total += back * worth
                value = total + on * ahead
            if l == begin or value * pivot > best * own:
                best, chosen, share, pivot, after, of_chosen = value, l, back, own, on, total
            l += ONE
        if first is not None:
            rows[s] = chosen
        for i in range(1, 1 + hubs):
            columns[s, i] = share * columns[t, i] if share != 0.0 else 0.0  # there may be anything where nobody was before
        if hubs > 0:
            for k in range(uint64(indptr[chosen]), uint64(indptr[chosen + ONE])):
                if number[indices[k]] >= 0:
                    columns[s, 1 + number[indices[k]]] += gamma * data[k]
        x = r[chosen] + share * x
        inverse, link, worth = 1.0 / pivot, after, of_chosen
        if resumed and columns[s, 0] == x and band[s, 0] == inverse and band[s, 1] == -link:
            return
        columns[s, 0], band[s, 0], band[s, 1] = x, inverse, -link
        s, t = s + step, s


@loop
def substitute(band, columns, v, lo, hi, down, resumed):
    """`band.substitute` where there are no hubs; what v is at the inner end counts as known.

    If `resumed`, the rest is known as soon as a row comes to what is there already.
    """
    s, step = (uint64(hi) - ONE, ONE) if down else (uint64(lo), uint64(-1))
    total = v[s + step] if 0 <= s + step < uint64(len(v)) else 0.0
    for _ in range(uint64(hi) - uint64(lo)):
        total = (columns[s, 0] - band[s, 1] * total) * band[s, 0]
        if resumed and v[s] == total:
            return
        v[s] = total
        s -= step
