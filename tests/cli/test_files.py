"""`tightrope convert` and `tightrope info`, as typed."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import tightrope as tr
from tightrope.cli import console, convert, info
from tightrope.model import files
from tightrope.model.locate import locate

#: On the command line what is lost is a line on stderr, not an exception.
pytestmark = pytest.mark.filterwarnings("default::tightrope.errors.NotStored")

app = typer.Typer(cls=console.Commands)
app.command()(convert.convert)
app.command()(info.info)


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def model(tmp_path):
    mdp = locate("gridworld:height=4,width=5", 0.9)
    files.write(mdp, tmp_path / "m.npz", labels={"goal": np.flatnonzero(mdp.terminal)})
    return tmp_path / "m.npz"


def test_a_chain_of_conversions_loses_nothing(model, tmp_path):
    mdp = files.read(model)
    before = model
    for ending in ("drn", "umb", "tra", "csv", "npz"):
        after = tmp_path / f"next.{ending}"
        result = run("convert", before, after, "--gamma", 0.9)
        assert result.exit_code == 0, result.output
        assert f"next.{ending}" in result.stdout
        before = after
    back = files.read(before)
    np.testing.assert_array_equal(back.P.toarray(), mdp.P.toarray())
    np.testing.assert_array_equal(back.r, mdp.r)
    assert back.pairs.state_names == mdp.pairs.state_names


def test_what_is_written_is_listed_and_what_is_lost_is_said(model, tmp_path):
    result = run("convert", model, tmp_path / "out.tra", "--storm")
    assert "wrote  out.tra, out.lab, out.trew, out.sta" in result.stdout
    result = run("convert", model, tmp_path / "out.csv")
    assert "a CSV table has no place for start and labels" in result.stderr


def test_bad_input_is_one_line_and_exit_code_2(model, tmp_path):
    for arguments, message in [
        (("convert", model, tmp_path / "m.xyz"), "no format for 'm.xyz'"),
        (("convert", model, tmp_path / "m.bin"), "gives every state the same actions"),
        (("convert", tmp_path / "none.drn", tmp_path / "m.npz"), "there is no file"),
        (("convert", model, tmp_path / "m.drn", "--storm"), "dialect is one of .tra files"),
        (("info", tmp_path), "is a folder"),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_info_as_a_table(model):
    said = run("info", model).stdout
    lines = {line[:12].strip(): line[12:].strip() for line in said.splitlines()}
    assert lines["states"] == "20 (1 terminal, 1 where it may start)"
    assert lines["discount"] == "0.9"
    assert lines["components"] == "2 strongly connected, the largest of 19 states; 1 cannot be left"
    assert lines["labels"] == "goal (1)"
    assert lines["action names"] == "up, right, down, left"


def test_info_as_json(model):
    facts = json.loads(run("info", model, "--json").stdout)
    mdp = files.read(model)
    assert facts["pairs"] == mdp.n_pairs
    assert facts["rewards"] == list(mdp.reward_range)
    assert facts["successors_a_pair"][2] == mdp.width
    assert facts["labels"] == {"goal": 1}


def test_info_needs_no_discount_but_says_that_there_is_none(tmp_path):
    files.write(tr.MDP.from_actions([np.eye(3)], np.zeros((3, 1)), 0.5), tmp_path / "m.tra")
    said = run("info", tmp_path / "m.tra")
    assert said.exit_code == 0
    assert "not stated" in said.stdout
    assert json.loads(run("info", tmp_path / "m.tra", "--json").stdout)["gamma"] is None
    assert json.loads(run("info", tmp_path / "m.tra", "--json", "--gamma", 0.7).stdout)["gamma"] == 0.7


def test_components_against_reachability():
    rng = np.random.default_rng(4)
    for _ in range(10):
        S = 8
        P = np.eye(S)[rng.integers(0, S, (S, 2))]
        mdp = tr.MDP.from_dense(P, np.zeros((S, 2)), 0.5)
        reach = np.linalg.matrix_power((P.sum(axis=1) > 0).astype(int) + np.eye(S, dtype=int), S) > 0
        both = reach & reach.T
        classes = {tuple(row) for row in both.tolist()}
        closed = sum(not (reach[list(row).index(True)] & ~np.array(row)).any() for row in classes)
        assert info._components(mdp) == (len(classes), max(map(sum, classes)), closed)


def test_costs_are_negated_and_said(tmp_path):
    files.write(tr.MDP.from_actions([np.eye(2)], [[1.0], [2.0]], 0.5), tmp_path / "m.csv")
    said = run("info", tmp_path / "m.csv", "--costs").stdout
    assert "rewards       -2 to -1" in said
    assert "costs became rewards" in said
