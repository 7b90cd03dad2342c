"""The fastest certified way to the optimum of one MDP: inexact policy iteration that watches itself and changes method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope.engine.certificate import Certificate, certify
from tightrope.engine.choice import NAMES, Choice
from tightrope.engine.monitor import Limits, Monitor, Status
from tightrope.engine.workspace import Workspace
from tightrope.model.policy import Policy

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Optimum:
    """A policy, what is proved about it, and how the run ended."""

    policy: Policy
    certificate: Certificate
    status: Status

    @property
    def value(self) -> FloatArray:
        """The best estimate of v* [S]."""
        return self.certificate.value


def optimal(mdp: MDP, *, tol: float = 1e-6, v0: FloatArray | None = None, monitor: Monitor | None = None) -> Optimum:
    """An optimal policy with a certified relative gap of tol (0: as small as floats allow); a monitor brings its own limits."""
    watch = monitor or Monitor(Limits(tol))
    work = Workspace(mdp, v0, watch.threads)
    choice = Choice(work)
    status: Status | None = None
    method, report, before = None, None, 0.0
    try:
        while True:
            work.look()
            watch.backups += work.take_backups()
            found = certify(mdp, work.u, work.low, work.high)
            status = watch.record(found, work.rows, work.largest)
            if status is not None:
                break
            if found.off_centre:
                work.v, method = found.value, None
                continue
            need = max(watch.limits.goal(found), 2.0 * found.floor) / found.gap
            if method is not None and report is not None:
                choice.learn(method, report, found.gap / before, need)
            method, before = choice.next(), found.gap
            watch.note(NAMES[method])
            report = method(work, need)
    except KeyboardInterrupt:
        if watch.best is None:
            raise
        status = Status.INTERRUPTED
    assert watch.best is not None  # noqa: S101  (the loop ends after a record)
    return Optimum(Policy.of_rows(mdp.pairs, watch.best[0]), watch.best[1], status)
