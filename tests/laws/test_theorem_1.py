"""Theorem 1: mixing with a κ-greedy policy improves for all MDPs iff α >= κ; with an h-greedy one (h > 1) iff α = 1."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of, policy_of, pool, value_of

GAMMAS = (0.1, 0.5, 0.9, 0.99, 0.999999)
CS = (0.25, 0.5, 1.0, 2.0, 3.0, 7.0, 20.0)
UNIT = (0.05, 0.125, 0.25, 0.4, 0.5, 0.6, 0.75, 0.8, 0.875, 0.95)
WALK, STAY = 1, 0  # the pairs of s0: a1 climbs the rope, a0 does not


def any_member(mdp, pairs, rng):
    """A deterministic policy made of the given pairs, at random where there are several."""
    lots = np.where(pairs, rng.random(mdp.n_pairs), -1.0)
    actions = [int(lots[a:b].argmax()) for a, b in itertools.pairwise(mdp.first)]
    return tr.Policy.deterministic(mdp, [mdp.pairs.actions[a + i] for a, i in zip(mdp.first, actions, strict=False)])


def test_alpha_at_least_kappa_improves_by_at_least_alpha_times_the_kappa_advantage():
    """v' - v >= α(T_κ v - v) and max(v* - v') <= (1 - α(1-ξ)) max(v* - v): the theorem with its quantities (notes, B13)."""
    rng = np.random.default_rng(6)
    strict = 0
    for case, mdp in pool():
        pi, v = policy_of(mdp, case.pi), case.v_pi
        target = any_member(mdp, tr.kappa_greedy_set(mdp, v, case.kappa), rng)
        ahead = reference.T_kappa(case, v, case.kappa)
        slack = case.slack(v, case.v_star)
        loss = (case.v_star - v).max()
        for alpha in (max(case.kappa, 0.01), rng.uniform(max(case.kappa, 0.01), 1.0)):
            new = value_of(case, tr.mix(pi, target, alpha))
            assert (new - v >= alpha * (ahead - v) - slack).all()
            assert (new >= v - slack).all()
            contraction = 1 - alpha * (1 - reference.xi(case.gamma, case.kappa))
            assert (case.v_star - new).max() <= contraction * loss + slack
            if loss > 1e4 * slack:  # strict unless v = v*
                assert (new - v).max() > 0
                strict += 1
    assert strict > 800


def test_alpha_below_kappa_fails_on_random_models_too():
    """The negative twin: at κ = 1 a step of .05 loses somewhere, in models nobody designed for it."""
    failed = 0
    for case, mdp in pool(1_000, 7, kappa=1.0):
        v = reference.value(case, case.pi_2)
        new = value_of(case, tr.mix(policy_of(mdp, case.pi_2), tr.kappa_greedy(mdp, v, 1.0), 0.05))
        failed += bool((new < v - case.slack(v, case.v_star)).any())
    assert failed >= 5


def test_a_failing_mixture_may_be_worse_everywhere():
    """Notes B13 say that a failing mixture is incomparable with π, not dominated by it. Here it is dominated, exactly.

    Two states, γ = .9. Staying (a0) earns 1 on the way from s0 to s1 and 6 for ever in s1; moving (a1) earns 8 for ever in s0
    and 9 on the way there. π stays, v^π = (55, 60); π* moves, v* = (80, 81). One step in twenty towards π* keeps walking
    back and forth: v' = (54.5.., 59.3..) is below v^π in both states.
    """
    P = np.array([[[0, 1], [1, 0]], [[0, 1], [1, 0]]], dtype=float)
    mdp = tr.MDP.from_dense(P, [[1.0, 8.0], [6.0, 9.0]], 0.9)
    pi, best = tr.Policy.deterministic(mdp, 0), tr.Policy.deterministic(mdp, 1)
    assert tr.kappa_greedy(mdp, tr.value(mdp, pi), 1.0) == best
    mixed = tr.value(mdp, tr.mix(pi, best, 0.05))
    np.testing.assert_allclose(tr.value(mdp, pi), [55, 60], rtol=1e-14)
    np.testing.assert_allclose(tr.value(mdp, best), [80, 81], rtol=1e-14)
    assert (mixed < [54.6, 59.4]).all()
    g, a = Fraction(9, 10), Fraction(1, 20)  # the same in fractions, with γ = 9/10 and α = 1/20 exactly
    rows = [[((1 - a) * stay + a * move, [a, 1 - a])] for stay, move in ((Fraction(1), 8), (Fraction(6), 9))]
    assert all(x < y for x, y in zip(reference.Exact(rows, g).value([0, 0]), (55, 60), strict=True))


def test_what_the_model_at_hand_allows():
    """All α are safe if T^{π_κ} v >= v; small ones are iff (I - γP^π)^-1 (T^{π_κ} v - v) >= 0 (notes, B13)."""
    rng = np.random.default_rng(8)
    safe = slopes_up = slopes_down = 0
    for case, mdp in pool(1_000, 7, kappa=1.0):
        if case.gamma > 0.99:
            continue
        pi, v = policy_of(mdp, case.pi_2), reference.value(case, case.pi_2)
        target = tr.kappa_greedy(mdp, v, case.kappa)
        gain, slack = tr.T_pi(mdp, target, v) - v, case.slack(v, case.v_star)
        if (gain >= -1e-3 * slack).all():
            safe += 1
            new = value_of(case, tr.mix(pi, target, rng.uniform(0.0, 1.0)))
            assert (new >= v - slack).all()
        slope = np.linalg.solve(np.eye(len(v)) - case.gamma * reference.chain(case, case.pi_2)[0], gain)
        step = 1e-5
        change = value_of(case, tr.mix(pi, target, step)) - v
        clear = np.abs(slope) > 1e3 * slack / step
        assert ((change > 0) == (slope > 0))[clear].all()
        slopes_up += bool((slope[clear] > 0).any())
        slopes_down += bool((slope[clear] < 0).any())
    assert safe > 300
    assert slopes_up > 100
    assert slopes_down >= 5


@pytest.mark.parametrize("gamma", GAMMAS)
def test_tightrope_membership_threshold_is_exact(gamma):
    """π* is κ-greedy at v^{π0} iff c <= κ/(1-κ); at equality s0 ties; in s1 the goal always wins (notes, B14)."""
    ties = 0
    for c, kappa in itertools.product(CS, (0.0, *UNIT, 1.0)):
        mdp = mdp_of(reference.tightrope(c, gamma))
        hesitant = tr.Policy.deterministic(mdp, 0)
        found = tr.kappa_greedy_set(mdp, tr.value(mdp, hesitant), kappa)
        margin = Fraction(kappa) - Fraction(c) * (1 - Fraction(kappa))  # from the floats themselves
        if abs(margin) < 1e-9 and margin != 0:
            continue
        assert found[WALK] == (margin >= 0)
        assert found[STAY] == (margin <= 0)
        assert found[2:].tolist() == [False, True, True, True]
        ties += margin == 0
    assert ties == 3  # (c, κ) = (1, 1/2), (3, 3/4), (7, 7/8)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_tightrope_mixture_threshold_is_exact(gamma):
    """The mixture of hesitant and confident fails, at s0, iff α < c/(1+c); its value is the paper's closed form."""
    for c, alpha in itertools.product(CS, (*UNIT, 1.0)):
        mdp = mdp_of(reference.tightrope(c, gamma))
        hesitant, confident = tr.Policy.deterministic(mdp, 0), tr.Policy.deterministic(mdp, [1, 1, 0, 0])
        old, new = tr.value(mdp, hesitant), tr.value(mdp, tr.mix(hesitant, confident, alpha))
        at_1 = gamma * (alpha - c * (1 - alpha)) / (1 - gamma)
        slack = 1e-14 * (1 + c) / (1 - gamma)
        np.testing.assert_allclose(new[1], at_1, rtol=0, atol=slack)
        np.testing.assert_allclose(new[0], gamma * alpha / (1 - gamma * (1 - alpha)) * at_1, rtol=0, atol=slack)
        margin = Fraction(alpha) - Fraction(c) * (1 - Fraction(alpha))
        assert old[0] == 0.0
        if abs(margin) > 1e-9:
            assert (new[0] < 0.0) == (margin < 0)
        else:
            assert abs(new[0]) <= slack
        assert (new[1:] >= old[1:] - slack).all()  # on the rope itself every mixture improves


