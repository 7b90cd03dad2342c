"""What tests of problems say: a model is just this, outcome by outcome."""

from __future__ import annotations

import numpy as np


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
