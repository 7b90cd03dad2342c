"""Policies: one integer a state or a weight per pair; mixing, distance, sampling, and models they do not belong to."""

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of, policy_of, pool, weights_of
from tightrope.errors import InvalidArgument, InvalidPolicy


@pytest.fixture
def mdp():
    """Four states: two actions in s0 and s1, one in s2 and s3."""
    return mdp_of(reference.tightrope(1.0, 0.9))


@pytest.fixture
def odd():
    """Two states whose actions have other numbers: 3 and 7, and 0, 5 and 9."""
    return tr.MDP.from_pairs([0, 0, 1, 1, 1], [3, 7, 0, 5, 9], np.eye(2)[[0, 1, 0, 1, 1]], np.zeros(5), 0.5, state_names="ab")


def test_deterministic(mdp):
    pi = tr.Policy.deterministic(mdp, [1, 0, 0, 0])
    assert pi.is_deterministic
    assert pi.actions.tolist() == [1, 0, 0, 0]
    assert pi.weights.tolist() == [0, 1, 1, 0, 1, 1]
    assert tr.Policy.deterministic(mdp, 0) == tr.Policy.deterministic(mdp, [0, 0, 0, 0])


def test_actions_keep_their_numbers(odd):
    pi = tr.Policy.deterministic(odd, [7, 5])
    assert pi.actions.tolist() == [7, 5]
    assert pi.weights.tolist() == [0, 1, 0, 1, 0]
    assert set(pi.sample([0, 1, 0], np.random.default_rng(0)).tolist()) == {5, 7}


def test_stochastic_by_pair_and_by_table(mdp, odd):
    flat = tr.Policy.stochastic(mdp, [0.25, 0.75, 0.5, 0.5, 1, 1])
    assert not flat.is_deterministic
    assert flat == tr.Policy.stochastic(mdp, [[0.25, 0.75], [0.5, 0.5], [1, 0], [1, 0]])
    table = np.zeros((2, 10))
    table[0, [3, 7]], table[1, [0, 5, 9]] = (0.5, 0.5), (0.2, 0.3, 0.5)
    assert tr.Policy.stochastic(odd, table).weights.tolist() == [0.5, 0.5, 0.2, 0.3, 0.5]


def test_uniform(mdp, odd):
    assert tr.Policy.uniform(mdp).weights.tolist() == [0.5, 0.5, 0.5, 0.5, 1, 1]
    np.testing.assert_allclose(tr.Policy.uniform(odd).weights, [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3])


def test_weights_off_by_rounding_are_renormalised(mdp):
    pi = tr.Policy.stochastic(mdp, [0.333333, 0.666666, 0.5, 0.5, 1, 1])
    np.testing.assert_allclose(np.add.reduceat(pi.weights, mdp.first[:-1]), 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([2, 0, 0, 0], "state 0 has no action 2; it offers 0, 1"),
        ([0, 0, 1, 0], "state 2 has no action 1; it offers 0"),
        ([0, -1, 0, 0], "state 1 has no action -1"),
        (1, "state 2 has no action 1"),
        ([0, 0, 0], r"actions must have shape \(4,\), one per state; found \(3,\)"),
        ([0.5, 0, 0, 0], "actions must be integers, one per state; found an array of float64"),
        (["a0"] * 4, "actions must be integers"),
        ([True, False, False, False], "actions must be integers, one per state; found an array of bool"),
    ],
)
def test_bad_actions_are_refused(mdp, actions, message):
    with pytest.raises(InvalidPolicy, match=message):
        tr.Policy.deterministic(mdp, actions)


