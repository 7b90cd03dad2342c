"""Loops that run as plain Python at first, and are compiled once that pays.

Numba takes a third of a second to load, as long again to fetch loops from its cache, and seconds to fill the cache. Most small
models are solved in less than that by the very same loops as plain Python. They are compiled when arrays are large, or when
plain Python has taken as long as loading would have, in the middle of a run if need be. Both do the same arithmetic in the same
order, so the bits are the same.
"""

from __future__ import annotations

import sys
import threading
import time
from functools import update_wrapper
from importlib import import_module

import numpy as np

#: Numbers in the arrays of a call beyond which plain Python is not tried: one sweep would take a tenth of a second.
SMALL = 200_000
#: Seconds of plain Python after which loops are compiled.
PATIENCE = 0.4
#: The modules whose loops are decorated with `loop`, each after those that it imports.
MODULES = (
    "bounds",
    "serial",
    "in_place",
    "tridiagonal",
    "band",
    "pruned",
    "alike",
    "spread",
    "graph",
    "rounds",
    "krylov",
    "downstream",
)
#: What loops need of `memory` besides arithmetic; plain Python has them below.
MEMORY = (
    "borrow",
    "prefetch",
    "prefetch_once",
    "row",
    "row_end",
    "in_fours",
    "pass_by",
    "passed_by",
    "announce",
    "announced",
    "give_way",
)

#: What indices are computed in: unsigned and signed machine numbers once compiled.
uint64 = int64 = int


def prefetch(array, index):
    """Ask for array[index] early, once compiled."""


def prefetch_once(array, index):
    """Ask for array[index] early, once compiled, which is read once."""


def row(indptr, l):
    """Where row l begins: indptr[l], or l times indptr where that is how long all rows are, None being one."""
    return l if indptr is None else l * indptr if isinstance(indptr, int) else indptr[l]


def row_end(indptr, k, l):  # noqa: ARG001  (compiled loops need not multiply)
    """Where the row before l ends, having begun at k: where row l begins."""
    return row(indptr, l)


def in_fours(data, k, v, j, n):
    """The sum of data[k + i] v[j + i] for i < n: every fourth product together, and what is left over one by one."""
    first = second = third = fourth = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        first += data[k + i] * v[j + i]
        second += data[k + i + 1] * v[j + i + 1]
        third += data[k + i + 2] * v[j + i + 2]
        fourth += data[k + i + 3] * v[j + i + 3]
    total = (first + third) + (second + fourth)
    for i in range(whole, n):
        total += data[k + i] * v[j + i]
    return total


def borrow(*arrays):
    """The same arrays, which are only counted once compiled."""
    return arrays


def pass_by(array, index, number):
    """array[index] = number, past the caches once compiled."""
    array[index] = number


def passed_by():
    """What has passed the caches by is written, once compiled."""


def announce(progress, number, reached):
    """progress[number] = reached; once compiled, after all that was written before, for whoever sees it on another thread."""
    progress[number] = reached


def announced(progress, number):
    """What was last announced as progress[number]."""
    return progress[number]


def give_way():
    """A moment for others: for whoever shares the core, once compiled."""
    time.sleep(0)


_lock = threading.Lock()


class Loop:
    """One loop, not compiled yet. A call with small arrays runs it as it stands, on numbers and not on NumPy's scalars."""

    #: Seconds of plain Python so far, those of the loops that a loop calls counted once.
    spent = 0.0

    def __init__(self, function):
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *arguments):
        """What the loop returns, compiled or not."""
        if Loop.spent > PATIENCE or sum(a.size for a in arguments if isinstance(a, np.ndarray)) > SMALL:
            compile_loops()
            compiled = getattr(sys.modules[self.function.__module__], self.function.__name__)
            return compiled(*(np.asarray(a) if isinstance(a, memoryview) else a for a in arguments))
        begin, before = time.perf_counter(), Loop.spent
        try:
            return self.function(*(a.data if isinstance(a, np.ndarray) else a for a in arguments))
        finally:
            Loop.spent = max(Loop.spent, before + time.perf_counter() - begin)


loop = Loop


def compile_loops() -> None:
    """From now on every loop is Numba's; a plain one that is running ends so, and the next that it calls is compiled."""
    with _lock:
        if loop is not Loop:
            return
        import numba  # noqa: PLC0415  (what all this is about)

        options = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        compiled = {"loop": numba.njit(**options), "uint64": numba.uint64, "int64": numba.int64}
        memory = import_module("tightrope.kernels.memory")
        compiled |= {name: getattr(memory, name) for name in MEMORY}
        globals().update(compiled)
        for name in MODULES:
            sys.modules.pop(f"tightrope.kernels.{name}", None)
            import_module(f"tightrope.kernels.{name}")
