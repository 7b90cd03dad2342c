"""The fastest certified way to the optimum of one MDP: inexact policy iteration that watches itself and changes method."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from tightrope.engine.choice import (
    ANY_ORDER,
    FROM_ENDS,
    IN_ORDER,
    IN_PARTS,
    IN_TIME,
    LED_ALIKE,
    NAMES,
    NEARBY,
    ON_THE_WAY,
    PRUNED,
    Choice,
)
from tightrope.engine.methods import IN_A_ROW
from tightrope.engine.monitor import Limits, Monitor, Status
from tightrope.engine.outline import outline
from tightrope.engine.workspace import Workspace
from tightrope.model.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.engine.certificate import Certificate
    from tightrope.engine.choice import Method
    from tightrope.engine.methods import Report
    from tightrope.engine.sweep import Sweep
    from tightrope.model.mdp import MDP
    from tightrope.model.pairs import Pairs
    from tightrope.model.validate import FloatArray, IntArray


class Optimum(NamedTuple):
    """The pairs a policy takes, what is proved about it, and how the run ended."""

    pairs: Pairs
    rows: IntArray
    certificate: Certificate
    status: Status

    @property
    def policy(self) -> Policy:
        """The policy that takes these pairs."""
        return Policy.of_rows(self.pairs, self.rows)

    @property
    def value(self) -> FloatArray:
        """The best estimate of v* [S]."""
        return self.certificate.value


def optimal(mdp: MDP, *, tol: float = 1e-6, v0: FloatArray | None = None) -> Optimum:
    """An optimal policy with a certified relative gap of tol (0: as small as floats allow)."""
    watch = Monitor(Limits(tol))
    status = optimise(mdp, watch, v0)
    return Optimum(mdp.pairs, *watch.best, status)


def optimise(mdp: MDP, watch: Monitor, v0: FloatArray | None = None, look: Sweep | None = None) -> Status:
    """Solve a model within the limits of the monitor, which has the best that was found.

    `look` is a backup of v0 that was not enough, where there has been one: its u is used up.
    """
    limits = watch.limits
    work = Workspace(mdp, v0, limits.aim, watch.threads, watch.room)
    if look is not None:
        work.take_look(look)
    work.deadline = watch.deadline
    work.improvements = IN_A_ROW if limits.max_iterations is None else 1
    choice = Choice(work)
    done: tuple[Method, Callable[[], Report]] | None = None
    before, earlier = inf, watch.backups
    try:
        if v0 is None or look is not None:  # there is nothing to see yet, or nothing that has not been seen
            watch.ahead = 1
            done = _round(choice, watch)
        while True:
            if not work.looked:
                work.look()
            watch.backups = earlier + work.backups
            found = work.certificate()
            status = watch.record(found, work.rows, max(-work.low, work.high))
            if status is not None:
                break
            if found.off_centre:
                work.v, work.looked, done = found.value, False, None
                continue
            work.aim_at(found)
            if done is not None:
                choice.learn(*done, found.gap / before)
            before = found.gap
            done = _round(choice, watch)
    except KeyboardInterrupt:
        if not watch.rows:  # in the first round: whatever v has come to, a look says what it is worth
            work.look()
            watch.backups = earlier + work.backups
            watch.record(work.certificate(), work.rows, max(-work.low, work.high))
        return Status.INTERRUPTED
    return status


def _round(choice: Choice, watch: Monitor) -> tuple[Method, Callable[[], Report]]:
    """A round of the method that is best now, and what can tell about it."""
    method = choice.next()
    watch.note(NAMES[method])
    tell = method(choice.work)
    if choice.work.chosen > 0:
        watch.note(ON_THE_WAY)
    if choice.work.timed:
        watch.note(IN_TIME)
    elif choice.work.order[0] is not None:
        watch.note(ANY_ORDER if choice.work.scattered else _in_order(choice.work))
    if choice.work.in_parts:
        watch.note(IN_PARTS)
    if choice.work.effort < choice.work.nnz:
        watch.note(LED_ALIKE)
    if choice.work.wide:
        watch.note(PRUNED)
    return method, tell


def _in_order(work: Workspace) -> str:
    """What to say about the order that states are swept in."""
    if work.has_sinks:
        return IN_ORDER
    return NEARBY if outline(work.mdp).ends is None else FROM_ENDS
