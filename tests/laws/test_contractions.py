"""Sections 2 and 3: T and T^π contract by γ, T_κ and T_κ^π by ξ, T^h by γ^h; their fixed points are v* and v^π."""

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import policy_of, pool


def norm(x):
    return float(np.abs(x).max())


def operators(case, mdp):
    """Name, operator and modulus of every contraction of the two sections."""
    pi, k = policy_of(mdp, case.pi), case.kappa
    return {
        "T": (lambda v: tr.T(mdp, v), case.gamma),
        "T_pi": (lambda v: tr.T_pi(mdp, pi, v), case.gamma),
        "T_h": (lambda v: tr.T_h(mdp, v, 3), case.gamma**3),
        "T_kappa": (lambda v: tr.T_kappa(mdp, v, k), reference.xi(case.gamma, k)),
        "T_kappa_pi": (lambda v: tr.T_kappa_pi(mdp, pi, v, k), reference.xi(case.gamma, k)),
    }


NAMES = ("T", "T_pi", "T_h", "T_kappa", "T_kappa_pi")


@pytest.mark.parametrize("name", NAMES)
def test_contraction(name):
    for case, mdp in pool():
        operator, modulus = operators(case, mdp)[name]
        v, w = case.v, case.w
        at_v, at_w = operator(v), operator(w)
        slack = case.slack(at_v, at_w, v, w)
        assert norm(at_v - at_w) <= modulus * norm(v - w) + slack


@pytest.mark.parametrize("name", NAMES)
def test_monotonicity(name):
    for case, mdp in pool()[:300]:
        operator, _ = operators(case, mdp)[name]
        below, above = operator(case.v), operator(np.maximum(case.v, case.w))
        assert (above >= below - case.slack(above, below, case.v, case.w)).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_modulus_is_attained_so_no_smaller_one_holds(name):
    """Adding a constant c to v adds modulus c to every operator: the negative twin of the contraction."""
    beaten = 0
    for case, mdp in pool():
        operator, modulus = operators(case, mdp)[name]
        c = 1.0 + norm(case.v) + norm(case.v_star)
        at_v, shifted = operator(case.v), operator(case.v + c)
        slack = case.slack(at_v, shifted, case.v + c)
        np.testing.assert_allclose(shifted - at_v, modulus * c, rtol=0, atol=slack)
        beaten += norm(shifted - at_v) > 0.9999 * modulus * c + slack
    assert beaten > 0.5 * len(pool())  # not where the modulus is zero (γ = 0, κ = 1)


def test_T_kappa_does_not_contract_by_less_than_xi_but_by_less_than_gamma():
    """ξ < γ for 0 < κ and 0 < γ: looking further ahead contracts faster, which is the point of κ."""
    for case, _ in pool():
        modulus = reference.xi(case.gamma, case.kappa)
        assert modulus <= case.gamma
        assert (modulus < case.gamma) == (case.kappa > 0 and case.gamma > 0)


@pytest.mark.parametrize("name", NAMES)
def test_fixed_points(name):
    moved = 0
    for case, mdp in pool():
        operator, _ = operators(case, mdp)[name]
        fixed, other = (case.v_pi, case.v_star) if name.endswith("pi") else (case.v_star, case.v_pi)
        slack = case.slack(fixed, other)
        np.testing.assert_allclose(operator(fixed), fixed, rtol=0, atol=slack)
        if norm(fixed - other) > 1e3 * slack / (1.0 - case.gamma):  # the negative twin: nothing else is a fixed point
            assert norm(operator(other) - other) > slack
            moved += 1
    assert moved > 0.4 * len(pool())


def test_iterating_T_kappa_reaches_the_optimum():
    """Banach: ξ^n closes in on v* from anywhere (where γ is not so close to one that it takes for ever)."""
    for case, mdp in pool()[:150]:
        if case.gamma > 0.9:
            continue
        v, distance = case.v, norm(case.v - case.v_star)
        for n in range(1, 6):
            v = tr.T_kappa(mdp, v, case.kappa)
            bound = reference.xi(case.gamma, case.kappa) ** n * distance
            assert norm(v - case.v_star) <= bound + case.slack(v, case.v_star)


def test_T_kappa_lies_between_T_and_the_optimum_where_T_improves():
    """If T v >= v then v <= T v <= T_κ v <= v*, increasing in κ; and the mirror image where T v <= v."""
    for case, mdp in pool():
        low = np.full(len(case.v), min(0.0, case.r[case.ok].min() / (1.0 - case.gamma)) - 1.0)
        previous = tr.T(mdp, low)
        slack = case.slack(low, case.v_star)
        assert (previous >= low - slack).all()
        now = tr.T_kappa(mdp, low, case.kappa)
        assert (now >= previous - slack).all()
        assert (now <= case.v_star + slack).all()
        assert (reference.T_kappa(case, low, 0.5 * case.kappa) <= now + slack).all()


def test_without_that_condition_T_kappa_need_not_increase_with_kappa():
    """The negative twin: from an optimistic v, more lookahead brings the value down."""
    fell = 0
    for case, mdp in pool()[:200]:
        high = np.full(len(case.v), max(0.0, case.r[case.ok].max() / (1.0 - case.gamma)) + 1.0)
        slack = case.slack(high)
        near, far = tr.T_kappa(mdp, high, 0.0), tr.T_kappa(mdp, high, 1.0)
        assert (far <= near + slack).all()
        fell += bool((far < near - slack).any())
    assert fell > 50
