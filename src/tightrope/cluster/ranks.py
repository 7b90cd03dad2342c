"""The processes of an MPI job: how they are found, how they agree, and how they end together."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import MissingExtra, TightropeError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Ranks share the cores of a node already: a library that starts a thread per core in each of them slows all down.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")


class _State:
    """What a signal has asked for."""

    interrupted = False


@cache
def engines() -> tuple[Any, Any]:
    """The modules PETSc and MPI, loaded once, with one thread a rank."""
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    try:
        petsc4py = import_module("petsc4py")
        MPI = import_module("mpi4py.MPI")
    except ImportError:
        raise MissingExtra(
            "petsc4py and mpi4py", "cluster", "; or `make cluster` in a checkout, which also installs PETSc and MPI on Debian"
        ) from None
    petsc4py.init(["tightrope", "-no_signal_handler"])
    PETSc = import_module("petsc4py.PETSc")
    world = MPI.COMM_WORLD
    if world.size > 1:
        sys.excepthook = _end_all
    return PETSc, MPI


def world() -> Any:
    """All ranks of the job."""
    return engines()[1].COMM_WORLD


def _end_all(kind: Any, error: Any, trace: Any) -> None:
    """An error that all ranks agreed on is printed once; one that a single rank met ends the job, or the others would wait."""
    ranks = world()
    if getattr(error, "agreed", False):
        if ranks.rank == 0:
            sys.__excepthook__(kind, error, trace)
            sys.stderr.flush()
        ranks.Barrier()  # mpiexec ends all with the first that leaves: not before it is said what went wrong
        return
    sys.__excepthook__(kind, error, trace)
    sys.stderr.flush()
    if ranks.size > 1:
        ranks.Abort(1)


@contextmanager
def speaking_once() -> Iterator[None]:
    """For a command that all ranks run: an error they agreed on is left to rank 0, the others end quietly.

    With exit code 0, as mpiexec ends all ranks with the first that leaves with another, before rank 0 has said why.
    """
    try:
        yield
    except Exception as error:
        if not getattr(error, "agreed", False):
            _end_all(type(error), error, error.__traceback__)
        if world().rank:
            raise SystemExit(0) from None
        raise


@contextmanager
def agreeing(comm: Any) -> Iterator[None]:
    """Work that may fail on one rank: all ranks then raise the error of the first that did, and nobody waits for ever."""
    mine: BaseException | None = None
    try:
        yield
    except Exception as error:  # noqa: BLE001  (whatever it is, the others must know)
        mine = error
    if getattr(mine, "agreed", False):  # within another such block: all ranks have it already
        raise mine  # type: ignore[misc]
    errors = comm.allgather(None if mine is None else (type(mine) if isinstance(mine, TightropeError) else None, _text(mine)))
    failed = [rank for rank, error in enumerate(errors) if error is not None]
    if not failed:
        return
    rank = failed[0]
    kind, text = errors[rank]
    where = f" (rank {rank} of {comm.size})" if any(error != errors[rank] for error in errors) else ""
    agreed = mine if kind is None and mine is not None and comm.rank == rank else (kind or TightropeError)(f"{text}{where}")
    setattr(agreed, "agreed", True)  # noqa: B010  (for whoever prints it; no error class declares it)
    raise agreed from None


def _text(error: BaseException) -> str:
    return str(error) if isinstance(error, TightropeError) else f"{type(error).__name__}: {error}"


def extremes(comm: Any, low: float, high: float) -> tuple[float, float]:
    """The smallest `low` and the largest `high` of any rank, the same numbers everywhere."""
    both = np.array([-low, high])
    comm.Allreduce(engines()[1].IN_PLACE, both, op=engines()[1].MAX)
    return -float(both[0]), float(both[1])


def total(comm: Any, *counts: float) -> list[float]:
    """Sums over all ranks."""
    sums = np.array(counts, dtype=np.float64)
    comm.Allreduce(engines()[1].IN_PLACE, sums)
    return sums.tolist()


def watch_interrupts() -> None:
    """Ctrl-C asks all ranks to stop after this iteration: raised at once on one of them it would leave the others waiting."""
    _State.interrupted = False
    if world().size > 1 and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda *_: setattr(_State, "interrupted", True))


def interrupted() -> bool:
    """Whether Ctrl-C was pressed on this rank."""
    return _State.interrupted
