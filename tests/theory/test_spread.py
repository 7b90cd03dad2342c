"""Concentrability spread over an executor: certified as ever, and the same on every executor."""

import signal

import pytest

from tightrope import theory
from tightrope.errors import TaskFailed
from tightrope.executors import Failed, LocalProcesses, ThisProcess
from tightrope.model.problems import garnet
from tightrope.theory import all_policies


@pytest.fixture(scope="module")
def mdp():
    """Large enough for several batches of targets that the first does not decide."""
    return garnet(900, 3, 3, seed=4, gamma=0.9)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    """More batches than the model would otherwise need; processes need not know, since tasks carry all they need."""
    monkeypatch.setattr(all_policies, "SPREAD", 32)
    monkeypatch.setattr(all_policies, "PILOT", 32)


def asked(found):
    return found.c(2), found.S1, found.S2(), found.S2(3), found.complete


def test_an_executor_agrees_with_the_threads_here(mdp):
    here = theory.concentrability(mdp)
    spread = theory.concentrability(mdp, executor=ThisProcess())
    assert spread.complete
    for one, other in zip(asked(here)[:-1], asked(spread)[:-1], strict=True):
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert other.relative_width <= 1e-3
    assert asked(theory.concentrability(mdp, executor=LocalProcesses(2))) == asked(spread)


class Counting:
    """Tasks run here, until something happens."""

    def __init__(self, event=None):
        self.event, self.tasks = event, 0

    def run(self, function, tasks):
        for index, answer in ThisProcess().run(function, tasks):
            self.tasks += 1
            if self.tasks == 3 and self.event is not None:
                answer = self.event()  # noqa: PLW2901
            yield index, answer


def test_most_targets_become_tasks(mdp):
    executor = Counting()
    assert theory.concentrability(mdp, executor=executor).S1.lower >= 1.0
    assert executor.tasks > 3


def test_ctrl_c_leaves_wider_intervals_that_still_hold(mdp):
    exact = theory.concentrability(mdp).S1
    found = theory.concentrability(mdp, executor=Counting(lambda: signal.raise_signal(signal.SIGINT)))
    wide = found.S1
    assert not found.complete
    assert wide.lower <= exact.lower
    assert wide.upper >= exact.upper


def test_no_time_left_gives_intervals_that_still_hold(mdp):
    exact = theory.concentrability(mdp).S1
    for seconds in (0.0, 1e-3):
        found = theory.concentrability(mdp, executor=Counting(), max_seconds=seconds)
        assert found.S1.lower <= exact.upper
        assert found.S1.upper >= exact.lower
        assert not found.complete


def test_a_failing_task_is_an_error(mdp):
    with pytest.raises(TaskFailed, match="the concentrability of 32 target states failed: broken"):
        theory.concentrability(mdp, executor=Counting(lambda: Failed("broken"))).S1  # noqa: B018
