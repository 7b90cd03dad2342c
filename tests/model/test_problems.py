"""The zoo against its sources: each model is written out again here, outcome by outcome, and one known value is met."""

from __future__ import annotations

import inspect
import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from tightrope.errors import InvalidArgument, InvalidModel
from tightrope.model import problems
from tightrope.model.policy import Policy
from tightrope.model.problems import Grid, decoration

# ---------------------------------------------------------------- the slow truth


def optimum(mdp):
    """v* [S] by policy iteration on dense arrays, changing an action only where that is clearly better."""
    P, r, first, S = mdp.P.toarray(), np.asarray(mdp.r), np.asarray(mdp.first), mdp.n_states
    rows = first[:-1].copy()
    while True:
        v = np.linalg.solve(np.eye(S) - mdp.gamma * P[rows], r[rows])
        q = r + mdp.gamma * P @ v
        best = np.array([first[s] + q[first[s] : first[s + 1]].argmax() for s in range(S)])
        better = q[best] > q[rows] + 1e-10 * np.abs(q).max()
        if not better.any():
            return v
        rows[better] = best[better]


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


# ---------------------------------------------------------------- the whole zoo

SIZES = {
    "chain": [{"n_states": n} for n in (1, 2, 7)] + [{"slip": 0.0}, {"slip": 1.0}],
    "cliff": [{"height": 2, "width": 2}, {"height": 5, "width": 3}, {"slip": 0.3}],
    "forest": [{"n_states": n} for n in (2, 50_000)] + [{"p": 0.0}, {"p": 1.0}],
    "gambler": [{"goal": n} for n in (2, 3, 17)] + [{"p": 0.0}, {"p": 1.0}],
    "garnet": [{"n_states": 1, "branching": 1}, {"n_states": 7, "branching": 7}, {"n_states": 5000, "branching": 3}],
    "gridworld": [{"height": 1, "width": 1}, {"height": 1, "width": 9}, {"height": 150, "width": 70}, {"slip": 0.0}, {"slip": 1}],
    "inventory": [{"capacity": 1}, {"capacity": 40, "demand": 0.0}, {"capacity": 300, "demand": 100.0, "max_order": 3}],
    "queue": [{"capacity": 1}, {"capacity": 70_000}, {"services": (0.6,), "service_costs": (0.0,)}],
    "random_sparse_deterministic": [{"n_states": 1}, {"density": 0.0}, {"density": 1.0, "n_actions": 1}],
    "replacement": [{"n_states": 1}, {"increments": (0.0, 1.0)}, {"n_states": 40_000}],
    "sysadmin": [{"machines": n} for n in (1, 2, 9)] + [{"healthy": 1.0, "shaken": 0.0}],
    "tandem": [{"capacity": 1, "stations": 1}, {"stations": 3}, {"arrival": 0.0, "service": 0.0, "help_rate": 0.0}],
    "tightrope": [{"c": 0.0}, {"c": 20.0, "gamma": 0.0}],
}


def test_the_catalogue_lists_every_problem_and_nothing_else():
    assert sorted(problems.catalogue()) == sorted(SIZES)
    assert set(problems.catalogue()) <= set(problems.__all__)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_every_problem_describes_itself_and_names_its_source(name):
    function = problems.catalogue()[name]
    doc = inspect.getdoc(function)
    assert doc.splitlines()[0].endswith(".")
    assert any(f"({year})" in doc or f" {year})" in doc for year in range(1950, 2020)), "no source with its year"
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.default is not inspect.Parameter.empty
        assert f"{parameter.name}:" in doc


@pytest.mark.parametrize("name", sorted(SIZES))
def test_every_problem_is_a_model_at_several_sizes(name):
    # Construction validates; what is checked here is that nothing needed mending and nothing was left at the door.
    build = problems.catalogue()[name]
    for parameters in [{}, *SIZES[name]]:
        mdp = build(**parameters)
        assert mdp.slack <= 1e-12
        assert mdp.start.sum() == pytest.approx(1.0)
        assert mdp.pairs.state_names is None or len(mdp.pairs.state_names) == mdp.n_states
        assert mdp.pairs.action_names is None or len(mdp.pairs.action_names) >= mdp.pairs.n_actions
        assert not mdp.r.flags.writeable


