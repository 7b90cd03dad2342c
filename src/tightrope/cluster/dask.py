"""Many independent tasks on Dask: an executor for clusters of any size, or for a cluster of processes started here."""

from __future__ import annotations

import logging
import socket
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from tightrope import extras
from tightrope.errors import NoWorkers
from tightrope.executors import Failed, answer, unsendable
from tightrope.kernels.team import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

#: Instead of an address: start workers on this machine, for this run.
LOCAL = "local"
#: Seconds to wait for a scheduler to answer, and for workers where there are none, at first or later.
PATIENCE, LONELY = 10.0, 30.0
#: For a cluster here: it would dismiss a worker for good that is dead by chance this long after dying before, and let a task
#: that kills its workers kill four of them.
SETTINGS = {"distributed.deploy.lost-worker-timeout": "1000 days", "distributed.scheduler.allowed-failures": 1}
#: Seconds between two looks for answers, and between two for workers.
LOOK, COUNT = 0.005, 2.0


@dataclass(frozen=True)
class Dask:
    """Workers of the Dask scheduler at `address`; "local" starts `workers` processes here, by default one for every core.

    A worker that dies costs the tasks it was running, which Dask gives to others: every task answers exactly once.
    """

    address: str = LOCAL
    workers: int | None = None

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Generator[tuple[int, Any]]:
        """As `Executor` says."""
        if not tasks:
            return
        with self._client() as client:
            # As a task of its own the function travels once to each worker, and is there again after one dies.
            shared = _sent(client.submit, _itself, function)
            suspects = []
            for index, found in self._answered(client, shared, dict(enumerate(tasks))):
                if found is None:
                    suspects.append(index)
                else:
                    yield index, found[0]
            # Dask blames a death on all tasks that were waiting at the worker too: alone, only the guilty fail again.
            for suspect in suspects:
                for index, found in self._answered(client, shared, {suspect: tasks[suspect]}):
                    yield index, found[0] if found is not None else Failed("its worker process died, again and again")

    def _answered(self, client: Any, shared: Any, tasks: dict[int, Any]) -> Generator[tuple[int, tuple[Any] | None]]:
        """The answers as they come, each in a tuple; None for a task whose workers died again and again."""
        distributed = extras.distributed()
        futures = _sent(client.map, answer, [shared] * len(tasks), list(tasks.values()))
        index = {future.key: i for future, i in zip(futures, tasks, strict=True)}
        try:
            done = distributed.as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
            for future, found in self._watched(client, done):
                if future.cancelled() or client.status != "running":
                    raise NoWorkers(f"the Dask scheduler at {self.address} went away before all tasks were done")
                if future.status != "error":
                    yield index[future.key], (found,)
                elif isinstance(found[1], distributed.scheduler.KilledWorker):
                    yield index[future.key], None
                else:
                    yield index[future.key], (Failed.of(found[1]),)
                future.release()
        finally:
            if client.status == "running":
                client.cancel(futures)

    def _watched(self, client: Any, done: Any) -> Iterator[tuple[Any, Any]]:
        """What is done; where Dask would wait for ever because all workers are gone, an error."""
        counted = seen = time.monotonic()
        while not done.is_empty():
            if done.has_ready():
                yield next(done)
                continue
            time.sleep(LOOK)
            now = time.monotonic()
            if now > counted + COUNT and client.status == "running":
                counted, seen = now, now if client.nthreads() else seen
                if now > seen + LONELY:
                    raise NoWorkers(f"all workers of the Dask scheduler at {self.address} are gone, before all tasks were done")

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """A connection to a scheduler that has a worker."""
        distributed = extras.distributed()
        with ExitStack() as stack:
            scheduler: Any = self.address
            if self.address == LOCAL:
                stack.enter_context(import_module("dask").config.set(SETTINGS))
                scheduler = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=self.workers or cores(),
                        threads_per_worker=1,
                        dashboard_address=":0",
                        silence_logs=logging.CRITICAL,
                    )
                )
            try:
                if self.address != LOCAL:
                    _knock(distributed, self.address)
                client = stack.enter_context(distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False))
            except (OSError, ValueError) as error:
                raise NoWorkers(
                    f"no Dask scheduler answers at {self.address} ({error}). Start one with 'dask scheduler', which prints "
                    f"its address, or use '{LOCAL}'."
                ) from None
            try:
                client.wait_for_workers(1, timeout=LONELY)
            except TimeoutError:
                raise NoWorkers(
                    f"the Dask scheduler at {self.address} has no workers. Start some with "
                    f"'dask worker {self.address} --nworkers auto --nthreads 1'."
                ) from None
            yield client


def _sent(submit: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return submit(*arguments, pure=False)
    except (TypeError, AttributeError, PicklingError) as error:
        raise unsendable(error) from error


def _knock(distributed: Any, address: str) -> None:
    """Raise at once where nobody listens: Dask's own client would keep trying, and complain once more at exit."""
    protocol, place = distributed.comm.parse_address(address)
    distributed.comm.registry.get_backend(protocol)
    if protocol in {"tcp", "tls"}:
        socket.create_connection(distributed.comm.addressing.parse_host_port(place), timeout=PATIENCE).close()


def _itself(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return function
