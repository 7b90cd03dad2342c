"""Does looking ahead pay on a Gymnasium environment?

    python examples/looking_ahead.py [ENVIRONMENT] [DISCOUNT]

Solves the environment (FrozenLake8x8-v1 and 0.99 unless you say otherwise) with policy iteration, h-PI and κ-PI, and prints how
many iterations each takes and how many rows of P it multiplies (backups). Fewer iterations are certain; less work is not.
"""

from __future__ import annotations

import sys

import gymnasium

import tightrope as tr

if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else "FrozenLake8x8-v1"
    gamma = float(sys.argv[2]) if len(sys.argv) > 2 else 0.99
    env = gymnasium.make(name)
    mdp = tr.MDP.from_gymnasium(env, gamma)
    print(f"{name}: {mdp}")

    algorithms = {"policy iteration": tr.policy_iteration(), "value iteration": tr.value_iteration()}
    algorithms |= {f"h-PI, h = {h}": tr.h_pi(h) for h in (2, 5, 10)}
    algorithms |= {f"κ-PI, κ = {kappa}": tr.kappa_pi(kappa) for kappa in (0.5, 0.9, 0.99, 1.0)}
    for title, algorithm in algorithms.items():
        sol = tr.solve(mdp, algorithm)
        print(f"{title:18} {sol.iterations:4} iterations {sol.backups:9,} backups")

    best = tr.solve(mdp)
    print(f"{'tightrope.solve':18} {best.iterations:4} iterations {best.backups:9,} backups")
    print(tr.evaluate_in(env, best.policy, episodes=200, seed=1, gamma=gamma), f"(v* at the start: {mdp.start @ best.value:.3f})")
