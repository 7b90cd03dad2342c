"""Which actions each state offers: numbering, looking up, describing."""

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InvalidPolicy


def model(states, actions, **names):
    n = max(states) + 1
    return tr.MDP.from_pairs(states, actions, np.eye(n)[states], np.zeros(len(states)), 0.5, **names).pairs


LOCAL = model([0, 0, 1, 2, 2, 2], [0, 1, 0, 0, 1, 2])
ODD = model([0, 0, 1, 2, 2, 2], [4, 8, 0, 1, 2, 9])


def test_counts_states_and_actions():
    for pairs, n_actions in ((LOCAL, 3), (ODD, 10)):
        assert (pairs.n_states, pairs.n_pairs, pairs.n_actions) == (3, 6, n_actions)
        assert pairs.counts.tolist() == [2, 1, 3]
        assert pairs.states.tolist() == [0, 0, 1, 2, 2, 2]
    assert LOCAL.actions.tolist() == [0, 1, 0, 0, 1, 2]
    assert ODD.actions.tolist() == [4, 8, 0, 1, 2, 9]


def test_numbers_0_1_2_are_not_stored():
    assert LOCAL.ids is None
    assert ODD.ids is not None
    assert model([0, 1, 1], [0, 0, 2]).ids is not None
    assert model([0, 1, 1], [1, 0, 1]).ids is not None


def test_rows_of_actions_and_back():
    rng = np.random.default_rng(19)
    for pairs in (LOCAL, ODD):
        for _ in range(20):
            rows = pairs.first[:-1] + (rng.random(3) * pairs.counts).astype(int)
            np.testing.assert_array_equal(pairs.rows(pairs.actions[rows]), rows)
            for s in range(3):
                assert pairs.row(s, int(pairs.actions[rows[s]])) == rows[s]


@pytest.mark.parametrize("pairs", [LOCAL, ODD])
@pytest.mark.parametrize("action", [-1, 3, 5, 100, 2**33])
def test_an_action_that_is_not_offered_is_refused_by_name(pairs, action):
    offers = ", ".join(map(str, pairs.actions[pairs.first[1] : pairs.first[2]]))
    good = pairs.actions[pairs.first[:-1]].astype(np.int64)
    good[1] = action
    with pytest.raises(InvalidPolicy, match=f"state 1 has no action {action}; it offers {offers}"):
        pairs.rows(good)
    with pytest.raises(InvalidPolicy, match=f"state 1 has no action {action}; it offers {offers}"):
        pairs.row(1, action)


def test_describe():
    named = model([0, 1, 1], [1, 0, 1], state_names=["in", "out"], action_names=["go", "stop"])
    assert [named.describe(row) for row in range(3)] == [
        "state 0 (in), action 1 (stop)",
        "state 1 (out), action 0 (go)",
        "state 1 (out), action 1 (stop)",
    ]
    assert ODD.describe(5) == "state 2, action 9"


def test_same_ignores_names_and_nothing_else():
    assert LOCAL.same(LOCAL)
    assert LOCAL.same(model([0, 0, 1, 2, 2, 2], [0, 1, 0, 0, 1, 2], state_names=["a", "b", "c"]))
    assert not LOCAL.same(ODD)
    assert not LOCAL.same(model([0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]))
    assert not ODD.same(model([0, 0, 1, 2, 2, 2], [4, 8, 0, 1, 2, 10]))
