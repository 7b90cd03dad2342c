"""Two pictures: time against size for each class of model, and the performance profile."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

COLOURS = {
    "tightrope": "#0b6e4f",
    "stormpy": "#d1495b",
    "quantecon": "#edae49",
    "mdpsolver": "#30638e",
    "mdptoolbox": "#8d6a9f",
}
GROUPS = (
    "garnet",
    "slippery grid",
    "deterministic grid",
    "queue",
    "inventory",
    "textbook",
    "forest",
    "replacement",
    "sysadmin",
    "tandem",
    "ring",
    "worlds",
)


def draw(found, contests, folder):
    (folder / "img").mkdir(exist_ok=True)
    models = {model["name"]: model for model in found["models"]}
    _sizes(models, contests, folder / "img" / "size.png")
    _profile(contests, folder / "img" / "profile.png")


def _times(records):
    """The best processor time of each contender on one model."""
    times = {}
    for r in records:
        if r.status == "ok" and r.method != "2 threads":
            times[r.peer] = min(times.get(r.peer, np.inf), r.cpu)
    return times


def _sizes(models, contests, path):
    groups = [g for g in GROUPS if any(models[name]["group"] == g for name in contests)]
    columns = min(3, len(groups))
    lines = -(-len(groups) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(3.8 * columns, 2.9 * lines), squeeze=False, sharex=True, sharey=True, layout="constrained"
    )
    for axis, group in zip(axes.flat, groups, strict=False):
        for peer, colour in COLOURS.items():
            points = [
                (models[name]["transitions"], _times(records)[peer])
                for name, records in contests.items()
                if models[name]["group"] == group and peer in _times(records)
            ]
            if points:
                marker, size = ("o", 6) if peer == "tightrope" else ("s", 4)
                axis.plot(*zip(*sorted(points), strict=True), marker, color=colour, markersize=size, label=peer, alpha=0.85)
        axis.set(title=group, xscale="log", yscale="log")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(groups) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds")
    for axis in axes.flat[max(0, len(groups) - columns) : len(groups)]:
        axis.set_xlabel("transitions")
    handles = [plt.Line2D([], [], marker="o", linestyle="", color=colour, label=peer) for peer, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(COLOURS), frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _profile(contests, path):
    """For each contender, the share of models on which it was within a factor of the fastest."""
    times = [_times(records) for records in contests.values()]
    figure, axis = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    most = 10.0
    for peer, colour in COLOURS.items():
        factors = np.sort([t[peer] / min(t.values()) for t in times if peer in t])
        if len(factors):
            most = max(most, factors[-1])
            shares = np.arange(1, len(factors) + 1) / len(times)
            axis.step([1.0, *factors, 1e6], [0.0, *shares, shares[-1]], where="post", color=colour, label=peer, linewidth=2)
    axis.set(xscale="log", xlim=(1.0, min(2 * most, 1e4)), ylim=(0.0, 1.02), xlabel="times slower than the fastest, at most")
    axis.set_ylabel("share of models solved")
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(COLOURS), frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
