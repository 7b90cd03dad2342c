"""Values levelled: an error that is the same everywhere is taken out at once, and where that does not help nothing is done."""

import numpy as np
import pytest
import scipy.sparse as sp

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine import choice, methods
from tightrope.engine.choice import NAMES
from tightrope.engine.monitor import Aim
from tightrope.engine.workspace import Workspace
from tightrope.kernels import team


def seasons(periods=24, size=60, gamma=0.999):
    """A queue whose arrivals depend on the hour: three rates of service, and the clock goes on whatever is done."""
    hour, length = np.divmod(np.arange(periods * size), size)
    arrival = 0.2 + 0.5 * np.sin(np.pi * hour / periods) ** 2
    later = (hour + 1) % periods * size
    P, r = [], []
    for rate in (0.1, 0.4, 0.7):
        up, down = arrival * (1.0 - rate), rate * (1.0 - arrival)
        to = (np.minimum(length + 1, size - 1), np.maximum(length - 1, 0), length)
        moves = sp.coo_array(
            (
                np.concatenate([up, down, 1.0 - up - down]),
                (np.tile(np.arange(len(hour)), 3), np.concatenate(to) + np.tile(later, 3)),
            )
        )
        P.append(moves.tocsr())
        r.append(-0.1 * length - 3.0 * rate)
    return tr.MDP.from_actions(P, np.stack(r, axis=1), gamma)


def chain(S=50, gamma=0.99, seed=0):
    """The chain of a random policy, solved for the chance of staying put, and its value."""
    mdp = problems.garnet(S, 1, 5, gamma=gamma, seed=seed)
    split = tuple(np.empty_like(a) for a in mdp.arrays[:4])
    kernels.in_place.extract_split(*mdp.arrays[:4], np.arange(S, dtype=np.uint32), gamma, *split)
    return split, np.linalg.solve(np.eye(S) - gamma * mdp.P.toarray(), mdp.r)


def level(v, split, change):
    found = v.copy()
    return kernels.in_place.level(found, False, None, *split, np.empty_like(v), change), found


@pytest.mark.parametrize("seed", range(10))
def test_a_constant_error_is_gone(seed):
    split, exact = chain(seed=seed)
    change, found = level(exact + 7.0, split, 1.0)
    assert change < 1e-10
    np.testing.assert_allclose(found, exact, atol=1e-10)
    # Plain sweeps, as many, leave most of it.
    v = exact + 7.0
    for _ in range(2):
        kernels.in_place.split_sweep(v, False, None, None, *split, len(v))
    assert np.abs(v - exact).max() > 5.0


@pytest.mark.parametrize("seed", range(10))
def test_where_it_does_not_help_nothing_is_done(seed):
    rng = np.random.default_rng(seed)
    split, exact = chain(seed=seed)
    v = exact + rng.normal(size=len(exact))
    swept = v.copy()
    wanted = kernels.in_place.split_sweep(swept, False, None, None, *split, len(v))
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


@pytest.mark.parametrize("seed", range(5))
def test_a_drift_is_what_policies_do_more_often(seed):
    mdp = problems.garnet(30, 3, 4, seed=seed)
    rows = (mdp.first[:-1] + np.random.default_rng(seed).integers(0, 3, 30)).astype(mdp.first.dtype)
    P = mdp.P.toarray()[rows]
    up, down = np.triu(P, 1).sum(), np.tril(P, -1).sum()
    assert kernels.graph.drift(*mdp.arrays[:3], rows) == pytest.approx((up - down) / (up + down))
    staying = tr.MDP(np.eye(4), np.zeros(4), 0.9)
    assert kernels.graph.drift(*staying.arrays[:3], np.arange(4, dtype=np.uint32)) == 0.0


@pytest.mark.parametrize("large", [False, True])
def test_where_time_passes_sweeps_go_against_it(monkeypatch, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = seasons()
    found = tr.solve(mdp)
    assert NAMES[methods.gauss_seidel] in found.explain()
    assert large or NAMES[methods.krylov] not in found.explain()
    exact = tr.solve(mdp, tr.policy_iteration(), tol=1e-9)
    np.testing.assert_allclose(found.value, exact.value, atol=found.gap + exact.gap)
    if not large:
        monkeypatch.setattr(choice, "ONE_WAY", 1.0)
        assert tr.solve(seasons()).backups > 1.2 * found.backups


def test_without_levels_the_same_sweeps_take_longer():
    backups = []
    for sinks in (False, True):
        mdp = seasons()
        work = Workspace(mdp, np.zeros(mdp.n_states), Aim(1e-6, -1.0))
        work.has_sinks = sinks  # what values are not levelled for
        *_, change, goal, _ = work.gauss_seidel_round(np.inf, 1000)
        assert change <= goal
        backups.append(work.backups)
    levelled, plain = backups
    assert plain > 2 * levelled
