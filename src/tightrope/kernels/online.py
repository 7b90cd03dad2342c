"""Algorithm 1: one update, and the loops that repeat it on samples of a model or on a log.

Every path to a number goes through `update`, so that a step taken alone and a step of a long run give the same bits.
`table` [L] holds one record a pair (q, q_kappa, pi, visits), so that a state's records lie in one or two lines of memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from tightrope.kernels.sampling import column, next_word, random_unit, unit_of

_1 = np.uint64(1)
_EPS = float(np.finfo(np.float64).eps)


class Rate(NamedTuple):
    """A step size c/((n+n0)^p log(n+n0)^log), unless a table that begins at visit `origin` holds it."""

    c: float
    n0: float
    p: float
    log: bool
    origin: int


class Rule(NamedTuple):
    """What a learner is to the compiled loops: numbers only, since arrays in a tuple would be counted at every call."""

    gamma: float
    kappa: float
    soft: float
    cautious: bool
    explore: float
    restart: float
    fast: Rate
    slow: Rate


@njit(cache=True, nogil=True, error_model="numpy")
def rate(schedule, values, n):
    """The step size at the n-th visit."""
    if n - schedule.origin < len(values):
        return values[n - schedule.origin]
    x = np.float64(n) + schedule.n0
    if schedule.p == 1.0:
        mu = schedule.c / x
    elif schedule.p == 0.0:
        mu = schedule.c
    else:
        mu = schedule.c / x**schedule.p
    return mu / math.log(x) if schedule.log else mu


@njit(cache=True, nogil=True, error_model="numpy")
def tabulate(schedule, values):
    """The first step sizes, which a long run looks up instead of raising to powers again and again."""
    nothing = values[:0]
    for i in range(len(values)):
        values[i] = rate(schedule, nothing, i + 1)


@njit(cache=True, nogil=True, error_model="numpy")
def target(begin, end, cautious, table):
    """b_s: the pair of the κ-greedy action where q(s, a_κ) >= v(s) up to rounding, else of the one-step greedy action."""
    one, ahead = begin, begin
    best_one, best_ahead, q_ahead = -np.inf, -np.inf, 0.0
    v, size = 0.0, 0.0
    for l in range(begin, end):  # conditional moves rather than branches: which action is best is hard to guess
        q, q_kappa = table[l].q, table[l].q_kappa
        v += table[l].pi * q
        size = max(size, abs(q))
        better = q > best_one
        one = l if better else one
        best_one = q if better else best_one
        better = q_kappa > best_ahead
        ahead = l if better else ahead
        best_ahead = q_kappa if better else best_ahead
        q_ahead = q if better else q_ahead
    tolerance = 4.0 * (end - begin + 1) * _EPS * size
    return one if cautious and q_ahead < v - tolerance else ahead


@njit(cache=True, nogil=True, error_model="numpy")
def update(first, s, l, r, following, rule, fast, slow, table, visits):
    """One step of Algorithm 1 after the transition s, pair l, r, s': both fast updates, then the slow one."""
    begin, end = first[following], first[following + _1]
    v, w = 0.0, -np.inf
    for m in range(begin, end):
        v += table[m].pi * table[m].q
        w = max(w, table[m].q_kappa)
    if rule.soft > 0.0:
        mean = 0.0
        for m in range(begin, end):
            mean += table[m].q
        v = (1.0 - rule.soft) * v + rule.soft * (mean / (end - begin))
    n_pair, n_state = table[l].visits + 1, visits[s] + 1
    table[l].visits, visits[s] = n_pair, n_state
    mu = rate(rule.fast, fast, n_pair)
    q, q_kappa, gamma, kappa = table[l].q, table[l].q_kappa, rule.gamma, rule.kappa
    table[l].q = q + mu * (r + gamma * v - q)
    table[l].q_kappa = q_kappa + mu * (r + gamma * (1.0 - kappa) * v + kappa * gamma * w - q_kappa)
    mu = rate(rule.slow, slow, n_state)
    begin, end = first[s], first[s + _1]
    chosen = target(begin, end, rule.cautious, table)
    for m in range(begin, end):
        table[m].pi += mu * ((1.0 if m == chosen else 0.0) - table[m].pi)


@njit(cache=True, nogil=True, error_model="numpy")
def action(begin, end, explore, table, unit):
    """The pair of a state that the uniform number `unit` selects from (1-e) π(.|s) + e uniform."""
    begin, end = np.uint64(begin), np.uint64(end)
    if unit < explore:
        return min(begin + np.uint64(unit / explore * (end - begin)), end - _1)
    unit -= explore
    keep = 1.0 - explore
    chosen, below = begin, 0.0
    for l in range(begin, end):  # no early end: it would be guessed wrong as often as π is undecided
        pi = table[l].pi
        chosen = np.uint64(l) if (pi > 0.0) & (below <= unit) else chosen
        below += keep * pi
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def state(at, n_states, restart, nu_indptr, nu, words):
    """The state to act in: `at`, the one just reached, unless there is none or chance starts again from ν."""
    if at >= 0 and restart < 1.0 and (restart == 0.0 or random_unit(words) >= restart):
        return np.uint64(at)
    unit = random_unit(words)
    if len(nu) == 0:
        return np.uint64(unit * n_states)
    return np.uint64(column(nu_indptr, nu, np.uint64(0), unit))


