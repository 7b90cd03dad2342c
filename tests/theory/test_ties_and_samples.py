"""The easiest of all optimal policies against enumeration, and confidence intervals against the exact coefficient."""

import math

import numpy as np
import pytest

import reference_theory as ref
from tightrope import MDP, Policy
from tightrope.errors import InvalidArgument, InvalidPolicy
from tightrope.theory import concentrability, easiest_optimal, sampled_c_star, sampled_C_star_kappa

KAPPAS = (0.0, 0.5, 0.9, 1.0)


def tied(rng, S=4, A=2, gamma=0.9):
    """Rewards of the state only, and the same for all: every policy is optimal."""
    P = rng.dirichlet(np.full(S, 0.3), size=(S, A))
    mu, nu = rng.dirichlet(np.ones(S), size=2)
    return ref.Dense(P, np.ones((S, A)), gamma, mu, nu)


def mismatches(d, kappa):
    """C_κ^π of every deterministic policy."""
    P, w = d.chains[0], kappa * (1 - d.gamma) / (1 - d.gamma * kappa)
    visits = (1 - d.gamma) * np.linalg.solve(
        np.eye(len(d.mu)) - d.gamma * P.swapaxes(1, 2), np.broadcast_to(d.mu[:, None], (len(P), len(d.mu), 1))
    )
    return [ref.ratio(w * d.mu + (1 - w) * x[:, 0], d.nu) for x in visits]


def test_the_minimum_over_optimal_policies():
    """No deterministic optimal policy is better, the spread is large (note B10), and a mixture is sometimes better than all."""
    rng, spread, mixed = np.random.default_rng(1), 1.0, 0
    for _ in range(25):
        d = tied(rng)
        mdp = MDP.from_dense(d.P, d.r, d.gamma)
        for kappa in KAPPAS:
            found, all_of_them = easiest_optimal(mdp, d.mu, d.nu, kappa), mismatches(d, kappa)
            assert found.C_star_kappa.relative_width <= 2e-3
            assert found.C_star_kappa.lower <= min(all_of_them) * (1 + 1e-9)
            followed = concentrability(mdp, d.mu, d.nu, found.policy).C_star_kappa(kappa)
            assert followed.upper <= min(all_of_them) * (1 + 3e-3)
            spread = max(spread, max(all_of_them) / min(all_of_them))
            mixed += min(all_of_them) > found.C_star_kappa.upper * 1.01
    assert spread > 3
    assert mixed > 0


def test_a_unique_optimum_is_found_again():
    rng = np.random.default_rng(2)
    for _ in range(10):
        d = ref.random_dense(rng, S=4)
        mdp = MDP.from_dense(d.P, d.r, d.gamma)
        plain = concentrability(mdp, d.mu, d.nu).C_star_kappa(0.3)
        found = easiest_optimal(mdp, d.mu, d.nu, 0.3).C_star_kappa
        assert found.lower <= plain.upper
        assert found.upper >= plain.lower


def test_an_optimal_policy_that_avoids_uncovered_states_is_preferred():
    """Two equal ways to the goal, one through a state with ν = 0: the easiest policy takes the other one."""
    P = np.zeros((4, 2, 4))
    P[0, 0, 1] = P[0, 1, 2] = 1.0
    P[1:3, :, 3] = P[3, :, 3] = 1.0
    mdp, mu, nu = MDP.from_dense(P, np.ones((4, 2)), 0.9), np.eye(4)[0], np.array([0.3, 0.0, 0.3, 0.4])
    assert not concentrability(mdp, mu, nu).C_star.finite  # ties go to the lowest action
    found = easiest_optimal(mdp, mu, nu)
    assert found.policy.weights[:2].tolist() == [0.0, 1.0]
    assert found.C_star_kappa.upper == pytest.approx(max(0.1 / 0.3, 0.09 / 0.3, 0.81 / 0.4))
    assert easiest_optimal(mdp, mu, np.array([0.3, 0.0, 0.0, 0.7])).C_star_kappa.lower == math.inf
    assert easiest_optimal(mdp, mu, nu, 1.0).C_star_kappa.upper == pytest.approx(1 / 0.3)


def test_confidence_intervals_contain_the_coefficient():
    rng = np.random.default_rng(3)
    misses = 0
    for seed in range(60):
        d = ref.random_dense(rng, S=4, gamma=0.8)
        mdp = MDP.from_dense(d.P, d.r, d.gamma)
        pi = Policy.deterministic(mdp, np.unravel_index(d.star, (2,) * 4))
        kappa = KAPPAS[seed % 4]
        found = sampled_C_star_kappa(mdp, pi, d.mu, d.nu, kappa, samples=4_000, seed=seed)
        misses += ref.ratio(ref.d_kappa(d, kappa), d.nu) not in found
        step = sampled_c_star(mdp, pi, d.mu, d.nu, 3, samples=4_000, seed=seed)
        misses += ref.c_star_terms(d, 4)[3] not in step
        assert found == sampled_C_star_kappa(mdp, pi, d.mu, d.nu, kappa, samples=4_000, seed=seed)
    assert misses <= 6  # 5 % of 120, and Bonferroni is cautious


def test_samples_of_a_stochastic_policy():
    rng = np.random.default_rng(4)
    d = ref.random_dense(rng, S=4, kind="dense", gamma=0.8)
    mdp = MDP.from_dense(d.P, d.r, d.gamma)
    chain = d.P.mean(axis=1)
    exact = ref.ratio(d.mu @ chain @ chain, d.nu)
    found = sampled_c_star(mdp, Policy.uniform(mdp), d.mu, d.nu, 2, samples=200_000, seed=1)
    assert exact in found
    assert found.relative_width < 0.05


def test_uncovered_states():
    P = np.zeros((3, 1, 3))
    P[:, 0] = np.eye(3)[[1, 2, 2]]
    mdp = MDP.from_dense(P, np.zeros((3, 1)), 0.5)
    pi, mu = Policy.uniform(mdp), np.eye(3)[0]
    assert sampled_C_star_kappa(mdp, pi, mu, [0.5, 0.5, 0.0], samples=1_000, seed=0).lower == math.inf
    one = sampled_c_star(mdp, pi, mu, [0.5, 0.5, 0.0], 1, samples=1_000, seed=0)
    assert one.lower <= 2.0  # the truth
    assert one.upper == math.inf  # which samples cannot prove


def test_bad_input_is_refused():
    mdp = MDP.from_dense(np.ones((1, 2, 1)), np.zeros((1, 2)), 0.5)
    other = MDP.from_dense(np.ones((1, 3, 1)), np.zeros((1, 3)), 0.5)
    with pytest.raises(InvalidArgument, match="confidence must lie in"):
        sampled_C_star_kappa(mdp, Policy.uniform(mdp), [1.0], [1.0], confidence=1.0)
    with pytest.raises(InvalidPolicy, match="another model"):
        sampled_C_star_kappa(mdp, Policy.uniform(other), [1.0], [1.0])
    with pytest.raises(InvalidArgument, match="samples must be"):
        sampled_C_star_kappa(mdp, Policy.uniform(mdp), [1.0], [1.0], samples=0)
