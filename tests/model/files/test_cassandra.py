"""Cassandra's text format: every form of its grammar, against the meaning its specification gives."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.errors import InvalidFile, MissingDiscount
from tightrope.model import files

TIGER = """# a classic
discount: 0.95
values: reward
states: tiger-left tiger-right
actions: listen open-left open-right
observations: hear-left hear-right
start: uniform

T:listen
identity
T:open-left
uniform
T: * : * : 0 0.5    # overridden where the next lines say so
T: open-right : *
uniform
T: listen : tiger-left
1.0 0.0
T: listen : 1
0 1

O: listen
0.85 0.15
0.15 0.85
O: * : * : * 0.5
O: listen : 0 : 0 0.85
O: listen : 0 : 1 0.15
O: listen : 1
0.15 0.85

R: listen : * : * : * -1
R: open-left : tiger-left : * : * -100
R: open-left : tiger-right : * : * +10
R: open-right : tiger-left : * : * 10.0
R: open-right : tiger-right : * : * -1e2
"""


def put(folder, content, name="m.POMDP"):
    (folder / name).write_text(content)
    return folder / name


def test_the_tiger(tmp_path):
    found = files.inspect(put(tmp_path, TIGER))
    mdp = found.mdp
    np.testing.assert_array_equal(mdp.P.toarray(), [[1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1], [0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_array_equal(mdp.r, [-1, -100, 10, -1, 10, -100])
    assert (mdp.gamma, found.format) == (0.95, "Cassandra POMDP")
    assert found.notes == ("the underlying MDP of a POMDP: observations are ignored",)
    assert mdp.pairs.action_names == ("listen", "open-left", "open-right")


def test_rewards_that_depend_on_what_is_seen_are_averaged(tmp_path):
    content = TIGER + "R: listen : tiger-left : * : hear-right 99\n"
    assert files.read(put(tmp_path, content)).r[0] == pytest.approx(0.85 * -1 + 0.15 * 99)
    rows = TIGER + "R: listen : tiger-left : tiger-left\n5 25\n"
    assert files.read(put(tmp_path, rows)).r[0] == pytest.approx(0.85 * 5 + 0.15 * 25)
    matrix = TIGER + "R: listen : tiger-left\n5 25\n7 7\n"
    assert files.read(put(tmp_path, matrix)).r[0] == pytest.approx(0.85 * 5 + 0.15 * 25)


MDP = """discount: 0.9
values: cost
states: 3
actions: 2
start: 1
T: 0 identity
T: 1
0 1 0
0 0 1
0.5 0.5 0
R: 0 : 0 : 0 4
R: 0 : 1
1 2 3
R: 1
0 5 0
0 0 6
2 8 0
"""


def test_an_mdp_with_costs(tmp_path):
    found = files.inspect(put(tmp_path, MDP, "m.MDP"))
    np.testing.assert_array_equal(found.mdp.r, [-4, -5, -2, -6, 0, -5])
    np.testing.assert_array_equal(found.mdp.start, [0, 1, 0])
    assert "costs became rewards" in found.notes[0]
    np.testing.assert_array_equal(files.read(tmp_path / "m.MDP", costs=False).r, [4, 5, 2, 6, 0, 5])


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("start: 2", [0, 0, 1]),
        ("start: 0.25 0.25 0.5", [0.25, 0.25, 0.5]),
        ("start: uniform", [1 / 3, 1 / 3, 1 / 3]),
        ("start include: 0 2", [0.5, 0, 0.5]),
        ("start exclude: 0", [0, 0.5, 0.5]),
        ("", [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_every_form_of_start_and_reset(tmp_path, line, start):
    content = MDP.replace("start: 1", line) + "T: 0 : 2 reset\n"
    mdp = files.read(put(tmp_path, content))
    np.testing.assert_allclose(mdp.start, start)
    np.testing.assert_allclose(mdp.P.toarray()[4], start)


def test_a_start_by_name(tmp_path):
    np.testing.assert_array_equal(files.read(put(tmp_path, TIGER.replace("start: uniform", "start: tiger-right"))).start, [0, 1])


def test_a_discount_of_one_needs_another(tmp_path):
    path = put(tmp_path, TIGER.replace("0.95", "1.0"))
    with pytest.raises(MissingDiscount, match=r"states the discount 1, outside \[0, 1\); give another: .* --gamma 0.99"):
        files.read(path)
    assert files.read(path, 0.5).gamma == 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TIGER.replace("T:listen", "T:listn"), "line 9: an action expected; found 'listn'"),
        (TIGER.replace("values: reward", "values: money"), "line 3: 'reward' or 'cost' expected; found 'money'"),
        (TIGER + "T: listen : 0\n0.5\n", "2 numbers for a row or matrix expected, 1 there; the file ends"),
        (TIGER + "R: listen : 0 : 0 : 7 1\n", "an observation expected; found '7'"),
        (TIGER + "R: listen 1\n", "a state expected: in a POMDP, R needs an action and a state"),
        (TIGER + "Q: 1\n", "a declaration or one of T, O, R expected; found 'Q'"),
        (TIGER + "T: listen : 0 : 0 1e999\n", "a number expected; found '1e999'"),
        (TIGER + "T: listen : 0 identity\n", "2 numbers for a row or matrix expected, 0 there"),
        (TIGER.replace("O: * : * : * 0.5", "O: * : * : * 0.9") + "R: open-left : 0 : 0 : 0 1\n", "the probabilities O of action"),
        (MDP + "O: 0 uniform\n", "observations must be declared before O"),
        ("discount: 0.9\nstates: 2\nstates: 2\n", "line 3: states declared twice"),
        ("discount: 0.9\nstates: a a\n", "distinct names of states expected"),
        ("discount: 0.9\nT: 0 identity\n", "line 2: states and actions must be declared before"),
        ("discount: 0.9\nstates: 3\n", "it declares no actions"),
        (
            "discount: 0.9\nstates: 999999999\nactions: 2\nT: * uniform\n",
            "states that the rest of the file could describe expected",
        ),
        ("discount: 0.9\nstates: 900\nactions: 900\nT: * uniform\n", "expands to more than 20,000,000 entries"),
        ("discount: x\n", "line 1: a number expected; found 'x'"),
        ("states 3\n", "in none of the known formats"),
        (MDP + "T: 0 : 0 : 1 0.5\n", "probabilities at state 0, action 0 sum to 1.5"),
    ],
)
def test_what_is_refused_and_where(tmp_path, content, message):
    with pytest.raises(InvalidFile, match=message):
        files.read(put(tmp_path, content, "m.txt"))
