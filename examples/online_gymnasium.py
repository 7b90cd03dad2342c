"""Learn Gymnasium's toy environments from samples: Algorithm 1 against Q-learning at equal samples, and five Garnets.

    python examples/online_gymnasium.py [FOLDER] [--quick]

Every learner gets the same number of samples of the same source, 8 seeds each, all step sizes n^-0.6 (q) and n^-0.85 (π),
20 % uniform actions. Prints the loss max(v* - v^π) as a share of max|v*| and from how many samples on the worst seed stays
within 1 %; draws online_gymnasium.png (in docs/img, or in FOLDER). Takes two minutes on two cores; --quick learns from a
hundredth of the samples, which shows how it works and nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

import tightrope as tr
from tightrope.model import problems
from tightrope.online import OnlineKappaPI, QLearning, StepSchedule, learn_seeds
from tightrope.views.plot_online import learning

if TYPE_CHECKING:
    from tightrope.online import Runs

QUICK = "--quick" in sys.argv
SEEDS, GOAL = 2 if QUICK else 8, 0.01
FAST, SLOW, EXPLORE = StepSchedule(0.6), StepSchedule(0.85), 0.2
LEARNERS = {f"κ = {kappa:g}": OnlineKappaPI(kappa, FAST, SLOW, EXPLORE) for kappa in (0.0, 0.5, 0.9, 1.0)}
LEARNERS["Q-learning"] = QLearning(FAST, EXPLORE)
ENVIRONMENTS = {"FrozenLake8x8-v1": 10_000_000, "Taxi-v4": 2_000_000, "CliffWalking-v1": 1_000_000}


def report(title: str, name: str, runs: Runs) -> None:
    """One line: the loss at the end, and since when the worst seed is within the goal."""
    share = runs.column("loss") / runs[0].scale
    above = np.flatnonzero(share.max(axis=0) > GOAL)
    since = runs.steps[above[-1] + 1] if len(above) and above[-1] + 1 < len(runs.steps) else None
    end = share[:, -1]
    said = "not yet" if since is None else f"{since:,}"
    print(f"{title:18}{name:12}{runs[0].steps:12,}{np.median(end):12.2e}{end.max():12.2e}{said:>14}")


def main(folder: Path) -> None:
    """Learn everything, print the table, draw the picture."""
    share = 100 if QUICK else 1
    print(f"{'':18}{'learner':12}{'samples':>12}{'median':>12}{'worst':>12}{'within 1 % at':>14}")
    pictures = {}
    for title, steps in ENVIRONMENTS.items():
        mdp = tr.MDP.from_gymnasium(gymnasium.make(title), 0.99)
        pictures[title] = {name: learn_seeds(mdp, learner, steps // share, seeds=SEEDS) for name, learner in LEARNERS.items()}
        for name, runs in pictures[title].items():
            report(title, name, runs)
    for seed in range(5):
        mdp = problems.garnet(200, 4, 5, gamma=0.95, seed=seed)
        for name in ("κ = 0.9", "Q-learning"):
            report(f"Garnet {seed}", name, learn_seeds(mdp, LEARNERS[name], 3_000_000 // share, seeds=SEEDS))
    learning(pictures, goal=GOAL).savefig(folder / "online_gymnasium.png", dpi=110)


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    main(Path(folders[0] if folders else "docs/img"))
