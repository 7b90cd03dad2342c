"""T, T^π, G, v^π and q^π against dense enumeration."""

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of, policy_of, pool
from tightrope.errors import InvalidArgument, InvalidPolicy


def test_T_is_the_best_T_pi_of_any_deterministic_policy():
    for case, mdp in pool():
        np.testing.assert_allclose(tr.T(mdp, case.v), reference.T(case, case.v), rtol=0, atol=case.slack(case.v))


def test_T_pi_for_stochastic_and_deterministic_policies():
    for case, mdp in pool():
        for weights in (case.pi, case.pi_2):
            found = tr.T_pi(mdp, policy_of(mdp, weights), case.v)
            np.testing.assert_allclose(found, reference.T_pi(case, weights, case.v), rtol=0, atol=case.slack(case.v))


def test_value_and_q_value():
    for case, mdp in pool():
        for weights in (case.pi, case.pi_2):
            pi, v = policy_of(mdp, weights), reference.value(case, weights)
            np.testing.assert_allclose(tr.value(mdp, pi), v, rtol=0, atol=case.slack(v))
        np.testing.assert_allclose(tr.q_value(mdp, pi), reference.q_of(case, v), rtol=0, atol=case.slack(v))


def test_value_is_as_exact_as_floats_allow():
    worst = 0.0
    for case, mdp in pool()[:200]:
        truth = reference.exact(mdp.P.toarray(), mdp.r, mdp.first, mdp.gamma)
        pi = policy_of(mdp, case.pi_2)
        v = [float(x) for x in truth.value(list(pi.rows - mdp.first[:-1]))]
        worst = max(worst, float(np.abs(tr.value(mdp, pi) - v).max()) / case.slack(np.array(v)))
    assert worst < 0.1


def test_greedy_attains_T_and_ties_go_to_the_lowest_action():
    for case, mdp in pool():
        pi = tr.greedy(mdp, case.v)
        assert pi.is_deterministic
        np.testing.assert_array_equal(tr.T_pi(mdp, pi, case.v), tr.T(mdp, case.v))
        q = (case.r + case.gamma * (case.P @ case.v))[case.ok]
        if case.kind == "ties" and case.gamma in (
            0.0,
            0.5,
        ):  # short binary fractions: no rounding at all
            first = [mdp.first[s] + int(q[mdp.first[s] : mdp.first[s + 1]].argmax()) for s in range(mdp.n_states)]
            np.testing.assert_array_equal(pi.rows, first)


def test_one_state_one_action():
    mdp = tr.MDP.from_dense([[[1.0]]], [[3.0]], 0.5)
    assert tr.T(mdp, [4.0]) == [5.0]
    assert tr.value(mdp, tr.Policy.uniform(mdp)) == [6.0]


@pytest.mark.parametrize(
    ("v", "message"),
    [
        (np.zeros(3), r"v must have shape \(4,\), one entry per state; found shape \(3,\)"),
        (np.zeros((4, 1)), r"v must have shape \(4,\)"),
        (0.0, r"v must have shape \(4,\)"),
        ([0, np.nan, 0, 0], r"v\[1\] is nan; every entry must be finite"),
        ([0, 0, 0, -np.inf], r"v\[3\] is -inf"),
        (["a", "b", "c", "d"], "v must be an array of numbers"),
    ],
)
def test_a_bad_v_is_refused_by_every_operator(v, message):
    mdp = mdp_of(reference.tightrope(1.0, 0.9))
    pi = tr.Policy.uniform(mdp)
    for operator in (
        lambda: tr.T(mdp, v),
        lambda: tr.T_pi(mdp, pi, v),
        lambda: tr.greedy(mdp, v),
        lambda: tr.greedy_set(mdp, v),
        lambda: tr.T_h(mdp, v, 2),
        lambda: tr.T_h_pi(mdp, pi, v, 2),
        lambda: tr.h_greedy(mdp, v, 2),
        lambda: tr.h_greedy_set(mdp, v, 2),
        lambda: tr.surrogate(mdp, v, 0.5),
        lambda: tr.T_kappa(mdp, v, 0.5),
        lambda: tr.T_kappa_pi(mdp, pi, v, 0.5),
        lambda: tr.kappa_greedy(mdp, v, 0.5),
        lambda: tr.kappa_greedy_set(mdp, v, 0.5),
    ):
        with pytest.raises(InvalidArgument, match=message):
            operator()


def test_a_policy_of_another_model_is_refused():
    mdp, other = mdp_of(reference.tightrope(1.0, 0.9)), tr.MDP.from_dense([[[1.0]]], [[0.0]], 0.5)
    pi = tr.Policy.uniform(other)
    q = np.zeros(mdp.n_pairs)
    for operator in (
        lambda: tr.T_pi(mdp, pi, np.zeros(4)),
        lambda: tr.value(mdp, pi),
        lambda: tr.q_value(mdp, pi),
        lambda: tr.T_h_pi(mdp, pi, np.zeros(4), 2),
        lambda: tr.T_kappa_pi(mdp, pi, np.zeros(4), 0.5),
        lambda: tr.q_kappa(mdp, pi, 0.5),
        lambda: tr.H_kappa(mdp, pi, q, q, 0.5),
        lambda: tr.D_kappa(mdp, pi, 0.5),
        lambda: tr.cautious(mdp, q, q, pi),
    ):
        with pytest.raises(InvalidPolicy, match="for another model: it covers 1 states and 1 pairs, the model has 4"):
            operator()
