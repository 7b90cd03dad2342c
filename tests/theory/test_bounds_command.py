"""`tightrope bounds` as a user types it, and the picture it draws."""

import json

import pytest
from typer.testing import CliRunner

from tightrope.cli import app
from tightrope.model import problems
from tightrope.theory import best_kappa, concentrability, kappa_api_bound, kappa_psdp_bound

MODEL = "garnet:n_states=30,seed=3"


def run(*arguments):
    return CliRunner().invoke(app, ["bounds", *arguments], catch_exceptions=False)


def test_the_table_shows_coefficients_bounds_and_advice():
    result = run(MODEL, "--delta", "0.001", "--k", "10")
    assert result.exit_code == 0
    for text in ("C^(1)", "C^pi*", "kappa-API", "kappa-PSDP", "statement", "the bound is smallest at kappa = 1"):
        assert text in result.stdout


def test_one_kappa_shows_every_statement():
    result = run(MODEL, "--delta", "0.001", "--k", "10", "--kappa", "0.9")
    for text in ("Theorem 5, statement 1", "Theorem 5, statement 2", "Theorem 6, statement 1", "any policy"):
        assert text in result.stdout


def test_json_holds_the_same_numbers_as_the_library():
    found = json.loads(run(MODEL, "--delta", "0:0.001,0.5:0.002,1:0.3", "--kappa", "0.5", "--json").stdout)
    c = concentrability(problems.garnet(30, seed=3))
    assert found["coefficients"]["C^(2)"] == [c.C2.lower, c.C2.upper]
    assert found["at_kappa"][0]["bound"] == kappa_api_bound(c, 0.5, 0.002).value
    assert found["at_kappa"][1]["bound"] == kappa_psdp_bound(c, 0.5, 0.002).value
    advice = best_kappa(c, {0.0: 0.001, 0.5: 0.002, 1.0: 0.3})
    assert found["curves"][0]["best_kappa"] == advice.kappa
    assert [b["bound"] for b in found["curves"][0]["bounds"]] == advice.values.tolist()


def test_running_out_of_time_is_exit_code_1():
    result = run("garnet:n_states=300,seed=3", "--max-seconds", "0")
    assert result.exit_code == 1
    assert "stopped early: the intervals are wider than asked for" in result.stdout


def test_an_uncovered_model_is_explained():
    result = run(MODEL, "--mu", "0", "--nu", "1")
    assert result.exit_code == 0
    assert "nu is 0 at state 0, which some policy reaches from mu" in result.stdout
    assert "it gives no advice here" in result.stdout


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_picture_is_written(tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"bounds.{ending}"
    assert run(MODEL, "--delta", "0.001", "--k", "20", "-o", str(path)).exit_code == 0
    assert path.stat().st_size > 5_000
    assert run(MODEL, "--delta", "0", "-o", str(path)).exit_code == 0  # every bound is zero


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--delta", "much"), "--delta much: give a number, or a table"),
        (("--delta", "-1"), "delta must be a finite number >= 0; found -1.0"),
        (("--delta", "0:1,1"), "give a number, or a table"),
        (("--delta", "0:1,1:2", "--kappa", "0.5"), "no entry for --kappa 0.5"),
        (("--mu", "30"), "--mu 30: give 'start', 'uniform', or the number of a state, 0 to 29"),
        (("--nu", "everywhere"), "--nu everywhere: give 'start'"),
        (("--kappa", "1.5"), "kappa must lie in [0, 1]"),
        (("--k", "0"), "k must be an integer >= 1"),
        (("--rtol", "0"), "rtol must be positive"),
        (("-o", "bounds.txt"), "a picture is saved as .png, .pdf or .svg"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message):
    result = run(MODEL, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
