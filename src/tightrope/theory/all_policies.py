"""c(i) over all sequences of policies: exactly, in blocks of target states, with certified bounds on every later term."""

from __future__ import annotations

import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import kernels, progress
from tightrope.errors import TaskFailed
from tightrope.executors import Failed
from tightrope.kernels import unsigned
from tightrope.kernels.bounds import EPS
from tightrope.theory.interval import Interval
from tightrope.theory.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tightrope.executors import Executor
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray
    from tightrope.theory.support import Support

#: Target states a thread works on at once: wide enough for vector instructions, narrow enough for the cache.
BLOCK = 32
#: Target states that are worked on before all others.
PILOT = 64
#: Target states of one task, where an executor spreads them over processes or machines.
SPREAD = 256
#: Most steps between two looks at what is left to do.
STRIDE = 16


@dataclass(frozen=True)
class Effort:
    """How much work a coefficient is worth.

    Args:
        rtol: the relative width asked for.
        threads: how many cores to use (None: all this process may use); the result does not depend on it.
        memory: bytes for the reach probabilities; more target states than fit are worked on in batches.
        max_seconds: give up after this long, with wider intervals.
        executor: where batches of target states are worked on (None: here). All executors give the same intervals, which may
            differ from those made here within `rtol`, because here a batch learns from those before it.
    """

    rtol: float = 1e-3
    threads: int | None = None
    memory: int = 2**29
    max_seconds: float | None = None
    executor: Executor | None = None

    @property
    def workers(self) -> int:
        """How many threads to start."""
        if self.threads is not None:
            return self.threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class Reduced:
    """The part of a model that walks from μ can meet, as arrays for the kernel, and 1/ν there (0 where ν = 0)."""

    arrays: tuple[Any, ...]
    mu: FloatArray
    per_nu: FloatArray
    gamma: float
    width: int
    slip: float

    @classmethod
    def of(cls, mdp: MDP, mu: FloatArray, nu: FloatArray, support: Support) -> Reduced:
        """Drop what no walk from μ can meet: smaller, and the worst start state is then one that matters."""
        P, first, keep = mdp.P, mdp.first, support.reachable
        if not keep.all():
            counts = mdp.pairs.counts[keep]
            P = sp.csr_array(P[np.repeat(keep, mdp.pairs.counts)][:, np.flatnonzero(keep)])
            P.sort_indices()
            first = np.concatenate(([0], np.cumsum(counts))).astype(first.dtype)
        here = nu[keep]
        per_nu = np.divide(1.0, here, out=np.zeros_like(here), where=here > 0.0)
        arrays = (unsigned(P.indptr), unsigned(P.indices), P.data, unsigned(first))
        return cls(arrays, mu[keep], per_nu, mdp.gamma, mdp.width, mdp.slack + mdp.width * EPS)

    def first_term(self) -> float:
        """c(0) = max(1, max μ/ν)."""
        return max(1.0, float((self.mu * self.per_nu).max()))

    def promise(self) -> FloatArray:
        """A bound on every target's later terms [S]: its largest one-step probability over ν."""
        top = np.empty(len(self.mu))
        kernels.theory.largest_entries(self.arrays[1], self.arrays[2], top)
        return top * self.per_nu


