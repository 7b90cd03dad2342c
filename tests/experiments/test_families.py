"""The model classes of the experiments: the same for the same seed, and each what it says it is."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope as tr
from tightrope.experiments.families import FAMILIES, GAMMA, draw, uniform


@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_is_a_model_and_there_is_something_to_lose(family: str) -> None:
    one, again, other = draw(family, 1), draw(family, 1), draw(family, 2)
    assert one.gamma == GAMMA
    assert np.array_equal(one.P.toarray(), again.P.toarray())
    assert np.array_equal(one.r, again.r)
    assert one.P.shape != other.P.shape or not np.array_equal(one.P.toarray(), other.P.toarray())
    lost = tr.solve(one).value - tr.value(one, tr.Policy.uniform(one))
    assert uniform(one) @ lost > 1e-3
    assert uniform(one).sum() == pytest.approx(1.0)


def test_every_maze_can_be_walked_to_its_goal() -> None:
    for seed in range(20):
        mdp = draw("maze", seed)
        assert mdp.start @ tr.solve(mdp).value > 0.0


def test_a_corridor_pays_less_than_nothing_until_its_end() -> None:
    mdp = draw("corridor", 0)
    assert mdp.reward_range == (-1.0, 1.0)
    n = mdp.n_states
    steps = np.arange(n)[::-1]
    expected = GAMMA**steps / (1.0 - GAMMA) - (1.0 - GAMMA**steps) / (1.0 - GAMMA)
    np.testing.assert_allclose(tr.solve(mdp, tol=1e-12).value, expected, rtol=1e-9, atol=1e-9)
