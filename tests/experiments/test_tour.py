"""The tour's numbers against closed forms: what the pictures show is true."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.experiments import tour
from tightrope.planning import policy_iteration, solve


@pytest.fixture(scope="module")
def small():
    return tour.tour(quick=True)


def test_rooms_are_the_same_for_the_same_seed_and_every_prize_is_free():
    one, two = tour.rooms(40, 10, seed=3), tour.rooms(40, 10, seed=3)
    assert one.text == two.text
    assert one.text != tour.rooms(40, 10, seed=4).text
    assert not any(one.walls[cell] for cell in one.goals)


def test_the_map_of_the_demo_can_be_walked_from_start_to_the_large_prize():
    grid = tour.rooms()
    place = tour.world(grid)
    assert place.solution.converged
    assert place.path[0] == grid.start[0]
    assert grid.goals[place.path[-1]] == max(grid.goals.values())
    steps = np.abs(np.diff(np.array(place.path), axis=0)).sum(axis=1)
    assert (steps == 1).all()
    # Without a slip the walk would earn γ^(n-1): slips and detours can only cost.
    assert float(place.mdp.start @ place.solution.lower) <= place.mdp.gamma ** (len(place.path) - 2)


def test_the_intended_path_stops_at_a_wall_or_in_a_circle():
    grid = tour.rooms(30, 10, seed=1, pools=3)
    mdp = grid.mdp(slip=0.2, gamma=0.99)
    first = solve(mdp, policy_iteration(), max_iterations=1)
    path = tour.intended_path(grid, mdp, first)
    assert 1 <= len(path) <= mdp.n_states + 1


def test_policy_iteration_begins_both_families_and_all_agree(small):
    ahead = small.lookahead
    assert ahead.h[1] is ahead.kappa[0.0]
    runs = [*ahead.h.values(), *ahead.kappa.values(), small.world.solution]
    assert all(run.converged for run in runs)
    lower = np.max([run.lower for run in runs], axis=0)
    upper = np.min([run.upper for run in runs], axis=0)
    assert (lower <= upper).all()


def test_the_improvement_map_is_the_closed_form_on_every_cell():
    # v'(s0) = αγ/(1-γ+αγ) v'(s1), v'(s1) = γ(α - (1-α)c)/(1-γ), at stake are (1+c)/(1-γ).
    found = tour.improvement_map(20, gamma=0.8)
    c = (found.kappas / (1 - found.kappas) * (1 - tour.BELOW))[:, None]
    a, g = found.alphas[None, :], found.gamma
    expected = a * g / (1 - g + a * g) * g * (a - (1 - a) * c) / (1 + c)
    assert np.allclose(found.change, expected, rtol=1e-9, atol=1e-12)
    assert found.disagreements == 0


def test_the_improvement_map_would_notice_a_wrong_theorem():
    found = tour.improvement_map(20)
    shifted = tour.ImprovementMap(found.gamma, found.alphas - 0.1, found.kappas, found.change)
    assert shifted.disagreements > 0


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
def test_the_dip_crosses_zero_at_c_over_1_plus_c_and_the_cautious_target_never_dips(c):
    found = tour.dip(c)
    below = found.alphas < found.threshold - 1e-9
    above = found.alphas > found.threshold + 1e-9
    assert below.any()
    assert (found.value[below] < 0).all()
    assert (found.value[above] > 0).all()
    assert (found.cautious >= -1e-12).all()
    assert found.value[-1] == pytest.approx(found.gamma**2 / (1 - found.gamma))


def test_the_parts_of_the_tour_sum_to_one():
    amounts = []
    tour.tour(quick=True, advance=lambda amount, name: amounts.append((amount, name)))
    assert sum(amount for amount, _ in amounts) == pytest.approx(1.0)
    assert all(name for _, name in amounts)
