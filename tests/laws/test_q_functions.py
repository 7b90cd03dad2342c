"""Section 5 and its appendix: H_κ^π contracts by γ towards (q^π, q_κ^π); q_0 = q^π, q_1 = q*; both are Lipschitz in π."""

import numpy as np

import reference
import tightrope as tr
from bridge import policy_of, pool


def test_H_contracts_by_gamma():
    rng = np.random.default_rng(3)
    for case, mdp in pool():
        pi = policy_of(mdp, case.pi)
        a, b = rng.normal(size=(2, 2, mdp.n_pairs)) * np.exp(rng.normal(size=(2, 2, 1)))
        left, right = (np.stack(tr.H_kappa(mdp, pi, *x, case.kappa)) for x in (a, b))
        assert np.abs(left - right).max() <= case.gamma * np.abs(a - b).max() + case.slack(left, right)


def test_and_by_no_less():
    """The negative twin: adding a constant to both tables adds γ times it."""
    attained = 0
    for case, mdp in pool():
        pi, q = policy_of(mdp, case.pi), reference.q_of(case, case.v)
        left, right = (np.stack(tr.H_kappa(mdp, pi, q + c, q + c, case.kappa)) for c in (0.0, 100.0))
        np.testing.assert_allclose(right - left, 100.0 * case.gamma, rtol=0, atol=case.slack(left, right))
        attained += np.abs(right - left).max() > 0.999 * 100.0 * case.gamma + case.slack(left, right)
    assert attained > 700


def test_H_as_defined():
    rng = np.random.default_rng(4)
    for case, mdp in pool():
        q, q_k = rng.normal(size=(2, *case.r.shape))
        v, w = (case.pi * q).sum(axis=1), np.where(case.ok, q_k, -np.inf).max(axis=1)
        g, k = case.gamma, case.kappa
        found = tr.H_kappa(mdp, policy_of(mdp, case.pi), q[case.ok], q_k[case.ok], k)
        one, ahead = case.r + g * case.P @ v, case.r + g * (1 - k) * (case.P @ v) + k * g * (case.P @ w)
        for a, b in zip(found, (one, ahead), strict=True):
            np.testing.assert_allclose(a, b[case.ok], rtol=0, atol=case.slack(v, w))


def test_the_fixed_point_of_H():
    for case, mdp in pool():
        pi = policy_of(mdp, case.pi)
        q, q_k = reference.q_of(case, case.v_pi), reference.q_kappa(case, case.pi, case.kappa)
        for found, truth in zip(tr.H_kappa(mdp, pi, q, q_k, case.kappa), (q, q_k), strict=True):
            np.testing.assert_allclose(found, truth, rtol=0, atol=case.slack(q, q_k))


def test_q_star_is_no_fixed_point_unless_pi_is_optimal():
    """The negative twin."""
    moved = 0
    for case, mdp in pool():
        q = reference.q_of(case, case.v_star)
        found, _ = tr.H_kappa(mdp, policy_of(mdp, case.pi), q, q, case.kappa)
        moved += np.abs(found - q).max() > case.slack(q)
    assert moved > 400


def test_q_0_is_q_pi_and_q_1_is_q_star_and_q_kappa_rises_between_them():
    for case, mdp in pool():
        pi = policy_of(mdp, case.pi)
        slack = case.slack(case.v_pi, case.v_star)
        q, q_star = (tr.q_kappa(mdp, pi, k) for k in (0.0, 1.0))
        q_half = reference.q_kappa(case, case.pi, 0.5)
        np.testing.assert_allclose(q, reference.q_of(case, case.v_pi), rtol=0, atol=slack)
        np.testing.assert_allclose(q_star, reference.q_of(case, case.v_star), rtol=0, atol=slack)
        assert (q <= q_half + slack).all()
        assert (q_half <= q_star + slack).all()


def test_the_greedy_policy_of_q_kappa_is_kappa_greedy():
    for case, mdp in pool():
        pi = policy_of(mdp, case.pi)
        q = tr.q_kappa(mdp, pi, case.kappa)
        rows = [a + int(q[a:b].argmax()) for a, b in zip(mdp.first[:-1], mdp.first[1:], strict=True)]
        assert tr.kappa_greedy_set(mdp, case.v_pi, case.kappa)[rows].all()


def test_lipschitz_constants():
    """L_v = R/(1-γ)^2, L_a = γ L_v, L_b = ξ L_v, with R = span(r)/2 in place of R_max (notes, section C)."""
    tightest = 0.0
    for case, mdp in pool():
        one, two = policy_of(mdp, case.pi), policy_of(mdp, case.pi_2)
        distance = one.distance(two)
        half_span = (case.r[case.ok].max() - case.r[case.ok].min()) / 2
        assert half_span <= np.abs(case.r).max() + 1e-300
        L = half_span / (1 - case.gamma) ** 2
        xi = reference.xi(case.gamma, case.kappa)
        values = [case.v_pi, reference.value(case, case.pi_2)]
        slack = case.slack(*values)
        assert np.abs(values[0] - values[1]).max() <= L * distance + slack
        q = [mdp.r + case.gamma * (mdp.P @ v) for v in values]
        assert np.abs(q[0] - q[1]).max() <= case.gamma * L * distance + slack
        q_k = [tr.q_kappa(mdp, pi, case.kappa) for pi in (one, two)]
        assert np.abs(q_k[0] - q_k[1]).max() <= xi * L * distance + case.slack(*q_k)
        if L * distance > slack:
            tightest = max(tightest, np.abs(values[0] - values[1]).max() / (L * distance))
    assert tightest > 0.5  # a constant half as large fails somewhere
