"""`tightrope learn` and the pictures of learning, as a user meets them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tightrope.cli import app
from tightrope.errors import InvalidFile
from tightrope.model import problems
from tightrope.online import OnlineKappaPI, QLearning, Run, learn, learn_seeds
from tightrope.views.plot_online import learning


def tightrope(*arguments):
    return CliRunner().invoke(app, ["learn", *map(str, arguments)], catch_exceptions=False)


def test_the_table():
    result = tightrope("tightrope:c=2,gamma=0.9", "--kappa", 0.9, "--steps", "1e5", "--seeds", 3, "--explore", 0.2)
    assert result.exit_code == 0
    for words in ("100,000 for each of 3 seeds", "max (v* - v^pi) =", "kappa=0.9", "samples/s"):
        assert words in result.output


def test_json_is_what_learn_seeds_finds():
    result = tightrope("tightrope", "--kappa", 0.5, "--steps", 5000, "--seeds", 2, "--seed", 7, "--json")
    record = json.loads(result.stdout)
    runs = learn_seeds(problems.tightrope(), OnlineKappaPI(0.5), 5000, 7, seeds=2)
    assert record["loss"] == runs.loss.tolist()
    assert record["steps"] == [5000, 5000]
    assert record["interrupted"] is False


@pytest.mark.filterwarnings("default::tightrope.online.MayGetStuck")
def test_it_warns_before_a_run_that_can_get_stuck():
    result = tightrope("tightrope", "--explore", 0, "--slow-power", 0.7, "--steps", 100, "--seeds", 1)
    assert result.exit_code == 0
    assert "learning can get stuck. Set explore > 0." in " ".join(result.output.split())


def test_outputs(tmp_path):
    for name in ("run.npz", "trace.csv", "curve.png"):
        result = tightrope(
            "garnet:n_states=20,n_actions=3,branching=2,gamma=0.9", "--steps", 2000, "--seeds", 2, "-o", tmp_path / name
        )
        assert result.exit_code == 0, result.output
        assert name in result.output
    assert Run.load(tmp_path / "run.npz").steps == 2000
    assert (tmp_path / "trace.csv").read_text().startswith("step,loss,")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("baseline", ["q-learning", "expected-sarsa"])
def test_baselines(baseline):
    result = tightrope("tightrope", "--baseline", baseline, "--steps", 1000, "--seeds", 1)
    assert {"q-learning": "QLearning", "expected-sarsa": "ExpectedSarsa"}[baseline] in result.output


def test_an_environment():
    result = tightrope("gym:FrozenLake-v1", "--gamma", 0.95, "--steps", 3000, "--seeds", 1, "--restart", 0.1)
    assert result.exit_code == 0
    assert "MDP(16 states" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tightrope", "--steps", "abc"), "a whole number >= 1 is needed, such as 1000000 or 1e6"),
        (("tightrope", "--kappa", 2), "kappa must lie in [0, 1]; found 2.0"),
        (("tightrope", "--seeds", 0), "seeds must be an integer >= 1"),
        (("tightrope", "-o", "curve.txt"), "measurements are saved as .csv"),
        (("gym:FrozenLake-v1",), "states no discount; give one: --gamma 0.99"),
        (("gym:CartPole-v1", "--gamma", 0.9), "needs a Discrete observation_space"),
        (("nosuch",), "no problem 'nosuch'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message):
    result = tightrope(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_curves_show_the_median_and_the_band():
    mdp = problems.garnet(20, 3, 2, gamma=0.9, seed=0)
    runs = learn_seeds(mdp, OnlineKappaPI(0.5), 3000, seeds=3)
    figure = learning({"κ = 0.5": runs, "Q-learning": learn(mdp, QLearning(), 3000)}, goal=0.01)
    ax = figure.axes[0]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.median(runs.column("loss"), axis=0) / runs[0].scale)
    assert len(ax.collections) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["κ = 0.5", "Q-learning"]


def test_curves_in_groups_and_other_columns():
    mdp = problems.garnet(20, 3, 2, gamma=0.9, seed=0)
    runs = {f"κ = {kappa:g}": learn(mdp, OnlineKappaPI(kappa), 1000) for kappa in (0.0, 1.0)}
    figure = learning({"one": runs, "two": runs}, "took_kappa")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]
    assert "κ-greedy" in figure.axes[0].get_ylabel()


def test_a_picture_is_not_a_run(tmp_path):
    (tmp_path / "run.npz").write_bytes(b"PK")
    with pytest.raises(InvalidFile):
        Run.load(tmp_path / "run.npz")
