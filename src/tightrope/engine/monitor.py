"""What every iterative solver shares: when to stop, what to remember, and one trace row per iteration."""

from __future__ import annotations

import time
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope.engine.room import Room
from tightrope.errors import InvalidArgument
from tightrope.model import validate

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.engine.certificate import Certificate
    from tightrope.model.validate import IntArray

#: Makes a named tuple of a tuple; to call its class takes three times as long, and some models are solved in no time.
new = tuple.__new__

#: Iterations without any progress of the certified gap after which rounding is to blame.
PATIENCE = 60


class Status(Enum):
    """How a run ended; the text tells the user what to do."""

    CONVERGED = "converged: the certified gap is within the tolerance"
    MAX_ITERATIONS = "stopped at max_iterations: the policy is the best so far, with its certificate; raise max_iterations or tol"
    MAX_SECONDS = "stopped at max_seconds: the policy is the best so far, with its certificate; raise max_seconds or tol"
    INTERRUPTED = "interrupted: the policy is the best so far, with its certificate; pass v0=solution.value to go on from here"
    PRECISION = "stopped at the precision of floating point: the gap cannot be certified any smaller; raise tol, or lower gamma"

    def __str__(self) -> str:
        return self.value


class Row(NamedTuple):
    """One iteration: what was reached and what it had cost by then."""

    iteration: int
    #: max |T v - v|
    residual: float
    #: The certified bound on max(v* - v^π).
    gap: float
    #: The gap divided by the value scale.
    relative_gap: float
    #: States whose greedy action differs from the iteration before.
    changes: int
    #: Rows of P multiplied with a vector so far, over all iterations.
    backups: int
    seconds: float


class Tally(NamedTuple):
    """What one process counts in an iteration; where several hold a part of the model each, they add up."""

    changes: int
    backups: int
    seconds: float
    late: bool


class Aim(NamedTuple):
    """The gap between the bounds on v* that a solve is after: tol times the value scale, or atol unless that is negative."""

    tol: float
    atol: float
    #: What rounding allows, as far as it is known yet.
    floor: float = 0.0

    def gap(self, scale: float) -> float:
        """The gap to reach where values are of this size."""
        return max(self.tol * scale if self.atol < 0.0 else self.atol, self.floor)


class Limits:
    """When to stop: a certified gap of tol (relative) or atol (absolute), or a limit on iterations or seconds."""

    __slots__ = ("aim", "atol", "max_iterations", "max_seconds", "tol")

    def __init__(
        self,
        tol: float = 1e-6,
        atol: float | None = None,
        max_iterations: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        if type(tol) is not float or not 0.0 <= tol < inf:
            _check(tol, "tol")
        if atol is not None:
            _check(atol, "atol")
        if max_seconds is not None:
            _check(max_seconds, "max_seconds")
        if max_iterations is not None:
            validate.positive_integer(max_iterations, "max_iterations")
        self.tol, self.atol, self.max_iterations, self.max_seconds = tol, atol, max_iterations, max_seconds
        self.aim = new(Aim, (tol, -1.0 if atol is None else atol, 0.0))

    def goal(self, certificate: Certificate) -> float:
        """The absolute gap that ends the run."""
        return self.tol * certificate.scale if self.atol is None else self.atol


def _check(x: float, name: str) -> None:
    if not 0.0 <= validate.real(x, name) < inf:
        raise InvalidArgument(f"{name} must be a finite number >= 0; found {x!r}")


class Monitor:
    """Decides after every iteration whether to go on, and keeps the best policy so far with its certificate."""

    #: The best policy so far, as the pairs it takes, and what is proved about it; once there is a row.
    best: tuple[IntArray, Certificate]
    backups = 0
    #: Improvements made before the first row.
    ahead = 0
    #: The method that last did best on a chain of this model.
    favourite = "sweep"
    _last: IntArray | None = None
    _stalled = 0
    _mark = inf

    def __init__(
        self,
        limits: Limits,
        on_iteration: Callable[[Row], None] | None = None,
        threads: int | None = None,
        *,
        backend: Any = None,
        room: Room | None = None,
    ) -> None:
        """How many threads may sweep (None: all cores), who computes if not this machine alone, and arrays that steps share."""
        self.limits, self.on_iteration, self.threads, self.backend = limits, on_iteration, threads, backend
        self.room = room or Room()
        self.rows: list[Row] = []
        #: What the solver decided on the way, in words.
        self.choices: list[str] = []
        self._begin = time.perf_counter()
        self.deadline = inf if limits.max_seconds is None else self._begin + limits.max_seconds

    def inner(self, atol: float) -> Monitor:
        """A monitor for an inner problem, with the same deadline."""
        watch = Monitor(Limits(atol=atol), threads=self.threads, backend=self.backend, room=self.room)
        watch.deadline = self.deadline
        return watch

    def earlier(self, seconds: float) -> None:
        """Count time that an earlier part of this run took; limits on time are for this part alone."""
        self._begin -= seconds

    def note(self, sentence: str) -> None:
        """Remember a decision, once."""
        if sentence not in self.choices:
            self.choices.append(sentence)

    def record(self, certificate: Certificate, rows: IntArray, residual: float, *, lasting: bool = False) -> Status | None:
        """Take note of one iteration; a status when the run is over. Arrays that are not `lasting` are copied to survive."""
        now, limits, gap = time.perf_counter(), self.limits, certificate.gap
        changes = len(rows) if self._last is None else int(np.count_nonzero(self._last != rows))
        backups, seconds, late = self.backups, now - self._begin, now >= self.deadline
        if self.backend is not None:
            changes, backups, seconds, late = self.backend.together(Tally(changes, backups, seconds, late))
        n = len(self.rows) + self.ahead
        row = new(Row, (n, residual, gap, certificate.relative_gap, changes, backups, seconds))
        done = gap <= limits.goal(certificate) < inf
        if done:
            self.best = (rows, certificate)
        else:
            self._keep(certificate, rows, lasting=lasting)
        self.rows.append(row)  # whoever interrupts from here on, or in the call, finds the best so far
        if self.on_iteration is not None:
            self.on_iteration(row)
        if done:
            return Status.CONVERGED
        if limits.max_iterations is not None and n >= limits.max_iterations:
            return Status.MAX_ITERATIONS
        if late:
            return Status.MAX_SECONDS
        if self.stuck(certificate, changes):
            return Status.PRECISION
        return None

    def _keep(self, certificate: Certificate, rows: IntArray, *, lasting: bool) -> None:
        """Remember what was reached, if it is the best so far."""
        gap = certificate.gap
        better = self._last is None or gap < self.best[1].gap
        self._stalled += 1
        if gap < 0.9 * self._mark:
            self._stalled, self._mark = 0, gap
        self._last = rows if lasting else rows.copy()
        if better:
            self.best = (self._last, certificate if lasting else certificate.copy())

    def stuck(self, certificate: Certificate, changes: int) -> bool:
        """Whether rounding, not the algorithm, keeps the gap where it is."""
        if certificate.floor >= 0.25 * certificate.gap and not certificate.off_centre:
            return self._stalled > 1 or changes == 0
        return certificate.floor >= 0.01 * certificate.gap and self._stalled >= PATIENCE
