"""Theorem 1 in pictures: when a soft multi-step update improves a policy, and when it makes it worse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tightrope.views import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.experiments.tour import Dip, ImprovementMap


def improvement_map(record: ImprovementMap) -> Any:
    """The change of v(s0) over step size alpha and kappa, with the boundary alpha = kappa that Theorem 1 predicts."""
    with style.panels(6.6, 5.6) as (figure, axes):
        ax, ink = axes[0, 0], style.theme().ink
        low, high = float(record.change.min()), float(record.change.max())
        norm = style.matplotlib().colors.TwoSlopeNorm(0.0, min(low, -1e-12), max(high, 1e-12))
        shown = ax.pcolormesh(
            record.alphas, record.kappas, record.change, cmap=style.diverging(), norm=norm, shading="nearest", rasterized=True
        )
        bar = figure.colorbar(shown, ax=ax, shrink=0.8, aspect=28, pad=0.02)
        bar.set_label("change of v(s₀), as a share of what is at stake")
        bar.ax.tick_params(colors=ink, labelsize=9.5)
        ax.plot([0, 1], [0, 1], color=ink, linewidth=2.0, linestyle=(0, (5, 2)))
        beside = {"xytext": (-4, 4), "textcoords": "offset points", "rotation": 45, "rotation_mode": "anchor", "ha": "center"}
        ax.annotate("predicted boundary α = κ", (0.5, 0.5), **beside)
        ax.text(0.30, 0.80, "worse than\nbefore", ha="center", va="center", fontsize=12, fontweight="bold")
        ax.text(0.70, 0.22, "never worse,\nin any MDP", ha="center", va="center", fontsize=12, fontweight="bold")
        ax.set_xlabel("step size α")
        ax.set_ylabel("κ of the greedy policy stepped towards")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_aspect("equal")
        ax.set_title(f"{record.change.size:,} updates, {record.disagreements or 'none'} of them against Theorem 1")
    return figure


def dip(records: Sequence[Dip]) -> Any:
    """v(s0) after a soft step towards the optimal policy against the step size: first down, then up, through c/(1+c)."""
    with style.panels(6.6, 5.0) as (figure, axes):
        ax, colours = axes[0, 0], style.theme()
        lowest = min(float(record.value.min()) for record in records)
        for record, colour in zip(records, style.CYCLE, strict=False):
            ax.plot([0.0, *record.alphas], [0.0, *record.value], color=colour, label=f"falling costs c = {record.c:g}")
            ax.plot([record.threshold], [0.0], marker="o", markersize=7, color=colour, markeredgecolor=colours.paper, zorder=4)
        ax.plot(
            records[0].alphas, records[0].cautious, color=colours.ink, linestyle=(0, (4, 2)), label="cautious target: never worse"
        )
        ax.axhspan(1.25 * lowest, 0.0, color=style.VERMILION, alpha=0.10, linewidth=0)
        ax.text(0.98, 1.18 * lowest, "worse than not moving at all", ha="right", va="bottom", color=style.VERMILION)
        ax.set_ylim(bottom=1.25 * lowest)
        ax.set_xlim(0, 1)
        ax.set_xlabel("step size α towards the optimal policy (κ = 1)")
        ax.set_ylabel("v(s₀) after the step")
        ax.set_title("dots: the predicted zero, α = c/(1+c)")
        ax.legend(loc="upper left")
        style.grid_lines(ax)
    return figure