def all_terms(reduced: Reduced, effort: Effort, excess: Callable[[Terms], float]) -> tuple[Terms, bool]:
    """c(0), c(1), ... until excess(terms) <= 1, and whether that was reached (False: out of time, or interrupted).

    U_0 = I, U_{j+1}[x,s] = max_a Σ_y P(y|x,a) U_j[y,s], c(i) = max(1, max_s (μ U_i)[s]/ν[s]) (Definition 3). Since
    max_x U_j falls and min_x U_j rises with j, every later term is bracketed; a target whose upper bracket lies below what
    others guarantee is dropped.
    """
    promise = reduced.promise()
    order = np.argsort(-promise, kind="stable")
    order = order[promise[order] > 1.0]
    size = max(BLOCK, int(effort.memory // (16 * len(reduced.mu))))
    size = size if effort.executor is None else min(size, SPREAD)
    # The most promising targets go first and alone: what they guarantee lets most of the others be dropped early.
    cuts = [0, *range(min(PILOT, size), len(order), size), len(order)]
    batches = [order[i:j] for i, j in itertools.pairwise(cuts) if i < j]
    deadline = np.inf if effort.max_seconds is None else time.monotonic() + effort.max_seconds
    found, finished = _flat(reduced, Interval(1.0, 1.0)), True
    with ThreadPoolExecutor(effort.workers) as pool, progress.bar("concentrability", len(order)) as bar:
        for batch in batches if effort.executor is None else batches[:1]:
            tail = Interval(1.0, float(promise[batch[0]]))
            if tail.upper <= _floor(found, 1):
                break
            if finished:  # the widths of the batches add up, so each gets its share
                part, finished = _batch(reduced, batch, tail, found, pool, deadline, 1.0 / len(batches), excess, bar)
            else:  # what is left is known by its promise only
                part = _flat(reduced, tail)
            found = _combined(found, part)
        if effort.executor is not None and finished:
            rest = [(batch, Interval(1.0, float(promise[batch[0]]))) for batch in batches[1:]]
            rest = [(batch, tail) for batch, tail in rest if tail.upper > _floor(found, 1)]
            alone = partial(_alone, reduced, found, effort.max_seconds, 1.0 / len(batches), excess)
            found, finished = _spread(reduced, effort.executor, alone, rest, found, deadline, bar)
        elif effort.executor is not None and len(batches) > 1:
            found = _combined(found, _flat(reduced, Interval(1.0, float(promise[batches[1][0]]))))
    return _rounded(found, reduced.width), finished


def _spread(
    reduced: Reduced,
    executor: Executor,
    alone: Callable[[tuple[IntArray, Interval]], tuple[Terms, bool]],
    batches: Sequence[tuple[IntArray, Interval]],
    found: Terms,
    deadline: float,
    bar: progress.Bar,
) -> tuple[Terms, bool]:
    """The terms of all batches, and of those found before; a batch without an answer in time is known by its promise only."""
    left = dict(enumerate(batches))
    finished = True
    with suppress(KeyboardInterrupt), closing(executor.run(alone, batches)) as answers:
        for index, answer in answers:
            targets, _ = left.pop(index)
            if isinstance(answer, Failed):
                raise TaskFailed(f"the concentrability of {len(targets)} target states failed: {answer.reason}", answer.trace)
            found, finished = _combined(found, answer[0]), finished and answer[1]
            bar.advance(len(targets))
            if time.monotonic() >= deadline:
                break
    for _, tail in left.values():
        found = _combined(found, _flat(reduced, tail))
    return found, finished and not left


def _alone(
    reduced: Reduced,
    others: Terms,
    seconds: float | None,
    share: float,
    excess: Callable[[Terms], float],
    batch: tuple[IntArray, Interval],
) -> tuple[Terms, bool]:
    """One batch in a process of its own, with one thread."""
    deadline = np.inf if seconds is None else time.monotonic() + seconds
    with ThreadPoolExecutor(1) as pool, progress.bar("", None, show=False) as bar:
        return _batch(reduced, *batch, others, pool, deadline, share, excess, bar)


def _batch(
    reduced: Reduced,
    targets: IntArray,
    tail: Interval,
    others: Terms,
    pool: ThreadPoolExecutor,
    deadline: float,
    share: float,
    excess: Callable[[Terms], float],
    bar: progress.Bar,
) -> tuple[Terms, bool]:
    """The terms of some targets, ever later ones until their own uncertainty is small beside what all targets guarantee."""
    known = [np.array([reduced.first_term()])]
    blocks = _blocks(np.arange(len(reduced.mu)), targets)
    steps = 1
    while True:
        terms = np.concatenate(known)
        own = Terms(reduced.gamma, terms, terms, tail, reduced.slip)
        if not blocks or excess(_raised(own, others)) <= share:
            return own, True
        if time.monotonic() >= deadline:
            return own, False
        try:
            answers = list(pool.map(partial(_advance, reduced, steps), [block[1] for block in blocks]))
        except KeyboardInterrupt:
            return own, False
        n = len(terms) + steps
        per_nu = [reduced.per_nu[block[0]] for block in blocks]
        # A dropped target never exceeds the floor it was dropped at, and the floor is a target's own value or still in the race.
        known.append(
            np.maximum(tail.lower, np.max([(a[0] * w).max(axis=1) for a, w in zip(answers, per_nu, strict=True)], axis=0))
        )
        lower = max(tail.lower, *(float((a[2] * w).max()) for a, w in zip(answers, per_nu, strict=True)))
        floor = max(lower, _floor(others, n))
        kept = [a[1] * w > floor for a, w in zip(answers, per_nu, strict=True)]
        upper = max(float((a[1] * w).max()) for a, w in zip(answers, per_nu, strict=True))
        tail = Interval(lower, max(lower, min(upper, tail.upper)))
        before = sum(len(block[0]) for block in blocks)
        blocks = _kept(blocks, kept)
        bar.advance(before - sum(len(block[0]) for block in blocks), f"{n} terms")
        steps = min(2 * steps, STRIDE)


def _advance(reduced: Reduced, steps: int, U: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`steps` further steps of one block in place: μU of each [steps, B], and max_x, min_x of the last [B]."""
    reached, top, bottom = np.empty((steps, U.shape[1])), np.empty(U.shape[1]), np.empty(U.shape[1])
    kernels.theory.reach(*reduced.arrays, reduced.mu, U, reached, top, bottom)
    return reached, top, bottom


def _blocks(states: IntArray, targets: IntArray) -> list[tuple[IntArray, FloatArray]]:
    """Targets in blocks, each with its columns of the identity."""
    parts = [targets[i : i + BLOCK] for i in range(0, len(targets), BLOCK)]
    return [(part, (states[:, None] == part).astype(np.float64)) for part in parts]


def _kept(blocks: list[tuple[IntArray, FloatArray]], kept: list[Any]) -> list[tuple[IntArray, FloatArray]]:
    """The blocks without the targets that were dropped, packed anew once half of them are gone."""
    left = sum(int(k.sum()) for k in kept)
    if left == 0:
        return []
    if 2 * left > sum(len(k) for k in kept):
        return blocks
    targets = np.concatenate([part[k] for (part, _), k in zip(blocks, kept, strict=True)])
    columns = np.concatenate([U[:, k] for (_, U), k in zip(blocks, kept, strict=True)], axis=1)
    cuts = range(0, left, BLOCK)
    return [(targets[i : i + BLOCK], np.ascontiguousarray(columns[:, i : i + BLOCK])) for i in cuts]


def _flat(reduced: Reduced, tail: Interval) -> Terms:
    """Only c(0) known."""
    start = np.array([reduced.first_term()])
    return Terms(reduced.gamma, start, start, tail, reduced.slip)


def _floor(terms: Terms, n: int) -> float:
    """What every term from the n-th on is guaranteed to be at least."""
    return min([terms.tail.lower, *terms.lower[n:].tolist()])


def _padded(terms: Terms, n: int) -> tuple[FloatArray, FloatArray]:
    rest = n - terms.n
    return (
        np.concatenate((terms.lower, np.full(rest, terms.tail.lower))),
        np.concatenate((terms.upper, np.full(rest, terms.tail.upper))),
    )


def _raised(own: Terms, others: Terms) -> Terms:
    """Own terms, raised to what the others guarantee: its width is the uncertainty that own targets bring."""
    n = max(own.n, others.n)
    (low, high), (floor, _) = _padded(own, n), _padded(others, n)
    tail = Interval(max(own.tail.lower, others.tail.lower), max(own.tail.upper, others.tail.lower))
    return Terms(own.gamma, np.maximum(low, floor), np.maximum(high, floor), tail, own.slip)


def _combined(a: Terms, b: Terms) -> Terms:
    """The terms of two sets of targets together: the larger of both."""
    n = max(a.n, b.n)
    lower, upper = (np.maximum(x, y) for x, y in zip(_padded(a, n), _padded(b, n), strict=True))
    return Terms(a.gamma, lower, upper, Interval(max(a.tail.lower, b.tail.lower), max(a.tail.upper, b.tail.upper)), a.slip)


def _rounded(terms: Terms, width: int) -> Terms:
    """Widened by rounding: a product of i rows of non-negative numbers is off by at most about i(width+2) ulps."""
    noise = 2.0 * EPS * (width + 3)
    slip, worst = noise * (np.arange(terms.n) + 1.0), noise * (terms.n + 1.0)
    return Terms(
        terms.gamma,
        np.maximum(1.0, terms.lower * (1.0 - slip)),
        np.maximum(1.0, terms.upper * (1.0 + slip)),
        Interval(max(1.0, terms.tail.lower * (1.0 - worst)), max(1.0, terms.tail.upper * (1.0 + worst))),
        terms.slip,
        noise,
    )
