"""Every constructor arrives at the same model, and refuses what is none."""

import numpy as np
import pytest
import scipy.sparse as sp

import reference
import tightrope as tr
from bridge import pool
from tightrope.errors import InvalidArgument, InvalidModel, RowsRenormalised

# Two states, two actions.
P = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]])
r = np.array([[1.0, 2.0], [3.0, 4.0]])


def same(one, two):
    """Whether two models are the same, to the last bit of rounding."""
    np.testing.assert_array_equal(one.first, two.first)
    np.testing.assert_array_equal(one.pairs.actions, two.pairs.actions)
    np.testing.assert_allclose(one.P.toarray(), two.P.toarray(), rtol=1e-15, atol=0)
    np.testing.assert_allclose(one.r, two.r, rtol=1e-14, atol=1e-15)
    assert one.gamma == two.gamma


def as_function(case):
    """A dense case as a function over arrays of states: every state listed as a successor, infeasible pairs by -inf."""

    def dynamics(states, action):
        successors = np.broadcast_to(np.arange(len(case.v)), (len(states), len(case.v)))
        return successors, case.P[states, action], np.where(case.ok[states, action], case.r[states, action], -np.inf)

    return dynamics


def test_all_constructors_agree_on_ragged_random_models():
    rng = np.random.default_rng(16)
    for case, dense in pool()[:120]:
        S, A = case.r.shape
        s, a = np.nonzero(case.ok)
        order = rng.permutation(len(s))
        rows = case.P[s, a]
        same(dense, tr.MDP.from_pairs(s[order], a[order], rows[order], case.r[s, a][order], case.gamma))
        same(dense, tr.MDP.from_actions([case.P[:, i] for i in range(A)], case.r, case.gamma, feasible=case.ok))
        sparse = [sp.csr_array(case.P[:, i]) for i in range(A)]
        same(dense, tr.MDP.from_actions(sparse, np.where(case.ok, case.r, -np.inf), case.gamma))
        same(dense, tr.MDP.from_dense(case.P, np.where(case.ok, case.r, -np.inf), case.gamma))
        same(dense, tr.MDP.from_function(as_function(case), S, A, case.gamma, chunk=int(rng.integers(1, S + 2))))
        same(dense, tr.MDP(rows, case.r[s, a], case.gamma, dense.first, actions=a))


def test_from_dense_with_the_three_shapes_of_reward():
    by_successor = np.arange(8.0).reshape(2, 2, 2)
    mean = (P * by_successor).sum(axis=2)
    same(tr.MDP.from_dense(P, by_successor, 0.9), tr.MDP.from_dense(P, mean, 0.9))
    same(tr.MDP.from_dense(P, [5.0, 6.0], 0.9), tr.MDP.from_dense(P, [[5.0, 5.0], [6.0, 6.0]], 0.9))


def test_rewards_of_impossible_transitions_do_not_matter():
    by_successor = np.ones((2, 2, 2))
    by_successor[0, 1, 1], by_successor[1, 0, 0] = np.nan, -np.inf  # P is zero there
    np.testing.assert_array_equal(tr.MDP.from_dense(P, by_successor, 0.9).r, np.ones(4))


def test_infeasible_by_mask_and_by_minus_infinity():
    expected = tr.MDP.from_pairs([0, 1, 1], [1, 0, 1], P[[0, 1, 1], [1, 0, 1]], [2.0, 3.0, 4.0], 0.9)
    mask = np.array([[False, True], [True, True]])
    same(tr.MDP.from_dense(P, r, 0.9, feasible=mask), expected)
    same(tr.MDP.from_dense(P, np.where(mask, r, -np.inf), 0.9), expected)
    nonsense = P.copy()
    nonsense[0, 0] = np.nan  # what is not offered need not be a probability
    same(tr.MDP.from_dense(nonsense, r, 0.9, feasible=mask), expected)
    by_successor = np.repeat(r[:, :, None], 2, axis=2)
    by_successor[0, 0, 1] = -np.inf
    same(tr.MDP.from_dense(P, by_successor, 0.9), expected)
    assert expected.pairs.actions.tolist() == [1, 0, 1]


