"""What solving returns: the policy, what is proved about it, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope import archive, extras
from tightrope.engine.certificate import Certificate
from tightrope.engine.monitor import Monitor, Row, Status
from tightrope.engine.opening import ENGINE, Played
from tightrope.model.pairs import Pairs
from tightrope.model.policy import Policy
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    import os

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray

__all__ = ["Row", "Solution", "Status", "Trace"]


@dataclass(slots=True)
class Trace:
    """One row per iteration; `trace["gap"]` is a column, `trace[3]` a row."""

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, str):
            return np.array([getattr(row, key) for row in self.rows])
        return self.rows[key]

    def to_dataframe(self) -> Any:
        """The trace as a pandas DataFrame (extra `data`)."""
        return extras.pandas().DataFrame(self.rows, columns=Row._fields)


class Account(NamedTuple):
    """What a solution tells."""

    policy: Policy
    certificate: Certificate
    status: Status
    trace: Trace
    algorithm: str
    model: str
    choices: tuple[str, ...]

    @classmethod
    def of(cls, mdp: MDP, algorithm: str, run: Monitor | Played, status: Status) -> Account:
        """That of a finished run."""
        rows, certificate = run.best
        policy = Policy(mdp.pairs, frozen(rows), None)
        return cls(policy, certificate, status, Trace(tuple(run.rows)), algorithm, repr(mdp), tuple(run.choices))


class Solution:
    """A policy with its certificate: lower <= v^π and lower <= v* <= upper, and gap >= max(v* - v^π).

    `converged` is true only when the certified gap is within the tolerance asked for. Running out of time or iterations and
    Ctrl-C are a status, not an exception: the best policy so far comes with its certificate.
    """

    __slots__ = ("__weakref__", "_told")
    #: An account, or what an opening has come to, for which there is one when something of it is first asked for.
    _told: Account | tuple[Any, ...]

    @property
    def account(self) -> Account:
        """All there is to tell, in one tuple."""
        found = self._told
        if not isinstance(found, Account):
            mdp, *played = found
            run = Played.of(*played)
            found = self._told = Account.of(mdp, ENGINE, run, run.status)  # if two threads ask at once, one or the other
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return told, (self.account,)

    @property
    def policy(self) -> Policy:
        """The best policy found."""
        return self.account.policy

    @property
    def certificate(self) -> Certificate:
        """What is proved of it."""
        return self.account.certificate

    @property
    def status(self) -> Status:
        """How the run ended."""
        return self.account.status

    @property
    def trace(self) -> Trace:
        """One row per iteration."""
        return self.account.trace

    @property
    def algorithm(self) -> str:
        """The algorithm as it prints."""
        return self.account.algorithm

    @property
    def model(self) -> str:
        """The model as it prints."""
        return self.account.model

    @property
    def choices(self) -> tuple[str, ...]:
        """What the solver decided on the way, and why."""
        return self.account.choices

    @property
    def converged(self) -> bool:
        """Whether the certified gap is within the tolerance asked for."""
        return self.status is Status.CONVERGED

    @property
    def value(self) -> FloatArray:
        """The best estimate of v* [S]: the middle of both bounds, wrong by at most half the gap."""
        return self.certificate.value

    @property
    def lower(self) -> FloatArray:
        """A certified lower bound on v* and on the value of the policy [S]."""
        return self.certificate.lower

    @property
    def upper(self) -> FloatArray:
        """A certified upper bound on v* [S]."""
        return self.certificate.upper

    @property
    def gap(self) -> float:
        """A certified bound on max(v* - v^π) of the policy."""
        return self.certificate.gap

    @property
    def relative_gap(self) -> float:
        """The gap divided by the value scale max(|lower|, |upper|)."""
        return self.certificate.relative_gap

    @property
    def iterations(self) -> int:
        """How many times the policy was improved."""
        return self.trace.rows[-1].iteration

    @property
    def backups(self) -> int:
        """Rows of P multiplied with a vector, in all."""
        return self.trace.rows[-1].backups

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.trace.rows[-1].seconds

    def explain(self) -> str:
        """What the solver looked at and decided, one sentence a line."""
        return "\n".join(self.choices) if self.choices else f"{self.algorithm} ran as asked; nothing was left to decide."

    def to_dataframe(self) -> Any:
        """A pandas DataFrame (extra `data`) with a row per state: action, value, lower, upper, and names where there are any."""
        pairs = self.policy.pairs
        actions = self.policy.actions
        columns: dict[str, Any] = {"state": np.arange(pairs.n_states), "action": actions}
        if pairs.state_names:
            columns["state_name"] = list(pairs.state_names)
        if pairs.action_names:
            columns["action_name"] = [pairs.action_names[a] for a in actions]
        columns |= {"value": self.value, "lower": self.lower, "upper": self.upper}
        return extras.pandas().DataFrame(columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one .npz file, whole or not at all, without pickle."""
        archive.save(path, "solution", *self.stored())

    def stored(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header and the arrays of a saved solution."""
        pairs, found = self.policy.pairs, self.certificate
        header = {
            "status": self.status.name,
            "algorithm": self.algorithm,
            "model": self.model,
            "choices": self.choices,
            "bounds": [x.hex() for x in (found.low, found.high, found.scale, found.floor)],
            "state_names": pairs.state_names,
            "action_names": pairs.action_names,
        }
        arrays = {
            "first": pairs.first,
            "rows": self.policy.rows,
            "base": found.base,
            "trace": np.array(self.trace.rows, dtype=np.float64),
        }
        return header, arrays if pairs.ids is None else arrays | {"ids": pairs.ids}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Solution:
        """Read a saved solution."""
        header, arrays = archive.load(path, "solution")
        pairs = Pairs.checked(arrays["first"], arrays.get("ids"), header["state_names"], header["action_names"])
        low, high, scale, floor = map(float.fromhex, header["bounds"])
        base = frozen(arrays["base"])
        found = Account(
            Policy.of_rows(pairs, arrays["rows"]),
            Certificate(base, low, high, scale, floor, (float(base.min()), float(base.max()))),
            Status[header["status"]],
            Trace(tuple(trace_rows(arrays["trace"]))),
            header["algorithm"],
            header["model"],
            tuple(header["choices"]),
        )
        return told(found)

    def __repr__(self) -> str:
        plural = "" if self.iterations == 1 else "s"
        head = (
            f"{self.status.name.lower().replace('_', ' ')} in" if self.converged else f"{self.status.value.split(':')[0]} after"
        )
        smallest, largest = self.certificate.range
        return (
            f"{head} {self.iterations} iteration{plural}, gap <= {self.gap:.2g} ({self.relative_gap:.1e} of the value scale), "
            f"{count(self.backups)} backups, {self.seconds:.3g} s\n"
            f"  {self.algorithm}\n  {self.model}\n"
            f"  v* in [{smallest:.6g}, {largest:.6g}]"
        )


def told(what: Account | tuple[Any, ...]) -> Solution:
    """The solution that this is told of; made without arguments, as Python makes objects fastest."""
    solution = Solution()
    solution._told = what  # noqa: SLF001  (its own module)
    return solution


def trace_rows(table: FloatArray) -> list[Row]:
    """Rows of a trace from the numbers they were saved as."""
    return [
        Row(int(n), residual, gap, relative, int(changes), int(backups), seconds)
        for n, residual, gap, relative, changes, backups, seconds in table.tolist()
    ]


def count(n: float) -> str:
    """A large number as people say it: 1.9M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.3g}{letter}"
    return f"{n:g}"
