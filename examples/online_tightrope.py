"""Walk the Tightrope online: what caution is for, and what exploration is for.

    python examples/online_tightrope.py [FOLDER] [--quick]

Algorithm 1 starts from the hesitant policy (never step on the rope), which it evaluates exactly. Without caution it moves
towards the rope before it knows how to walk on it, and falls: v(s0) drops far below zero. With caution v(s0) never drops.
Draws online_tightrope.png (in docs/img, or in FOLDER) and prints the numbers the documentation quotes; --quick does the same
with few seeds and samples.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import tightrope as tr
from tightrope.model import problems
from tightrope.online import OnlineKappaPI, StepSchedule, learn, learn_seeds, resume
from tightrope.views import style

QUICK = "--quick" in sys.argv
SEEDS, STEPS = (1, 2_000) if QUICK else (8, 30_000)
MANY, LONG = (4, 5_000) if QUICK else (100, 100_000)
KAPPAS = (0.0, 0.5, 0.9, 1.0)
POINTS = np.unique(np.geomspace(30, STEPS, 10 if QUICK else 60).astype(int))


def value_at_start(mdp: tr.MDP, kappa: float, *, cautious: bool) -> np.ndarray:
    """v^π(s0) of the policy held after each of POINTS samples, one row a seed."""
    hesitant = tr.Policy.deterministic(mdp, 0)
    learner = OnlineKappaPI(kappa, slow=StepSchedule.harmonic(20.0), explore=0.2, cautious=cautious)
    start = learner.init(mdp, pi0=hesitant, q0=tr.q_value(mdp, hesitant))
    rows = []
    for seed in range(SEEDS):
        run = learn(mdp, learner, 1, seed, state=start)
        values = []
        for steps in POINTS:
            run = resume(run, mdp, int(steps))
            values.append(tr.value(mdp, run.policy)[0])
        rows.append(values)
    return np.array(rows)


def draw(path: Path) -> None:
    """v(s0) against samples for c = 2 and c = 20: all cautious κ in one line, the incautious ones by κ."""
    with style.panels(8.6, 4.0, 1, 2) as (figure, axes):
        for ax, c in zip(axes.flat, (2, 20), strict=True):
            mdp = problems.tightrope(c, 0.9)
            careful = [value_at_start(mdp, kappa, cautious=True) for kappa in KAPPAS]
            print(f"c = {c}: cautious runs of all kappas are the same: {all((x == careful[0]).all() for x in careful)}")
            curves = {"cautious, every κ": (careful[0], style.BLUE)}
            for kappa in (0.5, 0.9, 1.0):
                bold = value_at_start(mdp, kappa, cautious=False)
                curves[f"not cautious, κ = {kappa:g}"] = (bold, style.kappa_colour(kappa))
            for name, (values, colour) in curves.items():
                print(f"  {name:24} lowest v(s0) {values.min():8.2f}   at the end {np.median(values[:, -1]):6.3f}")
                dashes = "-" if name.startswith("cautious") else (0, (4, 1.5))
                ax.plot(POINTS, np.median(values, axis=0), color=colour, label=name, linestyle=dashes)
                ax.fill_between(POINTS, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
            ax.set_xscale("log")
            ax.set_title(f"c = {c}")
            ax.set_xlabel("samples")
            style.grid_lines(ax)
        axes[0, 0].set_ylabel("value of the policy at s0")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=110)


def stuck() -> None:
    """How many of many seeds never find the rope, by the step sizes of π, with and without exploration."""
    mdp = problems.tightrope(2, 0.9)
    hesitant = tr.Policy.deterministic(mdp, 0)
    cases = {
        "1/n": (StepSchedule.harmonic(0.0), None),
        "1/(n+1), hesitant pi_0": (StepSchedule.harmonic(1.0), hesitant),
        "0.5 n^-0.7": (StepSchedule(0.7, 0.5), None),
        "1/(n+1)": (StepSchedule.harmonic(1.0), None),
        "0.5/(n+1)": (StepSchedule.harmonic(1.0, 0.5), None),
    }
    print(f"stuck after {LONG:,} samples, of {MANY} seeds     explore = 0   explore = 0.2")
    for name, (slow, pi0) in cases.items():
        counts = []
        for explore in (0.0, 0.2):
            learner = OnlineKappaPI(0.5, slow=slow, explore=explore)
            runs = learn_seeds(mdp, learner, LONG, seeds=MANY, state=learner.init(mdp, pi0=pi0))
            counts.append(int((runs.loss > 8.0).sum()))
        print(f"  slow = {name:36}{counts[0]:12}{counts[1]:16}")


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    folder = Path(folders[0] if folders else "docs/img")
    warnings.simplefilter("ignore")  # the step sizes above are meant to get stuck
    draw(folder / "online_tightrope.png")
    stuck()
