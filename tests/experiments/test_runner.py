"""Runs of experiments: killed, resumed, on any number of workers, with broken files and failing tasks."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toy_experiment
from tightrope import experiments
from tightrope.cli import app
from tightrope.errors import InvalidArgument, InvalidFile, OtherVersion, TaskFailed
from tightrope.executors import LocalProcesses, ThisProcess
from tightrope.experiments import records, runner, versions
from tightrope.experiments.experiment import generator
from toy_experiment import EXPERIMENT

TESTS = Path(toy_experiment.__file__).parent


def made(path):
    """Versions and records of a file, without what the clock said."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: part for name, part in line.items() if name not in {"measured", "origin"}} for line in lines]


def script(folder, workers, **environment):
    """The toy experiment running in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, toy_experiment.__file__, str(folder), str(workers)],
        env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_lines(path, count):
    """Wait until this many lines are there."""
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") >= count):
        assert time.monotonic() < deadline, "the run does not get on"
        time.sleep(0.01)


def wait_for_the_end(session):
    """Wait until no process of this session is left."""
    deadline = time.monotonic() + 20
    while subprocess.run(["pgrep", "-s", str(session)], capture_output=True, check=False).stdout:  # noqa: S607
        assert time.monotonic() < deadline, "workers still run"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The file of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    (ran,) = runner.run(EXPERIMENT, folder=folder, executor=ThisProcess())
    assert (ran.made, ran.stored.needed, ran.stored.complete, ran.old) == (30, 30, True, 0)
    return ran.stored.path


def copied(whole, folder, lines):
    """The first lines of a whole file, in another folder."""
    path = folder / whole.name
    path.write_text("".join(whole.read_text().splitlines(keepends=True)[:lines]))
    return path


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_workers_makes_the_same_records(whole, tmp_path, workers):
    runner.run(EXPERIMENT, folder=tmp_path, executor=LocalProcesses(workers))
    assert made(tmp_path / "toy.jsonl") == made(whole)


def test_a_run_killed_with_all_its_workers_goes_on_and_ends_with_the_same_records(whole, tmp_path):
    path = tmp_path / "toy.jsonl"
    for lines in (5, 12):
        running = script(tmp_path, 2, TOY_SECONDS="0.05")
        wait_for_lines(path, lines)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        assert running.returncode == -signal.SIGKILL
    kept = [line for line in path.read_text().splitlines(keepends=True) if '"seed"' in line and line.endswith("\n")]
    assert 9 <= len(kept) < 30
    (ran,) = runner.run(EXPERIMENT, folder=tmp_path, executor=LocalProcesses(2))
    assert ran.made == 30 - len(kept)
    assert made(path) == made(whole)
    # What was there before the kill was not made again: its times are still the same.
    assert set(kept) <= set(path.read_text().splitlines(keepends=True))


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    running = script(tmp_path, 2, TOY_SECONDS="0.4")
    wait_for_lines(tmp_path / "toy.jsonl", 2)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    wait_for_the_end(running.pid)


def test_ctrl_c_keeps_what_was_done_and_leaves_no_worker(whole, tmp_path):
    running = script(tmp_path, 2, TOY_SECONDS="0.1")
    wait_for_lines(tmp_path / "toy.jsonl", 4)
    begun = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: the workers hear it too
    _, said = running.communicate(timeout=20)
    assert time.monotonic() - begun < 15
    assert said.count("KeyboardInterrupt") == 1, said
    wait_for_the_end(running.pid)
    runner.run(EXPERIMENT, folder=tmp_path, executor=ThisProcess())
    assert made(tmp_path / "toy.jsonl") == made(whole)


def test_nothing_is_made_twice_and_a_whole_file_is_not_touched(whole):
    stamp = whole.stat().st_mtime_ns
    (ran,) = runner.run(EXPERIMENT, folder=whole.parent, executor=ThisProcess())
    assert (ran.made, whole.stat().st_mtime_ns) == (0, stamp)


def test_numbers_survive(whole):
    stored = records.load(EXPERIMENT, whole.parent)
    fresh = [toy_experiment.toss(record.setting, record.seed).result for record in stored.records]
    for record, result in zip(stored.records, fresh, strict=True):
        assert record.result["draws"] == result["draws"].tolist()
        assert type(record.result["heads"]) is bool
        assert record.result["odd"] == result["odd"] or (math.isnan(record.result["odd"]) and math.isnan(result["odd"]))
    assert all(
        "NaN" not in line and "Infinity" not in line for line in whole.read_text().splitlines()
    )  # strict readers read it too


def test_quick_and_full_records_never_meet(whole, tmp_path):
    copied(whole, tmp_path, 31)
    (ran,) = runner.run(EXPERIMENT, quick=True, folder=tmp_path, executor=ThisProcess())
    assert (ran.made, ran.stored.path.name) == (4, "toy.quick.jsonl")
    assert (tmp_path / "toy.jsonl").read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_last_line_is_dropped(whole, tmp_path, cut):
    path = copied(whole, tmp_path, 12)
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - cut)
    assert len(records.load(EXPERIMENT, tmp_path).entries) == 10
    (ran,) = runner.run(EXPERIMENT, folder=tmp_path, executor=ThisProcess())
    assert ran.made == 20
    assert made(path) == made(whole)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"setting":{"kappa":0.0', "it is no JSON"),
        ("[1, 2]", "it is no record but list"),
        ("", "it is no JSON"),
        ('{"setting":{},"seed":"0","result":{},"measured":{}}', "a record has the parts setting, seed"),
        ('{"setting":{},"seed":0}', "found setting, seed"),
        ('{"float":"five"}', "it is no JSON"),
    ],
)
def test_a_damaged_line_is_named(whole, tmp_path, line, why):
    path = copied(whole, tmp_path, 9)
    lines = path.read_text().splitlines()
    lines[4] = line
    path.write_text("\n".join(lines) + "\n")
    for reads in (lambda: records.load(EXPERIMENT, tmp_path), lambda: runner.run(EXPERIMENT, folder=tmp_path)):
        with pytest.raises(InvalidFile, match=r"toy\.jsonl, line 5 is damaged: .*Remove that line") as caught:
            reads()
        assert why in str(caught.value)


def test_repeated_headless_and_misnamed_records_are_refused(whole, tmp_path):
    path = copied(whole, tmp_path, 3)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[1]]))
    with pytest.raises(InvalidFile, match="line 4 is damaged: it repeats the setting and seed of line 2"):
        records.load(EXPERIMENT, tmp_path)
    path.write_text("".join(lines[1:]))
    with pytest.raises(InvalidFile, match="line 1 is damaged: it is a record with no head"):
        records.load(EXPERIMENT, tmp_path)
    path.rename(tmp_path / "other.jsonl").write_text("".join(lines))
    with pytest.raises(InvalidFile, match="these are records of 'toy', not of 'other'"):
        records.load(replace(EXPERIMENT, name="other"), tmp_path)
    path.write_text(lines[0].replace('"format":1', '"format":2'))
    with pytest.raises(InvalidFile, match="has format 2; this release reads format 1"):
        records.load(EXPERIMENT, tmp_path)


def test_versions_are_never_mixed_silently(whole, tmp_path):
    path = copied(whole, tmp_path, 11)
    now = versions.versions(EXPERIMENT.run)
    path.write_text(path.read_text().replace(now["code"], "0123456789ab"))
    before = path.read_bytes()
    with pytest.raises(OtherVersion) as caught:
        runner.run(EXPERIMENT, folder=tmp_path, executor=ThisProcess())
    for said in ("10 of its 10 records", "code 0123456789ab -> " + now["code"], "--keep", "--fresh", "--records DIR"):
        assert said in str(caught.value)
    assert path.read_bytes() == before

    (ran,) = runner.run(EXPERIMENT, folder=tmp_path, executor=ThisProcess(), old=runner.Old.KEEP)
    assert (ran.made, ran.old) == (20, 10)
    stored = records.load(EXPERIMENT, tmp_path)
    assert [each["code"] for each in stored.versions] == ["0123456789ab", now["code"]]
    assert [entry.versions["code"] == now["code"] for entry in stored.entries] == [False] * 10 + [True] * 20

    (ran,) = runner.run(EXPERIMENT, folder=tmp_path, executor=ThisProcess(), old=runner.Old.DROP)
    assert (ran.made, ran.old) == (30, 0)
    assert made(path) == made(whole)


def test_the_fingerprint_follows_the_code_that_can_matter(tmp_path, monkeypatch):
    package, here = tmp_path / "tightrope", tmp_path / "tightrope" / "experiments"
    for name in ("model/mdp", "views/plot", "cli/solve", "cluster/dask", "experiments/bounds", "experiments/families"):
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    own = here / "cpi.py"
    own.write_text("from tightrope.experiments.families import x\n")
    monkeypatch.setattr(versions, "_PACKAGE", package)
    monkeypatch.setattr(versions, "_HERE", here)
    monkeypatch.setattr(toy_experiment, "__file__", str(own))
    first = versions.fingerprint(toy_experiment.toss)
    for name in ("views/plot", "cli/solve", "cluster/dask", "experiments/bounds"):
        (package / f"{name}.py").write_text("x = 2\n")
        assert versions.fingerprint(toy_experiment.toss) == first, name
    for name in ("model/mdp", "experiments/families", "experiments/cpi"):
        (package / f"{name}.py").write_text("from tightrope.experiments.families import x\ny = 2\n")
        later = versions.fingerprint(toy_experiment.toss)
        assert later != first, name
        first = later


def test_a_failing_setting_costs_its_own_record_only(whole, tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_FAILS", "0.5 3")
    with pytest.raises(TaskFailed) as caught:
        runner.run(EXPERIMENT, folder=tmp_path, executor=LocalProcesses(2))
    for said in (
        "1 of 30 tasks failed",
        '"kappa":0.5',
        "seed 3",
        "ArithmeticError: the coin stands on its edge",
        "toy_experiment.py",
    ):
        assert said in str(caught.value)
    assert "in toss" in caught.value.trace
    assert len(records.load(EXPERIMENT, tmp_path).entries) == 29
    monkeypatch.delenv("TOY_FAILS")
    (ran,) = runner.run(EXPERIMENT, folder=tmp_path, executor=ThisProcess())
    assert ran.made == 1
    assert made(tmp_path / "toy.jsonl") == made(whole)


def test_a_result_that_cannot_be_written_down_names_its_place(tmp_path):
    bad = replace(EXPERIMENT, run=lambda setting, seed: replace(toy_experiment.toss(setting, seed), result={"x": 1j}))
    with pytest.raises(TaskFailed, match=r"30 of 30 tasks failed.*seed 0: TypeError: .*complex"):
        runner.run(bad, folder=tmp_path, executor=ThisProcess())


def test_two_runs_do_not_write_one_file(tmp_path):
    now = versions.versions(EXPERIMENT.run)
    with (
        records.appending(tmp_path / "toy.jsonl", "toy", now),
        pytest.raises(InvalidFile, match="is being written by another run"),
    ):
        runner.run(EXPERIMENT, folder=tmp_path, executor=ThisProcess())


def test_a_changed_grid_makes_what_is_new_and_drops_what_is_gone(whole, tmp_path):
    copied(whole, tmp_path, 31)
    other = replace(EXPERIMENT, seeds=lambda _quick: 7, settings=lambda quick: toy_experiment.settings(quick)[1:])
    (ran,) = runner.run(other, folder=tmp_path, executor=ThisProcess())
    assert (ran.made, ran.stored.needed, ran.stored.foreign) == (4, 28, 6)
    assert len(records.read(tmp_path / "toy.jsonl", "toy")) == 28


def test_random_numbers_are_the_same_everywhere():
    """Pinned: records on disk were drawn with these."""
    assert generator("toy", {"kappa": 0.5}, 3).integers(1 << 30) == 970179988
    assert generator("toy", {"b": 1, "a": 2}, 0).random() == generator("toy", {"a": 2, "b": 1}, 0).random()
    draws = {generator(name, {"kappa": kappa}, seed).random() for name in "ab" for kappa in (0, 0.5) for seed in range(9)}
    assert len(draws) == 36


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(
        InvalidArgument, match=r"no experiment 'theorm-1'\. Did you mean theorem-1\? The experiments are theorem-1,"
    ):
        experiments.find("theorm-1")


@pytest.fixture
def command(monkeypatch, tmp_path):
    """The command line with the toy as its only experiment."""
    monkeypatch.setattr(experiments, "NAMES", ("toy",))
    monkeypatch.setattr(experiments, "find", lambda _name: EXPERIMENT)

    def call(*words, code=0):
        done = CliRunner().invoke(app, ["experiment", *words, "--records", str(tmp_path)])
        assert done.exit_code == code, done.output
        return done

    return call


def test_the_command_line(command, whole, tmp_path):
    assert "0 of 30" in command("list").output
    assert "Make them: tightrope experiment run toy" in command("show", "toy", code=2).stderr
    assert "4 records made" in command("run", "toy", "--quick", "--workers", "1").output
    said = command("list").output
    assert "4 records" in said
    assert "Is the coin fair?" in said
    said = command("show", "toy").output
    for part in ("it held. The coin is fair enough.", "[0.2, 0.8]", "95 %", "Toss it again.", "of the quick form", "kappa"):
        assert part in said
    assert f"tightrope experiment run toy --quick --records {tmp_path}" in said
    path = copied(whole, tmp_path, 31)
    assert "of the full form" in command("show", "toy").output
    assert "of the quick form" in command("show", "toy", "--quick").output
    path.write_text(path.read_text().replace('"numpy":"', '"numpy":"0.'))
    assert "--fresh makes all anew" in command("run", "toy", code=2).stderr
    assert "30 records of toy were made by other versions and kept" in command("run", "toy", "--keep").stderr
    assert "give one of the two" in command("run", "toy", "--keep", "--fresh", code=2).stderr
