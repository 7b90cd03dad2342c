"""The surrogate, T_κ, T_κ^π, q_κ, D_κ and ξ against enumeration and fractions."""

from fractions import Fraction

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of, policy_of, pool
from tightrope.errors import InvalidArgument, InvalidModel
from tightrope.operators.kappa import blended


def test_surrogate_has_the_shaped_reward_and_discount_and_shares_P():
    for case, mdp in pool():
        inner = tr.surrogate(mdp, case.v, case.kappa)
        shaped = (case.r + (1 - case.kappa) * case.gamma * (case.P @ case.v))[case.ok]
        np.testing.assert_allclose(inner.r, shaped, rtol=0, atol=case.slack(case.v))
        assert inner.gamma == case.kappa * case.gamma
        assert inner.P is mdp.P
        assert not inner.r.flags.writeable


def test_blended_surrogate_has_the_same_optimal_actions_and_no_product_with_P():
    """x = (1-κ)v + κ T_κ v is its optimal value, T x = T_κ v, and so its optimal actions are the κ-greedy ones."""
    for case, mdp in pool():
        if case.kappa == 0.0:
            continue
        inner = blended(mdp, case.v, case.kappa)
        ahead = reference.T_kappa(case, case.v, case.kappa)
        x = (1 - case.kappa) * case.v + case.kappa * ahead
        slack = case.slack(case.v, ahead)
        assert inner.P is mdp.P
        assert inner.gamma == case.kappa * case.gamma
        np.testing.assert_allclose(tr.T(inner, x), x, rtol=0, atol=slack)
        np.testing.assert_allclose(tr.T(mdp, x), ahead, rtol=0, atol=slack)
        pi = tr.greedy(inner, x)
        np.testing.assert_allclose(tr.T_kappa_pi(mdp, pi, case.v, case.kappa), ahead, rtol=0, atol=100 * slack)


def test_bounds_on_blended_rewards_follow_from_bounds_on_the_value():
    for case, mdp in pool():
        extent, out = (case.v.min() - 1.0, case.v.max() + 2.0), np.empty(mdp.n_pairs)
        plain, bounded = blended(mdp, case.v, case.kappa), blended(mdp, case.v, case.kappa, out, extent)
        np.testing.assert_array_equal(bounded.r, plain.r)
        assert np.shares_memory(bounded.r, out)
        (low, high), (least, most) = bounded.reward_range, plain.reward_range
        slack = 1e-12 * (1.0 + mdp.reward_size + np.abs(case.v).max())
        assert low - slack <= least <= most <= high + slack
        assert high - low <= case.kappa * np.ptp(mdp.r) + (1 - case.kappa) * (np.ptp(case.v) + 3.0) + slack


def test_blending_with_another_value_is_another_problem():
    case, mdp = next((c, m) for c, m in pool() if 0.2 < c.kappa < 0.8 and len(c.v) > 1)
    other = case.v + np.arange(len(case.v))
    x = (1 - case.kappa) * case.v + case.kappa * reference.T_kappa(case, case.v, case.kappa)
    assert np.abs(tr.T(blended(mdp, other, case.kappa), x) - x).max() > 0.01


def test_T_kappa_is_the_best_T_kappa_pi_of_any_deterministic_policy():
    for case, mdp in pool():
        found, truth = tr.T_kappa(mdp, case.v, case.kappa), reference.T_kappa(case, case.v, case.kappa)
        np.testing.assert_allclose(found, truth, rtol=0, atol=case.slack(case.v, truth), err_msg=repr(case))


def test_T_kappa_is_the_optimal_value_of_the_surrogate():
    for case, mdp in pool()[:200]:
        inner = tr.surrogate(mdp, case.v, case.kappa)
        found = tr.T_kappa(mdp, case.v, case.kappa)
        np.testing.assert_allclose(tr.T(inner, found), found, rtol=0, atol=case.slack(case.v, found))


def test_T_kappa_pi():
    for case, mdp in pool():
        for weights in (case.pi, case.pi_2):
            truth = reference.T_kappa_pi(case, weights, case.v, case.kappa)
            found = tr.T_kappa_pi(mdp, policy_of(mdp, weights), case.v, case.kappa)
            np.testing.assert_allclose(found, truth, rtol=0, atol=case.slack(case.v, truth))


def test_kappa_greedy_attains_T_kappa():
    for case, mdp in pool():
        truth = reference.T_kappa(case, case.v, case.kappa)
        pi = tr.kappa_greedy(mdp, case.v, case.kappa)
        assert pi.is_deterministic
        found = tr.T_kappa_pi(mdp, pi, case.v, case.kappa)
        np.testing.assert_allclose(found, truth, rtol=0, atol=case.slack(case.v, truth))


