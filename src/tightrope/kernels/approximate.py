"""Walks under a switching policy, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from tightrope.kernels.sampling import column, random_unit

_0 = np.uint64(0)


@njit(cache=True, nogil=True)
def switching_walks(indptr, alias, r, gamma, first, start_indptr, start_alias, rows, mass, which, kappa, horizon, n, words):
    """The sum and the sum of squares of the discounted rewards of n walks.

    Stage j runs policy which[j] (0 is pi_0), whose pairs are rows[which[j]] [S] when it is deterministic, or drawn from the
    cumulative weights mass[which[j]] [L]. After each step the stage falls by one with probability 1 - kappa, down to 0.
    """
    deterministic = mass.shape[0] == 1 and mass.shape[1] == 1
    total, squares = 0.0, 0.0
    for _ in range(n):
        s = np.int64(column(start_indptr, start_alias, _0, random_unit(words)))
        stage = len(which) - 1
        discount, earned = 1.0, 0.0
        for _t in range(horizon):
            policy = which[stage]
            if deterministic:
                l = np.int64(rows[policy, s])
            else:
                unit = random_unit(words)
                l = np.int64(first[s])
                while mass[policy, l] <= unit:
                    l += 1
            earned += discount * r[l]
            discount *= gamma
            s = np.int64(column(indptr, alias, np.uint64(l), random_unit(words)))
            if stage > 0 and random_unit(words) >= kappa:
                stage -= 1
        total += earned
        squares += earned * earned
    return total, squares