@pytest.mark.parametrize("actions", [[4, 0], [3, 10], [3, -1], [2**40, 0], [0, 0]])
def test_bad_action_numbers_are_refused(odd, actions):
    with pytest.raises(InvalidPolicy, match=r"state (0 \(a\)|1 \(b\)) has no action -?\d+; it offers (3, 7|0, 5, 9)"):
        tr.Policy.deterministic(odd, actions)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.4, 1, 0, 1, 1], "the weights of state 0 sum to 0.9; they must sum to 1"),
        ([1, 0, 1.5, -0.5, 1, 1], "the weight of state 1, action 1 is -0.5; weights are probabilities"),
        ([1, 0, np.nan, 1, 1, 1], "the weight of state 1, action 0 is nan"),
        ([1, 0, np.inf, 0, 1, 1], "the weights of state 1 sum to inf"),
        ([1, 0, 1, 0, 1], r"weights must have shape \(6,\), one per pair; found \(5,\)"),
        ([[1, 0], [1, 0], [0.5, 0.5], [1, 0]], "the weights of state 2 put 0.5 on actions it does not offer"),
        (np.ones((3, 2)), r"weights \[S, A\] must have shape \(4, 2\); found \(3, 2\)"),
        (np.ones((4, 1)), r"weights \[S, A\] must have shape \(4, 2\); found \(4, 1\)"),
        (np.ones((4, 2, 1)), "weights must have shape"),
        (["a"] * 6, "weights must be an array of numbers"),
        ([1j] * 6, "weights must be an array of numbers"),
    ],
)
def test_bad_weights_are_refused(mdp, weights, message):
    with pytest.raises(InvalidPolicy, match=message):
        tr.Policy.stochastic(mdp, weights)


def test_arrays_are_read_only(mdp):
    with pytest.raises(ValueError, match="read-only"):
        tr.Policy.deterministic(mdp, 0).rows[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        tr.Policy.uniform(mdp).weights[0] = 1.0
    with pytest.raises(AttributeError):
        tr.Policy.uniform(mdp).mass = None


def test_changing_the_users_weights_later_does_not_change_a_policy(mdp):
    given = np.array([0.25, 0.75, 0.5, 0.5, 1, 1])
    pi = tr.Policy.stochastic(mdp, given)
    given[:2] = 0.5
    assert pi.weights[0] == 0.25


def test_mix_is_the_weighted_mean():
    rng = np.random.default_rng(17)
    for case, mdp in pool():
        one, two, alpha = policy_of(mdp, case.pi), policy_of(mdp, case.pi_2), rng.uniform(0.001, 1.0)
        mixed = tr.mix(one, two, alpha)
        np.testing.assert_allclose(weights_of(case, mixed), (1 - alpha) * case.pi + alpha * case.pi_2, rtol=0, atol=1e-15)
        np.testing.assert_allclose(np.add.reduceat(mixed.weights, mdp.first[:-1]), 1.0, rtol=0, atol=1e-15)


def test_mix_stays_deterministic_where_nothing_is_mixed(mdp):
    one, two = tr.Policy.deterministic(mdp, 0), tr.Policy.deterministic(mdp, [1, 1, 0, 0])
    assert tr.mix(one, two, 1.0) == two
    assert tr.mix(one, two, 1.0).is_deterministic
    assert tr.mix(one, one, 0.3).is_deterministic
    assert not tr.mix(one, two, 0.3).is_deterministic


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.1, np.nan, np.inf, "half", None])
def test_alpha_must_lie_in_the_half_open_unit_interval(mdp, alpha):
    with pytest.raises(InvalidArgument, match=r"alpha must (lie in \(0, 1\]|be a number); found"):
        tr.mix(tr.Policy.uniform(mdp), tr.Policy.deterministic(mdp, 0), alpha)


def test_distance_is_the_papers_norm():
    for case, mdp in pool():
        one, two = policy_of(mdp, case.pi), policy_of(mdp, case.pi_2)
        truth = np.abs(case.pi - case.pi_2).sum(axis=1).max()
        assert one.distance(two) == pytest.approx(truth, abs=1e-15)
        assert two.distance(one) == one.distance(two)
        assert one.distance(one) == two.distance(two) == 0.0


def test_distance_of_deterministic_policies_is_0_or_2(mdp):
    one, two = tr.Policy.deterministic(mdp, 0), tr.Policy.deterministic(mdp, [0, 1, 0, 0])
    assert one.distance(two) == 2.0
    assert one.distance(tr.Policy.deterministic(mdp, [0, 0, 0, 0])) == 0.0


def test_equality(mdp, odd):
    one = tr.Policy.deterministic(mdp, [1, 0, 0, 0])
    assert one == tr.Policy.deterministic(mdp, [1, 0, 0, 0])
    assert one == tr.Policy.stochastic(mdp, [0, 1, 1, 0, 1, 1])  # the same policy, written otherwise
    assert one == tr.Policy.deterministic(mdp_of(reference.tightrope(5.0, 0.5)), [1, 0, 0, 0])  # same states and actions
    assert one != tr.Policy.deterministic(mdp, 0)
    assert one != tr.Policy.uniform(mdp)
    assert one != tr.Policy.uniform(odd)
    assert one != [1, 0, 0, 0]


