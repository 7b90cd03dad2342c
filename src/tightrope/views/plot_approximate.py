"""Pictures of approximate runs: loss and error against iterations, the bound beside the loss, and the loss against kappa."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.approximate.result import Run
from tightrope.views import style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def approximation(runs: Run | Mapping[str, Run], *, bounds: Mapping[str, Any] | None = None) -> Any:
    """Left the loss μ(v* - v^π) of every iteration, dashed the bound given for it; right the error δ_k of the oracle.

    Both axes are logarithmic: where a loss or an error is zero, the line has a gap.

    Args:
        runs: one run, or several by name; each must have been measured.
        bounds: for some of the names, one number per iteration 1, 2, ... (`theory.kappa_api_bound`, `kappa_psdp_bound`).
    """
    named = {type_of(runs): runs} if isinstance(runs, Run) else dict(runs)
    with style.panels(10.0, 4.0, 1, 2) as (figure, axes):
        left, right = axes[0]
        for i, (name, run) in enumerate(named.items()):
            colour = style.CYCLE[i % len(style.CYCLE)]
            steps = run["iteration"]
            left.plot(steps, style.positive(run["loss"]), color=colour, marker="o", markersize=3.5, label=name)
            right.plot(steps[1:], style.positive(run["delta"][1:]), color=colour, marker="o", markersize=3.5, label=name)
            if bounds is not None and name in bounds:
                limit = np.asarray(bounds[name], dtype=np.float64)
                left.plot(np.arange(1, len(limit) + 1), style.positive(limit), color=colour, linestyle="--", linewidth=1.4)
        for ax, title in (
            (left, "loss μ(v* - v)" + (", dashed: what the theorem allows" if bounds else "")),
            (right, "error δ of the oracle"),
        ):
            ax.set_title(title)
            ax.set_yscale("log")
            ax.set_xlabel("iteration")
            _at_least_a_decade(ax)
            ax.xaxis.get_major_locator().set_params(integer=True)
            style.grid_lines(ax)
        if len(named) > 1:
            handles, labels = left.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper left", ncols=min(len(named), 4))
        else:
            figure.suptitle(next(iter(named)), x=0.01, ha="left", fontsize=11.5)
    return figure


def loss_against_kappa(kappas: Sequence[float], losses: Mapping[str, Any], *, subtitle: str = "") -> Any:
    """The mean loss for every kappa with two standard errors around it, by name; losses are [repetitions, kappas].

    Kappas are drawn at equal distances: what is interesting happens near 1.
    """
    with style.panels(7.5, 4.0) as (figure, axes):
        ax = axes[0, 0]
        places = np.arange(len(kappas))
        for i, (name, numbers) in enumerate(losses.items()):
            table = np.asarray(numbers, dtype=np.float64)
            mean = table.mean(axis=0)
            error = table.std(axis=0, ddof=1) / np.sqrt(len(table))
            colour = style.CYCLE[i % len(style.CYCLE)]
            ax.fill_between(places, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.18, linewidth=0)
            ax.plot(places, mean, color=colour, marker="o", markersize=4, label=name)
            ax.plot(places[int(mean.argmin())], mean.min(), color=colour, marker="o", markersize=9, fillstyle="none")
        ax.set_xticks(places, [f"{k:g}" for k in kappas])
        ax.set_xlabel("κ")
        ax.set_ylabel("loss (band: ± 2 standard errors)")
        ax.set_ylim(bottom=0.0)
        ax.set_title(subtitle, fontsize=10.5)
        style.grid_lines(ax)
        figure.legend(loc="outside upper left", ncols=len(losses))
    return figure


def _at_least_a_decade(ax: Any) -> None:
    """Numbers that hardly differ are drawn as a flat line, not blown up until rounding shows."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.lines])
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) and drawn.max() < 10.0 * drawn.min():
        middle = float(np.sqrt(drawn.min() * drawn.max()))
        ax.set_ylim(middle / 4.0, middle * 4.0)


def type_of(run: Run) -> str:
    """The algorithm of a run as it prints, without its settings."""
    return f"{run.algorithm.split('(')[0]}, kappa={run.kappa:g}"
