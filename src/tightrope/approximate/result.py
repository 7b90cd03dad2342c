"""What came of a run: every iterate, what is known about each, on screen and on disk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope import archive, extras
from tightrope.approximate.stored import pack, unpack
from tightrope.approximate.switching import SwitchingPolicy
from tightrope.errors import InvalidArgument
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    import os

    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray


class Status(Enum):
    """How a run ended; the text tells the user what to do."""

    FINISHED = "finished: every iteration asked for was made"
    ONE_CALL = "finished: with kappa=1 the surrogate is the problem itself, and one call of the oracle is the whole algorithm"
    INTERRUPTED = "interrupted: the iterates so far are kept; pass resume=run to go on from here"
    FAILED = "failed: the oracle or the evaluation raised; the iterates so far are kept, pass resume=error.run to go on"

    def __str__(self) -> str:
        return self.value


class Row(NamedTuple):
    """One iteration; nan where the model is not known and nothing can be measured."""

    iteration: int
    #: δ_k = ν(T_κ v - T_κ^π v) of the oracle's answer π.
    delta: float
    #: μ(v* - v^π) of the result so far: π_k, or σ_{κ,k}.
    loss: float
    #: max |v - exact|: how wrong the evaluation is.
    value_error: float
    #: Samples drawn so far, over all iterations.
    samples: int
    #: Seconds in the oracle and the evaluation so far; measuring is not counted.
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What came of an approximate algorithm: every iterate, and what is known about each.

    `policy` is the result: the last policy of κ-API, the `SwitchingPolicy` σ of κ-PSDP. `policies` are π_1, ..., π_k and `pi0`
    what they began with. `value` [S] is the v of the last iteration, as the algorithm knew it. `rows` begins with row 0, before
    the first iteration; `run["loss"]` is a column.
    """

    kappa: float
    pi0: Policy
    policies: tuple[Policy, ...]
    value: FloatArray
    rows: tuple[Row, ...]
    status: Status
    #: Whether the result is made of all policies (κ-PSDP).
    switching: bool
    seed: int
    #: The algorithm as it prints.
    algorithm: str
    #: The model or source as it prints.
    model: str

    @property
    def policy(self) -> Policy | SwitchingPolicy:
        """The result."""
        if self.switching:
            return SwitchingPolicy(self.kappa, self.policies, self.pi0)
        return self.policies[-1] if self.policies else self.pi0

    @property
    def iterations(self) -> int:
        """How many iterations were made."""
        return len(self.policies)

    @property
    def loss(self) -> float:
        """μ(v* - v^π) of the result; nan where the model is not known."""
        return self.rows[-1].loss

    @property
    def delta(self) -> float:
        """The largest δ_k of any iteration: the δ that the performance theorems speak of; nan where the model is not known."""
        return max((row.delta for row in self.rows[1:]), default=math.nan)

    @property
    def samples(self) -> int:
        """Samples drawn in all."""
        return self.rows[-1].samples

    @property
    def seconds(self) -> float:
        """Time spent in the oracle and the evaluation."""
        return self.rows[-1].seconds

    def __getitem__(self, column: str) -> Any:
        if column not in Row._fields:
            raise InvalidArgument(f"there is no column {column!r}; the trace has {', '.join(Row._fields)}")
        return np.array([getattr(row, column) for row in self.rows])

    def to_dataframe(self) -> Any:
        """The trace as a pandas DataFrame (extra `data`), a row per iteration."""
        return extras.pandas().DataFrame(self.rows, columns=Row._fields)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one .npz file, whole or not at all, without pickle."""
        header = {
            "kappa": self.kappa,
            "status": self.status.name,
            "switching": self.switching,
            "seed": self.seed,
            "algorithm": self.algorithm,
            "model": self.model,
        }
        arrays = {"value": self.value, "trace": np.array(self.rows, dtype=np.float64)}
        archive.save(path, "approximate run", header, arrays | pack((self.pi0, *self.policies)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Run:
        """Read a saved run."""
        header, arrays = archive.load(path, "approximate run")
        pi0, *policies = unpack(arrays)
        rows = tuple(
            Row(int(n), delta, loss, error, int(samples), seconds)
            for n, delta, loss, error, samples, seconds in arrays["trace"].tolist()
        )
        return cls(
            header["kappa"],
            pi0,
            tuple(policies),
            frozen(arrays["value"]),
            rows,
            Status[header["status"]],
            header["switching"],
            header["seed"],
            header["algorithm"],
            header["model"],
        )

    def __repr__(self) -> str:
        plural = "" if self.iterations == 1 else "s"
        loss = "not measured" if math.isnan(self.loss) else f"{self.loss:.4g} (began at {self.rows[0].loss:.4g})"
        delta = "not measured" if math.isnan(self.delta) else f"{self.delta:.3g}"
        return (
            f"{self.status.value.split(':')[0]} after {self.iterations} iteration{plural}, loss {loss}, largest delta {delta}, "
            f"{self.samples:,} samples, {self.seconds:.3g} s\n  {self.algorithm}\n  {self.model}"
        )
