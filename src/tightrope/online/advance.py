"""Moving a run forward: the compiled loop for models and logs, a Python loop for simulators, one update for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import kernels
from tightrope.kernels import unsigned
from tightrope.model.sampler import ModelSource
from tightrope.online.learner import rule, tabulated
from tightrope.online.log import Log

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from tightrope.model.mdp import MDP
    from tightrope.model.sampler import Source
    from tightrope.model.validate import FloatArray
    from tightrope.online.learner import Learner
    from tightrope.online.run import Run
    from tightrope.online.schedule import StepSchedule
    from tightrope.online.state import OnlineState

#: Steps between two looks at the clock, at Ctrl-C and at the progress bar: about 30 ms either way.
COMPILED, INTERPRETED = 1 << 17, 1 << 10


@dataclass(frozen=True, eq=False, slots=True)
class Job:
    """What all seeds of one piece of work share, checked: where samples come from, who learns, how long, the truth."""

    source: Source | Log
    learner: Learner
    steps: int
    start: OnlineState
    nu: FloatArray
    nu_tables: tuple[Any, Any]
    restart: float
    model: MDP | None
    v_star: FloatArray | None


class _Steps:
    """The step sizes of one schedule as the loops want them: nothing, or a table that grows with the visits."""

    def __init__(self, schedule: StepSchedule) -> None:
        self.schedule = schedule
        self.values = np.empty(0)

    def up_to(self, n: int) -> FloatArray:
        if self.schedule.function is not None and len(self.values) < n:
            self.values = tabulated(self.schedule, 1, 2 * n + 1)
        return self.values


def advancing(job: Job, run: Run) -> Callable[[int, threading.Event], None]:
    """A function that moves the run, in place, some steps closer to a goal."""
    state, chance, source = run.state, run.chance, job.source
    first = unsigned(state.pairs.first)
    numbers = rule(job.learner, state.gamma, job.restart)
    fast, slow = _Steps(job.learner.fast), _Steps(job.learner.slow)

    def knowledge(n: int) -> tuple[Any, ...]:
        sizes = (fast.up_to(int(state.pair_visits.max()) + n), slow.up_to(int(state.state_visits.max()) + n))
        return numbers, *sizes, state.table, state.state_visits

    def ahead(goal: int, most: int) -> int:
        return min(most, goal - run.steps)

    if isinstance(source, ModelSource):
        given = (*source.tables, source.mdp.r, source.terminal, *job.nu_tables)

        def walk(goal: int, _: threading.Event) -> None:
            n = ahead(goal, COMPILED)
            kernels.online.walk(first, *given, *knowledge(n), chance.words, chance.place, n)

        return walk
    if isinstance(source, Log):
        logged = (unsigned(source.states), unsigned(source.rows), source.rewards, unsigned(source.next_states))

        def replay(goal: int, _: threading.Event) -> None:
            n = ahead(goal, COMPILED)
            kernels.online.replay(first, *logged, *knowledge(n), chance.place, n)

        return replay
    simulator, actions, terminal = source, state.pairs.actions, source.terminal

    def ask(goal: int, stop: threading.Event) -> None:
        n = ahead(goal, INTERPRETED)
        known = knowledge(n)
        for _ in range(n):
            if stop.is_set():
                return
            s, row = kernels.online.propose(first, *job.nu_tables, numbers, state.table, chance.words, chance.place)
            r, following = simulator.sample_one(int(s), int(actions[row]), chance.generator)
            kernels.online.accept(first, np.uint64(s), np.uint64(row), r, np.uint64(following), terminal, *known, chance.place)

    return ask
