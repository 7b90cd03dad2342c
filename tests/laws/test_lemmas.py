"""The appendices' identities: κ-value difference, help1, the geometric series, D stochastic, d_κ a probability."""

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import policy_of, pool


def X(case, mdp, kappa):
    """ξ D_κ P^π in the library's own terms."""
    pi = policy_of(mdp, case.pi)
    return tr.xi(mdp.gamma, kappa) * tr.D_kappa(mdp, pi, kappa).toarray() @ pi.induced(mdp)[0].toarray()


def test_kappa_value_difference():
    """T_κ^π v - v = (I - κγ P^π)^-1 (T^π v - v)."""
    for case, mdp in pool():
        pi = policy_of(mdp, case.pi)
        P, _ = pi.induced(mdp)
        A = np.eye(len(case.v)) - case.kappa * case.gamma * P.toarray()
        found = tr.T_kappa_pi(mdp, pi, case.v, case.kappa)
        truth = np.linalg.solve(A, tr.T_pi(mdp, pi, case.v) - case.v)
        np.testing.assert_allclose(found - case.v, truth, rtol=0, atol=case.slack(case.v, found))


def test_value_difference_with_the_wrong_discount_fails():
    """The negative twin: with γ in place of κγ the identity is false."""
    wrong = 0
    for case, mdp in pool()[:300]:
        pi = policy_of(mdp, case.pi)
        P, _ = pi.induced(mdp)
        found = tr.T_kappa_pi(mdp, pi, case.v, case.kappa)
        other = np.linalg.solve(np.eye(len(case.v)) - case.gamma * P.toarray(), tr.T_pi(mdp, pi, case.v) - case.v)
        wrong += np.abs(found - case.v - other).max() > case.slack(case.v, found, other)
    assert wrong > 150


def test_difference_of_T_kappa_pi():
    """T_κ^π v - T_κ^π w = ξ D_κ P^π (v - w)."""
    for case, mdp in pool():
        pi = policy_of(mdp, case.pi)
        a, b = (tr.T_kappa_pi(mdp, pi, u, case.kappa) for u in (case.v, case.w))
        truth = X(case, mdp, case.kappa) @ (case.v - case.w)
        np.testing.assert_allclose(a - b, truth, rtol=0, atol=case.slack(a, b, case.v, case.w))


def test_help1():
    """(I - X_κ')^-1 = (κ'-κ)/(1-κ) I + (1-κ')/(1-κ) (I - X_κ)^-1 for κ < 1."""
    rng = np.random.default_rng(1)
    for case, mdp in pool():
        kappa, other = rng.choice((0.0, 0.1, 0.5, 0.9)), case.kappa
        I = np.eye(len(case.v))
        left, right = (np.linalg.inv(I - X(case, mdp, k)) for k in (other, kappa))
        mixed = (other - kappa) / (1 - kappa) * I + (1 - other) / (1 - kappa) * right
        np.testing.assert_allclose(left, mixed, rtol=0, atol=100 * case.slack(left, right))


def test_the_resolvent_in_its_stable_form():
    """(I - X_κ)^-1 = κ I + (1-κ)(I - γP)^-1, for κ = 1 too (notes, section C)."""
    for case, mdp in pool():
        I = np.eye(len(case.v))
        P = policy_of(mdp, case.pi).induced(mdp)[0].toarray()
        left = np.linalg.inv(I - X(case, mdp, case.kappa))
        right = case.kappa * I + (1 - case.kappa) * np.linalg.inv(I - case.gamma * P)
        np.testing.assert_allclose(left, right, rtol=0, atol=100 * case.slack(left, right))


def test_help1_with_the_weights_exchanged_fails():
    """The negative twin."""
    wrong = 0
    for case, mdp in pool()[:300]:
        I = np.eye(len(case.v))
        left, right = (np.linalg.inv(I - X(case, mdp, k)) for k in (0.75, 0.25))
        mixed = (1 - 0.75) / (1 - 0.25) * I + (0.75 - 0.25) / (1 - 0.25) * right
        wrong += np.abs(left - mixed).max() > 100 * case.slack(left, right)
    assert wrong > 150


