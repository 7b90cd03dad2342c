"""Many walkers in step: returns, batches and empirical models from a source of samples.

A walker goes on with probability gamma after each step, which stands for the discount: the plain sum of its rewards is an
unbiased estimate of the discounted value. So is b(s_0) + Σ_t r_t + gamma b(s_{t+1}) - b(s_t) for every b, with far less noise
when b is near the value: b is the problem's own v. Walkers advance together, so that Python sees one array per step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tightrope import kernels
from tightrope.kernels import unsigned
from tightrope.model.sampler import alias_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tightrope.approximate.problem import Problem
    from tightrope.model.pairs import Pairs
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray, IntArray

    Chooser = Callable[[IntArray, np.random.Generator], IntArray]

#: Samples drawn in one piece, so that memory stays bounded whatever the budget.
PIECE = 1 << 20


def choosing(pi: Policy) -> Chooser:
    """The function (states [n], rng) -> pairs [n] drawn from π."""
    if pi.rows is not None:
        rows = pi.rows
        return lambda states, _: rows[states]
    tables = alias_table(pi.averaging())

    def draw(states: IntArray, rng: np.random.Generator) -> IntArray:
        index = np.ascontiguousarray(states, dtype=pi.pairs.first.dtype)
        out = np.empty_like(index)
        kernels.sampling.columns(*tables, unsigned(index), rng.random(len(index)), unsigned(out))
        return out

    return draw


def anything(pairs: Pairs) -> Chooser:
    """The uniform policy, as a function (states, rng) -> pairs."""
    first, counts = pairs.first, pairs.counts

    def draw(states: IntArray, rng: np.random.Generator) -> IntArray:
        return first[states] + (rng.random(len(states)) * counts[states]).astype(first.dtype)

    return draw


def starts(nu: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """n states drawn from ν."""
    ends = np.cumsum(nu)
    return np.searchsorted(ends, rng.random(n) * ends[-1], side="right").astype(np.int64)


def sums(index: IntArray, numbers: FloatArray, n: int) -> FloatArray:
    """The sum of the numbers that share an index [n]."""
    return np.bincount(index, weights=numbers, minlength=n).astype(np.float64, copy=False)


def returns(problem: Problem, rows: IntArray, choose: Chooser, rng: np.random.Generator) -> FloatArray:
    """An unbiased sample of q^π at each of the given pairs [n], by one walk each."""
    total, ahead = np.zeros(len(rows)), problem.gamma * problem.v
    who = np.arange(len(rows))
    while len(who):
        r, states = problem.sample(rows, rng)
        total[who] += r + ahead[states]
        on = (rng.random(len(who)) < problem.gamma) & ~problem.terminal[states]
        who, states = who[on], states[on]
        total[who] -= problem.v[states]
        rows = choose(states, rng)
    return total


def discounted(problem: Problem, rows: IntArray, choose: Chooser, horizon: int, rng: np.random.Generator) -> FloatArray:
    """The discounted reward of the first `horizon` steps from each of the given pairs [n]: a little biased, far less noisy."""
    total = np.zeros(len(rows))
    who: IntArray = np.arange(len(rows))
    weight = 1.0
    for _ in range(horizon):
        r, states = problem.sample(rows, rng)
        total[who] += weight * r
        weight *= problem.gamma
        on = ~problem.terminal[states]
        who, rows = who[on], choose(states[on], rng)
    return total


class Steps(NamedTuple):
    """Whole walks from ν under one policy: the pair of each step, and the reward that followed from there on."""

    rows: IntArray
    to_go: FloatArray


def walks(problem: Problem, nu: FloatArray, choose: Chooser, samples: int, rng: np.random.Generator) -> Steps:
    """About `samples` steps of walks that start from ν and end with probability 1-gamma after each step.

    Every walk is finished, so that none of the returns is cut short: the number of steps is `samples` on average.
    """
    n = max(1, round(samples * (1.0 - problem.gamma)))
    who: IntArray = np.arange(n)
    states = starts(nu, n, rng)
    passed: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = []
    v = problem.v
    while len(who):
        rows, here = choose(states, rng), v[states]
        r, states = problem.sample(rows, rng)
        passed.append((who, rows, here, r + problem.gamma * v[states] - here))
        on = (rng.random(len(who)) < problem.gamma) & ~problem.terminal[states]
        who, states = who[on], states[on]
    ahead = np.zeros(n)
    to_go: list[FloatArray] = []
    for who, _, here, gain in reversed(passed):
        ahead[who] += gain
        to_go.append(here + ahead[who])
    return Steps(np.concatenate([rows for _, rows, _, _ in passed]), np.concatenate(to_go[::-1]))


class Empirical(NamedTuple):
    """What a batch says about each origin (pair or state): how often it was seen, its mean reward, and its successors P."""

    counts: IntArray
    r: FloatArray
    P: sp.csr_array

    @property
    def seen(self) -> IntArray:
        """The origins that were seen at all."""
        return np.flatnonzero(self.counts)


def explore(problem: Problem, nu: FloatArray, samples: int, rng: np.random.Generator) -> Empirical:
    """What `samples` transitions of walkers that start from ν and try actions at random say about each pair.

    Pairs are tried in proportion to how the uniform policy visits them from ν within the problem's own horizon; with κ = 0 that
    is ν itself.
    """
    gathered = _Gathered(problem.pairs.n_pairs, problem.n_states)
    for _, rows, r, following in _transitions(problem, nu, anything(problem.pairs), samples, rng):
        gathered.add(rows, r, following)
    return gathered.empirical()


def follow(problem: Problem, pi: Policy, nu: FloatArray, samples: int, rng: np.random.Generator) -> Empirical:
    """What `samples` transitions of walkers that start from ν and follow π say about each state: counts [S], r [S], P [S, S]."""
    gathered = _Gathered(problem.n_states, problem.n_states)
    for states, _, r, following in _transitions(problem, nu, choosing(pi), samples, rng):
        gathered.add(states, r, following)
    return gathered.empirical()


def _transitions(
    problem: Problem, nu: FloatArray, choose: Chooser, samples: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray, FloatArray, IntArray]]:
    """Exactly `samples` transitions in pieces (states, pairs, rewards, next states); walkers begin anew with probability 1-gamma.

    There are so few walkers that each lives about 32 horizons, lest the first steps weigh too much.
    """
    n = min(samples, max(64, int(np.clip(samples * (1.0 - problem.gamma) / 32.0, 1, PIECE))))
    states = starts(nu, n, rng)
    parts: list[tuple[IntArray, IntArray, FloatArray, IntArray]] = []
    held, left = 0, samples
    while left > 0:
        states = states[:left]
        rows = choose(states, rng)
        r, following = problem.sample(rows, rng)
        parts.append((states, rows, r, following))
        held += len(rows)
        left -= len(rows)
        anew = (rng.random(len(rows)) >= problem.gamma) | problem.terminal[following]
        states = np.array(following, dtype=np.int64)
        states[anew] = starts(nu, int(anew.sum()), rng)
        if held >= PIECE or left == 0:
            s, rows, r, following = (np.concatenate(column) for column in zip(*parts, strict=True))
            yield s, rows, r, following
            parts.clear()
            held = 0


def everywhere(problem: Problem, n: int, rng: np.random.Generator) -> Empirical:
    """n samples of every pair; a terminal state is known to stay where it is with reward zero and costs none."""
    pairs = problem.pairs
    L, S, states = pairs.n_pairs, pairs.n_states, pairs.states
    ends = problem.terminal[states]
    live, dead = np.flatnonzero(~ends), np.flatnonzero(ends)
    r = np.zeros(L)
    blocks: list[sp.csr_array] = []
    width = max(1, PIECE // n)
    for begin in range(0, len(live), width):
        rows = live[begin : begin + width]
        reward, following = problem.sample(np.repeat(rows, n), rng)
        r[rows] = reward.reshape(-1, n).mean(axis=1)
        index = np.arange(0, len(following) + 1, n, dtype=following.dtype)
        block = sp.csr_array((np.ones(len(following)), following, index), shape=(len(rows), S))
        block.sum_duplicates()
        block.data /= n
        blocks.append(block)
    if len(dead):
        blocks.append(sp.csr_array((np.ones(len(dead)), (np.arange(len(dead)), states[dead])), shape=(len(dead), S)))
    P = sp.csr_array(sp.vstack(blocks, format="csr"))
    if len(dead):
        P = P[np.argsort(np.concatenate([live, dead]))]
    return Empirical(np.full(L, n), r, P)


class _Gathered:
    """Counts and sums of transitions, added piece by piece."""

    def __init__(self, n: int, n_states: int) -> None:
        self.shape = (n, n_states)
        self.counts = np.zeros(n, dtype=np.int64)
        self.total = np.zeros(n)
        self.moves: Any = sp.csr_array(self.shape)

    def add(self, origins: IntArray, r: FloatArray, following: IntArray) -> None:
        n = self.shape[0]
        self.counts += np.bincount(origins, minlength=n)
        self.total += sums(origins, r, n)
        self.moves = self.moves + sp.csr_array((np.ones(len(origins)), (origins, following)), shape=self.shape)

    def empirical(self) -> Empirical:
        often = np.maximum(self.counts, 1)
        P = sp.csr_array(self.moves)
        P.data = P.data / np.repeat(often, np.diff(P.indptr))
        return Empirical(self.counts, self.total / often, P)
