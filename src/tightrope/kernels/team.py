"""Kernels over ranges of states, on several threads: they release the interpreter lock, so Python's own threads are enough."""

from __future__ import annotations

import itertools
import os
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
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
    jobs = [_Job(run, group) for group in groups]
    for job in jobs:
        _workers(threads - 1).put(job)
    try:
        own = run(last)
    finally:
        _wait_for(jobs)
    for job in jobs:
        if job.error is not None:
            raise job.error
    return [found for job in jobs for found in job.found] + own


class _Job:
    """Parts on their way through another thread."""

    __slots__ = ("done", "error", "found", "group", "over", "run")

    def __init__(self, run: Callable[[Any], list[Any]], group: Any) -> None:
        self.run, self.group, self.done, self.over = run, group, False, Lock()
        self.found: list[Any] = []
        self.error: BaseException | None = None
        self.over.acquire()

    def do(self) -> None:
        """What the thread does."""
        try:
            self.found = self.run(self.group)
        except BaseException as error:  # noqa: BLE001  (whoever waits is told)
            self.error = error
        self.done = True
        self.over.release()


def _wait_for(jobs: list[_Job]) -> None:
    """Wait to the end even if interrupted: nobody is to find arrays that change under their hands."""
    interrupt = None
    for job in jobs:
        while not job.done:
            try:
                job.over.acquire()
            except KeyboardInterrupt as pressed:
                interrupt = pressed
    if interrupt is not None:
        raise interrupt


@cache
def _workers(number: int) -> SimpleQueue[_Job]:
    """Where threads wait for work; made at the first large model, kept for the next.

    A pool of `concurrent.futures` takes 60 microseconds to begin and to end, as long as some sweeps.
    """
    work: SimpleQueue[_Job] = SimpleQueue()
    for _ in range(number):
        Thread(target=_serve, args=(work,), name="tightrope", daemon=True).start()
    return work


def _serve(work: SimpleQueue[_Job]) -> None:
    while True:
        work.get().do()  # without a name: nothing is kept alive until there is more to do


if hasattr(os, "register_at_fork"):  # a forked child has the queue but not its threads, and would wait for them for ever
    os.register_at_fork(after_in_child=_workers.cache_clear)
