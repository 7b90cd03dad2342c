"""Tasks on a real Dask cluster of worker processes: they answer once each, as they do here, whoever is killed."""

import json
import os
import signal
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tightrope import theory
from tightrope.cli import app
from tightrope.cluster import dask
from tightrope.cluster.dask import Dask
from tightrope.errors import InvalidArgument, MissingExtra, NoWorkers, TaskFailed
from tightrope.executors import Failed, ThisProcess, answers
from tightrope.experiments import records, runner
from tightrope.model.problems import garnet, tightrope
from tightrope.online import OnlineKappaPI, learn_seeds
from tightrope.theory import all_policies
from toy_experiment import EXPERIMENT
from toy_tasks import act

WORKERS = 2


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Where the workers write down what they begin."""
    return tmp_path_factory.mktemp("log") / "begun"


@pytest.fixture(scope="module")
def cluster(log):
    """A scheduler here and workers in processes of their own, which take their time."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'tightrope[dask]'")
    given = {"TOY_LOG": str(log), "TOY_SECONDS": "0.15", "PYTHONPATH": str(Path(__file__).parents[1])}
    with (
        import_module("dask").config.set(dask.SETTINGS),
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=50, env=given
        ) as cluster,
    ):
        yield cluster


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """Workers start slowly on a busy machine."""
    monkeypatch.setattr(dask, "PATIENCE", 60.0)
    monkeypatch.setattr(dask, "LONELY", 120.0)


def made(path):
    """Records without what the clock said."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [[line[part] for part in ("setting", "seed", "result")] for line in lines if "seed" in line]


class Killing:
    """Dask, with the worker that last began a task killed by force after some answers; it counts what is answered."""

    def __init__(self, cluster, log, after):
        self.cluster, self.log, self.after, self.answered = cluster, log, after, Counter()

    def run(self, function, tasks):
        for index, answer in Dask(self.cluster.scheduler_address).run(function, tasks):
            self.answered[index] += 1
            if self.answered.total() == self.after:
                os.kill(int(self.log.read_text().splitlines()[-1].partition(" ")[0]), signal.SIGKILL)
            yield index, answer


def test_a_killed_worker_costs_its_running_tasks_only(cluster, log, tmp_path):
    runner.run(EXPERIMENT, folder=tmp_path / "here", executor=ThisProcess())
    executor = Killing(cluster, log, after=7)
    (ran,) = runner.run(EXPERIMENT, folder=tmp_path / "there", executor=executor)
    assert made(tmp_path / "there" / "toy.jsonl") == made(tmp_path / "here" / "toy.jsonl")
    assert (ran.made, ran.stored.complete) == (30, True)
    assert executor.answered == Counter(range(30))  # nothing lost, nothing twice
    begun = Counter(line.partition(" ")[2] for line in log.read_text().splitlines())
    assert len(begun) == 30
    # The dead worker ran one task, and one more may have been done but not yet fetched from it.
    assert begun.total() - 30 <= 2


def test_a_task_that_raises_and_one_that_kills_every_worker(cluster):
    found = dict(Dask(cluster.scheduler_address).run(act, [0, "raise", "die later", 3]))
    assert (found[0], found[3]) == (0, 3)
    assert found[1].reason.startswith("ValueError: as asked")
    assert isinstance(found[2], Failed)
    assert found[2].reason == "its worker process died, again and again"
    assert list(Dask(cluster.scheduler_address).run(act, [])) == []


def test_workers_with_other_code_are_refused(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "versions", lambda _function: {"code": "0123456789ab"})
    with pytest.raises(
        TaskFailed, match=r"30 of 30 tasks failed.*another version than the run began with \(code 0123456789ab ->"
    ):
        runner.run(EXPERIMENT, folder=tmp_path, executor=Dask(cluster.scheduler_address))
    assert not records.load(EXPERIMENT, tmp_path).entries


def test_concentrability_on_dask(cluster, monkeypatch):
    monkeypatch.setattr(all_policies, "SPREAD", 32)
    mdp = garnet(200, 3, 3, seed=4, gamma=0.9)
    here, there = (theory.concentrability(mdp, executor=each) for each in (ThisProcess(), Dask(cluster.scheduler_address)))
    assert (here.S1, here.S2(), here.c(2)) == (there.S1, there.S2(), there.c(2))
    assert there.complete


def test_seeds_on_dask(cluster):
    mdp, learner = tightrope(1.0, 0.9), OnlineKappaPI(0.5)
    here = learn_seeds(mdp, learner, 5000, 7, seeds=3)
    there = learn_seeds(mdp, learner, 5000, 7, seeds=3, executor=Dask(cluster.scheduler_address))
    for one, other in zip(here, there, strict=True):
        assert one.seed == other.seed
        assert np.array_equal(one.state.q, other.state.q)
        assert np.array_equal(one.trace["loss"], other.trace["loss"])


def test_what_cannot_travel_is_refused(cluster):
    with pytest.raises(InvalidArgument, match="cannot be sent to another process"):
        answers(Dask(cluster.scheduler_address), act, [iter(()), (each for each in ())])


def test_workers_that_are_not_there_or_go_away(cluster, monkeypatch):  # noqa: ARG001  (for its skip)
    import distributed

    monkeypatch.setattr(dask, "LONELY", 0.5)
    with distributed.LocalCluster(n_workers=0, threads_per_worker=4, dashboard_address=":0", silence_logs=50) as few:
        with pytest.raises(
            NoWorkers, match=r"has no workers. Start some with 'dask worker tcp://.* --nworkers auto --nthreads 1'"
        ):
            answers(Dask(few.scheduler_address), act, [1])
        monkeypatch.setattr(dask, "LONELY", 120.0)
        few.scale(1)
        one, other = (Dask(few.scheduler_address).run(act, [1, "wait"]) for _ in range(2))
        assert next(one) == next(other) == (0, 1)
        monkeypatch.setattr(dask, "LONELY", 0.1)
        few.scale(0)
        with pytest.raises(NoWorkers, match=r"all workers of the Dask scheduler at .* are gone"):
            next(one)
    with pytest.raises(NoWorkers, match="went away before all tasks were done"):
        next(other)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "pigeon://127.0.0.1:1"])
def test_nobody_at_the_address(cluster, address, tmp_path):  # noqa: ARG001  (for its skip)
    done = CliRunner().invoke(app, ["experiment", "run", "theorem-1", "--quick", "--dask", address, "--records", str(tmp_path)])
    assert done.exit_code == 2
    assert f"no Dask scheduler answers at {address}" in done.stderr


def test_without_dask_the_command_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = CliRunner().invoke(app, ["experiment", "run", "theorem-1", "--quick", "--dask", "local"])
    assert done.exit_code == 2
    assert "pip install 'tightrope[dask]'" in done.stderr
    with pytest.raises(MissingExtra):
        answers(Dask(), act, [1])
    done = CliRunner().invoke(app, ["experiment", "run", "theorem-1", "--workers", "2", "--dask", "tcp://127.0.0.1:1"])
    assert done.exit_code == 2
