"""First values: how they spread from states that cannot be left, exactly or by guesses that promise too little, not too much."""

import numpy as np
import pytest

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine.monitor import Aim
from tightrope.engine.workspace import Workspace


def test_values_spread_exactly_where_nothing_is_left_to_chance():
    mdp = problems.gridworld(20, 30, slip=0.0, gamma=0.99)
    work = Workspace(mdp, None, Aim(1e-6, -1.0))
    sweeps, guessed = work.spread_values()
    assert sweeps <= 2
    assert not guessed
    np.testing.assert_allclose(work.v, tr.solve(mdp, tol=1e-12).value, atol=1e-11)


def test_values_spread_nearly_where_moves_slip():
    """A guess is no proof: it is near, not right, and here too low."""
    mdp = problems.gridworld(40, 40, slip=0.1, gamma=0.999)
    work = Workspace(mdp, None, Aim(1e-6, -1.0))
    _, guessed = work.spread_values()
    error = work.v - tr.solve(mdp, tol=1e-10).value
    assert guessed
    assert -0.05 < error.min() < -1e-6
    assert error.max() < 1e-9


def test_no_values_spread_from_a_win_that_is_unlikely():
    """A gambler bets what he has, or what he lacks, and mostly loses: guesses of what a loss leaves would promise too much."""
    n, p = 64, 0.4
    state = np.arange(1, n)
    stake = np.minimum(state, n - state)
    P = np.zeros((n + 1, n + 1))
    P[0, 0] = P[n, n] = 1.0
    P[state, state + stake] += p
    P[state, state - stake] += 1.0 - p
    mdp = tr.MDP(P, P[:, n] * (np.arange(n + 1) < n), 0.999)
    work = Workspace(mdp, None, Aim(1e-6, -1.0))
    work.spread_values()
    assert (work.v - tr.solve(mdp, tr.policy_iteration(), tol=1e-12).value).max() < 1e-3


def spread_once(mdp, v):
    """One sweep by the words of `kernels.spread.spread`, state after state in plain Python."""
    v, P, gamma, guesses = v.copy(), mdp.P.toarray(), mdp.gamma, 0
    for s in np.flatnonzero(v == -np.inf):
        known, alone = {}, []
        for l in range(mdp.first[s], mdp.first[s + 1]):
            valued = (P[l] > 0.0) & (v > -np.inf)
            stay, behind = P[l, s], P[l].sum() - P[l, s] - P[l, valued].sum()
            if behind > (0.5 if valued.any() else 1e-12):
                known.setdefault(-np.inf, False)  # it leaves, for where nothing is known
                continue
            behind = behind if behind > 1e-12 else 0.0
            q = mdp.r[l] + gamma * (P[l, valued] @ v[valued] + behind * (1.0 + gamma) * min(mdp.r[l], 0.0))
            q /= 1.0 - gamma * (stay + gamma * gamma * behind)
            if valued.any():
                known[q] = behind > 0.0
            else:
                alone.append(q)
        v[s] = max(known) if known else max(alone)
        guesses += known.get(v[s], False)
    return v, guesses


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("seed", range(6))
def test_values_spread_alike_through_single_moves_and_others(seed, gamma):
    rng = np.random.default_rng(seed)
    S = 40
    P = np.zeros((3 * S, S))
    for l in range(3 * S):
        ends = rng.choice(S, size=rng.choice([1, 1, 1, 3]), replace=False)
        P[l, ends] = rng.dirichlet(np.ones(len(ends)))
    P[: 3 * 4] = 0.0
    for s in range(4):
        P[3 * s : 3 * s + 3, s] = 1.0
    mdp = tr.MDP(P, rng.normal(size=3 * S), gamma)
    v, rows = np.full(S, -np.inf), np.zeros(S, dtype=mdp.first.dtype)
    for _ in range(3):
        expected, guesses = spread_once(mdp, v)
        valued, guessed = kernels.spread.spread(*mdp.arrays, v, rows, False, None)
        np.testing.assert_allclose(v, expected, rtol=1e-12)
        assert (valued, guessed) == (np.isfinite(v).sum(), guesses)
    assert np.isfinite(v).any()
