"""Learning curves: a measurement against samples, the middle of several seeds and the band they fill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.online import OnlineKappaPI, Run, Runs
from tightrope.views import style

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Measurements that are shown as a share of max |v*|, and what the axis says.
_SHARES = {
    "loss": "max (v* - v^π) / max |v*|",
    "loss_nu": "ν (v* - v^π) / max |v*|",
    "distance": "max |v_n - v*| / max |v*|",
}
#: What a logarithmic axis shows of a loss that is zero or lost in rounding.
_FLOOR = 1e-6
_PLAIN = {
    "took_kappa": "share of states where b is κ-greedy",
    "min_visits": "visits of the least visited pair",
    "seconds": "seconds",
}


def learning(
    runs: Mapping[str, Run | Runs] | Mapping[str, Mapping[str, Run | Runs]], column: str = "loss", *, goal: float | None = None
) -> Any:
    """One curve per name: the median of its seeds, in a band from the worst to the best of them.

    Args:
        runs: runs by name, or several such groups by title, one panel each.
        column: what to show, a name of `online.run.COLUMNS`.
        goal: a level to draw a line at.
    """
    first = next(iter(runs.values()))
    groups: Any = {"": runs} if isinstance(first, Run | Runs) else runs
    colours = _colours({name: _several(found)[0].learner for group in groups.values() for name, found in group.items()})
    with style.panels(max(4.8, 3.7 * len(groups)), 3.9, 1, len(groups), sharey=True) as (figure, axes):
        for ax, (title, group) in zip(axes.flat, groups.items(), strict=True):
            for name, found in group.items():
                _curve(ax, _several(found), column, name, colours[name])
            if goal is not None:
                ax.axhline(goal, color=style.theme().plain, linewidth=1.0, linestyle=(0, (4, 3)))
            ax.set_title(title)
            ax.set_xscale("log")
            ax.set_xlabel("samples")
            if column in _SHARES or column == "min_visits":
                ax.set_yscale("log")
            style.grid_lines(ax)
        axes[0, 0].set_ylabel((_SHARES | _PLAIN)[column])
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))
    return figure


def _several(found: Run | Runs) -> Runs:
    return Runs((found,)) if isinstance(found, Run) else found


def _curve(ax: Any, runs: Runs, column: str, name: str, colour: str) -> None:
    """The median over seeds, the band of all of them."""
    x, y = runs.steps, runs.column(column)
    if column in _SHARES:
        y = np.maximum(y / runs[0].scale, _FLOOR)
    ax.plot(x, np.median(y, axis=0), color=colour, label=name)
    if len(runs) > 1:
        ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=colour, alpha=0.18, linewidth=0.0)


def _colours(learners: Mapping[str, Any]) -> dict[str, str]:
    """The colour of its kappa for Algorithm 1 where that tells the curves apart, else one after the other."""
    kappas = [learner.kappa if isinstance(learner, OnlineKappaPI) else None for learner in learners.values()]
    spare = iter(style.CYCLE[1:] * len(kappas))
    if len({kappa for kappa in kappas if kappa is not None}) == sum(kappa is not None for kappa in kappas):
        return {
            name: next(spare) if kappa is None else style.kappa_colour(kappa)
            for name, kappa in zip(learners, kappas, strict=True)
        }
    return dict(zip(learners, style.CYCLE * len(kappas), strict=False))