def test_both_thresholds_in_fractions():
    """The same two thresholds without any rounding, on a grid of c, γ, κ and α."""
    grid = [Fraction(i, 8) for i in range(1, 8)]
    for c, g in itertools.product((Fraction(1, 3), Fraction(1), Fraction(3), Fraction(7)), (Fraction(1, 2), Fraction(9, 10))):
        stay, fall, walk, goal = [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]
        v = reference.Exact([[(0, stay)], [(0, fall)], [(1, goal)], [(-c, fall)]], g).value([0, 0, 0, 0])
        for kappa in grid:
            shaped = [[(r + (1 - kappa) * g * sum(p * x for p, x in zip(row, v, strict=True)), row) for r, row in pairs]
                      for pairs in ([(0, stay), (0, walk)], [(0, fall), (0, goal)], [(1, goal)], [(-c, fall)])]  # fmt: skip
            inner = reference.Exact(shaped, kappa * g)
            w, _ = inner.optimum([0, 0, 0, 0])
            q = inner.q(w)
            assert (q[0][1] == w[0]) == (c <= kappa / (1 - kappa))
            assert (q[0][0] == w[0]) == (c >= kappa / (1 - kappa))
            assert q[1][1] > q[1][0]
        for alpha in grid:
            mixed = [[(0, [1 - alpha, alpha, 0, 0])], [(0, [0, 0, alpha, 1 - alpha])], [(1, goal)], [(-c, fall)]]
            assert (reference.Exact(mixed, g).value([0, 0, 0, 0])[0] < v[0]) == (alpha < c / (1 + c))


