"""Where independent tasks run: a seam, the processes of this machine, and this very process.

What a task answers is a function of the task alone, so that every executor gives the same answers.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Protocol

from tightrope.errors import InvalidArgument, NoWorkers, TaskFailed
from tightrope.kernels.team import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from multiprocessing.connection import Connection

#: One thread of linear algebra a worker: cores are shared out by tasks, and sums are added in one order whatever their number.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True)
class Failed:
    """The answer of a task that raised, or whose worker died: why, in one line, and the traceback if there is one."""

    reason: str
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """What an exception says, and the place where it was raised."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""  # noqa: PTH119
        return cls(f"{type(error).__name__}: {error}{place}", "".join(traceback.format_exception(error)))


class Executor(Protocol):
    """Somewhere to run independent tasks."""

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Generator[tuple[int, Any]]:
        """function(task) for every task: the task's index and its answer, in the order in which they finish.

        Other processes must be able to import `function` (or what it is a partial of). A task that fails answers `Failed`
        and costs no other task. Closing the iterator early, as an error or Ctrl-C in the caller does, stops what still runs.
        """


def answers(executor: Executor, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
    """function(task) for every task, in order; the first that fails raises `TaskFailed` and stops the others."""
    done: list[Any] = [None] * len(tasks)
    with closing(executor.run(function, tasks)) as found:
        for index, each in found:
            if isinstance(each, Failed):
                raise TaskFailed(f"task {index} of {len(tasks)} failed: {each.reason}", each.trace)
            done[index] = each
    return done


def answer(function: Callable[[Any], Any], task: Any) -> Any:
    """function(task), or `Failed`."""
    try:
        return function(task)
    except Exception as error:  # noqa: BLE001  (whatever goes wrong belongs to this task alone)
        return Failed.of(error)


def unsendable(error: Exception) -> InvalidArgument:
    """What to say of a function or a task that cannot be pickled."""
    return InvalidArgument(
        f"this cannot be sent to another process: {error}. Functions must be importable by name, not lambdas or local ones."
    )


@dataclass(frozen=True)
class ThisProcess:
    """One task after the other, here: for a debugger, and for work too small for processes."""

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Generator[tuple[int, Any]]:
        """As `Executor` says, in the order of the tasks."""
        for index, task in enumerate(tasks):
            yield index, answer(function, task)


@dataclass(frozen=True)
class LocalProcesses:
    """Worker processes of this machine, each with one thread; None starts one for every core.

    Workers are spawned, not forked, because compiled code and threads do not survive a fork. A script that uses them
    therefore needs `if __name__ == "__main__":` around what it runs.
    """

    workers: int | None = None

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Generator[tuple[int, Any]]:
        """As `Executor` says; a worker that dies fails its task and is replaced."""
        waiting = iter(range(len(tasks)))
        team: list[_Worker] = []
        try:
            team += [_Worker() for _ in range(min(self.workers or cores(), len(tasks)))]
            while busy := {worker.connection: worker for worker in team if not worker.connection.closed}:
                for connection in wait(list(busy)):
                    worker = busy[connection]  # type: ignore[index]  # only connections are waited for
                    index, found = worker.task, worker.hear()
                    if not worker.process.is_alive() and isinstance(found, Failed):
                        worker.end()
                        team[team.index(worker)] = _Worker()
                    elif (following := next(waiting, None)) is None:
                        worker.dismiss()
                    else:
                        worker.give(following, *([function] if index is None else []), tasks[following])
                    if index is not None:
                        yield index, found
        finally:
            for worker in team:
                worker.end()


class _Worker:
    """A process at the other end of a pipe: it says that it is ready, then answers one task after the other."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _calm():
            self.process.start()
        theirs.close()
        self.task: int | None = None

    def give(self, task: int, *messages: Any) -> None:
        """Hand over a task, the first one after the function; if the worker is dead, `hear` will find out."""
        self.task = task
        try:
            for message in messages:
                self.connection.send(message)
        except (PicklingError, AttributeError, TypeError) as error:
            raise unsendable(error) from error
        except (BrokenPipeError, ConnectionResetError):
            pass

    def hear(self) -> Any:
        """The answer to the task, or "ready" from a new worker."""
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
        code = self.process.exitcode or 0
        how = f"was killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with exit code {code}"
        if self.task is None:
            raise NoWorkers(
                f"a worker process {how} before its first task. A script that starts workers needs "
                "'if __name__ == \"__main__\":' around what it runs."
            )
        return Failed(f"its worker process {how}" + ("; is there enough memory?" if code == -signal.SIGKILL else ""))

    def dismiss(self) -> None:
        """Let an idle worker go home."""
        self.connection.close()

    def end(self) -> None:
        """Wait for the process to be gone; one that was not dismissed is stopped."""
        if not self.connection.closed:
            self.connection.close()
            self.process.kill()
        self.process.join()


def _work(connection: Connection) -> None:
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who ends its workers
    os.environ["NUMBA_NUM_THREADS"] = "1"
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent has closed its end
        connection.send("ready")
        function = _received(connection)
        while True:
            task = _received(connection)
            broken = next((part for part in (function, task) if isinstance(part, Failed)), None)
            found = answer(function, task) if broken is None else broken
            try:
                connection.send(found)
            except (PicklingError, AttributeError, TypeError) as error:
                connection.send(Failed.of(error))


def _received(connection: Connection) -> Any:
    """What the parent sent, or `Failed` if this process cannot make sense of it, as with a function it cannot import."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        raise
    except Exception as error:  # noqa: BLE001  (unpickling runs what it finds)
        return Failed.of(error)


def _leave_with_parent() -> None:
    """End at once when the parent is gone, or killed, instead of finishing a task that nobody waits for."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _calm() -> Iterator[None]:
    """Around the start of a worker: single-threaded from its first import, deaf to Ctrl-C before it can ignore it."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text
        if held is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
