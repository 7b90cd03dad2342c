"""Updates a second of Algorithm 1: compiled, step by step from Python, and the plain Python transcription of the tests.

    python benchmarks/online.py

Each number is the best of several runs in this one process, on one core. The transcription draws states, actions and next
states as the compiled loop does (a uniform state, π with 10 % uniform, the inverse distribution function), so that both do
the whole of a step; "numpy" is the same algorithm with rows of NumPy arrays instead of lists. Allocation is the growth of
the process's peak memory over a hundred million updates.
"""

from __future__ import annotations

import bisect
import random
import resource
import sys
import time
from itertools import accumulate, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from reference_online import Algorithm1, power
from tightrope.model import problems
from tightrope.model.sampler import ModelSource
from tightrope.online import OnlineKappaPI, QLearning, learn
from tightrope.online.advance import Job, advancing
from tightrope.online.learning import _begin, _job

KAPPA, EXPLORE = 0.9, 0.1


def seconds(call, repeats):
    best = float("inf")
    for _ in range(repeats):
        begun = time.process_time()
        call()
        best = min(best, time.process_time() - begun)
    return best


def compiled(mdp, learner, steps=2_000_000, repeats=20):
    """Updates a second of the loop itself, without measuring."""
    import threading

    import numpy as np

    job: Job = _job(mdp, learner, 10**12, None, None, 1.0, None)
    run = _begin(job, np.random.SeedSequence(0))
    advance, stop = advancing(job, run), threading.Event()
    advance(1, stop)

    def some():
        goal = run.steps + steps
        while run.steps < goal:
            advance(goal, stop)

    return steps / seconds(some, repeats)


def single_steps(mdp, steps=20_000):
    learner = OnlineKappaPI(KAPPA, explore=EXPLORE)
    state = learner.init(mdp)
    learner.step(state, 0, 0, 0.0, 0)

    def some():
        for _ in range(steps):
            learner.step(state, 1, 0, 0.5, 2)

    return steps / seconds(some, 3)


def plain(mdp, steps=10_000, repeats=20):
    """Updates a second of the transcription, sampling included; in short runs, or noise would slow it more."""
    counts = mdp.pairs.counts.tolist()
    first, indptr = mdp.first.tolist(), mdp.P.indptr.tolist()
    indices, data, r = mdp.P.indices.tolist(), mdp.P.data.tolist(), mdp.r.tolist()
    ends = [list(accumulate(data[b:e])) for b, e in pairwise(indptr)]
    learner = Algorithm1(counts, mdp.gamma, KAPPA, power(0.6), power(1.0, 1.0, 1.0))
    rng = random.Random(0)  # noqa: S311  (not a secret)

    def some():
        for _ in range(steps):
            s = int(rng.random() * len(counts))
            if rng.random() < EXPLORE:
                a = int(rng.random() * counts[s])
            else:
                u, a = rng.random(), 0
                for a, p in enumerate(learner.pi[s]):  # noqa: B007  (the last one if rounding leaves some over)
                    u -= p
                    if u < 0:
                        break
            row = first[s] + a
            k = min(bisect.bisect_right(ends[row], rng.random()), len(ends[row]) - 1)
            learner.step(s, a, r[row], indices[indptr[row] + k])

    return steps / seconds(some, repeats)


def with_numpy(mdp, steps=5_000):
    """Updates a second of the same algorithm written with NumPy rows, as a notebook would have it."""
    import numpy as np

    S, A = mdp.n_states, mdp.pairs.n_actions
    q, ahead, pi = np.zeros((S, A)), np.zeros((S, A)), np.full((S, A), 1.0 / A)
    pair_visits, state_visits = np.zeros((S, A), dtype=int), np.zeros(S, dtype=int)
    rng = np.random.default_rng(0)
    indptr, indices, data, r, gamma = mdp.P.indptr, mdp.P.indices, mdp.P.data, mdp.r, mdp.gamma

    def some():
        for _ in range(steps):
            s = rng.integers(S)
            a = rng.integers(A) if rng.random() < EXPLORE else rng.choice(A, p=pi[s] / pi[s].sum())
            row = s * A + a
            part = slice(indptr[row], indptr[row + 1])
            following = rng.choice(indices[part], p=data[part])
            v = pi[following] @ q[following]
            pair_visits[s, a] += 1
            state_visits[s] += 1
            mu = pair_visits[s, a] ** -0.6
            q[s, a] += mu * (r[row] + gamma * v - q[s, a])
            ahead[s, a] += mu * (r[row] + gamma * (1 - KAPPA) * v + KAPPA * gamma * ahead[following].max() - ahead[s, a])
            b = ahead[s].argmax()
            if q[s, b] < pi[s] @ q[s] - 1e-12:
                b = q[s].argmax()
            pi[s] += (np.arange(A) == b) / (1 + state_visits[s]) - pi[s] / (1 + state_visits[s])

    return steps / seconds(some, 3)


def draws(mdp, n=2_000_000):
    import numpy as np

    source, rng = ModelSource(mdp), np.random.default_rng(0)
    rows = rng.integers(0, mdp.n_pairs, n)
    source.sample(rows[:10], rng)
    return n / seconds(lambda: source.sample(rows, rng), 5)


def main():
    models = {
        "Tightrope (4 states)": problems.tightrope(2, 0.9),
        "Garnet, 200 states": problems.garnet(200, 4, 5, gamma=0.95, seed=0),
        "Garnet, 10,000 states": problems.garnet(10_000, 4, 5, gamma=0.95, seed=0),
    }
    names = ("compiled/s", "Q-learning/s", ".step()/s", "plain/s", "ratio", "numpy/s", "ratio", "draws/s")
    print(f"{'model':22}" + "".join(f"{name:>13}" for name in names))
    for name, mdp in models.items():
        fast = compiled(mdp, OnlineKappaPI(KAPPA, explore=EXPLORE))
        baseline = compiled(mdp, QLearning(explore=EXPLORE))
        slow, rows = plain(mdp), with_numpy(mdp) if mdp.n_pairs == mdp.n_states * mdp.pairs.n_actions else float("nan")
        numbers = (fast, baseline, single_steps(mdp), slow, fast / slow, rows, fast / rows, draws(mdp))
        print(f"{name:22}" + "".join(f"{x:13,.0f}" for x in numbers))
    mdp = models["Garnet, 200 states"]
    learn(mdp, OnlineKappaPI(KAPPA), 100_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compiled(mdp, OnlineKappaPI(KAPPA), steps=20_000_000, repeats=5)
    print(f"peak memory grew by {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before} kB over 1e8 updates")


if __name__ == "__main__":
    main()