@pytest.mark.parametrize("name", sorted(SIZES))
def test_gamma_is_passed_on_and_checked(name):
    build = problems.catalogue()[name]
    assert build(gamma=0.25).gamma == 0.25
    for bad in (1.0, -0.1, math.nan, "high"):
        with pytest.raises(InvalidModel, match="gamma must"):
            build(gamma=bad)


def test_large_models_carry_no_state_names():
    assert problems.gridworld(100, 100).pairs.state_names is not None
    assert problems.gridworld(100, 101).pairs.state_names is None
    assert decoration.names(decoration.NAMED + 1, str) is None


def test_the_zoo_loads_neither_numba_nor_rich():
    code = (
        "import sys; from tightrope.model import problems; problems.gridworld(); problems.garnet(); problems.inventory();"
        "print(sorted({'numba', 'rich', 'matplotlib', 'pandas', 'gymnasium', 'scipy.stats'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------- the Tightrope and the chain


@pytest.mark.parametrize(("c", "gamma"), [(0.5, 0.9), (3.0, 0.5), (20.0, 0.99)])
def test_tightrope_is_the_papers(c, gamma):
    mdp = problems.tightrope(c, gamma)
    assert_is(
        mdp,
        {
            (0, 0): [(1, 0, 0)],
            (0, 1): [(1, 1, 0)],
            (1, 0): [(1, 3, 0)],
            (1, 1): [(1, 2, 0)],
            (2, 0): [(1, 2, 1)],
            (3, 0): [(1, 3, -c)],
        },
    )
    assert_starts(mdp, 0)
    end = 1 / (1 - gamma)
    np.testing.assert_allclose(optimum(mdp), [gamma**2 * end, gamma * end, end, -c * end])


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_a_soft_step_on_the_tightrope_fails_below_c_over_one_plus_c(c, side):
    gamma, alpha = 0.9, c / (1 + c) + 0.01 * side
    mdp = problems.tightrope(c, gamma)
    pi_0 = problems.hesitant(mdp)
    assert pi_0 == Policy.deterministic(mdp, [0, 0, 0, 0])
    weights = np.array([1 - alpha, alpha, 1 - alpha, alpha, 1, 1])
    P = np.add.reduceat(weights[:, None] * mdp.P.toarray(), mdp.first[:-1], axis=0)
    v = np.linalg.solve(np.eye(4) - gamma * P, np.add.reduceat(weights * mdp.r, mdp.first[:-1]))
    v_0 = 0.0  # the hesitant policy never leaves s0
    assert v[0] - v_0 == pytest.approx(0.0, abs=1e-13) if side == 0 else np.sign(v[0] - v_0) == side


def test_chain_slips_into_the_other_action():
    n, slip = 4, 0.3
    outcomes = {}
    for s in range(n):
        ahead, back = (min(s + 1, n - 1), 7.0 if s == n - 1 else 0.0), (0, 2.0)
        outcomes[s, 0] = [(1 - slip, *ahead), (slip, *back)]
        outcomes[s, 1] = [(slip, *ahead), (1 - slip, *back)]
    mdp = problems.chain(n, slip=slip, small=2.0, large=7.0)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


@pytest.mark.parametrize("large", [10.0, 2.0])
def test_chain_without_slip_has_a_closed_form(large):
    n, gamma = 6, 0.9
    v = optimum(problems.chain(n, slip=0.0, small=2.0, large=large, gamma=gamma))
    advance = [gamma ** (n - 1 - s) * large / (1 - gamma) for s in range(n)]
    if large == 10.0:  # 10 γ^5 = 5.9 > 2: advancing pays from everywhere
        np.testing.assert_allclose(v, advance)
    else:  # returning for 2 at once beats 2 later
        np.testing.assert_allclose(v, np.full(n, 2.0 / (1 - gamma)))


# ---------------------------------------------------------------- grids

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


# ---------------------------------------------------------------- gambler and forest


def test_gambler_is_its_description():
    goal, p = 7, 0.3
    outcomes = {(0, 0): [(1, 0, 0)], (goal, 0): [(1, goal, 0)]}
    for s in range(1, goal):
        for a in range(1, min(s, goal - s) + 1):
            outcomes[s, a] = [(p, s + a, float(s + a == goal)), (1 - p, s - a, 0.0)]
    mdp = problems.gambler(goal, p=p)
    assert_is(mdp, outcomes)
    assert np.flatnonzero(mdp.terminal).tolist() == [0, goal]


def test_gambler_with_a_fair_coin_wins_in_proportion_to_the_capital():
    v = optimum(problems.gambler(40, p=0.5, gamma=1 - 1e-12))
    np.testing.assert_allclose(v[:-1], np.arange(40) / 40, atol=1e-9)


def test_gambler_with_a_poor_coin_plays_boldly():
    # Dubins and Savage: F(x) = p F(2x) for x <= 1/2, p + (1-p) F(2x - 1) above; in fractions, on dyadic capitals.
    p = Fraction(2, 5)

    def bold(x):
        if x in {0, 1}:
            return Fraction(x)
        return p * bold(2 * x) if x <= Fraction(1, 2) else p + (1 - p) * bold(2 * x - 1)

    v = optimum(problems.gambler(64, p=0.4, gamma=1 - 1e-12))
    np.testing.assert_allclose(v[:-1], [float(bold(Fraction(s, 64))) for s in range(64)], atol=1e-9)


def test_forest_meets_the_toolboxes_published_value():
    mdp = problems.forest(3, r1=4, r2=2, p=0.1, gamma=0.9)
    assert_is(
        mdp,
        {
            (0, 0): [(0.1, 0, 0), (0.9, 1, 0)],
            (0, 1): [(1, 0, 0)],
            (1, 0): [(0.1, 0, 0), (0.9, 2, 0)],
            (1, 1): [(1, 0, 1)],
            (2, 0): [(0.1, 0, 4), (0.9, 2, 4)],
            (2, 1): [(1, 0, 2)],
        },
    )
    np.testing.assert_allclose(optimum(mdp), [26.244, 29.484, 33.484], rtol=1e-12)
    assert_starts(mdp, 0)


# ---------------------------------------------------------------- operations


def test_inventory_is_putermans_example():
    mdp = problems.inventory(3, demand=(0.25, 0.5, 0.25))
    # Table 3.2.1: r(s, a), and P(. | s + a).
    assert mdp.r.tolist() == [0, -1, -2, -5, 5, 0, -3, 6, -1, 5]
    after = np.array([[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25]])
    np.testing.assert_array_equal(mdp.P.toarray(), after[[0, 1, 2, 3, 1, 2, 3, 2, 3, 3]])
    # Section 4.6.1: three months, undiscounted, in sixteenths.
    v = np.zeros(4)
    for _ in range(3):
        v = np.maximum.reduceat(mdp.r + mdp.P @ v, mdp.first[:-1])
    np.testing.assert_allclose(16 * v, [67, 129, 194, 227])


def test_inventory_with_poisson_demand_is_its_description():
    M, mean, order = 9, 3.5, 4
    chance = [math.exp(-mean) * mean**d / math.factorial(d) for d in range(60)]
    outcomes = {}
    for s, a in itertools.product(range(M + 1), range(order + 1)):
        if s + a <= M:
            cost = (7.0 + 3.0 * a if a else 0.0) + 0.5 * (s + a)
            outcomes[s, a] = [(p, max(s + a - d, 0), 9.0 * min(d, s + a) - cost) for d, p in enumerate(chance)]
    mdp = problems.inventory(M, mean, price=9.0, setup=7.0, unit=3.0, holding=0.5, max_order=order)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


def test_inventory_orders_by_an_s_S_rule():
    # Scarf (1960): with a set-up cost it is optimal to order up to S when the stock is below s, and otherwise nothing.
    mdp = problems.inventory(30, 6.0)
    v = optimum(mdp)
    q = mdp.r + mdp.gamma * mdp.P @ v
    order = np.array([q[mdp.first[s] : mdp.first[s + 1]].argmax() for s in range(31)])
    ordering = np.flatnonzero(order)
    assert ordering.tolist() == list(range(len(ordering)))
    assert len(ordering) > 0
    assert len(set((ordering + order[ordering]).tolist())) == 1


def test_queue_is_its_description():
    N, lam, speeds, costs = 4, 0.35, (0.2, 0.6), (0.5, 2.0)
    outcomes = {}
    for s, k, admit in itertools.product(range(N + 1), range(2), (0, 1)):
        if s == N and admit:
            continue
        base = -0.3 * s - costs[k]
        arrived = (lam, s + 1, base + 5.0) if admit else (lam, s, base)
        outcomes[s, 2 * k + admit] = [
            arrived,
            (speeds[k], max(s - 1, 0), base),
            (1 - lam - speeds[k], s, base),
        ]
    mdp = problems.queue(N, arrival=lam, services=speeds, service_costs=costs, reward=5.0, holding=0.3)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


def test_tandem_is_its_description():
    N, lam, mu, more, costs = 2, 0.2, 0.15, 0.3, (3.0, 1.0, 0.5)
    outcomes = {}
    for x, a in itertools.product(itertools.product(range(N + 1), repeat=3), range(3)):
        base = -sum(c * n for c, n in zip(costs, x, strict=True))
        happens = [(lam, (x[0] + 1, *x[1:]), base + 7.0) if x[0] < N else (lam, x, base)]
        for i in range(3):
            after = list(x)
            if x[i] > 0 and (i == 2 or x[i + 1] < N):
                after[i] -= 1
                if i < 2:
                    after[i + 1] += 1
            happens.append((mu + more * (i == a), tuple(after), base))
        happens.append((1 - lam - 3 * mu - more, x, base))
        number = {y: n for n, y in enumerate(itertools.product(range(N + 1), repeat=3))}
        outcomes[number[x], a] = [(p, number[y], r) for p, y, r in happens]
    mdp = problems.tandem(N, 3, arrival=lam, service=mu, help_rate=more, reward=7.0, holding=costs)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


def test_tandem_of_one_station_is_a_queue():
    mdp = problems.tandem(8, 1, arrival=0.3, service=0.2, help_rate=0.3, reward=4.0, holding=[0.5], gamma=0.9)
    queue = problems.queue(8, arrival=0.3, services=(0.5,), service_costs=(0.0,), reward=4.0, holding=0.5, gamma=0.9)
    admits = [*range(1, 17, 2), 16]  # of two actions a state; the full one turns away
    np.testing.assert_allclose(mdp.P.toarray(), queue.P.toarray()[admits], atol=1e-15)
    np.testing.assert_allclose(mdp.r, np.asarray(queue.r)[admits], atol=1e-15)


def test_queue_with_one_place_has_a_closed_form():
    lam, mu, R, gamma = 0.3, 0.6, 10.0, 0.9
    mdp = problems.queue(1, arrival=lam, services=(mu,), service_costs=(0.0,), reward=R, holding=0.0, gamma=gamma)
    # Admit: v0 = λR + γ(λ v1 + (1-λ) v0), v1 = γ(μ v0 + (1-μ) v1).
    ratio = gamma * mu / (1 - gamma * (1 - mu))
    v0 = lam * R / (1 - gamma * (1 - lam) - gamma * lam * ratio)
    np.testing.assert_allclose(optimum(mdp), [v0, ratio * v0])


def test_queue_admits_up_to_a_threshold_and_works_faster_when_it_is_long():
    # Stidham (1985): both controls are monotone in the length of the queue.
    mdp = problems.queue(60)
    q = mdp.r + mdp.gamma * mdp.P @ optimum(mdp)
    best = np.array([mdp.pairs.actions[mdp.first[s] + q[mdp.first[s] : mdp.first[s + 1]].argmax()] for s in range(61)])
    speed, admits = np.divmod(best, 2)
    assert (np.diff(admits) <= 0).all()
    assert (np.diff(speed) >= 0).all()
    assert admits[0] == 1
    assert admits[-2] == 0
    assert set(speed.tolist()) == {0, 1}


def test_replacement_is_its_description():
    n, p = 5, (0.2, 0.5, 0.3)
    outcomes = {}
    for x in range(n):
        outcomes[x, 0] = [(p[j], min(x + j, n - 1), -0.1 * x) for j in range(3)]
        outcomes[x, 1] = [(p[j], min(j, n - 1), -4.0) for j in range(3)]
    mdp = problems.replacement(n, increments=p, cost=0.1, price=4.0)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


def test_replacement_with_steady_wear_is_the_best_cycle():
    # Wear of one a period, replaced at m: v(0) = -(Σ_{i<m} γ^i c i + γ^m price)/(1 - γ^m); the best m is found by trying all.
    gamma, c, price, n = 0.97, 0.2, 5.0, 60
    cycles = [-(sum(gamma**i * c * i for i in range(m)) + gamma**m * price) / (1 - gamma**m) for m in range(1, n)]
    v = optimum(problems.replacement(n, increments=(0.0, 1.0), cost=c, price=price, gamma=gamma))
    assert 0 < int(np.argmax(cycles)) < n - 2
    assert v[0] == pytest.approx(max(cycles), rel=1e-12)


def test_sysadmin_is_its_description():
    n, good, poor, cost = 3, 0.9, 0.4, 0.75
    outcomes = {}
    for s, a in itertools.product(range(2**n), range(n + 1)):
        up = [s >> i & 1 for i in range(n)]
        chance = [0.0 if not up[i] else good if up[(i - 1) % n] else poor for i in range(n)]
        if a:
            chance[a - 1] = 1.0
        r = sum(up) - cost * (a > 0)
        outcomes[s, a] = [
            (math.prod(c if b else 1 - c for c, b in zip(chance, bits, strict=True)), sum(b << i for i, b in enumerate(bits)), r)
            for bits in itertools.product((0, 1), repeat=n)
        ]
    mdp = problems.sysadmin(n, healthy=good, shaken=poor, reboot_cost=cost)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 7)
    assert mdp.pairs.state_names[6] == "110"
    assert mdp.P.nnz == 3**n * (1 + Fraction(2, 3) * n)