@pytest.mark.parametrize("terminal", [[1], 1, np.array([False, True]), [1.0]])
def test_terminal_states_absorb_for_nothing_whatever_P_and_r_say(terminal):
    nonsense = P.copy()
    nonsense[1] = 7.0
    for mdp in (
        tr.MDP.from_dense(nonsense, r, 0.9, terminal=terminal),
        tr.MDP.from_actions([nonsense[:, 0], nonsense[:, 1]], r, 0.9, terminal=terminal),
        tr.MDP.from_function(
            lambda s, a: (np.tile([0, 1], (len(s), 1)), nonsense[s, a], r[s, a]), 2, 2, 0.9, terminal=terminal, chunk=1
        ),
    ):
        assert mdp.terminal.tolist() == [False, True]
        np.testing.assert_array_equal(mdp.P.toarray(), [[0.5, 0.5], [1, 0], [0, 1]])
        np.testing.assert_array_equal(mdp.r, [1, 2, 0])
        assert tr.T(mdp, [0.0, 10.0])[1] == 9.0


def test_no_terminal_state():
    for nothing in (None, [], np.zeros(2, dtype=bool)):
        same(tr.MDP.from_dense(P, r, 0.9, terminal=nothing), tr.MDP.from_dense(P, r, 0.9))


def test_start_and_names_arrive():
    options = {"start": [0.25, 0.75], "state_names": ["home", "shop"], "action_names": ["wait", "walk"]}
    for mdp in (
        tr.MDP.from_dense(P, r, 0.9, **options),
        tr.MDP.from_actions([P[:, 0], P[:, 1]], r, 0.9, **options),
        tr.MDP.from_pairs([0, 0, 1, 1], [0, 1, 0, 1], P.reshape(4, 2), r.ravel(), 0.9, **options),
        tr.MDP.from_function(lambda s, a: (np.tile([0, 1], (len(s), 1)), P[s, a], r[s, a]), 2, 2, 0.9, **options),
    ):
        np.testing.assert_array_equal(mdp.start, [0.25, 0.75])
        assert mdp.pairs.describe(3) == "state 1 (shop), action 1 (walk)"


def test_from_function_repeated_padded_and_scalar_answers():
    """A walk on a ring: successors repeat (summed), are padded (dropped, whatever they hold), and k may differ by action."""
    S = 7

    def dynamics(states, action):
        if action == 0:  # the same successor twice, one probability for all
            return np.stack([states, states], axis=1), 0.5, -1.0
        if action == 1:  # one successor each, as a plain vector
            return (states + 1) % S, 1.0, states.astype(float)
        padded = np.stack([(states + 1) % S, (states - 1) % S, np.full_like(states, -99)], axis=1)
        return padded, [0.75, 0.25, 0.0], np.stack([states * 1.0, states * 0.0, np.full(len(states), np.inf)], axis=1)

    mdp = tr.MDP.from_function(dynamics, S, 3, 0.9, chunk=3)
    dense, rewards = np.zeros((S, 3, S)), np.zeros((S, 3))
    for s in range(S):
        dense[s, 0, s] = dense[s, 1, (s + 1) % S] = 1.0
        dense[s, 2, (s + 1) % S], dense[s, 2, (s - 1) % S] = 0.75, 0.25
        rewards[s] = -1.0, s, 0.75 * s
    same(mdp, tr.MDP.from_dense(dense, rewards, 0.9))
    assert mdp.P.nnz == 4 * S