def test_for_every_alpha_below_kappa_some_tightrope_fails_and_for_none_above():
    """Necessity: with c between α/(1-α) and κ/(1-κ), π* is the κ-greedy policy and the mixture loses at s0."""
    for gamma, kappa, alpha in itertools.product((0.1, 0.9, 0.999999), (*UNIT, 1.0), UNIT):
        if alpha < kappa:
            top = kappa / (1 - kappa) if kappa < 1 else 100.0
            c = (alpha / (1 - alpha) + top) / 2
        else:
            c = 0.9 * kappa / (1 - kappa)
        mdp = mdp_of(reference.tightrope(c, gamma))
        hesitant = tr.Policy.deterministic(mdp, 0)
        old = tr.value(mdp, hesitant)
        target = tr.kappa_greedy(mdp, old, kappa)
        assert target.actions.tolist() == [1, 1, 0, 0]
        new = tr.value(mdp, tr.mix(hesitant, target, alpha))
        assert (new[0] < old[0]) == (alpha < kappa), (gamma, kappa, alpha, c)


@pytest.mark.parametrize("h", [2, 3, 5])
def test_with_h_above_1_every_alpha_below_1_fails_on_some_tightrope(h):
    """π* is h-greedy whatever c, so c > α/(1-α) alone makes the mixture lose; α = 1 improves."""
    for gamma, alpha in itertools.product(GAMMAS, (*UNIT, 0.99, 1.0)):
        c = 2 * alpha / (1 - alpha) if alpha < 1 else 10.0
        mdp = mdp_of(reference.tightrope(c, gamma))
        hesitant = tr.Policy.deterministic(mdp, 0)
        old = tr.value(mdp, hesitant)
        target = tr.h_greedy(mdp, old, h)
        assert target.actions.tolist() == [1, 1, 0, 0]
        new = tr.value(mdp, tr.mix(hesitant, target, alpha))
        assert (new >= old).all() == (alpha == 1.0)
        assert (new[0] < 0.0) == (alpha < 1.0)


def test_with_h_equal_1_no_alpha_fails():
    """The twin of the above, over random models: soft one-step greedy updates always improve."""
    rng = np.random.default_rng(9)
    for case, mdp in pool():
        v, pi = case.v_pi, policy_of(mdp, case.pi)
        new = value_of(case, tr.mix(pi, tr.h_greedy(mdp, v, 1), 10.0 ** rng.uniform(-3, 0)))
        assert (new >= v - case.slack(v, case.v_star)).all()
