"""Kernels over ranges of states, on several threads: they release the interpreter lock, so Python's own threads are enough."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Transitions below which a second thread costs more than it brings.
WORTH_IT = 1_000_000


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
    groups = [parts[i : i + share] for i in range(0, len(parts), share)]
    waiting = [_pool(threads - 1).submit(run, group) for group in groups[:-1]]
    try:
        last = run(groups[-1])
    finally:
        wait(waiting)  # somebody who interrupts is not to find arrays that change under their hands
    return [found for group in waiting for found in group.result()] + last


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Threads that wait for work; made at the first large model, kept for the next."""
    return ThreadPoolExecutor(workers, thread_name_prefix="tightrope")


if hasattr(os, "register_at_fork"):  # a forked child has the pool but not its threads, and would wait for them for ever
    os.register_at_fork(after_in_child=_pool.cache_clear)