def test_q_kappa():
    for case, mdp in pool():
        truth = reference.q_kappa(case, case.pi, case.kappa)
        found = tr.q_kappa(mdp, policy_of(mdp, case.pi), case.kappa)
        np.testing.assert_allclose(found, truth, rtol=0, atol=case.slack(case.v_pi, truth))


def test_D_kappa_as_operator_and_dense():
    for case, mdp in pool()[:300]:
        D = tr.D_kappa(mdp, policy_of(mdp, case.pi), case.kappa)
        dense = reference.D_kappa(case, case.pi, case.kappa)
        slack = case.slack(np.ones(1))
        np.testing.assert_allclose(D.toarray(), dense, rtol=0, atol=slack)
        np.testing.assert_allclose(D @ case.v, dense @ case.v, rtol=0, atol=case.slack(case.v))
        np.testing.assert_allclose(D.T @ case.v, dense.T @ case.v, rtol=0, atol=len(case.v) * case.slack(case.v))
        np.testing.assert_allclose(D @ np.eye(len(case.v)), dense, rtol=0, atol=slack)


def test_xi_keeps_its_digits_near_one():
    for gamma in (0.0, 0.1, 0.5, 0.9, 0.99, 0.999999, 1 - 1e-12, 1 - 2**-53):
        for kappa in (0.0, 1e-12, 0.1, 0.5, 0.9, 1 - 1e-6, 1 - 1e-12, 1 - 2**-53, 1.0):
            g, k = Fraction(gamma), Fraction(kappa)
            truth = g * (1 - k) / (1 - g * k)
            assert abs(Fraction(tr.xi(gamma, kappa)) - truth) <= truth * Fraction(5, 2**52)
            assert 0.0 <= tr.xi(gamma, kappa) <= gamma


def test_the_naive_formula_for_xi_loses_them():
    gamma, kappa = 1 - 1e-7, 1 - 1.3e-7
    truth = reference.xi(gamma, kappa)
    assert abs(gamma * (1 - kappa) / (1 - gamma * kappa) - truth) > 1e-12 * truth
    assert abs(tr.xi(gamma, kappa) - truth) <= 1e-15 * truth


@pytest.mark.parametrize("kappa", [-0.1, 1.1, np.nan, np.inf, -np.inf, "half", None, [0.5, 0.5]])
def test_kappa_must_lie_in_the_unit_interval(kappa):
    mdp = mdp_of(reference.tightrope(1.0, 0.9))
    pi, v, q = tr.Policy.uniform(mdp), np.zeros(4), np.zeros(mdp.n_pairs)
    for operator in (
        lambda: tr.xi(0.9, kappa),
        lambda: tr.surrogate(mdp, v, kappa),
        lambda: tr.T_kappa(mdp, v, kappa),
        lambda: tr.T_kappa_pi(mdp, pi, v, kappa),
        lambda: tr.kappa_greedy(mdp, v, kappa),
        lambda: tr.kappa_greedy_set(mdp, v, kappa),
        lambda: tr.q_kappa(mdp, pi, kappa),
        lambda: tr.H_kappa(mdp, pi, q, q, kappa),
        lambda: tr.D_kappa(mdp, pi, kappa),
    ):
        with pytest.raises(InvalidArgument, match=r"kappa must (lie in \[0, 1\]|be a number); found"):
            operator()


@pytest.mark.parametrize("gamma", [1.0, 1.2, -0.1, np.nan])
def test_xi_refuses_a_discount_that_is_none(gamma):
    with pytest.raises(InvalidModel, match=r"gamma must lie in \[0, 1\)"):
        tr.xi(gamma, 0.5)


@pytest.mark.parametrize("bad", [np.zeros(4), np.full(6, np.nan)])
def test_H_kappa_and_cautious_refuse_a_bad_q(bad):
    mdp = mdp_of(reference.tightrope(1.0, 0.9))
    pi, good = tr.Policy.uniform(mdp), np.zeros(6)
    shape = r"must have shape \(6,\), one entry per \(state, action\) pair"
    for name, q, q_k in (("q", bad, good), ("q_kappa", good, bad)):
        with pytest.raises(InvalidArgument, match=rf"^{name}(\[0\] is nan| {shape})"):
            tr.H_kappa(mdp, pi, q, q_k, 0.5)
        with pytest.raises(InvalidArgument, match=rf"^{name}(\[0\] is nan| {shape})"):
            tr.cautious(mdp, q, q_k, pi)