@pytest.mark.parametrize("i", [1, 2, 3])
def test_geometric_series(i):
    """(ξ D P)^i = Σ_{t>=i-1} C(t, i-1) γ^{t+1} (1-κ)^i κ^{t-i+1} P^{t+1}."""
    checked = 0
    for case, mdp in pool(1_500, 3):
        gamma, kappa = case.gamma, case.kappa
        if gamma * kappa > 0.9:  # the series would need thousands of terms to reach rounding
            continue
        P = policy_of(mdp, case.pi).induced(mdp)[0].toarray()
        term = (gamma * (1 - kappa)) ** i * np.linalg.matrix_power(P, i)  # t = i - 1
        total = term.copy()
        for t in range(i, i + (400 if gamma * kappa > 0.5 else 80)):
            term = term @ P * (gamma * kappa * t / (t - i + 1))  # C(t, i-1) = C(t-1, i-1) t/(t-i+1)
            total += term
        left = np.linalg.matrix_power(X(case, mdp, kappa), i)
        np.testing.assert_allclose(left, total, rtol=0, atol=1e-11)
        checked += 1
    assert checked >= 1_000


def test_the_series_without_its_binomial_coefficients_fails():
    """The negative twin, for i = 2."""
    wrong = 0
    for case, mdp in pool()[:300]:
        gamma, kappa = case.gamma, 0.5
        if gamma > 0.5 or gamma == 0.0:
            continue
        P = policy_of(mdp, case.pi).induced(mdp)[0].toarray()
        powers = [np.linalg.matrix_power(P, t + 1) for t in range(60)]
        total = sum(gamma ** (t + 1) * (1 - kappa) ** 2 * kappa ** (t - 1) * powers[t] for t in range(1, 60))
        wrong += np.abs(np.linalg.matrix_power(X(case, mdp, kappa), 2) - total).max() > 1e-6
    assert wrong > 50


def test_D_kappa_is_stochastic():
    for case, mdp in pool():
        D = tr.D_kappa(mdp, policy_of(mdp, case.pi), case.kappa).toarray()
        slack = case.slack(np.ones(1)) / max(1.0, np.abs(case.r).max())
        assert (-slack <= D).all()
        np.testing.assert_allclose(D.sum(axis=1), 1.0, rtol=0, atol=slack)


def test_without_its_factor_D_kappa_is_not():
    """The negative twin: (I - κγP)^-1 alone has row sums 1/(1-κγ)."""
    case, mdp = next((c, m) for c, m in pool() if c.kappa * c.gamma > 0.4)
    P = policy_of(mdp, case.pi).induced(mdp)[0].toarray()
    sums = np.linalg.inv(np.eye(len(P)) - case.kappa * case.gamma * P).sum(axis=1)
    assert (sums > 1.5).all()


def test_d_kappa_is_a_probability_and_mixes_mu_with_d_0():
    """d_κ = (1-ξ) μ (I - ξ D P)^-1 = w μ + (1-w) d_0, w = κ(1-γ)/(1-κγ)."""
    rng = np.random.default_rng(2)
    for case, mdp in pool():
        mu = rng.dirichlet(np.ones(len(case.v)))
        g, k = case.gamma, case.kappa
        I = np.eye(len(mu))
        P = policy_of(mdp, case.pi).induced(mdp)[0].toarray()
        d = (1 - tr.xi(g, k)) * mu @ np.linalg.inv(I - X(case, mdp, k))
        slack = 1e4 * reference.EPS / (1 - g)
        assert (d >= -slack).all()
        assert abs(d.sum() - 1.0) <= slack
        w = k * (1 - g) / ((1 - k) + k * (1 - g))
        d_0 = (1 - g) * mu @ np.linalg.inv(I - g * P)
        np.testing.assert_allclose(d, w * mu + (1 - w) * d_0, rtol=0, atol=slack)
