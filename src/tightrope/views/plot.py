"""Pictures of results, as Matplotlib figures (extra `plot`): every function returns the figure and shows nothing by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tightrope.solution import Solution
from tightrope.views import style
from tightrope.views.plot_approximate import approximation, loss_against_kappa
from tightrope.views.plot_bounds import bounds
from tightrope.views.plot_grid import gridworld
from tightrope.views.plot_online import learning
from tightrope.views.plot_soft import dip, improvement_map

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tightrope.experiments.tour import Lookahead

__all__ = [
    "approximation",
    "bounds",
    "convergence",
    "dip",
    "gridworld",
    "improvement_map",
    "learning",
    "lookahead",
    "loss_against_kappa",
]


def convergence(solutions: Solution | Mapping[str, Solution], *, colours: Mapping[str, str] | None = None) -> Any:
    """The certified gap against iterations, Bellman backups and seconds, for one solution or several by name."""
    named = {solutions.algorithm: solutions} if isinstance(solutions, Solution) else dict(solutions)
    palette = dict(zip(named, style.CYCLE * (1 + len(named) // len(style.CYCLE)), strict=False)) | dict(colours or {})
    axes_of = {"iterations": ("iteration", 1.0), "backups, millions": ("backups", 1e-6), "seconds": ("seconds", 1.0)}
    with style.panels(7.4, 4.0 if len(named) > 1 else 3.2, 1, 3, sharey=True) as (figure, axes):
        for ax, (label, (column, unit)) in zip(axes.flat, axes_of.items(), strict=True):
            for name, solution in named.items():
                trace = solution.trace
                gap = style.positive(trace["relative_gap"])
                ax.plot(trace[column] * unit, gap, color=palette[name], label=name, marker="o", markersize=2.5)
                ax.plot(trace[column][-1] * unit, gap[-1], color=palette[name], marker="o", markersize=6)
            ax.set_yscale("log")
            ax.set_xlabel(label)
            ax.set_xlim(left=0)
            style.grid_lines(ax)
        axes[0, 0].set_ylabel("certified gap / value scale")
        if len(named) > 1:
            handles, labels = axes[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper left", ncols=4, columnspacing=1.2)
        else:
            figure.suptitle(next(iter(named)), x=0.01, ha="left", fontsize=11.5)
    return figure


def lookahead(runs: Lookahead) -> Any:
    """Iterations, backups and seconds against the horizon h and against kappa; policy iteration is the first bar of both."""
    horizons = [("1\n(PI)" if h == 1 else f"{h}", run, style.h_colour(h)) for h, run in runs.h.items()]
    weights = [("0\n(PI)" if k == 0 else f"{k:g}", run, style.kappa_colour(k)) for k, run in runs.kappa.items()]
    with style.panels(7.4, 7.2, 3, 2, sharey="row") as (figure, axes):
        families = (("h-PI", "h, steps looked ahead", horizons), ("κ-PI", "κ, weight of the future", weights))
        for column, (name, label, bars) in zip(axes.T, families, strict=True):
            ticks, solutions, colours = zip(*bars, strict=True)
            _bars(column[0], [s.iterations for s in solutions], "{:.0f}", colours)
            _bars(column[1], [s.backups / 1e6 for s in solutions], "{:.0f}", colours)
            _bars(column[2], [s.seconds for s in solutions], "{:.2g}", colours)
            for ax, title in zip(column, (f"{name}: iterations", "backups, millions", "seconds"), strict=True):
                ax.set_title(title)
                ax.set_xticks(range(len(ticks)), [] if ax is not column[-1] else ticks)
            column[-1].set_xlabel(label)
    return figure


def _bars(ax: Any, heights: Sequence[float], form: str, colours: Sequence[str]) -> None:
    """Bars with their numbers above them."""
    drawn = ax.bar(range(len(heights)), heights, color=colours, width=0.72)
    ax.bar_label(drawn, [form.format(x) for x in heights], padding=2, fontsize=9.5)
    ax.tick_params(axis="x", length=0)
    style.grid_lines(ax, "y")
    ax.margins(y=0.12)
