"""CSV tables of transitions."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.errors import InvalidFile
from tightrope.model import files


def put(folder, content, name="m.csv"):
    (folder / name).write_text(content)
    return folder / name


NAMED = """state,action,next_state,probability,reward
sunny,walk,sunny,0.8,2
sunny,walk,rainy,0.2,7
sunny,read,sunny,1,1
rainy,read,rainy,1,1
rainy,walk,home,1,-3
"""


def test_named_states_and_a_terminal_one(tmp_path):
    found = files.inspect(put(tmp_path, NAMED), 0.9)
    mdp = found.mdp
    assert mdp.pairs.state_names == ("sunny", "rainy", "home")
    np.testing.assert_allclose(mdp.r, [3.0, 1.0, 1.0, -3.0, 0.0])
    assert mdp.terminal.tolist() == [False, False, True]
    assert found.notes == (
        "1 states without actions are terminal",
        "action names were dropped: no one numbering fits the order in which states list them",
    )


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
def test_separators_and_the_order_of_columns(tmp_path, separator, order):
    rows = [line.split(",") for line in NAMED.splitlines()]
    content = "\n".join(separator.join(row[i] for i in order) for row in rows)
    mdp = files.read(put(tmp_path, content), 0.9)
    np.testing.assert_allclose(mdp.r, [3.0, 1.0, 1.0, -3.0, 0.0])


def test_numbers_without_a_header_and_without_rewards(tmp_path):
    mdp = files.read(put(tmp_path, "# a comment\n1,0,0,1\n0,2,1,0.5\n0,2,0,0.5\n0,0,0,1\n"), 0.9)
    np.testing.assert_array_equal(mdp.pairs.actions, [0, 2, 0])
    np.testing.assert_array_equal(mdp.P.toarray(), [[1, 0], [0.5, 0.5], [1, 0]])
    assert mdp.pairs.state_names is None


def test_quoted_names_may_contain_anything(tmp_path):
    content = 'state,action,next state,probability,reward\n"a, b",go,"say ""hi""",1,1\n"say ""hi""",go,"a, b",1,2\n'
    assert files.read(put(tmp_path, content), 0.9).pairs.state_names == ("a, b", 'say "hi"')


def test_names_that_first_look_like_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("tightrope.model.files.text.BLOCK", 16)
    mdp = files.read(put(tmp_path, "0,0,1,1,0\n1,0,x,1,0\nx,0,007,1,0\n007,0,0,1,0\n"), 0.9)
    assert mdp.pairs.state_names == ("0", "1", "x", "007")
    np.testing.assert_array_equal(mdp.P.toarray(), np.roll(np.eye(4), 1, axis=1))


def test_names_and_quotes_survive(tmp_path):
    import tightrope as tr

    mdp = tr.MDP.from_actions(
        [np.eye(3), np.roll(np.eye(3), 1, axis=1)],
        [[1, 2], [3, 4], [5, 6]],
        0.5,
        state_names=['a "b"', "c, d", "é ü"],
        action_names=["stay here", "go on"],
    )
    files.write(mdp, tmp_path / "m.csv")
    back = files.read(tmp_path / "m.csv", 0.5)
    assert back.pairs.state_names == mdp.pairs.state_names
    assert back.pairs.action_names == mdp.pairs.action_names


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: the columns state, action, next_state, probability, reward expected"),
        ("a,b,c\n", "line 1: the columns state, action"),
        ("state,action,next_state,probability,reward\n", "line 1: it lists no transitions"),
        (NAMED + "rainy,walk,home,1\n", "line 7: 5 columns expected, 4 on the line"),
        (NAMED + "rainy,swim,home,one,0\n", "line 7: a probability expected; found 'one'"),
        (NAMED + "rainy,swim,home,1,inf\n", "line 7: a reward expected; found 'inf'"),
        (NAMED + "rainy,swim,home,,0\n", "line 7: a probability expected; found ''"),
        (NAMED + "rainy,swim,home,0.25,0\n", r"probabilities at state 1 \(rainy\), action 2 sum to 0.25"),
        (NAMED + ",swim,home,1,0\n", "a state has an empty name"),
        (NAMED + '"rainy,swim,home,1,0\n', "not a CSV table"),
        (NAMED + '"rainy",swim,home,1\n', "near line 7: 5 columns expected, 4 found"),
        (NAMED + '"rainy",swim,home,x,1\n', "near line 7: a probability expected"),
        ("0,0,999999999,1,0\n", "speaks of 1,000,000,000 states but has only 1 transitions"),
    ],
)
def test_what_is_refused_and_where(tmp_path, content, message):
    with pytest.raises(InvalidFile, match=message):
        files.read(put(tmp_path, content), 0.9)
