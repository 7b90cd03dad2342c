"""A certificate contains v*, and the value of the greedy policy, computed from the stored numbers in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

import tightrope as tr
from bridge import exact_of
from tightrope.engine import certify, optimal

GAMMAS = (0.0, 0.3, 0.9, 0.99, 0.9999, 0.999999)


def models(n, seed):
    """Models of up to four states with rewards of one size, or of sizes from 1e-8 to 1e8 side by side."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        S, A = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        P = rng.dirichlet(np.full(S, rng.choice((0.1, 1.0))), size=(S, A))
        P = np.where(P < 1e-3, 0.0, P)
        P /= P.sum(axis=2, keepdims=True)
        if rng.random() < 0.3:  # row sums off by what the door lets pass as rounding: the certificate must know
            P *= 1.0 + rng.uniform(-9e-13, 9e-13, (S, A, 1))
        size = 10.0 ** (rng.uniform(-8, 8) if rng.random() < 0.5 else rng.uniform(-8, 8, (S, A)))
        yield rng, tr.MDP.from_dense(P, rng.normal(size=(S, A)) * size, float(rng.choice(GAMMAS)))


def contains(truth, low, high, pi, first):
    """Whether lower <= v^π <= v* <= upper, in fractions."""
    exact, v_star, best = truth
    chosen = [int(a) for a in pi.rows - first[:-1]]
    v_pi = v_star if chosen == best else exact.value(chosen)
    below = all(Fraction(float(a)) <= b for a, b in zip(low, v_pi, strict=True))
    return below and all(Fraction(float(a)) >= b for a, b in zip(high, v_star, strict=True))


def truth_of(mdp):
    """The model in fractions, its v* and an optimal choice."""
    exact = exact_of(mdp)
    return exact, *exact.optimum([0] * mdp.n_states)


def vectors(rng, v_star):
    """Vectors to back up: far away, close, and as close to v* as floats are."""
    S, scale = len(v_star), max(1e-300, np.abs(v_star).max())
    yield "far", rng.normal(size=S) * scale * 10.0 ** rng.uniform(-3, 12)
    yield "close", v_star + scale * rng.normal(size=S) * 10.0 ** rng.uniform(-15, -6)
    yield "shifted", v_star + scale * 10.0 ** rng.uniform(0, 8)  # large numbers that cancel
    yield "exact", v_star
    yield "ulps", np.nextafter(v_star, rng.choice((-np.inf, np.inf), S))


def backed_up(rng_and_mdp):
    """Name, model, truth and v, u = T v, min and max of u - v for each of the vectors."""
    rng, mdp = rng_and_mdp
    truth = truth_of(mdp)
    for name, v in vectors(rng, np.array([float(x) for x in truth[1]])):
        u = tr.T(mdp, v)
        yield name, mdp, truth, v, u, float((u - v).min()), float((u - v).max())


def test_a_certificate_contains_the_optimum_and_the_greedy_policy():
    for pair in models(1_000, 12):
        for name, mdp, truth, v, u, m, M in backed_up(pair):
            found = certify(mdp, u, m, M)
            assert contains(truth, found.lower, found.upper, tr.greedy(mdp, v), mdp.first), (name, mdp, v)
            assert found.gap >= 0.0
            assert np.all(found.lower <= found.value)
            assert np.all(found.value <= found.upper)


def test_without_outward_rounding_it_does_not():
    """The negative twin: the textbook bounds u + γ m/(1-γ) and u + γ M/(1-γ) in plain floats miss v* again and again."""
    missed = {}
    for pair in models(200, 13):
        for name, mdp, truth, v, u, m, M in backed_up(pair):
            reach = mdp.gamma / (1.0 - mdp.gamma)
            inside = contains(truth, u + reach * m, u + reach * M, tr.greedy(mdp, v), mdp.first)
            missed[name] = missed.get(name, 0) + (not inside)
    assert missed["exact"] > 20
    assert missed["ulps"] > 20


def test_a_certificate_is_not_needlessly_wide():
    """At v* the width is what rounding explains: a small multiple of ε/(1-γ) times the size of the values and rewards."""
    for pair in models(300, 14):
        for name, mdp, _, v, u, m, M in backed_up(pair):
            if name == "exact":
                size = max(np.abs(v).max(), mdp.reward_size)
                assert certify(mdp, u, m, M).gap <= 100 * 2.0**-52 * size / (1.0 - mdp.gamma)


@pytest.mark.parametrize("tol", [1e-3, 1e-9, 0.0])
def test_what_the_engine_returns_is_certified(tol):
    for _, mdp in models(350, 15):
        found = optimal(mdp, tol=tol)
        assert contains(truth_of(mdp), found.certificate.lower, found.certificate.upper, found.policy, mdp.first)
