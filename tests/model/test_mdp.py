"""The one layout: what the constructor accepts, shares and freezes, and what it refuses at the door."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import tightrope as tr
from tightrope.errors import InvalidArgument, InvalidModel, RowsRenormalised, TightropeError

# Two states; s0 has two actions, s1 has one.
P = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
r = np.array([1.0, 2.0, 3.0])
FIRST = [0, 2, 3]


def with_row(row, values):
    changed = P.copy()
    changed[row] = values
    return changed


@pytest.mark.parametrize("n", [1, 3, 4, 5, 9])
def test_the_extreme_rewards_are_found_in_whichever_block_they_are(monkeypatch, n):
    monkeypatch.setattr(tr.model.mdp, "BLOCK", 4)
    for low in range(n):
        for high in range(n):
            rewards = np.full(n, 0.5)
            rewards[low], rewards[high] = -2.0, 7.0
            found = tr.MDP(np.eye(n), rewards, 0.9).reward_range
            assert found == ((7.0, 7.0) if n == 1 else (0.5 if low == high else -2.0, 7.0))


def test_a_twin_with_other_rewards_prints_as_many_actions():
    mdp = tr.MDP(P, r, 0.9, first=FIRST)
    twin = mdp.reshaped(r + 1.0, 0.5)
    assert "(1 to 2 actions a state)" in repr(mdp)
    assert repr(twin) == repr(mdp).replace("gamma=0.9", "gamma=0.5")


def csr(data, columns, starts, S, index=np.int32):
    arrays = (np.array(data, dtype=float), np.array(columns, dtype=index), np.array(starts, dtype=index))
    return sp.csr_array(arrays, shape=(len(starts) - 1, S))


def test_layout():
    mdp = tr.MDP(P, r, 0.9, FIRST)
    assert (mdp.n_states, mdp.n_pairs, mdp.gamma) == (2, 3, 0.9)
    np.testing.assert_array_equal(mdp.P.toarray(), P)
    np.testing.assert_array_equal(mdp.first, FIRST)
    np.testing.assert_array_equal(mdp.start, [0.5, 0.5])
    assert mdp.width == 2
    assert mdp.reward_range == (1.0, 3.0)
    assert mdp.reward_size == 3.0
    assert mdp.P.indices.dtype == mdp.P.indptr.dtype == mdp.first.dtype == np.int32


def test_by_default_every_state_has_the_same_number_of_actions():
    np.testing.assert_array_equal(tr.MDP(np.tile(np.eye(2), (3, 1)), np.zeros(6), 0.5).first, [0, 3, 6])


def test_arrays_are_read_only_and_the_model_is_frozen():
    mdp = tr.MDP(P, r, 0.9, FIRST, start=[1.0, 0.0], actions=[0, 2, 5])
    for array in (mdp.P.data, mdp.P.indices, mdp.P.indptr, mdp.r, mdp.first, mdp.start, mdp.pairs.ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        mdp.gamma = 0.5


def test_what_fits_is_shared_and_the_users_own_array_stays_writable():
    given, rewards = csr([0.5, 0.5, 1, 1], [0, 1, 0, 1], [0, 2, 3, 4], 2), r.copy()
    mdp = tr.MDP(given, rewards, 0.9, FIRST)
    for mine, theirs in ((mdp.P.data, given.data), (mdp.P.indices, given.indices), (mdp.r, rewards)):
        assert np.shares_memory(mine, theirs)
    assert np.shares_memory(mdp.P.indptr, given.indptr)
    given.data[:] = given.data
    rewards[:] = rewards


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (csr([0.5, 0.25, 0.25, 1, 1], [1, 0, 0, 0, 1], [0, 3, 4, 5], 2), "duplicates out of order"),
        (csr([0.5, 0.5, 1, 0, 1], [0, 1, 0, 1, 1], [0, 2, 4, 5], 2), "an explicit zero"),
        (csr([0.5, 0.5, 1, 1], [1, 0, 0, 1], [0, 2, 3, 4], 2), "columns out of order"),
        (csr([0.5, 0.5, 1, 1], [0, 1, 0, 1], [0, 2, 3, 4], 2, np.int64), "64-bit indices"),
        (csr([0.5, 0.5, 1, 1], [0, 1, 0, 1], [0, 2, 3, 4], 2).astype(np.float32), "32-bit numbers"),
        (csr([0.5, 0.5, 1, 1], [1, 0, 0, 1], [0, 2, 3, 4], 2).astype(np.float32), "32-bit numbers out of order"),
        (csr([0.5, 0.5, 1, 1], [0, 1, 0, 1], [0, 2, 3, 4], 2).tocsc(), "another format"),
        (csr([0.5, 0.5, 1, 1], [0, 1, 0, 1], [0, 2, 3, 4], 2).tocoo(), "a list of entries"),
        (sp.csr_matrix(P), "the old matrix class"),
        (P.tolist(), "lists"),
        (np.asfortranarray(P), "columns first in memory"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_does_not_fit_is_converted_without_touching_the_users_memory(given, why):
    arrays = (
        [getattr(given, name) for name in ("data", "indices", "indptr") if hasattr(given, name)] if sp.issparse(given) else []
    )
    before = [array.copy() for array in arrays]
    mdp = tr.MDP(given, r, 0.9, FIRST)
    np.testing.assert_array_equal(mdp.P.toarray(), P, err_msg=why)
    assert mdp.P.has_canonical_format
    assert mdp.P.nnz == 4
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((with_row(1, [0.9, 0.0]), r, 0.9, FIRST), "state 0, action 1 sum to 0.9; they must sum to 1. Add the missing"),
        ((with_row(2, [0.5, 0.6]), r, 0.9, FIRST), "state 1, action 0 sum to 1.1; .* or divide the row by its sum"),
        ((with_row(2, [0.0, 0.0]), r, 0.9, FIRST), "state 1, action 0 sum to 0; "),
        ((with_row(0, [-0.5, 1.5]), r, 0.9, FIRST), "P at state 0, action 0 to state 0 is -0.5; a probability is a number in"),
        ((with_row(2, [np.nan, 1.0]), r, 0.9, FIRST), "P at state 1, action 0 to state 0 is nan"),
        ((with_row(2, [0.0, np.inf]), r, 0.9, FIRST), "P at state 1, action 0 to state 1 is inf"),
        ((with_row(2, [-np.inf, 1.0]), r, 0.9, FIRST), "P at state 1, action 0 to state 0 is -inf"),
        ((P, [1, np.nan, 3], 0.9, FIRST), "r at state 0, action 1 is nan; rewards must be finite. Leave out an action"),
        ((P, [1, -2e299, 3], 0.9, FIRST), r"r at state 0, action 1 is -2e\+299; at gamma=0.9 values may be 10 times as large"),
        ((P, [1, 2, np.inf], 0.9, FIRST), "r at state 1, action 0 is inf"),
        ((P, [1, 2, -np.inf], 0.9, FIRST), "r at state 1, action 0 is -inf"),
        (
            (P, r, 1.0, FIRST),
            r"gamma must lie in \[0, 1\); found 1.0. For an undiscounted problem choose a discount close to one",
        ),
        ((P, r, 1.2, FIRST), "gamma must lie in .* found 1.2"),
        ((P, r, -0.1, FIRST), "gamma must lie in .* found -0.1"),
        ((P, r, np.nan, FIRST), "gamma must lie in .* found nan"),
        ((P, r, np.inf, FIRST), "gamma must lie in .* found inf"),
        ((P, r, "high", FIRST), "gamma must be a number; found 'high'"),
        ((P, r, None, FIRST), "gamma must be a number; found None"),
        (
            (csr([1, 1], [0, 5], [0, 1, 2], 2), [0, 0], 0.9),
            "row 1 of P names the successor state 5, but states are numbered 0 to 1",
        ),
        ((csr([1, 1], [-1, 0], [0, 1, 2], 2), [0, 0], 0.9), "row 0 of P names the successor state -1"),
        ((csr([1, 1], [0, 5], [0, 1, 2], 2).T, [0, 0], 0.9), "P is not a valid sparse matrix"),
        ((np.ones((2, 2, 2)) / 2, r, 0.9), r"found shape \(2, 2, 2\). For P\[S, A, S\] use MDP.from_dense"),
        ((np.ones(3), r, 0.9), r"P must have two dimensions \[pairs, states\]; found shape \(3,\)"),
        (("P", r, 0.9), "P must be a matrix of numbers"),
        ((P * 1j, r, 0.9), "P must be a matrix of numbers"),
        ((sp.csr_array(P * 1j), r, 0.9), "P holds complex128 numbers; probabilities are real"),
        ((P, r * 1j, 0.9, FIRST), "r must be an array of numbers"),
        ((P, ["a", "b", "c"], 0.9, FIRST), "r must be an array of numbers"),
        ((P, r, 0.9), "P has 3 rows for 2 states, which is not the same number .* or use MDP.from_pairs"),
        ((np.zeros((0, 2)), [], 0.9), "P has 0 rows for 2 states"),
        ((np.zeros((2, 0)), [0, 0], 0.9), "P has no columns; a model has at least one state"),
        ((P, [1.0, 2.0], 0.9, FIRST), r"r must have shape \(3,\), one reward per \(state, action\) pair; found shape \(2,\)"),
        ((P, np.zeros((2, 2)), 0.9, FIRST), r"found shape \(2, 2\). For r\[S, A\] use MDP.from_dense"),
        ((P, r, 0.9, [0, 2, 4]), "first must have 3 entries that run from 0 to 3, the number of rows of P"),
        ((P, r, 0.9, [0, 3]), "first must have 3 entries"),
        ((P, r, 0.9, []), "first must have 3 entries"),
        ((P, r, 0.9, [0, 1.5, 3]), "first must be integers; found an array of float64 that starts"),
        ((P, r, 0.9, [0, 3, 3]), r"state 1 has no action \(first\[1\]=3, first\[2\]=3\).* Make it terminal"),
        ((P, r, 0.9, [0, 0, 3]), "state 0 has no action"),
    ],
)
def test_refused_at_the_door(arguments, message):
    with pytest.raises(InvalidModel, match=message):
        tr.MDP(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": [0.5, 0.4]}, "start sums to 0.9; a distribution over states sums to 1. Divide it by its sum."),
        ({"start": [1.5, -0.5]}, r"start\[1\] is -0.5; probabilities cannot be negative"),
        ({"start": [1.0]}, r"start must have shape \(2,\), one entry per state; found shape \(1,\)"),
        ({"start": [np.nan, 1.0]}, r"start\[0\] is nan"),
        ({"actions": [0, 0, 0]}, "state 0 lists action 0 after action 0; within a state, actions must be distinct"),
        ({"actions": [3, 1, 0]}, "state 0 lists action 1 after action 3; .* MDP.from_pairs sorts them for you"),
        ({"actions": [0, 0.5, 0]}, "actions must be integers; found an array of float64 that starts"),
        ({"actions": ["a", "b", "c"]}, "actions must be integers"),
        ({"actions": [-1, 0, 0]}, "actions are numbered from 0 to at most 2147483647; found -1"),
        ({"actions": [0, 2**40, 0]}, "found 1099511627776"),
        ({"actions": [0, 1]}, r"actions must have shape \(3,\), one per pair; found \(2,\)"),
        ({"state_names": ["a"]}, "state_names has 1 entries for 2 states"),
        ({"action_names": ["a"]}, "action_names has 1 entries for 2 actions"),
    ],
)
def test_bad_decoration_and_numbers_are_refused(options, message):
    with pytest.raises((InvalidModel, InvalidArgument), match=message):
        tr.MDP(P, r, 0.9, FIRST, **options)


def test_errors_are_of_one_family_and_are_value_errors():
    for error in (InvalidModel, InvalidArgument):
        assert issubclass(error, TightropeError)
        assert issubclass(error, ValueError)


def test_errors_use_the_names_given():
    with pytest.raises(InvalidModel, match=re.escape("state 1 (shop), action 0 (wait) sum to 0.9")):
        tr.MDP(with_row(2, [0.9, 0.0]), r, 0.9, FIRST, state_names=["home", "shop"], action_names=["wait", "walk"])


@pytest.mark.parametrize("off", [1e-5, -1e-5, 1e-7, 1e-11])
def test_rows_off_by_print_rounding_are_renormalised_with_a_warning_that_says_how_much(off):
    given = with_row(0, [0.5, 0.5 + 0.999 * off])
    with pytest.warns(
        RowsRenormalised, match=rf"1 of 3 rows of P did not sum to 1 \(off by at most {abs(0.999 * off):.2g}\)"
    ) as seen:
        mdp = tr.MDP(given, r, 0.9, FIRST)
    assert seen[0].filename == __file__  # the warning points at the user's line
    np.testing.assert_allclose(mdp.P.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(mdp.P.toarray()[0], given[0] / given[0].sum(), rtol=1e-15)
    assert mdp.slack <= 1e-15


def test_rows_off_by_more_are_refused_and_by_less_are_kept_as_they_are():
    with pytest.raises(InvalidModel, match=r"sum to 1\.00002"):
        tr.MDP(with_row(0, [0.5, 0.50002]), r, 0.9, FIRST)
    given = csr([0.5, 0.5 + 5e-13, 1, 1], [0, 1, 0, 1], [0, 2, 3, 4], 2)
    mdp = tr.MDP(given, r, 0.9, FIRST)
    assert np.shares_memory(mdp.P.data, given.data)
    assert 4e-13 < mdp.slack < 6e-13


def test_the_users_matrix_is_not_renormalised_in_place():
    given = csr([0.5, 0.5 + 1e-6, 1, 1], [0, 1, 0, 1], [0, 2, 3, 4], 2)
    with pytest.warns(RowsRenormalised):
        tr.MDP(given, r, 0.9, FIRST)
    assert given.data[1] == 0.5 + 1e-6


def test_a_start_off_by_rounding_is_renormalised():
    mdp = tr.MDP(P, r, 0.9, FIRST, start=[0.3, 0.7 + 1e-7])
    assert abs(mdp.start.sum() - 1.0) < 1e-15


def test_terminal_states_are_those_that_stay_for_nothing():
    # 0: stays for nothing. 1: stays, but earns. 2: has one action that leaves. 3: two actions, both stay for nothing.
    rows = np.eye(4)[[0, 1, 2, 0, 3, 3]]
    mdp = tr.MDP(rows, [0, 1, 0, 0, 0, 0], 0.9, [0, 1, 2, 4, 6])
    assert mdp.terminal.tolist() == [True, False, False, True]


def test_repr_tells_the_size():
    assert (
        repr(tr.MDP(P, r, 0.9, FIRST)) == "MDP(2 states, 3 pairs (1 to 2 actions a state), 4 transitions, gamma=0.9, 0.0001 MB)"
    )
    even = repr(tr.MDP(np.tile(np.eye(1000), (2, 1)), np.zeros(2000), 0.99))
    assert even.startswith("MDP(1,000 states, 2,000 pairs (2 actions a state), 2,000 transitions, gamma=0.99, 0.0")


def test_names_of_states_and_actions():
    mdp = tr.MDP(P, r, 0.9, FIRST, actions=[0, 2, 1], state_names=["home", "shop"], action_names=["wait", "walk", "ride"])
    assert mdp.pairs.state(1) == "state 1 (shop)"
    assert mdp.pairs.describe(1) == "state 0 (home), action 2 (ride)"
    assert mdp.pairs.describe(2) == "state 1 (shop), action 1 (walk)"


def test_gamma_zero_and_close_to_one_are_fine():
    assert tr.MDP(P, r, 0, FIRST).gamma == 0.0
    assert tr.MDP(P, r, 0.999999, FIRST).gamma == 0.999999
    assert tr.MDP(P, r, np.float32(0.5), FIRST).gamma == 0.5
