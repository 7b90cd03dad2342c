"""Kernels over ranges of states, on several threads: they release the interpreter lock, so Python's own threads are enough."""

from __future__ import annotations

import itertools
import os
from functools import cache
from operator import itemgetter
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Transitions below which a second thread costs more than it brings.
WORTH_IT = 250_000


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def team_size(threads: int | None, nnz: int) -> int:
    """How many threads to use on a model with nnz transitions; None asks for all cores."""
    return 1 if nnz < 2 * WORTH_IT else min(threads or cores(), nnz // WORTH_IT)


def ranges(indptr: Any, first: Any, parts: int) -> list[tuple[int, int]]:
    """Split the states into `parts` ranges of about equally many transitions."""
    shares = [int(indptr[-1]) * i // parts for i in range(1, parts)]
    # Numbers of the arrays' own kinds: anything else would have them converted whole.
    rows = np.searchsorted(indptr, np.array(shares, indptr.dtype))
    ends = [0, *map(int, np.searchsorted(first, rows.astype(first.dtype))), len(first) - 1]
    return [(lo, hi) for lo, hi in itertools.pairwise(ends) if hi > lo]


def each(kernel: Callable[..., Any], arguments: tuple[Any, ...], parts: Sequence[tuple[Any, ...]], threads: int) -> list[Any]:
    """kernel(*arguments, *part) for every part, on up to `threads` threads; results in order.

    A part may wait for those before it: the last of them are this thread's own, so that an interrupt leaves nobody waiting.
    """

    def run(group: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [kernel(*arguments, *part) for part in group]

    if threads == 1 or len(parts) == 1:
        return run(parts)
    share = -(-len(parts) // threads)
    *groups, last = [parts[i : i + share] for i in range(0, len(parts), share)]
    done: SimpleQueue[tuple[int, list[Any], BaseException | None]] = SimpleQueue()
    for number, group in enumerate(groups):
        _workers(threads - 1).put((number, run, group, done))
    try:
        own = run(last)
    finally:  # somebody who interrupts is not to find arrays that change under their hands
        results = sorted((done.get() for _ in groups), key=itemgetter(0))
    for _, _, error in results:
        if error is not None:
            raise error
    return [found for _, group, _ in results for found in group] + own


@cache
def _workers(number: int) -> SimpleQueue[Any]:
    """Where threads wait for work; made at the first large model, kept for the next.

    A pool of `concurrent.futures` takes 60 microseconds to begin and to end, as long as some sweeps.
    """
    work: SimpleQueue[Any] = SimpleQueue()
    for _ in range(number):
        Thread(target=_wait, args=(work,), name="tightrope", daemon=True).start()
    return work


def _wait(work: SimpleQueue[Any]) -> None:
    while True:
        _do(*work.get())  # a call of its own: nothing is kept alive until there is more to do


def _do(number: int, run: Callable[[Any], list[Any]], group: Any, done: SimpleQueue[Any]) -> None:
    try:
        done.put((number, run(group), None))
    except BaseException as error:  # noqa: BLE001  (whoever waits is told)
        done.put((number, [], error))


if hasattr(os, "register_at_fork"):  # a forked child has the queue but not its threads, and would wait for them for ever
    os.register_at_fork(after_in_child=_workers.cache_clear)
