"""Checkpoints: where a run stands, saved every few minutes, from which any number of ranks can go on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive
from tightrope.cluster import gathering, ranks
from tightrope.cluster.reading import check
from tightrope.errors import InvalidFile
from tightrope.model.policy import Policy
from tightrope.model.validate import frozen
from tightrope.solution import trace_rows

if TYPE_CHECKING:
    from pathlib import Path

    from tightrope.cluster.share import Share
    from tightrope.engine.monitor import Monitor, Row
    from tightrope.model.validate import FloatArray

KIND = "checkpoint"


@dataclass(eq=False)
class Saving:
    """Where the run stands, and when that was last written."""

    share: Share
    monitor: Monitor
    algorithm: str
    path: Path | None
    seconds: float
    v: FloatArray | None = None
    policy: Policy | None = None
    #: How far an evaluation or an inner problem has come; any vector is a fair start for either.
    guess: FloatArray | None = None
    #: Whether `guess` comes from a checkpoint and has not been used yet.
    resumed: bool = False
    last: float = field(default_factory=time.monotonic)

    def due(self) -> bool:
        """Whether it is time to write, by the clock of rank 0."""
        if self.path is None or self.v is None:
            return False
        return bool(self.share.comm.bcast(time.monotonic() - self.last >= self.seconds))

    def write(self) -> None:
        """Replace the checkpoint, whole or not at all."""
        share, rows = self.share, self.monitor.rows
        spread: dict[str, Any] = {"v": self.v}
        if self.guess is not None:
            spread["guess"] = self.guess
        if self.policy is not None and self.policy.mass is not None:
            spread["mass"] = self.policy.mass
        header = {
            "fingerprint": f"{share.whole.fingerprint:016x}",
            "algorithm": self.algorithm,
            "model": repr(share),
            "ranks": share.comm.size,
        }
        assert self.path is not None  # noqa: S101  (`due` says no otherwise)
        gathering.save(share.comm, self.path, KIND, header, spread, {"trace": np.array(rows, dtype=np.float64)})
        self.last = time.monotonic()

    def resume(self) -> bool:
        """Take up the run of a checkpoint, if there is one; another model's or another algorithm's is refused."""
        comm, path = self.share.comm, self.path
        if path is None or not comm.bcast(path.is_file()):
            return False
        with ranks.agreeing(comm):
            found = archive.open_parts(path, KIND)
            if found is None:
                raise InvalidFile(f"{path} is compressed; a checkpoint is not")
            header, members = found
            self._refuse_others(path, header)
        check(comm, path, members)
        with ranks.agreeing(comm):
            begin, end = self.share.begin, self.share.begin + self.share.n_states
            self.v = members["v"].read(path, begin, end)
            if "guess" in members:
                self.guess, self.resumed = members["guess"].read(path, begin, end), True
            shape, trace = members["trace"].shape, members["trace"]
            table = trace._replace(shape=(shape[0] * shape[1],)).read(path, 0, shape[0] * shape[1]).reshape(shape)
        if "mass" in members:
            first = comm.exscan(self.share.n_pairs) or 0
            with ranks.agreeing(comm):
                mass = members["mass"].read(path, first, first + self.share.n_pairs)
            self.policy = Policy(self.share.pairs, None, frozen(mass))
        self._go_on(trace_rows(table))
        return True

    def _refuse_others(self, path: Path, header: dict[str, Any]) -> None:
        remedy = "Name another file, or remove this one."
        if header.get("fingerprint") != f"{self.share.whole.fingerprint:016x}":
            raise InvalidFile(
                f"{path} is a checkpoint of another model, {header.get('model')}; this is {self.share!r}, "
                f"whose numbers differ. {remedy}"
            )
        if header.get("algorithm") != self.algorithm:
            raise InvalidFile(f"{path} is a checkpoint of {header.get('algorithm')}; this run is {self.algorithm}. {remedy}")

    def _go_on(self, rows: list[Row]) -> None:
        """The trace goes on where it was; its last row is made again, by looking at the v it was made from."""
        monitor, last = self.monitor, rows[-1]
        monitor.rows.extend(rows[:-1])
        monitor.backups += last.backups if self.share.comm.rank == 0 else 0
        monitor.earlier(last.seconds)
        monitor.note(f"taken up from a checkpoint after iteration {last.iteration} ({last.seconds:.3g} s)")
