"""Values of policies from samples."""

import numpy as np
import pytest

import tightrope as tr
from tightrope.approximate import ExactValue, LSTDValue, MonteCarloValue, Problem, features
from tightrope.errors import InvalidArgument
from tightrope.model.policy import Policy
from tightrope.model.problems import garnet

RNG = np.random.default_rng
MDP = garnet(25, 3, 4, gamma=0.9, seed=2)
PI = Policy.stochastic(MDP, RNG(0).dirichlet(np.ones(3), size=25).ravel())
V = RNG(1).normal(size=25)


@pytest.mark.parametrize("kappa", [0.0, 0.6, 1.0])
def test_the_value_in_the_surrogate_is_t_kappa_pi(kappa):
    problem = Problem.original(MDP).surrogate(V, kappa)
    expected = tr.T_kappa_pi(MDP, PI, V, kappa)
    np.testing.assert_allclose(ExactValue()(problem, PI, MDP.start, RNG(0)), expected, atol=1e-11)
    found = MonteCarloValue(4_000)(problem, PI, MDP.start, RNG(0))
    np.testing.assert_allclose(found, expected, atol=0.25)
    table = LSTDValue(samples=200_000)(problem, PI, MDP.start, RNG(0))
    np.testing.assert_allclose(table, expected, atol=0.25)


def test_errors_shrink_with_the_budget():
    problem, expected = Problem.original(MDP), tr.value(MDP, PI)

    def error(evaluate):
        return np.mean([np.abs(evaluate(problem, PI, MDP.start, RNG(i)) - expected).mean() for i in range(3)])

    assert error(MonteCarloValue(400)) < 0.3 * error(MonteCarloValue(4))
    assert error(LSTDValue(samples=100_000)) < 0.3 * error(LSTDValue(samples=1_000))


def test_monte_carlo_pays_what_it_says():
    problem = Problem.original(MDP)
    MonteCarloValue(3, horizon=7)(problem, PI, MDP.start, RNG(0))
    assert problem.meter.samples == 3 * 7 * 25


def test_lstd_with_features_is_the_projected_fixed_point():
    """θ of Φᵀ D (Φ - γ P^π Φ) θ = Φᵀ D r^π, from dense matrices and the exact visits."""
    phi = RNG(3).normal(size=(25, 4))
    P, r = PI.induced(MDP)
    P = P.toarray()
    visits = 0.1 * np.linalg.solve(np.eye(25) - 0.9 * P.T, MDP.start)
    D = np.diag(visits)
    theta = np.linalg.solve(phi.T @ D @ (phi - 0.9 * P @ phi), phi.T @ D @ r)
    found = LSTDValue(phi, samples=500_000)(Problem.original(MDP), PI, MDP.start, RNG(0))
    np.testing.assert_allclose(found, phi @ theta, atol=0.05 * np.abs(phi @ theta).max())


def test_bad_features_are_refused():
    problem = Problem.original(MDP)
    with pytest.raises(InvalidArgument, match=r"features must have shape \(25, d\), one row per state; found \(3, 2\)"):
        LSTDValue(np.ones((3, 2)))(problem, PI, MDP.start, RNG(0))
    with pytest.raises(InvalidArgument, match="matrix of numbers"):
        LSTDValue([["a"] * 2] * 25)(problem, PI, MDP.start, RNG(0))
    with pytest.raises(InvalidArgument, match="n must be an integer"):
        MonteCarloValue(0)
    with pytest.raises(InvalidArgument, match="horizon must be"):
        MonteCarloValue(1, horizon=0)
    with pytest.raises(InvalidArgument, match="samples must be"):
        LSTDValue(samples=-1)


def test_features_by_action_tell_actions_apart():
    phi = features.by_action(np.arange(50.0).reshape(25, 2), MDP.pairs).toarray()
    assert phi.shape == (75, 6)
    assert phi[7].tolist() == [0, 0, 4, 5, 0, 0]  # state 2, action 1
    assert repr(LSTDValue(np.ones((25, 3)))) == "LSTDValue(3 features, samples=10000)"
    assert repr(LSTDValue()) == "LSTDValue(a table, samples=10000)"
