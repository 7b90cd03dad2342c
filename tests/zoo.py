"""What tests of problems say: a model is just this, outcome by outcome; and a model that several tests have."""

from __future__ import annotations

import numpy as np

import tightrope as tr


def assert_is(mdp, outcomes):
    """The model has exactly the pairs of `outcomes`: {(state, action): [(probability, next state, reward), ...]}."""
    pairs = sorted(outcomes)
    assert list(zip(mdp.pairs.states.tolist(), mdp.pairs.actions.tolist(), strict=True)) == pairs
    P, r = np.zeros((len(pairs), mdp.n_states)), np.zeros(len(pairs))
    for row, pair in enumerate(pairs):
        for p, s, x in outcomes[pair]:
            P[row, s] += p
            r[row] += p * x
    np.testing.assert_allclose(mdp.P.toarray(), P, rtol=0, atol=1e-14)
    np.testing.assert_allclose(mdp.r, r, rtol=1e-13, atol=1e-13)


def assert_starts(mdp, *states):
    expected = np.zeros(mdp.n_states)
    expected[list(states)] = 1 / len(states)
    np.testing.assert_array_equal(mdp.start, expected)


def controller(side, gamma):
    """A mass pushed about on a line, on a grid of places and speeds."""
    pushes = np.linspace(-1.0, 1.0, 5)

    def dynamics(states, action):
        place, speed = (4.0 * x / (side - 1) - 2.0 for x in np.divmod(states, side))
        rewards = -(place**2) - speed**2 - 0.1 * pushes[action] ** 2
        to = np.clip(np.stack([place + 0.1 * speed, speed + 0.1 * pushes[action]]), -2.0, 2.0) * (side - 1) / 4.0 + (side - 1) / 2
        (left, below), (right, above) = np.minimum(to.astype(int), side - 2), to - np.minimum(to.astype(int), side - 2)
        corners = [(left + i) * side + below + j for i in (0, 1) for j in (0, 1)]
        chances = [x * y for x in (1.0 - right, right) for y in (1.0 - above, above)]
        return np.stack(corners, axis=1), np.stack(chances, axis=1), rewards

    return tr.MDP.from_function(dynamics, side * side, len(pushes), gamma)
