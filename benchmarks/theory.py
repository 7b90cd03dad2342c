"""How long concentrability coefficients take, in what memory, and how both grow with S: python benchmarks/theory.py [--full]

Each case runs in a process of its own, so that its peak memory is its own and compiled code is loaded (not compiled) first.
"""

import json
import os
import resource
import subprocess
import sys
import time

from tightrope import theory
from tightrope.model import problems


def every_coefficient(mdp):
    """All coefficients at three kappas, from scratch."""
    c = theory.concentrability(mdp, rtol=1e-3)
    intervals = [c.C1, c.C2, c.C2_k(10), c.C_star_1, c.C_star]
    for kappa in (0.0, 0.5, 0.9):
        intervals += [c.C_star_kappa(kappa), c.C_star_1_kappa(kappa), c.C_kappa_api(kappa)]
        intervals += [c.C_kappa_api_k1(kappa), c.C_kappa_api_k2(kappa, 10)]
    return c, intervals


def starred_coefficients(mdp):
    """Those of one optimal policy, which need no maximum over policies."""
    c = theory.concentrability(mdp, rtol=1e-3)
    c.pi_star  # noqa: B018  (solving the model is not what is timed)
    begin = time.perf_counter()
    intervals = [c.C_star_1, c.C_star, *(c.C_star_kappa(k) for k in (0.5, 0.9)), *(c.C_star_1_kappa(k) for k in (0.5, 0.9))]
    return c, intervals, time.perf_counter() - begin


def garnet(S, gamma):
    return problems.garnet(S, 4, 5, gamma=gamma, seed=1)


CASES = {
    "all, garnet S=500": (every_coefficient, lambda: garnet(500, 0.99)),
    "all, garnet S=1,000": (every_coefficient, lambda: garnet(1_000, 0.99)),
    "all, garnet S=2,000": (every_coefficient, lambda: garnet(2_000, 0.99)),
    "all, garnet S=4,000": (every_coefficient, lambda: garnet(4_000, 0.99)),
    "all, garnet S=2,000, gamma=0.9": (every_coefficient, lambda: garnet(2_000, 0.9)),
    "all, garnet S=2,000, gamma=0.999": (every_coefficient, lambda: garnet(2_000, 0.999)),
    "all, gridworld 45x45": (every_coefficient, lambda: problems.gridworld(45, 45, slip=0.1, gamma=0.99)),
    "starred, garnet S=100,000": (starred_coefficients, lambda: garnet(100_000, 0.99)),
    "starred, garnet S=1,000,000": (starred_coefficients, lambda: garnet(1_000_000, 0.99)),
    "starred, gridworld 1000x1000": (starred_coefficients, lambda: problems.gridworld(1000, 1000, slip=0.1, gamma=0.99)),
}
FULL = {
    "all, garnet S=8,000": (every_coefficient, lambda: garnet(8_000, 0.99)),
    "all, garnet S=16,000": (every_coefficient, lambda: garnet(16_000, 0.99)),
    "all, sparse deterministic S=2,000": (
        every_coefficient,
        lambda: problems.random_sparse_deterministic(2_000, 4, density=0.001, gamma=0.99, seed=1),
    ),
}


def run(name):
    compute, build = (CASES | FULL)[name]
    compute(garnet(50, 0.9))  # load the compiled kernels
    mdp = build()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    c, intervals, *own = compute(mdp)
    seconds = own[0] if own else time.perf_counter() - begin
    begun = c._begun  # noqa: SLF001  (how many terms it took is worth a column)
    terms = begun["c" if "c" in begun and begun["c"].growing.terms else "c_star"].growing.terms.n
    answer = {
        "case": name,
        "seconds": round(seconds, 2),
        "peak_MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "before_MiB": before // 1024,
        "terms": terms,
        "widest": max(i.relative_width for i in intervals),
        "example": str(intervals[0]),
    }
    print(json.dumps(answer))


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--case":
        run(sys.argv[2])
        return
    names = [*CASES, *(FULL if "--full" in sys.argv else ())]
    print(f"{os.cpu_count()} cores; relative width asked for: 1e-3")
    print(f"{'case':36} {'seconds':>8} {'peak MiB':>9} {'terms':>6} {'widest':>9}")
    for name in names:
        answer = subprocess.run([sys.executable, __file__, "--case", name], capture_output=True, text=True, check=True)
        got = json.loads(answer.stdout)
        print(f"{name:36} {got['seconds']:8.2f} {got['peak_MiB']:9} {got['terms']:6} {got['widest']:9.1e}")


if __name__ == "__main__":
    main()
