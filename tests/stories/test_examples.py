"""Every example runs as its first lines say, warnings being errors, and says what it promises."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Arguments that keep the run short, and a line that must be printed. One that runs elsewhere names its test.
RUNS = {
    "inventory": ([], r"stock  0: order  9 .*[\s\S]*checked with NumPy alone: True"),
    "operators": ([], r"alpha = 0\.5: v\(s0\) goes from 0\.000 to -3\.682[\s\S]*never worse: True"),
    "looking_ahead": (["FrozenLake-v1", "0.9"], r"κ-PI, κ = 1\.0 +1 iterations[\s\S]*v\* at the start: 0\.069"),
    "pictures": (["."], r"map\.png\nconvergence\.png\nbounds\.png\nlearning\.png"),
    "million_states": (["60", "60"], r"MDP\(3,600 states[\s\S]*battery  50% full: charge below \d+%, sell above \d+%"),
    "simulator": ([], r"optimal: 4\n(learned from 20,000 samples: from age [345], loses 0\.0\d\d of 5\.1\n){4}"),
    "choose_kappa": ([], r"smallest at kappa = 0\.6, inside the range[\s\S]*smallest at kappa = 1, an end point"),
    "approximate_bound": ([".", "--quick"], r"κ-PSDP, κ = 0\.9 +loss +\d"),
}
ELSEWHERE = {
    "online_tightrope": "online/test_examples.py",
    "online_gymnasium": "online/test_examples.py",
    "your_experiment": "test_an_experiment_of_ones_own_runs_on_all_cores_and_is_not_run_twice",
    "approximate_oracle": "test_an_oracle_of_ones_own_passes_the_check",
}


@pytest.mark.parametrize("name", RUNS)
def test_an_example_runs_and_says_what_it_promises(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    arguments, promised = RUNS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert re.search(promised, said), said


def test_an_experiment_of_ones_own_runs_on_all_cores_and_is_not_run_twice(tmp_path):
    command = [sys.executable, "-W", "error", str(EXAMPLES / "your_experiment.py"), str(tmp_path)]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert "32 records, 32 of them made now" in first
    assert "32 records, 0 of them made now" in second
    assert first.partition("\n")[2] == second.partition("\n")[2]
    assert "it held: κ = 0.9 takes" in first
    assert (tmp_path / "costs.png").read_bytes().startswith(b"\x89PNG")


def test_an_oracle_of_ones_own_passes_the_check():
    from tightrope.testing import check_oracle

    names = runpy.run_path(str(EXAMPLES / "approximate_oracle.py"))
    assert "delta" in str(check_oracle(names["SparseLookahead"](n=10, depth=4)))


def test_every_example_is_run_and_listed():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == set(RUNS) | set(ELSEWHERE)
    listed = set(re.findall(r"\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text(encoding="utf-8")))
    assert listed == names


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_says_how_it_is_called(path):
    assert f"    python examples/{path.name}" in path.read_text(encoding="utf-8").split('"""')[1]
