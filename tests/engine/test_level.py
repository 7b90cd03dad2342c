"""Values levelled, and leaps: what sweeps would take long to shrink is taken out at once, and nothing is done in vain."""

import numpy as np
import pytest

from tightrope import kernels, problems


def chain(S=50, gamma=0.99, seed=0):
    """The chain of a random policy, solved for the chance of staying put, and its value."""
    mdp = problems.garnet(S, 1, 5, gamma=gamma, seed=seed)
    split = tuple(np.empty_like(a) for a in mdp.arrays[:4])
    kernels.in_place.extract_split(*mdp.arrays[:4], np.arange(S, dtype=np.uint32), gamma, *split)
    return split, np.linalg.solve(np.eye(S) - gamma * mdp.P.toarray(), mdp.r)


def sweep(v, split, n):
    """Sweep v so many times; returns the largest change of the last one."""
    return [kernels.in_place.split_sweep(v, False, True, None, *split, len(v)) for _ in range(n)][-1]


def level(v, split, change):
    found = v.copy()
    return kernels.in_place.level(found, False, True, *split, np.empty_like(v), change), found


@pytest.mark.parametrize("seed", range(10))
def test_a_constant_error_is_gone(seed):
    split, exact = chain(seed=seed)
    change, found = level(exact + 7.0, split, 1.0)
    assert change < 1e-10
    np.testing.assert_allclose(found, exact, atol=1e-10)
    # Plain sweeps, as many, leave most of it.
    v = exact + 7.0
    sweep(v, split, 2)
    assert np.abs(v - exact).max() > 5.0


@pytest.mark.parametrize("seed", range(10))
def test_where_it_does_not_help_nothing_is_done(seed):
    rng = np.random.default_rng(seed)
    split, exact = chain(seed=seed)
    v = exact + rng.normal(size=len(exact))
    swept = v.copy()
    wanted = sweep(swept, split, 1)
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


def leap(v, split, *, backwards=False):
    found, before = v.copy(), np.empty_like(v)
    return *kernels.in_place.leap(found, backwards, True, *split, before), found


@pytest.mark.parametrize("seed", range(10))
def test_an_error_that_every_sweep_shrinks_alike_is_gone_after_a_leap(seed):
    """The direction that sweeps shrink least, found by many of them: what is left of it after a leap is rounding."""
    split, exact = chain(seed=seed)
    v = exact + 1.0
    for _ in range(60):
        sweep(v, split, 1)
        v = exact + (v - exact) / np.abs(v - exact).max()
    change, worth, n, found = leap(v, split)
    assert (worth, n) == (True, 3)
    assert change < 1e-9
    np.testing.assert_allclose(found, exact, atol=1e-9)
    plain = v.copy()
    sweep(plain, split, 3)
    assert np.abs(plain - exact).max() > 0.1


@pytest.mark.parametrize("seed", range(20))
def test_a_leap_is_never_worse_than_the_sweeps_it_is_made_of(seed):
    """From anywhere: the next sweep changes no more than after two plain ones."""
    rng = np.random.default_rng(seed)
    split, exact = chain(seed=seed, gamma=float(rng.choice([0.5, 0.9, 0.999])))
    v = exact + rng.normal(size=len(exact)) * rng.choice([1e-9, 1.0, 1e9])
    plain = v.copy()
    last = sweep(plain, split, 2)
    change, worth, n, found = leap(v, split)
    assert change <= last
    assert n in (3, 4, 5)
    if not worth and change == last:
        np.testing.assert_array_equal(found, plain)


def test_where_sweeps_shrink_nothing_a_leap_goes_nowhere():
    """A cycle without discounting: every sweep changes as much as the one before, and there is no constant to take out."""
    ring = (np.arange(4, dtype=np.uint32), np.array([1, 2, 0], np.uint32), np.ones(3), np.ones(3))
    change, worth, n, found = leap(np.zeros(3), ring)
    assert (worth, n) == (False, 4)
    expected = np.zeros(3)
    for _ in range(2):
        assert sweep(expected, ring, 1) == change
    np.testing.assert_array_equal(found, expected)


def test_a_leap_from_the_value_stays_there():
    split, exact = chain()
    v = exact.copy()
    sweep(v, split, 3000)
    change, _, _, found = leap(v, split)
    assert change == 0.0
    np.testing.assert_array_equal(found, v)
