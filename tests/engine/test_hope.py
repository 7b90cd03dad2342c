"""What Gauss-Seidel is hoped to cost, and rounds of sweeps that end where their promise is broken."""

from math import inf

import numpy as np
import pytest
from peers.worlds import dice

import tightrope as tr
from tightrope import problems
from tightrope.cli.warm import shuffled
from tightrope.engine import methods, rounds
from tightrope.engine.choice import NAMES
from tightrope.engine.monitor import Aim
from tightrope.engine.workspace import Workspace


def working(mdp):
    return Workspace(mdp, None, Aim(1e-6, -1.0, 0.0))


@pytest.mark.parametrize(("gamma", "expected"), [(0.5, 4.0), (0.95, 40.0), (0.99, methods.HOPE), (0.9999, methods.HOPE)])
def test_hope_is_a_few_horizons_where_these_are_short(gamma, expected):
    assert methods.hope(working(dice(20, gamma))) == pytest.approx(expected)


def test_there_is_less_hope_where_numbers_mean_nothing():
    for mdp in (shuffled(dice(20, 0.95)), problems.garnet(200, 2, 5, gamma=0.95, seed=1)):
        assert methods.hope(working(mdp)) == methods.HOPE


def test_an_order_that_an_earlier_solve_has_found_changes_no_hope():
    """Or the second solve of a model would not be the first again."""
    mdp = shuffled(dice(20, 0.95))
    mdp.facts["order"] = np.arange(400, dtype=np.uint32), np.arange(400, dtype=np.uint32)
    assert methods.hope(working(mdp)) == methods.HOPE


@pytest.mark.parametrize("enough", [0.0, 40.0, 1e6, inf])
def test_a_round_ends_when_more_is_left_than_it_promised(enough):
    """Policies that improve for long: after three of them more sweeps are left than after the first."""
    work = working(dice(60, 0.95))
    improved, _ = rounds.sweep_round(work, 0.1, methods.TRIAL, 16.0, enough, methods.IN_A_ROW)
    assert (improved == 3) == (enough < 1e3)
    exact = tr.solve(work.mdp, tr.policy_iteration(), tol=1e-9)
    found = work.certificate()
    assert (found.lower <= exact.upper).all()
    assert (found.upper >= exact.lower).all()


def test_a_promise_that_is_kept_is_not_broken():
    """Chains that mix at once: with no patience at all the round goes on."""
    mdp = problems.garnet(200, 2, 20, gamma=0.95, seed=1)
    found = [rounds.sweep_round(working(mdp), 0.1, methods.TRIAL, 16.0, enough, methods.IN_A_ROW) for enough in (0.0, inf)]
    assert found[0] == found[1]


def test_dice_are_carried_on_by_gauss_seidel():
    """And take less than half of what sweeps alone do; mixed up they are left to these."""
    mdp, exact = dice(60, 0.95), tr.solve(dice(60, 0.95), tr.policy_iteration(), tol=1e-9)
    sol, other = tr.solve(mdp), tr.solve(shuffled(mdp))
    assert sol.choices == (NAMES[methods.sweep], NAMES[methods.gauss_seidel])
    assert NAMES[methods.gauss_seidel] not in other.choices
    assert 2 * sol.backups < other.backups
    np.testing.assert_allclose(sol.value, exact.value, atol=sol.gap + exact.gap)
