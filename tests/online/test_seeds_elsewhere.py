"""Seeds on an executor: bit for bit the runs of threads here."""

import signal

import numpy as np
import pytest

from tightrope.errors import InvalidArgument, TaskFailed
from tightrope.executors import Failed, LocalProcesses, ThisProcess
from tightrope.model.problems import tightrope
from tightrope.model.sampler import Simulator
from tightrope.online import OnlineKappaPI, StepSchedule, learn_seeds

LEARNER = OnlineKappaPI(0.5)


def same(one, other):
    """Whether two sets of runs agree in every bit but the times."""
    columns = [name for name in one[0].trace if name != "seconds"]
    return len(one) == len(other) and all(
        a.seed == b.seed
        and a.steps == b.steps
        and np.array_equal(a.state.q, b.state.q)
        and np.array_equal(a.state.q_kappa, b.state.q_kappa)
        and np.array_equal(a.state.policy.weights, b.state.policy.weights)
        and all(np.array_equal(a.trace[name], b.trace[name]) for name in columns)
        for a, b in zip(one, other, strict=True)
    )


def test_an_executor_changes_nothing():
    mdp = tightrope(1.0, 0.9)
    here = learn_seeds(mdp, LEARNER, 5000, 7, seeds=3)
    assert same(here, learn_seeds(mdp, LEARNER, 5000, 7, seeds=3, executor=LocalProcesses(2)))
    assert not same(here, learn_seeds(mdp, LEARNER, 5000, 8, seeds=3, executor=ThisProcess()))


class Stopping:
    """Tasks run here; the second one meets an event."""

    def __init__(self, event):
        self.event = event

    def run(self, function, tasks):
        for index, answer in ThisProcess().run(function, tasks):
            yield index, self.event() if index == 1 else answer


def test_ctrl_c_keeps_the_seeds_that_are_done():
    mdp = tightrope(1.0, 0.9)
    stopped = learn_seeds(mdp, LEARNER, 500, seeds=3, executor=Stopping(lambda: signal.raise_signal(signal.SIGINT)))
    assert [run.steps for run in stopped] == [500, 0, 0]
    assert [run.interrupted for run in stopped] == [False, True, True]
    assert same([stopped[0]], [learn_seeds(mdp, LEARNER, 500, seeds=3)[0]])


def test_what_cannot_run_elsewhere_is_refused():
    mdp = tightrope(1.0, 0.9)
    with pytest.raises(TaskFailed, match=r"seed 0\.1 failed: broken"):
        learn_seeds(mdp, LEARNER, 500, seeds=3, executor=Stopping(lambda: Failed("broken")))
    with pytest.raises(InvalidArgument, match="workers=2 is for threads of this process"):
        learn_seeds(mdp, LEARNER, 500, workers=2, executor=ThisProcess())
    custom = OnlineKappaPI(0.5, fast=StepSchedule(function=lambda n: 1.0 / n))
    with pytest.raises(InvalidArgument, match=r"cannot be sent to another process: .*Functions must be importable by name"):
        learn_seeds(mdp, custom, 500, seeds=2, executor=LocalProcesses(1))
    simulator = Simulator(mdp.pairs, 0.9, lambda *_: (0.0, 0))
    with pytest.raises(InvalidArgument, match="an executor needs a model or a log"):
        learn_seeds(simulator, LEARNER, 500, executor=ThisProcess())
