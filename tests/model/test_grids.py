"""Grids against their descriptions: each model is written out again here, outcome by outcome, and one known value is met."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reference import optimum
from tightrope.errors import InvalidArgument
from tightrope.model import problems
from tightrope.model.problems import Grid
from zoo import assert_is, assert_starts

RUSSELL_NORVIG = """
    ...G
    .#.X
    S...
"""


def test_gridworld_meets_the_published_utilities_of_the_4x3_world():
    grid = Grid.from_text(RUSSELL_NORVIG)
    mdp = grid.mdp(slip=0.2, gamma=1 - 1e-9, step_reward=-0.04)
    # Russell & Norvig, Figure 17.3 (undiscounted, to three decimals); terminal utilities count as the reward of entering.
    printed = [0.812, 0.868, 0.918, 0.0, 0.762, 0.660, 0.0, 0.705, 0.655, 0.611, 0.388]
    np.testing.assert_allclose(optimum(mdp), printed, atol=6e-4)
    assert_starts(mdp, 7)


def _grid_outcomes(height, width, walls, goals, slip, step):
    free = [(i, j) for i in range(height) for j in range(width) if (i, j) not in walls]
    number = {cell: s for s, cell in enumerate(free)}
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    sideways = {0: (1, 3), 2: (1, 3), 1: (0, 2), 3: (0, 2)}

    def go(cell, d):
        there = (cell[0] + moves[d][0], cell[1] + moves[d][1])
        there = there if there in number else cell
        return number[there], step + goals.get(there, 0.0)

    outcomes = {}
    for cell, s in number.items():
        if cell in goals:
            outcomes[s, 0] = [(1.0, s, 0.0)]
            continue
        for a in range(4):
            left, right = sideways[a]
            outcomes[s, a] = [(1 - slip, *go(cell, a)), (slip / 2, *go(cell, left)), (slip / 2, *go(cell, right))]
    return outcomes


@pytest.mark.parametrize("slip", [0.0, 0.2, 1.0])
def test_gridworld_is_its_description(slip):
    walls, goals = {(0, 2), (2, 1), (2, 2)}, {(3, 3): 5.0, (1, 0): -2.0}
    mdp = problems.gridworld(4, 5, slip=slip, walls=walls, goals=goals, start=[(0, 0), (3, 4)], step_reward=-0.5, gamma=0.9)
    assert_is(mdp, _grid_outcomes(4, 5, walls, goals, slip, -0.5))
    assert np.flatnonzero(mdp.terminal).tolist() == [4, 15]  # free cells a row: 4, 5, 3, 5
    assert_starts(mdp, 0, 16)


def test_gridworld_by_default_ends_in_the_last_free_cell_and_starts_in_the_first():
    mdp = problems.gridworld(50, 50, slip=0.1, gamma=0.99)
    assert (mdp.n_states, mdp.n_pairs) == (2500, 4 * 2499 + 1)
    assert np.flatnonzero(mdp.terminal).tolist() == [2499]
    assert_starts(mdp, 0)
    grid = Grid(3, 3, walls=[(0, 0), (2, 2)])
    assert (grid.start, dict(grid.goals)) == (((0, 1),), {(2, 1): 1.0})


def test_gridworld_without_slip_is_worth_the_distance():
    v = Grid(6, 7).image(optimum(problems.gridworld(6, 7, slip=0.0, gamma=0.9)))
    distance = np.add.outer(np.arange(5, -1, -1), np.arange(6, -1, -1))
    np.testing.assert_allclose(v, np.where(distance > 0, 0.9 ** (distance - 1.0), 0.0))


def test_grid_maps_states_to_cells_and_back():
    walls = np.random.default_rng(1).random((13, 8)) < 0.3
    grid = Grid(13, 8, walls)
    np.testing.assert_array_equal(grid.cells, np.argwhere(~walls))
    assert grid.n_states == (~walls).sum()
    for s, (i, j) in enumerate(grid.cells.tolist()):
        assert grid.states[i, j] == s
        assert grid.cell(s) == (i, j)
    assert (grid.states[walls] == -1).all()
    image = grid.image(np.arange(grid.n_states))
    assert np.isnan(image[walls]).all()
    np.testing.assert_array_equal(image[~walls], grid.states[~walls])
    assert grid.mdp().pairs.state_names[3] == str(grid.cell(3))
    with pytest.raises(InvalidArgument, match="one entry per free cell"):
        grid.image(np.zeros(5))


def test_grid_moves_stop_at_walls_and_edges():
    grid = Grid.from_text("..#\n...")
    assert grid.states.tolist() == [[0, 1, -1], [2, 3, 4]]
    states = np.arange(5)
    assert grid.move(states, 0).tolist() == [-1, -1, 0, 1, -1]
    assert grid.move(states, 1).tolist() == [1, -1, 3, 4, -1]
    assert grid.move(states, 2).tolist() == [2, 3, -1, -1, -1]
    assert grid.move(states, 3).tolist() == [-1, 0, -1, 2, 3]


def test_a_drawn_map_reads_back():
    grid = Grid.from_text(RUSSELL_NORVIG, goal_reward=3.0)
    assert grid.text == "...G\n.#.X\nS..."
    assert dict(grid.goals) == {(0, 3): 3.0, (1, 3): -1.0}
    assert grid.start == ((2, 0),)
    assert repr(grid) == "Grid(3 x 4, 11 free cells, 2 terminal)"
    np.testing.assert_array_equal(Grid.from_text(grid.text).walls, grid.walls)
    assert Grid.from_text("S G").text == "S.G"
    assert not Grid.from_text("...").mdp().terminal.any()
    assert problems.gridworld(text=RUSSELL_NORVIG).n_states == 11


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"height": 0}, "height must be an integer >= 1; found 0"),
        ({"width": 2.5}, "width must be an integer >= 1; found 2.5"),
        ({"slip": 1.5}, r"slip must lie in \[0, 1\]; found 1.5"),
        ({"goals": [(10, 0)]}, r"goals names cell \(10, 0\), outside the grid: rows are 0 to 9"),
        ({"walls": [(0, -1)]}, r"walls names cell \(0, -1\), outside the grid"),
        ({"walls": [(3, 3)], "goals": (3, 3)}, r"goals names cell \(3, 3\), which is a wall"),
        ({"walls": [(3, 3)], "start": (3, 3)}, r"start names cell \(3, 3\), which is a wall"),
        ({"walls": np.ones((2, 2), dtype=bool)}, r"mask must have shape \(10, 10\); found \(2, 2\)"),
        ({"walls": np.ones((10, 10), dtype=bool)}, "every cell of the grid is a wall"),
        ({"walls": [(1, 2, 3)]}, r"walls must be cells \(row, column\) of integers"),
        ({"walls": [(1, 2), (3,)]}, r"walls must be cells \(row, column\) of integers"),
        ({"goals": "corner"}, r"goals must be cells \(row, column\) of integers; found 'corner'"),
        ({"goals": {(0, 1): math.inf}}, r"the reward of goal \(0, 1\) must be a finite number; found inf"),
        ({"start": []}, "start lists no cell"),
        ({"step_reward": math.nan}, "step_reward must be a finite number; found nan"),
        ({"goal_reward": "much"}, "goal_reward must be a number; found 'much'"),
        ({"text": ""}, "text must be a map with at least one cell"),
        ({"text": "..\n..."}, "line 2 of the map has 3 cells, line 1 has 2"),
        ({"text": ".?\n.."}, r"line 1, column 2 of the map is '\?'"),
        ({"text": "..", "goals": (0, 0)}, "either text or walls, goals and start"),
    ],
)
def test_gridworld_refuses(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        problems.gridworld(**arguments)


def test_cliff_costs_the_way_along_the_edge():
    gamma = 0.99
    mdp = problems.cliff(gamma=gamma)
    assert mdp.n_states == 38
    assert_starts(mdp, 36)
    assert np.flatnonzero(mdp.terminal).tolist() == [37]
    assert optimum(mdp)[36] == pytest.approx(-(1 - gamma**13) / (1 - gamma), rel=1e-12)  # 13 steps of -1


@pytest.mark.parametrize("slip", [0.0, 0.25])
def test_cliff_is_its_description(slip):
    H, W = 3, 4
    walls = {(2, 1), (2, 2)}
    outcomes = _grid_outcomes(H, W, walls, {(2, 3): 0.0}, slip, -1.0)
    free = [(i, j) for i in range(H) for j in range(W) if (i, j) not in walls]
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    start, fall = free.index((2, 0)), -100.0
    for s, cell in enumerate(free[:-1]):
        for a in range(4):
            directions = [a, *sorted([(a + 1) % 4, (a + 3) % 4])]
            for i, (d, (p, s_next, x)) in enumerate(zip(directions, outcomes[s, a], strict=True)):
                if (cell[0] + moves[d][0], cell[1] + moves[d][1]) in walls:
                    assert (s_next, x) == (s, -1.0)
                    outcomes[s, a][i] = (p, start, fall)
    assert_is(problems.cliff(H, W, slip=slip), outcomes)
