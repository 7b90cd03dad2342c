"""Where the time of a solve goes: compiled loops, Python around them, and proof; for what is slower than we want it.

    python benchmarks/anatomy.py

Every compiled loop that Python calls is timed in its place; what is left of the solve is Python. What proof costs: our peers are
given the loosest tolerance that happens to reach the answer, so once we take it too.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
from bandwidth import best
from numba.core.dispatcher import Dispatcher
from peers.models import CASES

import tightrope as tr
from tightrope import kernels, problems

#: The models on which the best peer is less than twice as slow as we are, or was.
CLOSE = (
    "tightrope .9", "forest 10 .9", "CliffWalking .99",
    *(f"slippery grid {size}" for size in ("100 .99", "1e3 .999", "1e4 .999", "1e4 .9999")),
)  # fmt: skip
#: Seconds that are long enough for the clock: what it shows of a few microseconds may be nothing.
LONG_ENOUGH = 1e-3
#: A limit that is never reached; a solve with a limit is set up anew.
NEVER = 1e9
#: What rounds count: the first of the numbers of their own that they tell.
COUNTS = {
    "gauss_seidel_round": ("Bellman sweeps", "chain sweeps"),
    "sweep_round": ("improvements",),
    "factor_round": ("eliminations",),
}
#: The place of what a round has told among its arguments, and of the first number of its own there, after the rows computed.
ACCOUNT, OWN = -3, kernels.rounds.SEEN + 1


def solve_time(mdp, algorithm, budget, **options):
    """The least processor seconds of a solve with one thread; as many at once as the clock needs to be trusted."""
    once = [tr.solve(mdp, algorithm, threads=1, **options).seconds for _ in range(3)][-1]
    times = range(max(1, int(LONG_ENOUGH / once)))
    return best(lambda: [tr.solve(mdp, algorithm, threads=1, **options) for _ in times], budget, least=5)[1] / len(times)


@contextmanager
def watched():
    """While this lasts, [name, seconds, counts] of every call of a compiled loop is kept in the list it gives."""
    calls = []

    def timed(name, loop):
        words = COUNTS.get(name, ())

        def run(*arguments):
            begun = time.perf_counter()
            found = loop(*arguments)
            taken = time.perf_counter() - begun
            calls.append([name, taken, arguments[ACCOUNT][OWN : OWN + len(words)].tolist() if words else []])
            return found

        run.get_overload = lambda types: timed(name, loop.get_overload(types))  # what an opening asks for
        return run

    with ExitStack() as patches:
        for module in kernels.tiers.MODULES:
            home = getattr(kernels, module)
            own = {name: x for name, x in vars(home).items() if isinstance(x, Dispatcher) and x.__module__ == home.__name__}
            for name, loop in own.items():
                # Python finds those of `serial` in the package itself.
                patches.enter_context(patch.object(kernels if module == "serial" else home, name, timed(name, loop)))
        yield calls


def first_time(mdp, algorithm):
    """The least processor seconds of the first solve of a model, twenty of them at once."""
    seconds = []
    for _ in range(5):
        made = [tr.MDP(mdp.P, mdp.r, mdp.gamma, mdp.first) for _ in range(20)]
        begun = time.process_time()
        for model in made:
            tr.solve(model, algorithm, threads=1)
        seconds.append((time.process_time() - begun) / len(made))
    return min(seconds)


def anatomy(mdp, algorithm, budget):
    """Seconds of a solve and of the compiled loops in it, with what they did, and of a first solve."""
    whole = solve_time(mdp, algorithm, budget)
    mdp.facts.pop("room", None)  # with the loop that solves begin with, not watched yet
    with watched() as calls:
        tr.solve(mdp, algorithm, threads=1)
        begun, seconds = time.perf_counter(), np.inf
        while time.perf_counter() - begun < budget or np.isinf(seconds).any():
            calls.clear()
            tr.solve(mdp, algorithm, threads=1)
            seconds = np.minimum(seconds, [call[1] for call in calls])
    mdp.facts.pop("room", None)
    loops = {}
    for (name, _, counts), least in zip(calls, seconds.tolist(), strict=True):
        words = COUNTS.get(name, ())
        there = loops.setdefault(name, {"calls": 0, "seconds": 0.0, "did": dict.fromkeys(words, 0)})
        there["calls"] += 1
        there["seconds"] += least
        for word, n in zip(words, counts, strict=True):
            there["did"][word] += int(n)
    anew = solve_time(mdp, algorithm, budget, max_seconds=NEVER)
    return {"seconds": whole, "loops": loops, "anew": anew, "first": first_time(mdp, algorithm)}


def without_proof(mdp, budget):
    """Seconds of the default solve, and at the loosest tolerance of a half-decade ladder that reaches a true error of 1e-6."""
    truth = tr.solve(mdp, tol=1e-12, threads=1).value
    goal = 1e-6 * np.abs(truth).max()
    ladder = (10.0 ** np.arange(2.0, -6.5, -0.5)).tolist()
    tol = next(tol for tol in ladder if np.abs(tr.solve(mdp, tol=tol, threads=1).value - truth).max() <= goal)
    return {"proved": solve_time(mdp, None, budget), "tolerance": tol, "right": solve_time(mdp, None, budget, tol=tol)}


def measure(*, quick=False):
    """Anatomies of small models, and of κ-PI on queues beside the default; what proof costs."""
    kernels.tiers.compile_loops()
    budget = 0.1 if quick else 0.5
    models = {case.name: case.build() for case in CASES if case.name in CLOSE}
    queues = {f"queue {s:.0e}, γ=.999": problems.queue(s - 1, gamma=0.999) for s in (1_000, 10_000)}
    parts = {name: anatomy(mdp, None, budget) for name, mdp in models.items()}
    for name, mdp in queues.items():
        parts[name] = anatomy(mdp, None, budget)
        parts[f"{name}, κ-PI(.9)"] = anatomy(mdp, tr.kappa_pi(0.9), budget)
    anew = {}
    for case in CASES:
        mdp = case.build()
        tr.solve(mdp, threads=1)
        room = mdp.facts.get("room")
        if room is not None and room.opening is not None:
            anew[case.name] = solve_time(mdp, None, budget, max_seconds=NEVER)
    return {"parts": parts, "anew": anew, "proof": {name: without_proof(mdp, budget) for name, mdp in models.items()}}


def described(loops):
    """What the loops did, in words."""
    words = []
    for name, there in loops.items():
        did = ", ".join(f"{n} {word}" for word, n in there["did"].items())
        words.append(f"{there['calls']} x `{name}`" + (f" ({did})" if did else ""))
    return "; ".join(words)


def inside(loops):
    """Seconds in compiled loops."""
    return sum(there["seconds"] for there in loops.values())


if __name__ == "__main__":
    found = measure()
    for name, part in found["parts"].items():
        loops = part["loops"]
        times = f"{part['seconds'] * 1e6:7.1f} us, loops {inside(loops) * 1e6:7.1f}, at first {part['first'] * 1e6:7.1f}"
        times += f", set up anew {part['anew'] * 1e6:7.1f}"
        print(f"{name:30s} {times}: {described(loops)}")
    for name, proof in found["proof"].items():
        right = f"right with tol {proof['tolerance']:.0e} {proof['right'] * 1e6:7.1f} us"
        print(f"{name:30s} proved {proof['proved'] * 1e6:7.1f} us, {right}")