def test_sysadmin_of_one_machine_reboots_it_for_ever():
    np.testing.assert_allclose(optimum(problems.sysadmin(1, gamma=0.9)), [9.0, 10.0])


# ---------------------------------------------------------------- drawn at random


@pytest.mark.parametrize("build", [problems.garnet, problems.random_sparse_deterministic])
def test_same_seed_same_model(build):
    one, two, other = build(seed=7), build(seed=7), build(seed=8)
    given = build(seed=np.random.default_rng(7))
    for twin in (two, given):
        assert (one.P != twin.P).nnz == 0
        np.testing.assert_array_equal(one.r, twin.r)
    assert (one.P != other.P).nnz > 0
    rng = np.random.default_rng(7)
    assert (build(seed=rng).P != build(seed=rng).P).nnz > 0  # a generator goes on


@pytest.mark.parametrize(("S", "b"), [(50, 1), (50, 5), (50, 12), (50, 13), (50, 50)])
def test_garnet_has_exactly_its_branching(S, b):
    mdp = problems.garnet(S, 3, b, seed=3)
    assert mdp.n_pairs == 3 * S
    np.testing.assert_array_equal(np.diff(mdp.P.indptr), b)


@pytest.mark.parametrize(("S", "b"), [(8, 2), (4, 2)])  # Floyd's sampling, and keys
def test_garnet_successors_are_uniform_subsets(S, b):
    n, seeds = 0, range(60)
    subsets = list(itertools.combinations(range(S), b))
    counts = dict.fromkeys(subsets, 0)
    for seed in seeds:
        P = problems.garnet(S, 50, b, seed=seed).P
        for row in P.indices.reshape(-1, b).tolist():
            counts[tuple(row)] += 1
            n += 1
    expected = n / len(subsets)
    chi2 = sum((c - expected) ** 2 / expected for c in counts.values())
    freedom = len(subsets) - 1
    assert chi2 < freedom + 5 * math.sqrt(2 * freedom)


