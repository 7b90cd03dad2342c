"""See it: a map of values and policy, convergence, where soft updates hurt, and what the bounds promise.

    python examples/pictures.py [FOLDER]

Every function of tightrope.views.plot takes results and returns a Matplotlib figure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tightrope as tr
from tightrope.views import plot

MAP = """
    S...#....#....
    ....#....#....
    .XX.#.XX.#.XX.
    .......X......
    ....#....#...G
    ....#....#....
"""

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    grid = tr.problems.Grid.from_text(MAP)
    mdp = grid.mdp(slip=0.2, gamma=0.95)

    figures = {"map": plot.gridworld(grid, tr.solve(mdp))}

    runs = {f"κ = {kappa:g}": tr.solve(mdp, tr.kappa_pi(kappa)) for kappa in (0.0, 0.5, 0.9)}
    figures["convergence"] = plot.convergence(runs)

    coefficients = tr.theory.concentrability(mdp)
    curves = [
        tr.theory.best_kappa(coefficients, delta=1e-3, bound=bound)
        for bound in (tr.theory.kappa_api_bound, tr.theory.kappa_psdp_bound)
    ]
    figures["bounds"] = plot.bounds(curves)

    learner = tr.OnlineKappaPI(0.9, slow=tr.StepSchedule(0.85), explore=0.2)
    learned = tr.online.learn_seeds(mdp, learner, steps=100_000, seeds=4)
    figures["learning"] = plot.learning({"the map, learned from samples": {"κ = 0.9": learned}})

    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=110)
        print(f"{name}.png")
