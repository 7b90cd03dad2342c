"""Constants of the theory: stable forms, Lipschitz constants over random pairs of policies, and Lemma 4."""

import math
from fractions import Fraction

import numpy as np
import pytest

import reference_theory as ref
from bridge import mdp_of, policy_of
from reference import q_kappa, q_of, random_cases, value
from tightrope import MDP
from tightrope.errors import InvalidArgument
from tightrope.theory import concentrability, contraction, effective_horizon, g, lipschitz, smaller_coefficient, value_span
from tightrope.theory.rates import one_minus_xi, room, stay_weight


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.999999, 1 - 2**-40])
@pytest.mark.parametrize("kappa", [0.0, 0.3, 1 - 2**-45, 1.0])
def test_stable_forms_keep_their_digits(gamma, kappa):
    g, k = Fraction(gamma), Fraction(kappa)
    assert room(gamma, kappa) == pytest.approx(float(1 - g * k), rel=1e-15)
    assert one_minus_xi(gamma, kappa) == pytest.approx(float((1 - g) / (1 - g * k)), rel=1e-15)
    assert stay_weight(gamma, kappa) == pytest.approx(float(k * (1 - g) / (1 - g * k)), rel=1e-15)
    assert effective_horizon(gamma, kappa) == pytest.approx(float(1 / (1 - g * k)), rel=1e-15)
    assert contraction(gamma, kappa=kappa) == pytest.approx(float(g * (1 - k) / (1 - g * k)), rel=1e-15, abs=1e-300)


def test_contraction_of_h():
    assert contraction(0.9, h=3) == pytest.approx(0.9**3)
    assert contraction(0.9, h=1) == contraction(0.9, kappa=0.0)
    with pytest.raises(InvalidArgument, match="either kappa"):
        contraction(0.9)


def test_values_are_lipschitz_in_the_policy():
    """||v^π - v^π'|| <= L_v ||π - π'||, and for q and q_κ; half the span of the rewards may replace R_max."""
    close = 0.0
    for case in random_cases(300, seed=21):
        mdp = mdp_of(case)
        L, size = lipschitz(mdp, case.kappa), policy_of(mdp, case.pi).distance(policy_of(mdp, case.pi_2))
        slack = 10 * case.slack(case.v_star)
        v, v_2 = value(case, case.pi), value(case, case.pi_2)
        assert np.abs(v - v_2).max() <= L.v * size + slack
        assert np.abs(q_of(case, v) - q_of(case, v_2)).max() <= L.q * size + slack
        difference = q_kappa(case, case.pi, case.kappa) - q_kappa(case, case.pi_2, case.kappa)
        assert np.abs(difference).max() <= L.q_kappa * size + slack
        printed = lipschitz(mdp, case.kappa, printed=True)
        assert L.v <= printed.v * (1 + 1e-12)
        if L.v * size > 0:
            close = max(close, np.abs(v - v_2).max() / (L.v * size))
    assert close > 0.3


def test_value_span_bounds_every_loss_and_the_printed_one_does_not():
    refuted = 0
    for d in (ref.random_dense(np.random.default_rng(seed)) for seed in range(100)):
        worst = (d.v_star - d.values).max()
        assert worst <= value_span(MDP.from_dense(d.P, d.r, d.gamma)) + 1e-9
        refuted += worst > np.abs(d.r).max() / (1 - d.gamma)
    assert refuted > 0


def test_lemma_4_finds_a_mixture_with_a_smaller_coefficient():
    rng, strict = np.random.default_rng(22), 0
    for _ in range(60):
        d = ref.random_dense(rng)
        C = ref.ratio(ref.d_kappa(d, 0.3), d.nu)
        for larger in (0.31, 0.7, 1.0):
            found = smaller_coefficient(d.gamma, C, 0.3, larger)
            mixture = (1 - found.alpha_star) * d.nu + found.alpha_star * d.mu
            exact = ref.ratio(ref.d_kappa(d, larger), mixture)
            assert exact <= found.C * (1 + 1e-10)  # the appendix's constant is an upper bound on the smallest (note B6)
            assert found.C <= C * (1 + 1e-12)
            assert 0.0 < found.alpha_star <= 1.0
            strict += found.C < C
    assert strict == 180
    assert smaller_coefficient(0.9, 5.0, 0.2, 1.0).alpha_star == 1.0  # not in (0,1) as the paper says
    assert math.inf == smaller_coefficient(0.9, math.inf, 0.2, 0.5).C
    with pytest.raises(InvalidArgument, match="larger one"):
        smaller_coefficient(0.9, 2.0, 0.5, 0.5)
    with pytest.raises(InvalidArgument, match="at least 1"):
        smaller_coefficient(0.9, 0.5, 0.2, 0.5)


def test_helpful_identities():
    """(I-X)^-1 = κI + (1-κ)(I-γP)^-1, and the geometric series of the appendix, on dense chains."""
    rng = np.random.default_rng(23)
    for _ in range(50):
        d = ref.random_dense(rng)
        eye = np.eye(len(d.mu))
        for kappa in (0.0, 0.4, 1.0):
            X = ref.X(d, d.P_star, kappa)
            right = kappa * eye + (1 - kappa) * np.linalg.inv(eye - d.gamma * d.P_star)
            np.testing.assert_allclose(np.linalg.inv(eye - X), right, rtol=1e-9, atol=1e-10)
            c = concentrability(MDP.from_dense(d.P, d.r, d.gamma), d.mu, d.nu, rtol=1e-10)
            series = d.mu @ np.linalg.inv(eye - X) * one_minus_xi(d.gamma, kappa)
            np.testing.assert_allclose(c.d(kappa), series, rtol=1e-8, atol=1e-9)


def binomial_lemma(f, gamma, kappa, n, far=250):
    """Both sides of the binomial lemma of the appendix for f(1), ..., truncated where γ^far is negligible."""
    t = np.arange(far)
    weight = np.zeros(far)  # of γ^{t+l+1} f(t+1+l), summed over i = 1..n-1
    for i in range(1, n):
        choose = np.array([math.comb(int(s), i - 1) for s in t], dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight += np.where(t >= i - 1, choose * kappa ** np.maximum(t - (i - 1), 0.0) * (1 - kappa) ** i, 0.0)
    reach = np.add.outer(t, t) + 1
    inner = (gamma**reach * f[reach]).sum(axis=1)  # summed over l
    right = (1 - kappa) * inner[: n - 1].sum() + g(kappa, n) * (1 - kappa) * kappa * inner[n - 1 :].sum()
    return weight @ inner, right


def test_the_binomial_lemma_holds_for_f_not_negative_and_fails_otherwise():
    """Note B5: the appendix states it for every f; a negative f refutes it. With g's closed form it is often an equality."""
    rng, tight = np.random.default_rng(24), 0.0
    for kappa in (0.0, 0.1, 0.5, 0.9, 1.0):
        for n in (1, 2, 3, 8):
            for _ in range(5):
                f = rng.exponential(size=600)
                left, right = binomial_lemma(f, 0.8, kappa, n)
                assert left <= right * (1 + 1e-12) + 1e-15
                tight = max(tight, left / right if right > 0 else 0.0)
    assert tight == pytest.approx(1.0)
    late = -(np.arange(600) > 9).astype(float)
    left, right = binomial_lemma(late, 0.8, 0.5, 3)
    assert left > right
