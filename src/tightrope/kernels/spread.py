"""Values that spread from the sinks of a model, and the order of states in which they do so fastest."""

from __future__ import annotations

import numpy as np

from tightrope.kernels.serial import ONE
from tightrope.kernels.tiers import borrow, loop, uint64

#: Share of the states that a sweep must give a value to be worth another.
WORTHWHILE = 1 / 256
#: Largest chance of successors without a value for a move to be judged by the others.
MOSTLY = 0.5


@loop
def spread(indptr, indices, data, r, first, gamma, v, rows, backwards, order):
    """One sweep in place that values states where v is -inf, from sinks and from states that have a value.

    It takes states in `order`, or as they are numbered where that is None. A successor without a value is guessed to lie two
    steps behind the state itself, for which is then solved: where moves mostly lead towards the values known so far, and slips
    to the side, that is nearly right at once, and rather too low. Too high would be worse: states that believe in each other's
    values lose them only step by step. So a move that most likely leads to a successor without a value is not judged yet.
    Returns how many states have a value now, and how many of them by a guess of this sweep.
    """
    size = uint64(len(v))
    valued, guessed = 0, 0
    for i in range(size):
        s = size - ONE - i if backwards else i
        if order is not None:
            s = uint64(order[s])
        if v[s] > -np.inf:
            valued += 1
            continue
        best, alone = -np.inf, -np.inf
        chosen = uint64(first[s])
        guess, leaves = False, False
        stop = uint64(first[s + ONE])
        end = uint64(indptr[chosen])
        for l in range(chosen, stop):
            begin, end = end, uint64(indptr[l + ONE])
            if end == begin + ONE and uint64(indices[begin]) != s:
                # A single successor without a value gives none without a test: q is -inf, or no number where gamma is 0.
                q = r[l] + gamma * (data[begin] * v[indices[begin]])
                leaves = True
                if q > best:
                    best = q
                    chosen = l
                    guess = False
                continue
            total, stay, behind = 0.0, 0.0, 0.0
            known = False
            for k in range(begin, end):
                j = uint64(indices[k])
                if v[j] > -np.inf:
                    total += data[k] * v[j]
                    known = True
                elif j == s:
                    stay += data[k]
                else:
                    behind += data[k]
            if behind > (MOSTLY if known else 0.0):
                leaves = True
                continue
            q = r[l] + gamma * (total + behind * (1.0 + gamma) * min(r[l], 0.0))
            loses = 1.0 - gamma * (stay + gamma * gamma * behind)
            if not known:
                alone = max(alone, q / loses)
                continue
            leaves = True
            if q > best * loses:  # a division takes as long as the rest, and is seldom needed
                best = q / loses
                chosen = l
                guess = behind > 0.0
        if not leaves:
            best = alone
        if best > -np.inf:
            v[s] = best
            rows[s] = chosen
            valued += 1
            guessed += guess
    return valued, guessed


@loop
def spread_values(indptr, indices, data, r, first, gamma, v, rows, base, backwards, order, settled, seeds, after):
    """Values that spread from the sinks, sweeping to and fro until few states are new; those never reached get `base`.

    Unless it is None they spread from `seeds` as well, which are taken to lead to what is worth `after`.

    Returns how many sweeps there were, which way the last one went, whether any value is a guess, and how many states are
    lost: these had none after a sweep either way, and it is not `settled` yet what order to take them in.
    """
    indptr, indices, data, r, first, v, rows = borrow(indptr, indices, data, r, first, v, rows)
    for s in range(uint64(len(v))):
        v[s] = -np.inf
    if seeds is not None:
        for i in range(uint64(len(seeds))):
            s = uint64(seeds[i])
            for l in range(uint64(first[s]), uint64(first[s + ONE])):
                if r[l] + gamma * after > v[s]:
                    v[s] = r[l] + gamma * after
                    rows[s] = l
    sweeps, valued, guesses, lost = 0, 0, 0, 0
    while True:
        before = valued
        valued, guessed = spread(indptr, indices, data, r, first, gamma, v, rows, backwards, order)
        guesses += guessed
        sweeps += 1
        lost = len(v) - valued if sweeps == 2 and not settled else 0
        if lost > 0 or valued == len(v) or (sweeps > 1 and valued - before < WORTHWHILE * len(v)):
            break
        backwards = not backwards
    if valued < len(v):
        for s in range(uint64(len(v))):
            v[s] = max(v[s], base)
    return sweeps, backwards, guesses > 0, lost