@pytest.mark.parametrize("chunk", [1, 2, 99, 100, 101, 1 << 15])
def test_from_function_does_not_depend_on_its_chunks(chunk):
    calls = []

    def dynamics(states, action):
        calls.append((int(states[0]), len(states), action))
        return np.stack([states // 2, states], axis=1), [0.25, 0.75], np.where((states + action) % 5 == 0, -np.inf, states)

    whole = tr.MDP.from_function(dynamics, 100, 3, 0.9)
    calls.clear()
    same(tr.MDP.from_function(dynamics, 100, 3, 0.9, chunk=chunk), whole)
    assert [c for c in calls if c[2] == 0] == [(b, min(chunk, 100 - b), 0) for b in range(0, 100, chunk)]
    assert whole.n_pairs == 240
    assert set(whole.pairs.counts.tolist()) == {2, 3}


def test_from_function_draws_a_bar_when_asked(capsys):
    tr.MDP.from_function(lambda s, _: (s, 1.0, 0.0), 10, 1, 0.9, chunk=2, show_progress=True)
    assert capsys.readouterr().out == ""


def test_large_from_pairs_that_is_sorted_already_shares_P():
    rows = sp.csr_array(P.reshape(4, 2))
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    mdp = tr.MDP.from_pairs([0, 0, 1, 1], [0, 1, 0, 1], rows, r.ravel(), 0.9)
    assert np.shares_memory(mdp.P.data, rows.data)
    assert mdp.pairs.ids is None  # 0, 1, ... in every state need not be stored


def test_rows_off_by_print_rounding_warn_from_every_constructor():
    printed = np.array([[[0.33333, 0.33333, 0.33333]], [[0, 1, 0]], [[0, 0, 1]]])
    zeros = np.zeros((3, 1))
    for build in (
        lambda: tr.MDP.from_dense(printed, zeros, 0.9),
        lambda: tr.MDP.from_actions([printed[:, 0]], zeros, 0.9),
        lambda: tr.MDP.from_pairs([0, 1, 2], [0, 0, 0], printed[:, 0], [0, 0, 0], 0.9),
        lambda: tr.MDP.from_function(lambda s, a: (np.tile([0, 1, 2], (len(s), 1)), printed[s, a], 0.0), 3, 1, 0.9),
    ):
        with pytest.warns(RowsRenormalised, match=r"1 of 3 rows of P did not sum to 1 \(off by at most 1e-05\)") as seen:
            mdp = build()
        assert seen[0].filename == __file__
        np.testing.assert_allclose(mdp.P.toarray()[0], 1 / 3, rtol=1e-15)


ZERO = np.zeros((2, 2))


def changed(index, value, array=P):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("build", "message"),
    [
        # from_dense
        (lambda: tr.MDP.from_dense(changed((0, 0), [0.5, 0.4]), r, 0.9), "state 0, action 0 sum to 0.9"),
        (lambda: tr.MDP.from_dense(changed((1, 1), [0.5, 0.6]), r, 0.9), "state 1, action 1 sum to 1.1"),
        (lambda: tr.MDP.from_dense(changed((1, 0), [-0.5, 1.5]), r, 0.9), "state 1, action 0 to state 0 is -0.5"),
        (lambda: tr.MDP.from_dense(changed((1, 0, 0), np.nan), r, 0.9), "state 1, action 0 to state 0 is nan"),
        (lambda: tr.MDP.from_dense(changed((1, 0, 0), np.inf), r, 0.9), "state 1, action 0 to state 0 is inf"),
        (lambda: tr.MDP.from_dense(P, changed((0, 1), np.nan, r), 0.9), "r at state 0, action 1 is nan"),
        (lambda: tr.MDP.from_dense(P, changed((0, 1), np.inf, r), 0.9), "r at state 0, action 1 is inf"),
        (lambda: tr.MDP.from_dense(P, np.full((2, 2, 2), np.nan), 0.9), "r at state 0, action 0 is nan"),
        (lambda: tr.MDP.from_dense(P, r, 1.0), "gamma must lie in"),
        (lambda: tr.MDP.from_dense(P[0], r, 0.9), r"P must have shape \[S, A, S\]; found \(2, 2\)"),
        (lambda: tr.MDP.from_dense(np.ones((3, 2, 2)), r, 0.9), r"looks like \[A, S, S\]: use MDP.from_actions\(P, r, gamma\)"),
        (lambda: tr.MDP.from_dense([[[1, 0], [1]]], r, 0.9), "P must be an array of numbers of shape"),
        (lambda: tr.MDP.from_dense(P * 1j, r, 0.9), "P must be an array of numbers of shape"),
        (lambda: tr.MDP.from_dense(np.zeros((2, 0, 2)), np.zeros((2, 0)), 0.9), "every state at least one action"),
        (lambda: tr.MDP.from_dense(np.zeros((0, 2, 0)), np.zeros((0, 2)), 0.9), "at least one state"),
        (lambda: tr.MDP.from_dense(P, np.zeros((2, 3)), 0.9), r"r must have shape \[S, A\], \[S, A, S\] or \[S\] with S=2, A=2"),
        (lambda: tr.MDP.from_dense(P, "free", 0.9), "r must be an array of numbers"),
        (lambda: tr.MDP.from_dense(P, r, 0.9, feasible=np.array([[1, 1], [0, 0]], dtype=bool)), "state 1 has no action"),
        (lambda: tr.MDP.from_dense(P, [[1, 1], [-np.inf, -np.inf]], 0.9), "state 1 has no action"),
        (lambda: tr.MDP.from_dense(P, r, 0.9, feasible=[[1, 1], [1, 0]]), r"boolean array of shape \(2, 2\); found int64"),
        (lambda: tr.MDP.from_dense(P, r, 0.9, feasible=np.ones(2, dtype=bool)), r"shape \(2, 2\); found bool \(2,\)"),
        (lambda: tr.MDP.from_dense(P, r, 0.9, terminal=[2]), "terminal names state 2 of 2 states"),
        (lambda: tr.MDP.from_dense(P, r, 0.9, terminal=[-1]), "terminal names state -1 of 2 states"),
        (lambda: tr.MDP.from_dense(P, r, 0.9, terminal=[0.5]), "terminal must be integers"),
        (lambda: tr.MDP.from_dense(P, r, 0.9, terminal=[True]), r"terminal as a mask must have shape \(2,\); found \(1,\)"),
        # from_actions
        (lambda: tr.MDP.from_actions([], r, 0.9), "P lists no action; give one"),
        (lambda: tr.MDP.from_actions([np.eye(2), np.eye(3)], r, 0.9), r"P\[1\] has shape \(3, 3\); every action needs a square"),
        (lambda: tr.MDP.from_actions([np.eye(2), 0.9 * np.eye(2)], r, 0.9), "state 0, action 1 sum to 0.9"),
        (lambda: tr.MDP.from_actions([np.eye(2)] * 2, np.zeros((2, 2, 2)), 0.9), r"r must have shape \[S, A\] or \[S\]"),
        # from_pairs
        (lambda: tr.MDP.from_pairs([0, 1, 0], [0, 0, 0], P[0, [0, 1, 1]], [0, 0, 0], 0.9), r"twice \(rows 0 and 2 of P\)"),
        (lambda: tr.MDP.from_pairs([0, 2], [0, 0], np.eye(2), [0, 0], 0.9), "states holds 2, but states are numbered 0 to 1"),
        (lambda: tr.MDP.from_pairs([0, -1], [0, 0], np.eye(2), [0, 0], 0.9), "states holds -1"),
        (lambda: tr.MDP.from_pairs([0, 0], [0, 1], np.eye(2), [0, 0], 0.9), "state 1 has no action"),
        (lambda: tr.MDP.from_pairs([0], [0, 0], np.eye(2), [0, 0], 0.9), r"states must have shape \(2,\), one entry per row"),
        (lambda: tr.MDP.from_pairs([0, 1], [0], np.eye(2), [0, 0], 0.9), r"actions must have shape \(2,\)"),
        (lambda: tr.MDP.from_pairs([0, 1], [0, 0], np.eye(2), [0], 0.9), r"r must have shape \(2,\)"),
        (lambda: tr.MDP.from_pairs([0, 1], [0, 0], np.eye(2), ["a", "b"], 0.9), "r must be an array of numbers"),
        (lambda: tr.MDP.from_pairs([0, 1], [0, 0.5], np.eye(2), [0, 0], 0.9), "actions must be integers"),
        (lambda: tr.MDP.from_pairs([0, 1], [0, -1], np.eye(2), [0, 0], 0.9), "actions are numbered from 0 .* found -1"),
        (lambda: tr.MDP.from_pairs([], [], np.zeros((0, 2)), [], 0.9), "P has no rows"),
        (lambda: tr.MDP.from_pairs([1, 0], [7, 0], 0.6 * np.eye(2), [0, 0], 0.9), "state 0, action 0 sum to 0.6"),
        # from_function
        (lambda: tr.MDP.from_function(lambda s, _: (s + 1, 1.0, 0.0), 3, 2, 0.9), "state 2, action 0 leads to state 3"),
        (lambda: tr.MDP.from_function(lambda s, _: (s - 1, 1.0, 0.0), 3, 2, 0.9), "state 0, action 0 leads to state -1"),
        (lambda: tr.MDP.from_function(lambda s, _: (s + 0.5, 1.0, 0.0), 3, 2, 0.9), "next states of action 0 must be integers"),
        (lambda: tr.MDP.from_function(lambda s, _: (s[:2], 1.0, 0.0), 3, 2, 0.9), r"shape \(2,\); for these 3 states expected"),
        (lambda: tr.MDP.from_function(lambda s, _: (s.reshape(1, -1), 1.0, 0.0), 3, 2, 0.9), r"have shape \(1, 3\)"),
        (lambda: tr.MDP.from_function(lambda s, _: (s[:, None][:, :0], 1.0, 0.0), 3, 2, 0.9), r"\(3, k\) with k >= 1"),
        (lambda: tr.MDP.from_function(lambda s, _: (s, np.ones((2, 2)), 0.0), 3, 2, 0.9), r"probabilities of shape \(2, 2\)"),
        (lambda: tr.MDP.from_function(lambda s, _: (s, 1.0, np.zeros(2)), 3, 2, 0.9), r"rewards of shape \(2,\) do not fit"),
        (lambda: tr.MDP.from_function(lambda *_: None, 3, 2, 0.9), "returned NoneType for action 0; it must return three"),
        (lambda: tr.MDP.from_function(lambda s, _: (s, 1.0), 3, 2, 0.9), "it must return three things"),
        (lambda: tr.MDP.from_function(lambda s, a: (s, np.where(s == a, 0.9, 1.0)[:, None], 0.0), 3, 2, 0.9, chunk=1),
         "state 0, action 0 sum to 0.9"),
        (lambda: tr.MDP.from_function(lambda s, _: (s, 1.0, np.where(s == 1, np.nan, 0.0)), 3, 2, 0.9), "r at state 1"),
        (lambda: tr.MDP.from_function(lambda s, _: (s, 1.0, np.where(s == 1, -np.inf, 0.0)), 3, 2, 0.9), "state 1 has no action"),
        (lambda: tr.MDP.from_function(lambda s, _: (s, np.where(s == 1, np.nan, 1.0)[:, None], 0.0), 3, 2, 0.9), "is nan"),
        (lambda: tr.MDP.from_function(lambda s, _: (s, 1.0, 0.0), 3, 2, 1.0), "gamma must lie in"),
    ],
)  # fmt: skip
def test_refused_by_name(build, message):
    with pytest.raises(InvalidModel, match=message):
        build()


@pytest.mark.parametrize("sizes", [{"n_states": 0}, {"n_actions": 0}, {"n_states": 2.5}, {"chunk": 0}, {"chunk": -1}])
def test_sizes_are_positive_integers(sizes):
    arguments = {"n_states": 3, "n_actions": 2, "gamma": 0.9, **sizes}
    with pytest.raises(InvalidArgument, match=f"{next(iter(sizes))} must be an integer >= 1"):
        tr.MDP.from_function(lambda s, _: (s, 1.0, 0.0), **arguments)


def test_an_error_of_the_users_function_is_the_users():
    with pytest.raises(ZeroDivisionError):
        tr.MDP.from_function(lambda s, a: (s, 1 // a, 0.0), 3, 2, 0.9)


def test_the_reference_tightrope_is_the_papers():
    """What the other tests rely on: values of both policies by hand."""
    case = reference.tightrope(2.0, 0.9)
    np.testing.assert_allclose(reference.value(case, case.pi), [0.0, -18.0, 10.0, -20.0], rtol=1e-13)
    np.testing.assert_allclose(reference.value(case, case.pi_2), [8.1, 9.0, 10.0, -20.0], rtol=1e-13)
    np.testing.assert_allclose(case.v_star, [8.1, 9.0, 10.0, -20.0], rtol=1e-13)
