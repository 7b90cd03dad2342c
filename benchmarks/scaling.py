"""How cost grows with S, A, 1/(1-γ), κ and h; one thread against two; κ-PI(.9) against the default engine; ten million states.

python benchmarks/scaling.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import numpy as np
from bandwidth import best, by_turns

import tightrope as tr
from tightrope import kernels, problems
from tightrope.kernels import team


def solver(mdp, algorithm=None, *, threads=1):
    """A solve of a model without cached properties."""
    return lambda: tr.solve(mdp.reshaped(mdp.r, mdp.gamma), algorithm, threads=threads)


#: A slippery grid of SIDE x SIDE, built, solved, and what that took.
LARGEST = """
import json, resource, time
import tightrope as tr
tr.solve(tr.problems.gridworld(150, 150))
begun = time.perf_counter()
mdp = tr.problems.gridworld(SIDE, SIDE, slip=0.1, gamma=0.99)
built = time.perf_counter()
assert tr.solve(mdp, threads=2).converged
solved = time.perf_counter()
peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
about = {"states": mdp.n_states, "transitions": mdp.n_transitions, "gamma": mdp.gamma, "arrays": mdp.nbytes}
print(json.dumps(about | {"build": built - begun, "solve": solved - built, "peak": peak}))
"""


def largest(*, quick):
    """Seconds and peak memory of a process that solves a grid of ten million states."""
    program = LARGEST.replace("SIDE", "1000" if quick else "3163")
    return json.loads(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


def apart(budget):
    """How much more two threads do than one in the same time, where each has a model of its own that fits the nearest cache."""
    parts = []
    for seed in range(2):
        mdp = problems.garnet(1_000, 1, 3, gamma=0.99, seed=seed)
        indptr, indices, data, r, _, gamma = mdp.arrays
        parts.append((indptr, indices, data, r, gamma, np.zeros(1_000), np.empty(1_000), None, 1_000, -1.0))
    alone, both = partial(kernels.policy_sweeps, *parts[0]), partial(team.each, kernels.policy_sweeps, (), parts, 2)
    (one, _), (two, _) = by_turns([alone, both], budget)
    return 2.0 * one / two


def measure(*, quick=False):
    """Every table as {name: [[x, wall, cpu], ...]}."""
    kernels.tiers.compile_loops()
    budget = 0.1 if quick else 0.5
    top = 5 if quick else 6

    def row(x, mdp, algorithm=None):
        return [x, *best(solver(mdp, algorithm), budget, least=2)]

    sizes = [10**k for k in range(2, top + 1)]
    sides = [round(s**0.5) for s in sizes]
    discounts = (0.9, 0.99, 0.999, 0.9999)
    grid = problems.gridworld(100, 100, slip=0.1, gamma=0.99)
    growth = {
        "S: garnet (4 actions, γ=.99)": [row(s, problems.garnet(s, 4, 5, gamma=0.99)) for s in sizes],
        "S: slippery grid (γ=.999)": [row(s * s, problems.gridworld(s, s, slip=0.1, gamma=0.999)) for s in sides],
        "S: queue (γ=.999)": [row(s, problems.queue(s - 1, gamma=0.999)) for s in sizes],
        "A: garnet (1e4 states, γ=.99)": [row(a, problems.garnet(10_000, a, 5, gamma=0.99)) for a in (2, 4, 8, 16, 32)],
        "1/(1-γ): garnet 1e4": [row(1 / (1 - g), problems.garnet(10_000, 4, 5, gamma=g)) for g in discounts],
        "1/(1-γ): slippery grid 1e4": [row(1 / (1 - g), problems.gridworld(100, 100, slip=0.1, gamma=g)) for g in discounts],
        "1/(1-γ): queue 1e4": [row(1 / (1 - g), problems.queue(9_999, gamma=g)) for g in discounts],
        "κ: κ-PI on the grid 1e4, γ=.99": [row(k, grid, tr.kappa_pi(k)) for k in (0.0, 0.5, 0.9, 0.99, 1.0)],
        "h: h-PI on the grid 1e4, γ=.99": [row(h, grid, tr.h_pi(h)) for h in (1, 2, 4, 8, 16)],
    }
    sides = (100, 200) if quick else (100, 316)
    rivals = {f"slippery grid {s}x{s}, γ=.999": problems.gridworld(s, s, slip=0.1, gamma=0.999) for s in sides}
    rivals |= {f"queue {s:.0e}, γ=.999": problems.queue(s - 1, gamma=0.999) for s in (1_000, 10_000)}
    kappa = {name: by_turns([solver(m), solver(m, tr.kappa_pi(0.9))], budget) for name, m in rivals.items()}
    size = 200_000 if quick else 1_000_000
    side = round(size**0.5)
    large = {
        f"garnet {size:.0e}, γ=.99": problems.garnet(size, 4, 5, gamma=0.99),
        f"slippery grid {side}x{side}, γ=.999": problems.gridworld(side, side, slip=0.1, gamma=0.999),
        f"queue {size:.0e}, γ=.999": problems.queue(size - 1, gamma=0.999),
    }
    repeats = 2 if quick else 10
    threads = {name: by_turns([solver(m, threads=n) for n in (1, 2)], budget, repeats) for name, m in large.items()}
    return {"growth": growth, "kappa": kappa, "threads": threads, "apart": apart(budget), "largest": largest(quick=quick)}


if __name__ == "__main__":
    found = measure()
    for name, rows in found["growth"].items():
        print(name, "  ".join(f"{x:g}: {wall * 1e3:.2f} ms" for x, wall, _ in rows))
        slope = np.polyfit(np.log([max(x, 1e-9) for x, _, _ in rows]), np.log([w for _, w, _ in rows]), 1)[0]
        print(f"   exponent {slope:.2f}")
    for name, (default, kappa) in found["kappa"].items():
        print(f"{name:30s} default {default[0] * 1e3:.1f} ms, kappa_pi(.9) {kappa[0] * 1e3:.1f} ms")
    for name, (one, two) in found["threads"].items():
        print(f"{name:30s} one thread {one[0]:.3f} s, two {two[0]:.3f} s: {one[0] / two[0]:.2f}x")
    print(f"two threads apart from each other: {found['apart']:.2f}x")
    print(found["largest"])
