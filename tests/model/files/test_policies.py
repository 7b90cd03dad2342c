"""Policies and values as CSV and JSON, and back."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tightrope as tr
from tightrope.errors import InvalidArgument, InvalidFile
from tightrope.model.files import read_policy, write_policy
from tightrope.planning import solve

sys.path.insert(0, str(Path(__file__).parent))
from models import models, random_model

quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("ending", [".csv", ".json"])
@given(mdp=models())
@quick
def test_policies_come_back_exactly(tmp_path, ending, mdp):
    value = np.random.default_rng(0).normal(size=mdp.n_states)
    for policy in (solve(mdp).policy, tr.Policy.uniform(mdp)):
        write_policy(tmp_path / f"p{ending}", policy, value)
        back, v = read_policy(tmp_path / f"p{ending}", mdp)
        assert back == policy
        np.testing.assert_array_equal(v, value)


def test_states_and_actions_appear_by_name(tmp_path):
    mdp = tr.MDP.from_actions(
        [np.eye(2), np.eye(2)[::-1]], [[0, 1], [2, 0]], 0.5, state_names=["a, b", "c"], action_names=["stay", "go"]
    )
    solution = solve(mdp)
    write_policy(tmp_path / "p.csv", solution.policy, solution.value)
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert [(row["state"], row["action"]) for row in rows] == [("a, b", "go"), ("c", "stay")]
    assert [float(row["value"]) for row in rows] == pytest.approx([3.0, 4.0])
    write_policy(tmp_path / "p.json", solution.policy, solution.value)
    first = json.loads((tmp_path / "p.json").read_text())["policy"][0]
    assert (first["state"], first["action"]) == ("a, b", "go")


def test_names_that_repeat_are_not_used(tmp_path):
    mdp = tr.MDP.from_actions([np.eye(2)], [[0.0], [1.0]], 0.5, state_names=["x", "x"])
    write_policy(tmp_path / "p.csv", tr.Policy.uniform(mdp), [0.0, 2.0])
    assert (tmp_path / "p.csv").read_text() == "state,action,probability,value\n0,0,1.0,0.0\n1,0,1.0,2.0\n"


def test_a_stochastic_policy_lists_what_it_does(tmp_path):
    mdp = random_model(2, 1, ragged=False)
    policy = tr.Policy.stochastic(mdp, [[0.25, 0.75, 0], [0, 0, 1]])
    write_policy(tmp_path / "p.csv", policy, [1.0, 2.0])
    assert (tmp_path / "p.csv").read_text().splitlines()[1:] == ["0,0,0.25,1.0", "0,1,0.75,1.0", "1,2,1.0,2.0"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("state,action\n0,0\n", "must have the columns state, action, value"),
        ("state,action,value,more\n0,0,1,1\n", "must have the columns state, action, value"),
        ("state,action,value\n0,0,1\n", "has no row for state 1"),
        ("state,action,value\n0,0,1\n0,1,1\n1,0,1\n", "has several rows for state 0 but no column of probabilities"),
        ("state,action,value\n0,9,1\n1,0,1\n", "row 1: the model has no action '9'; its actions are 0 to 2"),
        ("state,action,value\n0,0,1\n7,0,1\n", "row 2: the model has no state '7'; its states are 0 to 1"),
        ("state,action,value\n0,0,x\n1,0,1\n", "value is not a number"),
        ("state,action,value\n0,0,inf\n1,0,1\n", "row 1: value is not finite"),
        ("state,action,value\n0,0\n1,0,1\n", "is not a table of state, action, value"),
        ("state,action,probability,value\n0,0,0.5,1\n1,0,1,1\n", "the weights of state 0 sum to 0.5"),
        ('{"policy": 3}', "is not a table of state, action, value"),
        ('{"policy": [{"state": 0}, {}]}', "is not a table of state, action, value"),
        ("", "is not a table of state, action, value"),
    ],
)
def test_what_is_refused(tmp_path, content, message):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(InvalidFile, match=message):
        read_policy(tmp_path / "p.csv", random_model(2, 1, ragged=False))


def test_other_endings_and_missing_files(tmp_path):
    mdp = random_model(2, 1)
    with pytest.raises(InvalidArgument, match=r"a policy is written to .csv or .json; found 'p.txt'"):
        write_policy(tmp_path / "p.txt", tr.Policy.uniform(mdp), [0.0, 0.0])
    with pytest.raises(InvalidFile, match="there is no such file"):
        read_policy(tmp_path / "p.csv", mdp)
