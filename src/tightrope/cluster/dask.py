"""Many independent tasks on Dask: an executor for clusters of any size, or for a cluster of processes started here."""

from __future__ import annotations

import logging
import socket
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tightrope import extras
from tightrope.errors import NoWorkers
from tightrope.executors import Failed, answer, unsendable
from tightrope.kernels.team import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

#: Instead of an address: start workers on this machine, for this run.
LOCAL = "local"
#: Seconds to wait for a scheduler to answer, and for its first worker.
PATIENCE = 10.0


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
            try:
                # As a task of its own the function travels once to each worker, and is there again after one dies.
                shared = client.submit(_itself, function, pure=False)
                futures = client.map(answer, [shared] * len(tasks), list(tasks), pure=False)
            except (TypeError, AttributeError) as error:
                raise unsendable(error) from error
            index = {future.key: i for i, future in enumerate(futures)}
            try:
                done = extras.distributed().as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
                for future, found in done:
                    if future.cancelled() or client.status != "running":
                        raise NoWorkers(f"the Dask scheduler at {self.address} went away before all tasks were done")
                    failed = future.status == "error"
                    yield index[future.key], Failed(f"{type(found[1]).__name__}: {found[1]}") if failed else found
                    future.release()
            finally:
                if client.status == "running":
                    client.cancel(futures)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """A connection to a scheduler that has a worker."""
        distributed = extras.distributed()
        with ExitStack() as stack:
            scheduler: Any = self.address
            if self.address == LOCAL:
                scheduler = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=self.workers or cores(),
                        threads_per_worker=1,
                        dashboard_address=None,
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
                client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise NoWorkers(
                    f"the Dask scheduler at {self.address} has no workers. Start some with "
                    f"'dask worker {self.address} --nworkers auto --nthreads 1'."
                ) from None
            yield client


def _knock(distributed: Any, address: str) -> None:
    """Raise at once where nobody listens: Dask's own client would keep trying, and complain once more at exit."""
    protocol, place = distributed.comm.parse_address(address)
    distributed.comm.registry.get_backend(protocol)
    if protocol in {"tcp", "tls"}:
        socket.create_connection(distributed.comm.addressing.parse_host_port(place), timeout=PATIENCE).close()


def _itself(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return function
