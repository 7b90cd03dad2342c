"""Algorithm 1: one update, and the loops that repeat it on samples of a model or on a log.

Every path to a number goes through `update`, so that a step taken alone and a step of a long run give the same bits.
`table` [L] holds one record a pair (q, q_kappa, pi, visits), so that a state's records lie in one or two lines of memory.
`worth` [S] holds what a state's predecessors ask for, (v, w), so that they need not go through its actions; the loops keep it
up to date from what `appraise` fills in before the first step. What the loops call again and again is inlined and gets
arrays without counts, or the counting would take half of the time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from tightrope.kernels.memory import borrow, prefetch
from tightrope.kernels.sampling import column, next_word, place_in, random_unit, unit_of

_1 = np.uint64(1)
_EPS = float(np.finfo(np.float64).eps)
#: What is kept by state while a loop runs.
WORTH = np.dtype([("v", np.float64), ("w", np.float64)])
#: One step that is yet to be taken, in one line of memory.
_PLAN = np.dtype(
    [(name, np.uint64) for name in ("s", "begin", "end", "pair", "following")]
    + [("visits", np.int64), ("action_unit", np.float64), ("next_unit", np.float64)]
)


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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def rate(schedule, values, n):
    """The step size at the n-th visit."""
    i = np.uint64(n - schedule.origin)
    if i < np.uint64(len(values)):
        return values[i]
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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def target(begin, end, cautious, table):
    """b_s: the pair of the κ-greedy action where q(s, a_κ) >= v(s) up to rounding, else of the one-step greedy action."""
    ahead, best, v = begin, -np.inf, 0.0
    for l in range(begin, end):  # conditional moves rather than branches: which action is best is hard to guess
        v += table[l].pi * table[l].q
        better = table[l].q_kappa > best
        ahead = l if better else ahead
        best = table[l].q_kappa if better else best
    if cautious and table[ahead].q < v:  # seldom
        one, best, size = begin, -np.inf, 0.0
        for l in range(begin, end):
            size = max(size, abs(table[l].q))
            better = table[l].q > best
            one = l if better else one
            best = table[l].q if better else best
        ahead = one if table[ahead].q < v - 4.0 * (end - begin + 1) * _EPS * size else ahead
    return ahead


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def move(begin, end, chosen, mu, soft, table):
    """Move π(.|s) by mu towards the pair `chosen`; then s is worth v = (1 - soft) Σ_a π q + soft mean q, w = max q_κ."""
    v, w = 0.0, -np.inf
    for m in range(begin, end):
        pi = table[m].pi
        pi += mu * ((1.0 if m == chosen else 0.0) - pi)
        table[m].pi = pi
        v += pi * table[m].q
        w = max(w, table[m].q_kappa)
    if soft > 0.0:
        total = 0.0
        for m in range(begin, end):
            total += table[m].q
        v = (1.0 - soft) * v + soft * (total / (end - begin))
    return v, w


@njit(cache=True, nogil=True, error_model="numpy")
def appraise(first, soft, table, worth):
    """Fill in the worth of every state, as when a loop begins; moving by nothing leaves π as it is."""
    for s in range(np.uint64(len(first) - 1)):
        worth[s].v, worth[s].w = move(first[s], first[s + _1], first[s], 0.0, soft, table)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def update(first, s, l, r, v, w, rule, fast, slow, table, visits):
    """One step of Algorithm 1 after s, pair l, r and a next state worth v, w: both fast updates, the slow one; the worth of s."""
    n_pair, n_state = table[l].visits + 1, visits[s] + 1
    table[l].visits, visits[s] = n_pair, n_state
    mu = rate(rule.fast, fast, n_pair)
    q, q_kappa, gamma, kappa = table[l].q, table[l].q_kappa, rule.gamma, rule.kappa
    table[l].q = q + mu * (r + gamma * v - q)
    table[l].q_kappa = q_kappa + mu * (r + gamma * (1.0 - kappa) * v + kappa * gamma * w - q_kappa)
    mu = rate(rule.slow, slow, n_state)
    begin, end = first[s], first[s + _1]
    return move(begin, end, target(begin, end, rule.cautious, table), mu, rule.soft, table)


@njit(cache=True, nogil=True, error_model="numpy")
def step(first, s, l, r, following, rule, fast, slow, table, visits):
    """One step alone, after the transition s, pair l, r, s'."""
    v, w = move(first[following], first[following + _1], first[following], 0.0, rule.soft, table)
    update(first, s, l, r, v, w, rule, fast, slow, table, visits)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
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
def accept(first, s, l, r, following, terminal, rule, fast, slow, table, visits, worth, place):
    """Learn from the simulator's answer and remember where it led."""
    v, w = worth[following].v, worth[following].w
    worth[s].v, worth[s].w = update(first, s, l, r, v, w, rule, fast, slow, table, visits)
    place[0] += 1
    place[1] = -1 if terminal[s] else np.int64(following)


