"""κ-PI contracts by ξ, h-PI by γ^h, κ-λ-PI by ξ when λ >= κ; the naive λ-backup after an h-greedy step does not contract."""

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import policy_of, pool, value_of


def pessimistic(case):
    """A v with T v >= v: the worst constant return, and one less."""
    return np.full(len(case.v), min(0.0, case.r[case.ok].min()) / (1.0 - case.gamma) - 1.0)


def test_kappa_pi_contracts_by_xi():
    """v^{π'} >= T_κ v^π >= v^π, so max(v* - v^{π'}) <= ξ max(v* - v^π)."""
    worst = 0.0
    for case, mdp in pool():
        v, xi = case.v_pi, reference.xi(case.gamma, case.kappa)
        new = value_of(case, tr.kappa_greedy(mdp, v, case.kappa))
        slack, loss = case.slack(v, case.v_star), (case.v_star - v).max()
        ahead = reference.T_kappa(case, v, case.kappa)
        assert (ahead >= v - slack).all()
        assert (new >= ahead - slack).all()
        assert (case.v_star - new).max() <= xi * loss + slack
        if xi * loss > 1e4 * slack:
            worst = max(worst, (case.v_star - new).max() / (xi * loss))
    assert worst > 0.5  # the negative twin: half of ξ is too small somewhere


@pytest.mark.parametrize("h", [1, 2, 4])
def test_h_pi_contracts_by_gamma_to_the_h(h):
    worst = 0.0
    for case, mdp in pool():
        v, rate = case.v_pi, case.gamma**h
        new = value_of(case, tr.h_greedy(mdp, v, h))
        slack, loss = case.slack(v, case.v_star), (case.v_star - v).max()
        assert (new >= tr.T_h(mdp, v, h) - slack).all()
        assert (case.v_star - new).max() <= rate * loss + slack
        if rate * loss > 1e4 * slack:
            worst = max(worst, (case.v_star - new).max() / (rate * loss))
    assert worst > 0.1 / h


def test_kappa_pi_reaches_the_optimum_in_finitely_many_steps():
    for case, mdp in pool()[:150]:
        pi = policy_of(mdp, case.pi)
        for _ in range(30):
            v, before = value_of(case, pi), pi
            pi = tr.kappa_greedy(mdp, v, case.kappa)
            if pi == before:
                break
        np.testing.assert_allclose(v, case.v_star, rtol=0, atol=case.slack(case.v_star))


def test_kappa_lambda_pi_contracts_by_xi_when_lambda_is_at_least_kappa():
    """From v with T_κ v >= v: T_κ v <= T_λ^π v <= v^π, the property is kept, and max(v* - v') <= ξ_κ max(v* - v)."""
    rng = np.random.default_rng(11)
    for case, mdp in pool():
        v, kappa = pessimistic(case), case.kappa
        lam = rng.choice((kappa, rng.uniform(kappa, 1.0), 1.0))
        pi = tr.kappa_greedy(mdp, v, kappa)
        new, ahead = tr.T_kappa_pi(mdp, pi, v, lam), reference.T_kappa(case, v, kappa)
        slack = case.slack(v, case.v_star)
        assert (new >= ahead - slack).all()
        assert (new <= value_of(case, pi) + slack).all()
        assert (case.v_star - new).max() <= reference.xi(case.gamma, kappa) * (case.v_star - v).max() + slack
        assert (reference.T_kappa(case, new, kappa) >= new - slack).all()


def test_lambda_equal_kappa_is_kappa_vi_and_lambda_1_is_kappa_pi():
    for case, mdp in pool()[:300]:
        pi = tr.kappa_greedy(mdp, case.v, case.kappa)
        slack = case.slack(case.v, case.v_star)
        vi, full = (tr.T_kappa_pi(mdp, pi, case.v, lam) for lam in (case.kappa, 1.0))
        np.testing.assert_allclose(vi, reference.T_kappa(case, case.v, case.kappa), rtol=0, atol=slack)
        np.testing.assert_allclose(full, value_of(case, pi), rtol=0, atol=slack)


def test_lambda_below_kappa_falls_short_of_T_kappa():
    """The negative twin: with λ < κ the backup is below T_κ v somewhere, and loses the rate ξ."""
    short = slower = 0
    for case, mdp in pool():
        if case.kappa < 0.5 or case.gamma == 0.0:
            continue
        v = pessimistic(case)
        pi = tr.kappa_greedy(mdp, v, case.kappa)
        new = tr.T_kappa_pi(mdp, pi, v, 0.1)
        slack = case.slack(v, case.v_star)
        short += bool((new < reference.T_kappa(case, v, case.kappa) - slack).any())
        rate = reference.xi(case.gamma, case.kappa)
        slower += (case.v_star - new).max() > rate * (case.v_star - v).max() + slack
    assert short > 200
    assert slower > 200


@pytest.mark.parametrize("h", [2, 3])
def test_h_lambda_backup_from_T_h_minus_1_contracts_by_gamma_to_the_h(h):
    """From v <= T v: T^h v <= T_λ^π T^{h-1} v <= v*."""
    for case, mdp in pool():
        v = pessimistic(case)
        before, best = tr.T_h(mdp, v, h - 1), tr.T_h(mdp, v, h)
        new = tr.T_kappa_pi(mdp, tr.h_greedy(mdp, v, h), before, 0.5)
        slack = case.slack(v, case.v_star)
        assert (new >= best - slack).all()
        assert (new <= case.v_star + slack).all()
        assert (case.v_star - new).max() <= case.gamma**h * (case.v_star - v).max() + slack


@pytest.mark.parametrize("lam", [0.0, 0.25, 0.5])
def test_the_naive_h_lambda_backup_moves_away_from_the_optimum(lam):
    """The negative twin: T_λ^π v with π 2-greedy is farther from v* than v itself, although v <= T v.

    v* = 0 everywhere but for the cost d of s0's detour b. v is E too low except in y', the second state of the detour, so two
    steps ahead b looks best when d < γ² E. The naive backup then pays d and lands on v(y) = -E after one step.
    """
    gamma, E = 0.95, 1.0
    d = 0.99 * gamma**2 * E
    s0, x, y, y_2 = range(4)
    P, r = np.zeros((4, 2, 4)), np.zeros((4, 2))
    for s, a, t in ((s0, 0, x), (s0, 1, y), (x, 0, x), (y, 0, y_2), (y_2, 0, y_2)):
        P[s, a, t] = 1.0
    r[s0, 1] = -d
    mdp = tr.MDP.from_dense(P, r, gamma, feasible=P.any(axis=2))
    v = np.array([-E, -E, -E, 0.0])
    assert (tr.T(mdp, v) >= v).all()
    pi = tr.h_greedy(mdp, v, 2)
    assert pi.actions[s0] == 1
    naive, right = tr.T_kappa_pi(mdp, pi, v, lam), tr.T_kappa_pi(mdp, pi, tr.T(mdp, v), lam)
    np.testing.assert_allclose(naive[s0], -(d + gamma * (1 - lam) * E), rtol=1e-14)
    assert np.abs(naive).max() > np.abs(v).max()
    assert np.abs(right).max() <= gamma**2 * np.abs(v).max()