def test_garnet_probabilities_are_spacings_and_rewards_are_normal():
    # Spacings of [0, 1] into b parts: mean 1/b, variance (b-1)/(b²(b+1)).
    b = 4
    mdp = problems.garnet(2000, 5, b, seed=1)
    p = mdp.P.data
    assert p.mean() == pytest.approx(1 / b, abs=1e-12)
    assert p.var() == pytest.approx((b - 1) / (b**2 * (b + 1)), rel=0.03)
    assert abs(mdp.r.mean()) < 0.05
    assert mdp.r.std() == pytest.approx(1.0, rel=0.03)


def test_garnet_that_branches_everywhere_is_worth_what_its_rows_say():
    # Two states, one action, both successors: v = (I - γP)^-1 r, by Cramer's rule on the model's own numbers.
    mdp = problems.garnet(2, 1, 2, gamma=0.9, seed=5)
    (a, b), (c, d) = (np.eye(2) - 0.9 * mdp.P.toarray()).tolist()
    x, y = mdp.r.tolist()
    np.testing.assert_allclose(optimum(mdp), [(d * x - b * y) / (a * d - b * c), (a * y - c * x) / (a * d - b * c)])


def test_random_sparse_deterministic_is_deterministic_and_sparse():
    mdp = problems.random_sparse_deterministic(2000, 3, density=0.2, seed=2)
    assert (mdp.width, mdp.P.nnz) == (1, 6000)
    assert (mdp.P.data == 1.0).all()
    assert np.count_nonzero(mdp.r) == pytest.approx(1200, abs=5 * math.sqrt(6000 * 0.16))
    assert len(np.unique(mdp.P.indices)) > 1800  # e^-3 of the states are missed