@njit(cache=True, nogil=True, error_model="numpy")
def follow(first, indptr, alias, rewards, terminal, nu_indptr, nu, rule, fast, slow, table, visits, worth, words, place, steps):
    """`steps` steps of Algorithm 1 along the chain; place is [steps done, state reached or -1], an empty `nu` is uniform."""
    first, indptr, alias, rewards, nu_indptr, nu, fast, slow, table, visits, worth, words = borrow(
        first, indptr, alias, rewards, nu_indptr, nu, fast, slow, table, visits, worth, words
    )
    n_states = len(first) - 1
    at = place[1]
    for _ in range(steps):
        s = state(at, n_states, rule.restart, nu_indptr, nu, words)
        l = action(first[s], first[s + _1], rule.explore, table, random_unit(words))
        following = np.uint64(column(indptr, alias, l, random_unit(words)))
        v, w = worth[following].v, worth[following].w
        worth[s].v, worth[s].w = update(first, s, l, rewards[l], v, w, rule, fast, slow, table, visits)
        at = -1 if terminal[s] else np.int64(following)
    place[1] = at
    place[0] += steps


@njit(cache=True, nogil=True, error_model="numpy")
def walk(first, indptr, alias, rewards, nu_indptr, nu, rule, fast, slow, table, visits, worth, words, place, steps, ahead):
    """`steps` steps of Algorithm 1 with every state drawn from ν: what `follow` does at restart 1, bit for bit, but faster.

    States do not depend on what is learned, so steps are prepared in rounds, `ahead` (a power of two) at a time: their states
    are drawn two rounds early, their actions one round early, their next states last, and each stage asks for the memory of
    the next one. An action drawn early is drawn again, with the same random number, when its state was visited in between.
    """
    first, indptr, alias, rewards, nu_indptr, nu, fast, slow, table, visits, worth = borrow(
        first, indptr, alias, rewards, nu_indptr, nu, fast, slow, table, visits, worth
    )
    n_states = len(first) - 1
    a, b, c, d = words[0], words[1], words[2], words[3]
    plans, last = np.empty(4 * ahead, _PLAN), np.uint64(4 * ahead - 1)
    for now in range(0, steps + 2 * ahead, ahead):
        for i in range(now, min(now + ahead, steps)):
            plan = plans[np.uint64(i) & last]
            word, a, b, c, d = next_word(a, b, c, d)
            unit = unit_of(word)
            s = np.uint64(unit * n_states) if len(nu) == 0 else np.uint64(column(nu_indptr, nu, np.uint64(0), unit))
            word, a, b, c, d = next_word(a, b, c, d)
            plan.action_unit = unit_of(word)
            word, a, b, c, d = next_word(a, b, c, d)
            plan.next_unit = unit_of(word)
            plan.s, plan.begin, plan.end = s, first[s], first[s + _1]
            prefetch(table, plan.begin)
            prefetch(table, plan.end - _1)
            prefetch(visits, s)
            prefetch(indptr, plan.begin)
            prefetch(rewards, plan.begin)
        for i in range(max(now - ahead, 0), min(now, steps)):
            plan = plans[np.uint64(i) & last]
            plan.visits = visits[plan.s]
            l = action(plan.begin, plan.end, rule.explore, table, plan.action_unit)
            plan.pair = l
            prefetch(alias, place_in(indptr, l, plan.next_unit)[0])
        for i in range(max(now - 2 * ahead, 0), min(now - ahead, steps)):
            plan = plans[np.uint64(i) & last]
            plan.following = column(indptr, alias, plan.pair, plan.next_unit)
            prefetch(worth, plan.following)
            prefetch(worth, plan.s)
        for i in range(max(now - 2 * ahead, 0), min(now - ahead, steps)):
            plan = plans[np.uint64(i) & last]
            s = plan.s
            if visits[s] != plan.visits:
                plan.pair = action(plan.begin, plan.end, rule.explore, table, plan.action_unit)
                plan.following = column(indptr, alias, plan.pair, plan.next_unit)
            v, w = worth[plan.following].v, worth[plan.following].w
            worth[s].v, worth[s].w = update(first, s, plan.pair, rewards[plan.pair], v, w, rule, fast, slow, table, visits)
    words[0], words[1], words[2], words[3] = a, b, c, d
    place[0] += steps


@njit(cache=True, nogil=True, error_model="numpy")
def replay(first, visited, rows, rewards, followings, rule, fast, slow, table, visits, worth, place, steps):
    """`steps` steps of Algorithm 1 on a log, in order and round again when it ends."""
    first, visited, rows, rewards, followings, fast, slow, table, visits, worth = borrow(
        first, visited, rows, rewards, followings, fast, slow, table, visits, worth
    )
    n = len(visited)
    i = place[0] % n
    for _ in range(steps):
        s, v, w = visited[i], worth[followings[i]].v, worth[followings[i]].w
        worth[s].v, worth[s].w = update(first, s, rows[i], rewards[i], v, w, rule, fast, slow, table, visits)
        i = i + 1 if i + 1 < n else 0
    place[0] += steps


@njit(cache=True, nogil=True, error_model="numpy")
def took_kappa(first, table):
    """The number of states in which the cautious choice is the κ-greedy action."""
    count = 0
    for s in range(np.uint64(len(first) - 1)):
        count += target(first[s], first[s + _1], True, table) == target(first[s], first[s + _1], False, table)
    return count
