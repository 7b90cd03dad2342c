"""The worst an oracle can do, and what the theorems allow: κ-API and κ-PSDP with κ = 0 and κ = 0.9.

    python examples/approximate_bound.py [FOLDER] [--quick]

Every iteration loses exactly δ under ν, on purpose and where it hurts. Draws approximate_bound.png (in docs/img, or in FOLDER)
and prints the last loss of each run beside the bound of Theorems 5 and 6. --quick makes 5 iterations instead of 25.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import tightrope as tr
from tightrope import theory
from tightrope.approximate import KappaAPI, KappaPSDP, Run, WorstCase, run
from tightrope.views import style
from tightrope.views.plot_approximate import approximation

DELTA, ITERATIONS = 0.1, 5 if "--quick" in sys.argv else 25


def bounds(found: Run, coefficients: theory.Concentrability) -> list[float]:
    """What is guaranteed after 1, 2, ... iterations."""
    guarantee = theory.kappa_psdp_bound if found.switching else theory.kappa_api_bound
    return [guarantee(coefficients, found.kappa, DELTA, k, pi0=found.pi0).value for k in range(1, found.iterations + 1)]


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    folder = Path(folders[0] if folders else "docs/img")
    mdp = tr.problems.garnet(60, 3, 8, gamma=0.9, seed=3)
    mu = np.full(60, 1 / 60)
    coefficients = theory.concentrability(mdp, mu, mu)
    runs, limits = {}, {}
    for kind in (KappaAPI, KappaPSDP):
        for kappa in (0.0, 0.9):
            name = f"{kind.__name__.replace('Kappa', 'κ-')}, κ = {kappa:g}"
            runs[name] = run(mdp, kind(kappa, WorstCase(DELTA), nu=mu, iterations=ITERATIONS), mu=mu)
            limits[name] = bounds(runs[name], coefficients)
            print(f"{name:18} loss {runs[name].loss:7.4f}   bound {limits[name][-1]:8.4f}   delta {runs[name].delta:.4f}")
    figure = approximation(runs, bounds=limits)
    (folder / "approximate_bound.png").write_bytes(style.png(figure))