@njit(cache=True, nogil=True, error_model="numpy")
def propose(first, nu_indptr, nu, rule, table, words, place):
    """The next state and pair to ask a simulator about."""
    s = state(place[1], len(first) - 1, rule.restart, nu_indptr, nu, words)
    return s, action(first[s], first[s + _1], rule.explore, table, random_unit(words))


@njit(cache=True, nogil=True, error_model="numpy")
def accept(first, s, l, r, following, terminal, rule, fast, slow, table, visits, place):
    """Learn from the simulator's answer and remember where it led."""
    update(first, s, l, r, following, rule, fast, slow, table, visits)
    place[0] += 1
    place[1] = -1 if terminal[s] else np.int64(following)


@njit(cache=True, nogil=True, error_model="numpy")
def follow(first, indptr, alias, rewards, terminal, nu_indptr, nu, rule, fast, slow, table, visits, words, place, steps):
    """`steps` steps of Algorithm 1 along the chain; place is [steps done, state reached or -1], an empty `nu` is uniform."""
    n_states = len(first) - 1
    at = place[1]
    for _ in range(steps):
        s = state(at, n_states, rule.restart, nu_indptr, nu, words)
        l = action(first[s], first[s + _1], rule.explore, table, random_unit(words))
        following = np.uint64(column(indptr, alias, l, random_unit(words)))
        update(first, s, l, rewards[l], following, rule, fast, slow, table, visits)
        at = -1 if terminal[s] else np.int64(following)
    place[1] = at
    place[0] += steps


@njit(cache=True, nogil=True, error_model="numpy")
def walk(first, indptr, alias, rewards, nu_indptr, nu, rule, fast, slow, table, visits, words, place, steps, ahead):
    """`steps` steps of Algorithm 1 with every state drawn from ν: what `follow` does at restart 1, bit for bit, but faster.

    States do not depend on what is learned, so those of the next `ahead` steps are drawn together and all memory they need is
    read in passes without branches, many lines at a time. An action drawn early is drawn again, with the same random number,
    when its state was visited in between.
    """
    n_states = len(first) - 1
    a, b, c, d = words[0], words[1], words[2], words[3]
    states, pairs, followings = np.empty(ahead, np.uint64), np.empty(ahead, np.uint64), np.empty(ahead, np.uint64)
    begins, ends = np.empty(ahead, np.uint64), np.empty(ahead, np.uint64)
    action_units, next_units = np.empty(ahead), np.empty(ahead)
    done, touched = 0, 0.0
    while done < steps:
        n = min(ahead, steps - done)
        for i in range(n):
            word, a, b, c, d = next_word(a, b, c, d)
            unit = unit_of(word)
            states[i] = np.uint64(unit * n_states) if len(nu) == 0 else np.uint64(column(nu_indptr, nu, np.uint64(0), unit))
            word, a, b, c, d = next_word(a, b, c, d)
            action_units[i] = unit_of(word)
            word, a, b, c, d = next_word(a, b, c, d)
            next_units[i] = unit_of(word)
        for i in range(n):
            s = states[i]
            begins[i], ends[i] = first[s], first[s + _1]
            touched += table[begins[i]].pi + table[ends[i] - _1].pi + visits[s]
        for i in range(n):
            pairs[i] = action(begins[i], ends[i], rule.explore, table, action_units[i])
        for i in range(n):
            followings[i] = column(indptr, alias, pairs[i], next_units[i])
        for i in range(n):
            f = followings[i]
            touched += table[first[f]].pi + table[first[f + _1] - _1].pi + rewards[pairs[i]]
        for i in range(n):
            s = states[i]
            again = False
            for j in range(i):
                again |= states[j] == s
            if again:
                pairs[i] = action(begins[i], ends[i], rule.explore, table, action_units[i])
                followings[i] = column(indptr, alias, pairs[i], next_units[i])
            update(first, s, pairs[i], rewards[pairs[i]], followings[i], rule, fast, slow, table, visits)
        done += n
    words[0], words[1], words[2], words[3] = a, b, c, d
    place[0] += steps
    return touched  # so that the reads above are not optimised away


@njit(cache=True, nogil=True, error_model="numpy")
def replay(first, states, rows, rewards, followings, rule, fast, slow, table, visits, place, steps):
    """`steps` steps of Algorithm 1 on a log, in order and round again when it ends."""
    n = len(states)
    i = place[0] % n
    for _ in range(steps):
        update(first, states[i], rows[i], rewards[i], followings[i], rule, fast, slow, table, visits)
        i = i + 1 if i + 1 < n else 0
    place[0] += steps


@njit(cache=True, nogil=True, error_model="numpy")
def took_kappa(first, table):
    """The number of states in which the cautious choice is the κ-greedy action."""
    count = 0
    for s in range(np.uint64(len(first) - 1)):
        count += target(first[s], first[s + _1], True, table) == target(first[s], first[s + _1], False, table)
    return count
