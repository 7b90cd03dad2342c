"""Which κ for an oracle that is not exact? Measure its error, ask the bound, and look at what is really lost.

    python examples/choose_kappa.py

A larger κ looks further ahead: the oracle's problem is harder, its error δ larger, but the bound multiplies that error by less.
An oracle that is short of time and one that is short of samples get opposite advice. In the first case what is really lost agrees
with it, in the second it hardly depends on κ: the bound is an upper bound.
"""

from __future__ import annotations

import numpy as np

import tightrope as tr
from tightrope import theory
from tightrope.approximate import ApproximateVI, KappaAPI, SampledModel, run

KAPPAS, ITERATIONS, SEEDS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 1.0), 10, 3

if __name__ == "__main__":
    mdp = tr.problems.garnet(60, 3, 2, gamma=0.95, seed=2)
    nu = np.full(mdp.n_states, 1.0 / mdp.n_states)
    coefficients = theory.concentrability(mdp, mu=nu, nu=nu)
    for oracle in (ApproximateVI(2), SampledModel(3)):
        deltas, losses = {}, {}
        for kappa in KAPPAS:
            found = [run(mdp, KappaAPI(kappa, oracle, nu, ITERATIONS), mu=nu, seed=seed) for seed in range(SEEDS)]
            deltas[kappa] = float(np.mean([one["delta"][1:].max() for one in found]))
            losses[kappa] = float(np.mean([one.loss for one in found]))
        advice = theory.best_kappa(coefficients, deltas, bound=theory.kappa_api_bound)
        print(f"{oracle}\nkappa    delta    bound     loss")
        for kappa, bound in zip(advice.kappas, advice.values, strict=True):
            print(f"{kappa:5g} {deltas[kappa]:8.4f} {bound:8.4f} {losses[kappa]:8.4f}")
        print(f"{advice}\n")