def test_another_model_is_refused(mdp, odd):
    one, other = tr.Policy.uniform(mdp), tr.Policy.uniform(odd)
    with pytest.raises(InvalidPolicy, match="the two policies are for models with different states or actions"):
        one.distance(other)
    with pytest.raises(InvalidPolicy, match="the two policies are for models with different states or actions"):
        tr.mix(one, other, 0.5)
    with pytest.raises(InvalidPolicy, match="it covers 2 states and 5 pairs, the model has 4 states and 6 pairs"):
        other.induced(mdp)


def test_the_same_sizes_with_other_actions_are_another_model():
    one = tr.MDP.from_pairs([0, 0, 1], [0, 1, 0], np.eye(2)[[0, 1, 1]], np.zeros(3), 0.5)
    two = tr.MDP.from_pairs([0, 0, 1], [0, 2, 0], np.eye(2)[[0, 1, 1]], np.zeros(3), 0.5)
    three = tr.MDP.from_pairs([0, 1, 1], [0, 0, 1], np.eye(2)[[0, 1, 1]], np.zeros(3), 0.5)
    for other in (two, three):
        with pytest.raises(InvalidPolicy, match="for another model"):
            tr.value(other, tr.Policy.uniform(one))


def test_induced_chain():
    for case, mdp in pool()[:300]:
        for weights in (case.pi, case.pi_2):
            P, r = policy_of(mdp, weights).induced(mdp)
            dense, rewards = reference.chain(case, weights)
            np.testing.assert_allclose(P.toarray(), dense, rtol=0, atol=1e-15)
            np.testing.assert_allclose(r, rewards, rtol=1e-13, atol=1e-15)
            assert P.has_sorted_indices


def test_averaging_matrix(mdp):
    q = np.arange(6.0)
    assert (tr.Policy.deterministic(mdp, [1, 0, 0, 0]).averaging() @ q).tolist() == [1, 2, 4, 5]
    assert (tr.Policy.uniform(mdp).averaging() @ q).tolist() == [0.5, 2.5, 4, 5]


def test_sampling_frequencies(odd):
    """χ² of 60,000 draws per state stays below what one in a million fair samplers exceeds (about 27.6 for 2 degrees)."""
    weights = np.array([0.1, 0.9, 0.2, 0.0, 0.8])
    pi, n = tr.Policy.stochastic(odd, weights), 60_000
    drawn = pi.sample(np.repeat([0, 1], n), np.random.default_rng(18)).reshape(2, n)
    for s, numbers, p in ((0, [3, 7], weights[:2]), (1, [0, 5, 9], weights[2:])):
        counts = np.array([(drawn[s] == a).sum() for a in numbers])
        assert counts.sum() == n
        assert (counts[p == 0] == 0).all()
        expected = n * p[p > 0]
        assert ((counts[p > 0] - expected) ** 2 / expected).sum() < 27.6


def test_sampling_shapes_seeds_and_bad_states(odd):
    pi = tr.Policy.uniform(odd)
    one, two = (pi.sample(np.zeros((3, 4), dtype=int), np.random.default_rng(1)) for _ in range(2))
    assert one.shape == (3, 4)
    np.testing.assert_array_equal(one, two)
    assert np.shape(pi.sample(1, np.random.default_rng(1))) == ()
    assert pi.sample([], np.random.default_rng(1)).shape == (0,)
    for bad in ([0, 2], [-1]):
        with pytest.raises(InvalidPolicy, match="states are numbered 0 to 1; found"):
            pi.sample(bad, np.random.default_rng(1))


def test_repr(mdp):
    assert repr(tr.Policy.deterministic(mdp, 0)) == "Policy(deterministic, 4 states, [0 0 0 0])"
    assert repr(tr.Policy.uniform(mdp)) == "Policy(stochastic, 4 states, [0.5 0.5 0.5 0.5 1.  1. ])"
    big = tr.MDP(np.ones((1000, 1)), np.zeros(1000), 0.5)
    assert len(repr(tr.Policy.uniform(big))) < 120


def test_policies_are_not_hashable(mdp):
    with pytest.raises(TypeError):
        hash(tr.Policy.uniform(mdp))
