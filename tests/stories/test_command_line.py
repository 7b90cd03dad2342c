"""The command line as a user meets it: a few runs in a process of their own, the rest through Typer's runner."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from tightrope.cli import app, console
from tightrope.errors import RowsRenormalised
from tightrope.model.files import read
from tightrope.planning import kappa_pi
from tightrope.planning import solve as run_solver
from tightrope.solution import Solution

TIGHTROPE = [sys.executable, "-c", "from tightrope.cli import main; main()"]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def run_process(*arguments):
    return subprocess.run([*TIGHTROPE, *arguments], capture_output=True, text=True, check=False)


def test_solving_by_name_prints_a_table_and_a_policy():
    result = run("solve", "tightrope", "--kappa", "0.9")
    assert result.exit_code == 0
    assert "converged: the certified gap is within the tolerance" in result.stdout
    assert "PolicyIteration(improve=Kappa(0.9), evaluate=Exact())" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["s0", "a1", "8.1", "8.1"] in rows
    assert ["s1", "a1", "9", "9"] in rows


def test_json_is_all_that_stdout_holds():
    result = run("solve", "gridworld:height=8,width=9", "--h", "3", "--json")
    record = json.loads(result.stdout)
    assert result.exit_code == 0
    assert record["converged"] is True
    assert record["status"] == "converged"
    assert record["states"] == 72
    assert record["algorithm"] == "PolicyIteration(improve=Lookahead(h=3), evaluate=Exact())"
    assert record["start_value_lower"] <= record["start_value_upper"]
    assert record["relative_gap"] <= 1e-6


def test_the_same_numbers_from_python_and_from_the_command_line(tmp_path):
    model, saved = tmp_path / "m.npz", tmp_path / "s.npz"
    assert run("problems", "garnet:n_states=40,seed=7", "-o", str(model)).exit_code == 0
    assert run("solve", str(model), "--kappa", "0.8", "-o", str(saved)).exit_code == 0
    here, there = run_solver(read(model), kappa_pi(0.8)), Solution.load(saved)
    assert there.policy == here.policy
    assert np.array_equal(there.value, here.value)
    assert there.converged


@pytest.mark.parametrize("name", ["p.csv", "p.json"])
def test_a_policy_is_written_as_a_table(tmp_path, name):
    path = tmp_path / name
    result = run("solve", "tightrope", "-o", str(path))
    assert result.exit_code == 0
    assert str(path) in result.stdout
    if name.endswith("csv"):
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    else:
        rows = json.loads(path.read_text(encoding="utf-8"))["policy"]
    assert [(row["state"], row["action"]) for row in rows] == [("s0", "a1"), ("s1", "a1"), ("s2", "a0"), ("s3", "a0")]
    assert float(rows[0]["value"]) == pytest.approx(8.1, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        (("gridworld", "--algorithm", "vi", "--max-iterations", "2"), "max_iterations"),
        (("garnet:n_states=30000", "--max-seconds", "0"), "max_seconds"),  # a small one is solved before the clock is read
    ],
)
def test_a_limit_is_exit_code_1_with_the_best_so_far(arguments, limit, tmp_path):
    path = tmp_path / "s.npz"
    result = run("solve", *arguments, "-o", str(path))
    assert result.exit_code == 1
    assert f"stopped at {limit}" in result.stdout
    assert Solution.load(path).gap > 0


def test_an_unfinished_run_says_so_in_json():
    record = json.loads(run("solve", "gridworld", "--algorithm", "vi", "--max-iterations", "1", "--json").stdout)
    assert record["converged"] is False
    assert record["status"] == "max_iterations"


BAD = {
    "no such model": (("solve", "nowhere.npz"), "no file 'nowhere.npz' and no problem"),
    "gamma out of range": (("solve", "gridworld", "--gamma", "1.2"), "gamma"),
    "kappa out of range": (("solve", "gridworld", "--kappa", "1.5"), "kappa must lie in [0, 1]; found 1.5"),
    "horizon below 1": (("solve", "gridworld", "--h", "0"), "h must be an integer >= 1"),
    "lambda below kappa": (("solve", "gridworld", "--kappa", "0.5", "--lam", "0.2"), "lam in [kappa, 1]"),
    "two algorithms": (("solve", "gridworld", "--kappa", "0.5", "--h", "3"), "give one of --h, --kappa"),
    "missing parameter": (("solve", "gridworld", "--algorithm", "h-pi"), "--algorithm h-pi takes --h; found none of them"),
    "superfluous parameter": (("solve", "gridworld", "--algorithm", "vi", "--kappa", "0.5"), "takes none of"),
    "unknown parameter": (("solve", "gridworld:hight=3"), "gridworld has no parameter 'hight'"),
    "negative tolerance": (("solve", "gridworld", "--tol", "-1"), "tol must be a finite number >= 0"),
    "unknown extension": (("solve", "gridworld", "-o", "solution.txt"), "saved as .npz, a policy as .csv or .json"),
    "no folder": (("solve", "gridworld", "-o", "no/such/folder/s.npz"), "there is no folder"),
    "no such problem": (("problems", "gridwold"), "there is no problem 'gridwold'; problems are"),
    "nothing to write": (("problems", "-o", "x.npz"), "takes one problem to write"),
    "two to write": (("problems", "chain", "forest", "-o", "x.npz"), "found chain, forest"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_unknown_option_is_a_usage_error():
    result = run("solve", "gridworld", "--capa", "0.5")
    assert result.exit_code == 2
    assert "--capa" in result.stderr


def test_a_damaged_file_is_one_line(tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes(b"PK\x03\x04 not a zip after all")
    result = run_process("solve", str(path))
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("a file", encoding="utf-8")
    result = run("demo", "--quick", "-o", str(taken))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "taken" in result.stderr


def test_a_warning_is_one_line_on_stderr(monkeypatch, tmp_path):
    import warnings

    path = tmp_path / "m.npz"
    assert run("problems", "chain", "-o", str(path)).exit_code == 0

    def warn(*_):
        warnings.warn("rows were\n divided", RowsRenormalised, stacklevel=1)

    monkeypatch.setattr(console, "check_output", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = run("solve", str(path), "-o", str(tmp_path / "s.npz"))
    assert result.exit_code == 0
    assert result.stderr == "warning: rows were divided\n"


def test_problems_lists_every_problem_and_describes_one():
    from tightrope.model.problems import catalogue

    result = run("problems")
    names = [line.split()[0] for line in result.stdout.splitlines() if line]
    assert set(catalogue()) <= set(names)
    told = run("problems", "garnet", "tightrope").stdout
    assert "garnet(n_states=100, n_actions=4" in told
    assert "tightrope(c=1.0, gamma=0.9)" in told


def test_help_names_the_exit_codes_and_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from tightrope.cli import app\n"
        "for args in ([], ['--help'], ['solve', '--help'], ['demo', '--help']):\n"
        "    print(CliRunner().invoke(app, args).output)\n"
        "heavy = {'numba', 'matplotlib', 'pandas', 'gymnasium', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for command in ("solve", "info", "problems", "convert", "learn", "approximate", "bounds", "demo", "--version", "130"):
        assert command in done.stdout


def test_the_version_is_the_packages():
    from importlib.metadata import version

    assert run("--version").stdout == f"tightrope {version('tightrope')}\n"


def test_every_algorithm_finds_the_same_value():
    found = {}
    for words in (
        "auto",
        "pi",
        "vi",
        "mpi --m 5",
        "h-pi --h 3",
        "h-vi --h 3",
        "kappa-pi --kappa 0.7",
        "kappa-vi --kappa 0.7",
        "kappa-lambda-pi --kappa 0.5 --lam 0.8",
        "kappa-lambda-pi --lam 0.8",
    ):
        result = run("solve", "garnet:n_states=30", "--json", "--algorithm", *words.split())
        assert result.exit_code == 0, words
        found[words] = json.loads(result.stdout)
    lower = max(record["start_value_lower"] for record in found.values())
    upper = min(record["start_value_upper"] for record in found.values())
    assert lower <= upper
    assert upper - lower < 1e-4
    assert len({record["algorithm"] for record in found.values()}) == len(found)


def test_ctrl_c_gives_the_best_so_far_with_its_status(tmp_path):
    saved = tmp_path / "s.npz"
    # Value iteration with a discount this near 1 needs minutes.
    arguments = ["solve", "gridworld:height=120,width=120,gamma=0.99999", "--algorithm", "vi", "--tol", "1e-9", "-o", str(saved)]
    mark = tmp_path / "running"
    code = (
        "import sys, pathlib\n"
        "from tightrope.cli import main, solve\n"
        "from contextlib import contextmanager\n"
        "@contextmanager\n"
        "def live(tol):\n"
        f"    yield lambda row: pathlib.Path({str(mark)!r}).touch()\n"
        "solve.console.live = live\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, (out, err)
    assert "interrupted: the policy is the best so far" in out
    assert "Traceback" not in err
    assert Solution.load(saved).status.name == "INTERRUPTED"


def test_ctrl_c_before_there_is_a_result(monkeypatch):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("tightrope.model.locate.find", interrupt)
    result = run("solve", "gridworld")
    assert result.exit_code == 130
    assert result.stderr == "interrupted: before there was a result\n"


def test_the_quick_tour(tmp_path):
    folder = tmp_path / "out"
    result = run("demo", "--quick", "-o", str(folder))
    assert result.exit_code == 0
    assert {path.name for path in folder.iterdir()} == {
        "convergence.png",
        "dip.png",
        "index.html",
        "lookahead.png",
        "map.png",
        "world.png",
    }
    assert (folder / "index.html").resolve().as_uri() in result.stdout.replace("\n", "")
    assert "0 against the theorem" in result.stdout


def test_output_to_a_closed_pipe_is_no_traceback():
    command = " ".join([f"{sys.executable} -c 'from tightrope.cli import main; main()'", "problems | head -1"])
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)  # noqa: S607  (bash from PATH)
    assert done.stdout.startswith("problem ")
    assert "Traceback" not in done.stderr
