"""A gridworld seen from above: its value function, its policy, and the way from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.views import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.model.problems import Grid
    from tightrope.solution import Solution

#: More arrows than this across a map cannot be told apart; on larger maps every few cells have one.
ARROWS = 34
#: What the four actions of a gridworld do to (right, up) on the page: up, right, down, left.
_RIGHT, _UP = np.array([0.0, 1.0, 0.0, -1.0]), np.array([1.0, 0.0, -1.0, 0.0])


def gridworld(grid: Grid, solution: Solution, *, path: Sequence[tuple[int, int]] = ()) -> Any:
    """The value of every cell as colour, the policy as arrows, and optionally a path of cells (row, column)."""
    share = grid.height / grid.width
    with style.panels(7.4, min(max(6.6 * share, 3.0), 10.0)) as (figure, axes):
        ax, colours = axes[0, 0], style.theme()
        traps = [cell for cell, reward in grid.goals.items() if reward < 0]
        prizes = {cell: reward for cell, reward in grid.goals.items() if reward >= 0}
        picture = grid.image(solution.value)
        for cell in grid.goals:
            picture[cell] = np.nan
        shown = ax.imshow(picture, cmap="viridis", norm=_norm(picture), interpolation="nearest")
        bar = figure.colorbar(shown, ax=ax, shrink=0.7, aspect=34, pad=0.015)
        if bar.ax.get_yscale() == "log":
            ticks = style.matplotlib().ticker
            bar.ax.yaxis.set_major_locator(ticks.LogLocator(subs=(1.0, 2.0, 5.0)))
            bar.ax.yaxis.set_major_formatter("{x:g}")
            bar.ax.yaxis.set_minor_formatter(ticks.NullFormatter())
        bar.set_label("v*, the optimal value of starting here")
        bar.ax.tick_params(which="both", colors=colours.ink, labelsize=9.5)
        _cells(ax, grid.walls, colours.ink)
        _cells(ax, _mask(grid, traps), style.VERMILION)
        _arrows(ax, grid, solution)
        if path:
            y, x = np.transpose(path)
            ax.plot(x, y, color="#000000", linewidth=3.4)
            ax.plot(x, y, color="#ffffff", linewidth=1.8)
        for y, x in grid.start:
            _label(ax, x, y, "start", "o")
        for (y, x), reward in prizes.items():
            _label(ax, x, y, f"prize {reward:g}", "*")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(True)
        _key(figure, trap=bool(traps), wall=bool(grid.walls.any()), path=bool(path))
    return figure


def _norm(picture: Any) -> Any:
    """A logarithmic scale where values fall off with the distance from a prize, a linear one elsewhere."""
    low, high = float(np.nanmin(picture)), float(np.nanmax(picture))
    colours = style.matplotlib().colors
    return colours.LogNorm(low, high) if 0.0 < 8.0 * low < high else colours.Normalize(low, high)


def _key(figure: Any, *, trap: bool, wall: bool, path: bool) -> None:
    """What the colours mean, below the map."""
    from matplotlib.lines import Line2D  # noqa: PLC0415  (optional, and slow to load)
    from matplotlib.patches import Patch  # noqa: PLC0415

    ink = style.theme().ink
    handles: list[Any] = [Line2D([], [], color=ink, marker="$→$", markersize=11, linestyle="none", label="policy")]
    handles += [Line2D([], [], color=ink, linewidth=2.4, label="the way it means to go")] if path else []
    handles += [Patch(facecolor=ink, label="wall")] if wall else []
    handles += [Patch(facecolor=style.VERMILION, label="pool: the end, at a loss")] if trap else []
    figure.legend(handles=handles, loc="outside lower left", ncols=len(handles))


def _mask(grid: Grid, cells: Sequence[tuple[int, int]]) -> Any:
    mask = np.zeros((grid.height, grid.width), dtype=bool)
    for cell in cells:
        mask[cell] = True
    return mask


def _cells(ax: Any, mask: Any, colour: str) -> None:
    """Paint the cells of a mask in one colour."""
    if mask.any():
        one = style.matplotlib().colors.ListedColormap([colour])
        ax.imshow(np.where(mask, 1.0, np.nan), cmap=one, interpolation="nearest")


def _arrows(ax: Any, grid: Grid, solution: Solution) -> None:
    step = -(-max(grid.height, grid.width) // ARROWS)
    at = slice(step // 2, None, step)
    states = grid.states[at, at]
    y, x = np.mgrid[0 : grid.height, 0 : grid.width]
    final = _mask(grid, list(grid.goals))[at, at]
    drawn = (states >= 0) & ~final
    actions = solution.policy.actions[states[drawn]]
    ax.quiver(
        x[at, at][drawn],
        y[at, at][drawn],
        _RIGHT[actions],
        _UP[actions],
        pivot="mid",
        angles="uv",
        scale_units="x",
        scale=1.0 / (0.72 * step),
        units="x",
        width=0.09 * step,
        headwidth=3.6,
        headlength=4.0,
        headaxislength=3.6,
        color="#ffffff",
        alpha=0.75,
    )


def _label(ax: Any, x: int, y: int, text: str, marker: str) -> None:
    ax.plot([x], [y], marker=marker, markersize=11 if marker == "*" else 7, color="#ffffff", markeredgecolor="#000000", zorder=4)
    right = x > 0.8 * ax.get_xlim()[1]
    ax.annotate(
        text,
        (x, y),
        xytext=(-8 if right else 8, 0),
        textcoords="offset points",
        ha="right" if right else "left",
        va="center",
        fontsize=9.5,
        color="#000000",
        zorder=5,
        bbox={"boxstyle": "round,pad=0.2", "facecolor": "#ffffff", "edgecolor": "none", "alpha": 0.9},
    )
