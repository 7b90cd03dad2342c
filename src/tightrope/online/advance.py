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
COMPILED, INTERPRETED = 1 << 18, 1 << 10
#: Step sizes that are computed once for all visits.
TABLE = 1 << 16
#: Steps drawn together, and the states a model must have for that to pay.
AHEAD, MANY = 8, 64


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
    """The step sizes of one schedule as the loops want them: the first ones, or for a custom one all up to the visits."""

    def __init__(self, schedule: StepSchedule, rate: Any) -> None:
        self.schedule = schedule
        cheap = schedule.p in {0.0, 1.0} and not schedule.log
        self.values = np.empty(0 if cheap or schedule.function is not None else TABLE)
        kernels.online.tabulate(rate, self.values)

    def up_to(self, n: int) -> FloatArray:
        if self.schedule.function is not None and len(self.values) < n:
            self.values = tabulated(self.schedule, 1, 2 * n + 1)
        return self.values


def advancing(job: Job, run: Run) -> Callable[[int, threading.Event], None]:
    """A function that moves the run, in place, some steps closer to a goal."""
    state, chance, source = run.state, run.chance, job.source
    first = unsigned(state.pairs.first)
    numbers = rule(job.learner, state.gamma, job.restart)
    fast, slow = _Steps(job.learner.fast, numbers.fast), _Steps(job.learner.slow, numbers.slow)

    worth = np.empty(state.pairs.n_states, kernels.online.WORTH)
    kernels.online.appraise(first, numbers.soft, state.table, worth)

    def knowledge(n: int) -> tuple[Any, ...]:
        sizes = (fast.up_to(int(state.pair_visits.max()) + n), slow.up_to(int(state.state_visits.max()) + n))
        return numbers, *sizes, state.table, state.state_visits, worth

    if isinstance(source, ModelSource):
        given, nu = (first, *source.tables, source.mdp.r), job.nu_tables
        together = AHEAD if source.mdp.n_states >= MANY else 1

        def walk(goal: int, _: threading.Event) -> None:
            n = min(COMPILED, goal - run.steps)
            kernels.online.walk(*given, *nu, *knowledge(n), chance.words, chance.place, n, together)

        def follow(goal: int, _: threading.Event) -> None:
            n = min(COMPILED, goal - run.steps)
            kernels.online.follow(*given, source.terminal, *nu, *knowledge(n), chance.words, chance.place, n)

        return walk if job.restart == 1.0 else follow
    if isinstance(source, Log):
        logged = (unsigned(source.states), unsigned(source.rows), source.rewards, unsigned(source.next_states))

        def replay(goal: int, _: threading.Event) -> None:
            n = min(COMPILED, goal - run.steps)
            kernels.online.replay(first, *logged, *knowledge(n), chance.place, n)

        return replay
    return _asking(job, run, source, knowledge)


def _asking(
    job: Job, run: Run, simulator: Source, knowledge: Callable[[int], tuple[Any, ...]]
) -> Callable[[int, threading.Event], None]:
    """As `advancing`, one question to the simulator at a time."""
    state, chance = run.state, run.chance
    first, actions, terminal = unsigned(state.pairs.first), state.pairs.actions, simulator.terminal

    def ask(goal: int, stop: threading.Event) -> None:
        n = min(INTERPRETED, goal - run.steps)
        known = knowledge(n)
        for _ in range(n):
            if stop.is_set():
                return
            s, row = kernels.online.propose(first, *job.nu_tables, known[0], state.table, chance.words, chance.place)
            r, following = simulator.sample_one(int(s), int(actions[row]), chance.generator)
            kernels.online.accept(first, np.uint64(s), np.uint64(row), r, np.uint64(following), terminal, *known, chance.place)

    return ask
