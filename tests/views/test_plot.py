"""Pictures: each draws what its record holds, without pyplot, in both themes."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

from tightrope.errors import MissingExtra
from tightrope.experiments import tour
from tightrope.model.problems import Grid, gridworld
from tightrope.planning import h_pi, kappa_pi, policy_iteration, solve, value_iteration
from tightrope.views import plot, style

MAP = """
    S..#...
    .X.....
    ...#..G
"""


@pytest.fixture(scope="module")
def found():
    return tour.tour(quick=True)


@pytest.fixture(scope="module")
def solution():
    return solve(gridworld(6, 6), kappa_pi(0.5))


def is_png(data):
    return data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 5_000


def draw_all(found, solution):
    yield plot.convergence(solution)
    yield plot.convergence({"one": solution, "two": solution})
    yield plot.gridworld(found.world.grid, found.world.solution, path=found.world.path)
    yield plot.lookahead(found.lookahead)
    yield plot.improvement_map(found.improvement)
    yield plot.dip(found.dips)


def test_every_picture_is_a_figure_that_saves_in_both_themes(found, solution):
    before = dict(mpl.rcParams)
    for figure in draw_all(found, solution):
        assert isinstance(figure, mpl.figure.Figure)
        assert is_png(style.png(figure, 50))
        assert mpl.colors.to_hex(figure.get_facecolor()) == style.LIGHT.paper
    with style.dark():
        for figure in draw_all(found, solution):
            assert is_png(style.png(figure, 50))
            assert mpl.colors.to_hex(figure.get_facecolor()) == style.DARK.paper
    assert dict(mpl.rcParams) == before


def test_a_notebook_can_show_a_figure_by_itself(solution):
    assert is_png(plot.convergence(solution)._repr_png_())


def test_convergence_draws_the_trace(solution):
    figure = plot.convergence(solution)
    first, second, third = figure.axes
    for ax, column, unit in ((first, "iteration", 1), (second, "backups", 1e-6), (third, "seconds", 1)):
        line = ax.lines[0]
        assert np.allclose(line.get_xdata(), solution.trace[column] * unit)
        assert np.allclose(line.get_ydata(), solution.trace["relative_gap"])
        assert ax.get_yscale() == "log"


def test_convergence_names_every_solution_and_takes_colours(solution):
    other = solve(gridworld(6, 6), value_iteration())
    figure = plot.convergence({"kappa": solution, "vi": other}, colours={"vi": "#123456"})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["kappa", "vi"]
    assert [line.get_color() for line in figure.axes[0].lines] == [style.CYCLE[0], style.CYCLE[0], "#123456", "#123456"]


def test_convergence_takes_more_solutions_than_there_are_colours(solution):
    many = {f"run {i}": solution for i in range(2 * len(style.CYCLE) + 1)}
    assert len(plot.convergence(many).legends[0].get_texts()) == len(many)


def test_a_gap_a_logarithm_cannot_show_is_left_out():
    assert np.array_equal(style.positive([1.0, 0.0, -1.0, np.inf, np.nan]), [1.0, np.nan, np.nan, np.nan, np.nan], equal_nan=True)


def test_the_gridworld_shows_values_arrows_and_labels():
    grid = Grid.from_text(MAP)
    solved = solve(grid.mdp(gamma=0.9))
    figure = plot.gridworld(grid, solved, path=[(0, 0), (0, 1)])
    ax = figure.axes[0]
    shown = ax.images[0].get_array()
    free = [(y, x) for y, x in grid.cells if (y, x) not in grid.goals]
    for y, x in free:
        assert shown[y, x] == solved.value[grid.states[y, x]]
    assert np.ma.getmaskarray(shown).sum() == grid.walls.sum() + len(grid.goals)
    arrows = next(item for item in ax.collections if hasattr(item, "U"))
    moves = {(int(x), int(y)): (u, v) for (x, y), u, v in zip(arrows.get_offsets(), arrows.U, arrows.V, strict=True)}
    assert len(moves) == len(free)
    toward = {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}
    for y, x in free:
        name = grid.mdp().pairs.action_names[solved.policy.actions[grid.states[y, x]]]
        assert moves[int(x), int(y)] == toward[name]
    assert {text.get_text() for text in ax.texts} == {"start", "prize 1"}


def test_a_gridworld_without_walls_traps_or_path_and_with_costs():
    grid = Grid(4, 9)
    figure = plot.gridworld(grid, solve(grid.mdp(step_reward=-1.0)))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["policy"]


def test_a_large_gridworld_has_an_arrow_every_few_cells():
    grid = Grid(80, 70)
    figure = plot.gridworld(grid, solve(grid.mdp()))
    arrows = next(item for item in figure.axes[0].collections if hasattr(item, "U"))
    assert len(arrows.U) <= 34 * 34


def test_lookahead_puts_the_numbers_on_the_bars():
    mdp = gridworld(5, 5)
    plain = solve(mdp, policy_iteration())
    runs = tour.Lookahead({1: plain, 2: solve(mdp, h_pi(2))}, {0.0: plain, 0.9: solve(mdp, kappa_pi(0.9))})
    axes = plot.lookahead(runs).axes
    assert [patch.get_height() for patch in axes[0].patches] == [s.iterations for s in runs.h.values()]
    assert [patch.get_height() for patch in axes[3].patches] == [s.backups / 1e6 for s in runs.kappa.values()]
    assert [patch.get_height() for patch in axes[4].patches] == [s.seconds for s in runs.h.values()]
    assert [text.get_text() for text in axes[1].texts] == [str(s.iterations) for s in runs.kappa.values()]


def test_the_improvement_map_draws_the_record_and_its_boundary(found):
    record = found.improvement
    ax = plot.improvement_map(record).axes[0]
    assert np.allclose(ax.collections[0].get_array().reshape(record.change.shape), record.change)
    assert np.array_equal(ax.lines[0].get_xdata(), ax.lines[0].get_ydata())
    assert "none of them against" in ax.get_title(loc="left")


def test_the_sign_of_a_change_shows_however_small_it_is():
    for colours in (style.diverging(), _in_the_dark(style.diverging)):
        worse, better = np.array(colours(0.499)), np.array(colours(0.501))
        assert np.abs(worse - better).max() > 0.15


def test_the_dip_marks_the_predicted_zeros(found):
    ax = plot.dip(found.dips).axes[0]
    marks = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert [mark.get_xdata()[0] for mark in marks] == [record.threshold for record in found.dips]
    assert all(mark.get_ydata()[0] == 0.0 for mark in marks)


def test_every_kappa_has_one_colour_and_policy_iteration_is_the_same_in_both_families():
    kappas = [0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0]
    assert len({style.kappa_colour(kappa) for kappa in kappas}) == len(kappas)
    assert len({style.h_colour(h) for h in (1, 2, 4, 8, 16, 32, 64)}) == 7
    assert style.kappa_colour(0.0) == style.h_colour(1)


def _in_the_dark(make):
    with style.dark():
        return make()


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, solution):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tightrope\[plot\]'"):
        plot.convergence(solution)


def test_views_load_no_matplotlib_and_pictures_no_pyplot():
    code = (
        "import sys\n"
        "from tightrope.views import plot\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from tightrope.planning import solve\n"
        "from tightrope.model.problems import chain\n"
        "plot.convergence(solve(chain())).savefig(sys.stdout.buffer)\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.startswith(b"\x89PNG")
