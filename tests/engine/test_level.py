"""Values levelled: an error that is the same everywhere is taken out at once, and where that does not help nothing is done."""

import numpy as np
import pytest

from tightrope import kernels, problems


def chain(S=50, gamma=0.99, seed=0):
    """The chain of a random policy, solved for the chance of staying put, and its value."""
    mdp = problems.garnet(S, 1, 5, gamma=gamma, seed=seed)
    split = tuple(np.empty_like(a) for a in mdp.arrays[:4])
    kernels.in_place.extract_split(*mdp.arrays[:4], np.arange(S, dtype=np.uint32), gamma, *split)
    return split, np.linalg.solve(np.eye(S) - gamma * mdp.P.toarray(), mdp.r)


def level(v, split, change):
    found = v.copy()
    return kernels.in_place.level(found, False, *split, np.empty_like(v), change), found


@pytest.mark.parametrize("seed", range(10))
def test_a_constant_error_is_gone(seed):
    split, exact = chain(seed=seed)
    change, found = level(exact + 7.0, split, 1.0)
    assert change < 1e-10
    np.testing.assert_allclose(found, exact, atol=1e-10)
    # Plain sweeps, as many, leave most of it.
    v = exact + 7.0
    for _ in range(2):
        kernels.in_place.split_sweep(v, False, None, *split, len(v))
    assert np.abs(v - exact).max() > 5.0


@pytest.mark.parametrize("seed", range(10))
def test_where_it_does_not_help_nothing_is_done(seed):
    rng = np.random.default_rng(seed)
    split, exact = chain(seed=seed)
    v = exact + rng.normal(size=len(exact))
    swept = v.copy()
    wanted = kernels.in_place.split_sweep(swept, False, None, *split, len(v))
    kept, found = level(v, split, 1e-3 * wanted)  # no sweep of this changes so little
    assert kept == 1e-3 * wanted
    np.testing.assert_array_equal(found, v)
    change, found = level(v, split, np.inf)  # any does
    assert change < np.inf
    assert not np.array_equal(found, v)


def test_where_nothing_is_discounted_but_by_rounding_nothing_is_done():
    """A cycle whose chances add up to one: there is no constant for which changes add up to zero."""
    ring = (np.arange(4, dtype=np.uint32), np.array([1, 2, 0], np.uint32), np.ones(3), np.array([1.0, -2.0, 3.0]))
    v = np.array([5.0, 0.0, 1.0])
    change, found = level(v, ring, 7.0)
    assert change == 7.0
    np.testing.assert_array_equal(found, v)
