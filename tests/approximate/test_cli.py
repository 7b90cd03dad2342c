"""`tightrope approximate`, as typed."""

import json

import pytest
import typer
from typer.testing import CliRunner

from tightrope.approximate import Run
from tightrope.cli import console
from tightrope.cli.approximate import approximate

APP = typer.Typer(cls=console.Commands, pretty_exceptions_enable=False)
APP.command()(approximate)
APP.command("other")(lambda: None)  # with one command alone, its name would not be asked for


def typed(*words):
    return CliRunner().invoke(APP, ["approximate", *map(str, words)])


SMALL = "garnet:n_states=20,n_actions=3,branching=3"


def test_the_command_of_the_issue():
    result = typed(SMALL, "--algorithm", "psdp", "--kappa", ".9", "--oracle", "sampled:5", "--iterations", 3)
    assert result.exit_code == 0
    assert "KappaPSDP(kappa=0.9, oracle=SampledModel(n=5), iterations=3, evaluate=ExactValue())" in result.stdout
    assert "iteration" in result.stdout
    assert "900" in result.stdout  # 3 iterations, 60 pairs, 5 samples


@pytest.mark.parametrize(
    ("oracle", "shown"),
    [
        ("exact", "Exact()"),
        ("worst:0.1", "WorstCase(delta=0.1"),
        ("noisy:.1", "Noisy(sigma=0.1)"),
        ("vi:3", "ApproximateVI(sweeps=3"),
        ("cpi:1e4", "ConservativePI(samples=10000"),
        ("lspi:1000", "LSPI(a table, samples=1000"),
        ("search:1000", "PolicySearch(a table, samples=1000"),
        ("fitted:200", "FittedQ(ExtraTrees, samples=200"),
    ],
)
def test_every_oracle_has_a_name(oracle, shown):
    result = typed(SMALL, "--oracle", oracle, "--iterations", 1, "--kappa", "0.3")
    assert result.exit_code == 0
    assert shown in result.stdout


@pytest.mark.parametrize("evaluate", ["mc:2", "lstd:500", "exact"])
def test_every_evaluation_has_a_name(evaluate):
    assert typed(SMALL, "--evaluate", evaluate, "--iterations", 2).exit_code == 0


def test_json_and_bound_and_files(tmp_path):
    out, picture = tmp_path / "run.npz", tmp_path / "run.png"
    result = typed(
        SMALL, "--oracle", "worst:0.1", "--iterations", 2, "--bound", "--json", "-o", out, "--plot", picture, "--mu", "uniform"
    )
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert record["status"] == "finished"
    assert record["trace"][0]["delta"] is None
    for row in record["trace"][1:]:
        assert row["loss"] <= row["bound"]
        assert row["delta"] == pytest.approx(0.1, rel=1e-6)
    assert Run.load(out).iterations == 2
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "bound" in typed(SMALL, "--iterations", 1, "--bound").stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--oracle", "magic"], "--oracle 'magic' is not one of exact, worst:DELTA"),
        (["--oracle", "sampled"], "--oracle 'sampled' is not one of"),
        (["--oracle", "sampled:many"], "sampled:many: 'many' is not a number"),
        (["--oracle", "sampled:2.5"], "'2.5' is not a whole number"),
        (["--oracle", "worst:-1"], "delta must be a finite number >= 0; found -1.0"),
        (["--evaluate", "guess"], "--evaluate 'guess' is not one of exact, mc:N"),
        (["--kappa", "2"], "kappa must lie in [0, 1]; found 2.0"),
        (["--iterations", "0"], "iterations must be an integer >= 1; found 0"),
        (["-o", "run.csv"], "-o run.csv: the name must end in .npz"),
        (["--plot", "nowhere/x.png"], "there is no folder nowhere"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(words, complaint):
    result = typed(SMALL, *words)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_a_failing_oracle_shows_and_saves_what_was_done(tmp_path, monkeypatch):
    calls = iter(range(1, 100))

    def moody(problem, nu, rng):
        from tightrope.approximate import Exact

        if next(calls) == 3:
            raise ArithmeticError("enough")
        return Exact()(problem, nu, rng)

    monkeypatch.setattr("tightrope.cli.approximate._oracle", lambda _: moody)
    result = typed(SMALL, "--iterations", 5, "--kappa", "0.1", "-o", tmp_path / "run.npz")
    assert result.exit_code == 2
    assert "iteration 3 failed: ArithmeticError: enough" in result.stderr
    assert Run.load(tmp_path / "run.npz").iterations == 2
