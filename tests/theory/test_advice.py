"""best_kappa against a search of its own, and what it says."""

import math

import numpy as np
import pytest

import reference_theory as ref
from tightrope import MDP, Policy
from tightrope.errors import InvalidArgument
from tightrope.theory import best_kappa, concentrability, kappa_api_bound, kappa_psdp_bound

BOUNDS = (kappa_api_bound, kappa_psdp_bound)


def model(seed=1, gamma=0.9):
    d = ref.random_dense(np.random.default_rng(seed), S=4, kind="dense", gamma=gamma)
    return d, MDP.from_dense(d.P, d.r, d.gamma)


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_constant_error_favours_kappa_one_and_the_sentence_says_why(bound):
    d, mdp = model()
    advice = best_kappa(mdp, 1e-3, mu=d.mu, nu=d.nu, bound=bound)
    assert advice.kappa == 1.0
    assert advice.at_end
    assert "an end point of the range" in str(advice)
    assert "give delta as a table or a function" in str(advice)
    assert advice.value == pytest.approx(1e-3 * ref.ratio(d.mu, d.nu), rel=1e-9)


@pytest.mark.parametrize("bound", BOUNDS)
def test_an_error_that_grows_with_the_horizon_has_an_interior_optimum(bound):
    d, mdp = model()
    c = concentrability(mdp, d.mu, d.nu)

    def delta(kappa):
        return 1e-4 * (1 + 30 * kappa**6 / (1 - 0.9 * kappa))

    advice = best_kappa(c, delta, bound=bound)
    assert not advice.at_end
    assert "inside the range" in str(advice)
    search = min(np.linspace(0, 1, 401), key=lambda kappa: bound(c, kappa, delta(kappa)).value)
    assert abs(advice.kappa - search) <= 0.03
    assert advice.value <= bound(c, search, delta(search)).value * 1.01
    np.testing.assert_allclose(advice.values, [bound(c, k, delta(k)).value for k in advice.kappas])
    np.testing.assert_allclose(advice.deltas, [delta(k) for k in advice.kappas])


def test_a_table_is_compared_at_its_own_kappas():
    d, mdp = model()
    advice = best_kappa(mdp, {0: 1e-4, 0.5: 1e-4, 1.0: 1.0}, mu=d.mu, nu=d.nu)
    assert advice.kappas.tolist() == [0.0, 0.5, 1.0]
    assert advice.kappa == 0.5
    with pytest.raises(InvalidArgument, match=r"no entry for kappa = 0.7"):
        best_kappa(mdp, {0.5: 1e-4}, kappas=[0.7])


@pytest.mark.parametrize("bound", BOUNDS)
def test_at_equal_cost_a_large_kappa_pays_with_iterations(bound):
    d, mdp = model(gamma=0.95)
    c = concentrability(mdp, d.mu, d.nu)

    def cost(kappa):
        return 1.0 / (1.0 - 0.95 * kappa)  # the surrogate's horizon

    advice = best_kappa(c, 1e-4, bound=bound, cost=cost, budget=15.0)
    for kappa, k, value in zip(advice.kappas, advice.iterations, advice.values, strict=True):
        assert k == math.floor(15.0 * (1 - 0.95 * kappa) * (1 + 1e-12))
        assert value == bound(c, kappa, 1e-4, int(k)).value
    assert advice.exhausted == tuple(k for k in advice.exhausted if cost(k) > 15.0)
    assert len(advice.exhausted) > 0
    assert "at equal cost 15" in str(advice)
    assert "cost more than the whole budget" in str(advice)


def test_a_bound_that_says_nothing_gives_no_advice():
    d, mdp = model()
    advice = best_kappa(mdp, 1e6, mu=d.mu, nu=d.nu)
    assert "gives no advice" in str(advice)


def test_a_known_start_is_used():
    d, mdp = model()
    c = concentrability(mdp, d.mu, d.nu)
    pi0 = Policy.deterministic(mdp, 0)
    known, unknown = best_kappa(c, 1e-6, k=2, pi0=pi0), best_kappa(c, 1e-6, k=2)
    assert (known.values <= unknown.values).all()
    assert known.values[0] == kappa_api_bound(c, 0.0, 1e-6, 2, pi0=pi0).value


def test_bad_input_is_refused():
    d, mdp = model()
    c = concentrability(mdp, d.mu, d.nu)
    with pytest.raises(InvalidArgument, match=r"delta must be a finite number >= 0; found -0\.1"):
        best_kappa(c, -0.1)
    with pytest.raises(InvalidArgument, match="delta must be a finite number >= 0; found nan"):
        best_kappa(c, lambda kappa: float("nan"))  # noqa: ARG005
    with pytest.raises(InvalidArgument, match="part of the coefficients"):
        best_kappa(c, 0.1, mu=d.mu)
    with pytest.raises(InvalidArgument, match="both cost"):
        best_kappa(c, 0.1, budget=3.0)
    with pytest.raises(InvalidArgument, match="leave k out"):
        best_kappa(c, 0.1, budget=3.0, cost=lambda kappa: 1.0, k=3)  # noqa: ARG005
    with pytest.raises(InvalidArgument, match=r"cost\(0\) is 0.0"):
        best_kappa(c, 0.1, budget=3.0, cost=lambda kappa: 0.0)  # noqa: ARG005
    with pytest.raises(InvalidArgument, match="does not pay for one oracle call"):
        best_kappa(c, 0.1, budget=0.5, cost=lambda kappa: 1.0)  # noqa: ARG005
    with pytest.raises(InvalidArgument, match="kappa must lie in"):
        best_kappa(c, 0.1, kappas=[0.5, 1.5])
    with pytest.raises(InvalidArgument, match="no kappa to compare"):
        best_kappa(c, 0.1, kappas=[])