def test_random_deterministic_with_one_action_is_worth_its_orbit():
    mdp = problems.random_sparse_deterministic(30, 1, density=0.5, gamma=0.8, seed=4)
    v = optimum(mdp)
    for s in range(30):
        total, at = 0.0, s
        for t in range(200):
            total += 0.8**t * mdp.r[at]
            at = mdp.P.indices[at]
        assert v[s] == pytest.approx(total, abs=1e-12)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problems.tightrope(-1.0), "c must be a finite number >= 0; found -1.0"),
        (lambda: problems.tightrope("steep"), "c must be a number; found 'steep'"),
        (lambda: problems.chain(0), "n_states must be an integer >= 1; found 0"),
        (lambda: problems.chain(slip=-0.1), r"slip must lie in \[0, 1\]"),
        (lambda: problems.chain(large=math.inf), "large must be a finite number; found inf"),
        (lambda: problems.cliff(1), "height must be an integer >= 2; found 1"),
        (lambda: problems.cliff(width=True), "width must be an integer >= 2; found True"),
        (lambda: problems.cliff(fall=math.nan), "fall must be a finite number"),
        (lambda: problems.forest(1), "n_states must be an integer >= 2; found 1"),
        (lambda: problems.forest(p=2), r"p must lie in \[0, 1\]; found 2.0"),
        (lambda: problems.gambler(1), "goal must be an integer >= 2; found 1"),
        (lambda: problems.gambler(p=math.nan), r"p must lie in \[0, 1\]; found nan"),
        (lambda: problems.garnet(3, 2, 5), "branching is 5, but there are only 3 states"),
        (lambda: problems.garnet(seed=-1), "seed must be an integer >= 0 or a numpy.random.Generator; found -1"),
        (lambda: problems.garnet(seed=0.5), "seed must be an integer"),
        (lambda: problems.random_sparse_deterministic(density=1.1), r"density must lie in \[0, 1\]"),
        (lambda: problems.inventory(0), "capacity must be an integer >= 1"),
        (lambda: problems.inventory(demand=-2.0), "demand must be a finite number >= 0; found -2.0"),
        (lambda: problems.inventory(demand=(0.5, 0.4)), "demand sums to 0.9; a distribution over demand levels sums to 1"),
        (lambda: problems.inventory(demand=(1.5, -0.5)), r"demand\[1\] is -0.5; probabilities cannot be negative"),
        (lambda: problems.inventory(max_order=0), "max_order must be an integer >= 1"),
        (lambda: problems.inventory(price=math.nan), "price must be a finite number"),
        (lambda: problems.queue(services=(0.7,), service_costs=(0,)), r"arrival \+ service <= 1 for each"),
        (lambda: problems.queue(services=(-0.1, 0.2)), "services must be probabilities"),
        (lambda: problems.queue(services=(), service_costs=()), "services must be probabilities"),
        (lambda: problems.queue(service_costs=(1.0,)), r"service_costs must have shape \(2,\), one entry per speed"),
        (lambda: problems.replacement(increments=(0.5, 0.6)), "increments sums to 1.1; a distribution over increments"),
        (lambda: problems.replacement(cost="x"), "cost must be a number"),
        (lambda: problems.sysadmin(17), "machines is 17: about 2e.09 transitions; at most 16"),
        (lambda: problems.tandem(help_rate=0.7), r"arrival \+ stations service \+ help_rate must be at most 1; found 0.15"),
        (lambda: problems.tandem(holding=[1.0]), r"holding must have shape \(2,\), one entry per station"),
        (lambda: problems.sysadmin(healthy=1.2), r"healthy must lie in \[0, 1\]"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()
