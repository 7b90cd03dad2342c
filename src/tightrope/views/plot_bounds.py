"""Theorems 5 and 6 in a picture: what they guarantee at every kappa, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.views import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.theory import KappaCurve


def bounds(curves: Sequence[KappaCurve]) -> Any:
    """The bound of each algorithm against kappa with its two terms, every statement, and the best kappa, one panel each."""
    with style.panels(4.4 * len(curves), 4.6, 1, len(curves), sharey=True) as (figure, axes):
        for ax, curve in zip(axes.flat, curves, strict=True):
            _panel(ax, curve)
        every = np.concatenate([curve.values for curve in curves])
        shown = every[(every > 0.0) & np.isfinite(every)]
        if len(shown):  # without an error all bounds are zero in the limit, which a logarithmic axis cannot show
            axes[0, 0].set_ylim(shown.min() / 4.0, 4.0 * shown.max())
        axes[0, 0].set_ylabel("guarantee on μ(v* - v)")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, columnspacing=1.4)
    return figure


def _panel(ax: Any, curve: KappaCurve) -> None:
    ink = style.theme().ink
    names = ("statement 1", "statement 2", "any policy")
    looks = (style.BLUE, (0, (1, 1.2))), (style.GREEN, (0, (4, 1.5))), (style.theme().plain, (0, (1, 2.5)))
    kappas = curve.kappas
    dots = {"marker": "o", "markersize": 3.5} if len(kappas) <= 15 else {}
    ax.plot(kappas, style.positive(curve.values), color=ink, linewidth=6.0, alpha=0.28, label="the bound: the smallest of")
    for name, (colour, dashes) in zip(names, looks, strict=True):
        totals = [_total(bound, name) for bound in curve.bounds]
        ax.plot(kappas, style.positive(totals), color=colour, linestyle=dashes, label=name)
    error = [bound.best.error.upper for bound in curve.bounds]
    start = [bound.best.start for bound in curve.bounds]
    ax.plot(kappas, style.positive(error), color=style.VERMILION, linewidth=1.2, **dots, label="its part: the oracle's error")
    if any(x > 0.0 for x in start):
        ax.plot(kappas, style.positive(start), color=style.ORANGE, linewidth=1.2, label="its part: the start, ξᵏV")
    ax.plot([curve.kappa], style.positive([curve.value]), marker="o", markersize=8, color=ink, clip_on=False, zorder=5)
    right = curve.kappa > 0.5
    ax.annotate(
        f"best κ = {curve.kappa:g}",
        (curve.kappa, curve.value),
        xytext=(-10 if right else 10, -4),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top",
        fontweight="bold",
        bbox={"boxstyle": "round,pad=0.2", "facecolor": style.theme().paper, "edgecolor": "none", "alpha": 0.85},
        zorder=6,
    )
    ax.set_yscale("log")
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("κ")
    count = "in the limit" if np.isinf(curve.best.k) else f"{curve.best.k:g} iterations"
    ax.set_title(f"{curve.best.algorithm.replace('kappa', 'κ')}, {count}")
    style.grid_lines(ax)


def _total(bound: Any, name: str) -> float:
    """The guarantee of the statement whose name contains `name`; nan where it says nothing."""
    found = [statement.total.upper for statement in bound.statements if name in statement.name]
    return found[0] if found else np.nan
