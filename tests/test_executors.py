"""Every executor answers every task, whatever happens to one of them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tightrope.errors import NoWorkers, TaskFailed
from tightrope.executors import Failed, LocalProcesses, ThisProcess, answers
from toy_tasks import Unreadable, act


@pytest.mark.parametrize("executor", [ThisProcess(), LocalProcesses(1), LocalProcesses(2)], ids=repr)
def test_answers_come_in_the_order_of_the_tasks(executor):
    assert answers(executor, act, list(range(7))) == list(range(7))
    assert answers(executor, act, []) == []
    with pytest.raises(TaskFailed, match=r"task 1 of 3 failed: ValueError: as asked \(toy_tasks.py, line \d+\)") as caught:
        answers(executor, act, [0, "raise", 2])
    assert "in act" in caught.value.trace


def test_a_worker_that_dies_costs_its_task_only():
    tasks = [0, "raise", 2, "die", "keep to yourself", 5, "leave", Unreadable(), 8]
    found = dict(LocalProcesses(2).run(act, tasks))
    reasons = {index: found.pop(index) for index in (1, 3, 4, 6, 7)}
    assert found == {0: 0, 2: 2, 5: 5, 8: 8}
    assert all(isinstance(reason, Failed) for reason in reasons.values())
    assert "ValueError: as asked" in reasons[1].reason
    assert reasons[3].reason == "its worker process was killed by signal 9 (Killed); is there enough memory?"
    assert "pickle" in reasons[4].reason
    assert reasons[6].reason == "its worker process ended with exit code 3"
    assert "invalid literal for int" in reasons[7].reason


def test_a_function_that_workers_cannot_import_fails_every_task(monkeypatch):
    monkeypatch.setattr(act, "__module__", "nowhere")
    monkeypatch.setitem(sys.modules, "nowhere", sys.modules["toy_tasks"])
    found = dict(LocalProcesses(1).run(act, [1, 2]))
    assert [found[index].reason.startswith("ModuleNotFoundError: No module named 'nowhere'") for index in (0, 1)] == [True, True]


def test_closing_early_stops_what_runs():
    begun = time.monotonic()
    with closing(LocalProcesses(2).run(act, [0, "wait", "wait"])) as found:
        assert next(found) == (0, 0)
    assert time.monotonic() - begun < 30


def test_workers_have_one_thread_and_the_parent_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert set(answers(LocalProcesses(1), act, ["threads"])[0].values()) == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_script_without_a_guard_is_told_so(tmp_path):
    path = tmp_path / "unguarded.py"
    path.write_text("from tightrope.executors import *\nimport math\nprint(answers(LocalProcesses(1), math.sqrt, [1]))\n")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"{NoWorkers.__name__}: a worker process ended with exit code 1 before its first task." in done.stderr
    assert 'if __name__ == "__main__"' in done.stderr
