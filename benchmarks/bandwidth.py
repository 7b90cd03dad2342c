"""How near a fused Bellman sweep is to what memory allows, on one thread and two, and SciPy's bare matvec beside it.

    python benchmarks/bandwidth.py

Bytes of a sweep are those it must read and write once: data, indices, indptr, r, first, v, and u and the greedy pairs written.
Gathers from v that miss the cache cost more than counted, so random models show less than the bandwidth they cause.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from numba import njit

from tightrope import problems
from tightrope.engine import Sweeper
from tightrope.engine.alike import alike
from tightrope.engine.sweep import rows_of
from tightrope.kernels import team


@njit(nogil=True, fastmath=True)
def read(parts):
    """The sum of four arrays of one length side by side: nothing but reading, from as many places as a sweep reads from."""
    one, two, three, four = parts
    total, more, again, rest = 0.0, 0.0, 0.0, 0.0
    for i in range(len(one)):
        total += one[i]
        more += two[i]
        again += three[i]
        rest += four[i]
    return total + more + again + rest


def best(call, seconds, least=3):
    """The least wall seconds of repeats, and the least processor seconds."""
    return by_turns([call], seconds, least)[0]


def by_turns(calls, seconds, least=3, in_a_row=1):
    """The least wall and the least processor seconds of each call; whoever disturbs for a while disturbs all of them.

    What is to be found in the cache is, if calls are made several times in a row.
    """
    found = [(np.inf, np.inf)] * len(calls)
    begun, n = time.perf_counter(), 0
    while n < least or time.perf_counter() - begun < seconds * len(calls):
        for i, call in [turn for turn in enumerate(calls) for _ in range(in_a_row)]:
            c, w = time.process_time(), time.perf_counter()
            call()
            wall = time.perf_counter() - w
            found[i] = min(found[i][0], wall), min(found[i][1], time.process_time() - c)
        n += 1
    return found


def reader(x, threads):
    """Reads all of x, on `threads` threads together."""
    parts = [(tuple(np.split(part, 4)),) for part in np.split(x, threads)]
    return partial(team.each, read, (), parts, threads)


def swept(mdp):
    """Bytes a sweep reads and writes at the least."""
    parts = rows_of(mdp)  # no indptr where all pairs have as many successors
    if alike(mdp) is not None:
        parts = *alike(mdp), *mdp.arrays[3:]
    return sum(getattr(part, "nbytes", 0) for part in parts) + mdp.n_states * (8 + 8 + mdp.first.itemsize)


def measure(*, quick=False):
    """Bandwidth of reading, and for each model the fused sweep on one and two threads and SciPy's matvec."""
    seconds, size = (0.3, 100_000) if quick else (2.0, 1_000_000)
    side = round(size**0.5)
    models = {
        f"slippery grid {side}x{side}": problems.gridworld(side, side, slip=0.1, gamma=0.999),
        f"queue {size:.0e}": problems.queue(size - 1, gamma=0.999),
        f"garnet {size:.0e}": problems.garnet(size, 4, 5, gamma=0.99),
        f"garnet {2 * size:.0e}, one successor": problems.garnet(2 * size, 3, 1, gamma=0.99),
        f"garnet {size / 5:.0e}, 30 successors": problems.garnet(size // 5, 2, 30, gamma=0.99),
        "garnet 5e4, two successors": problems.garnet(50_000, 2, 2, gamma=0.99),
        "garnet 1e4, in cache": problems.garnet(10_000, 4, 5, gamma=0.99),
        "deterministic grid 100x100, in cache": problems.gridworld(100, 100, slip=0.0, gamma=0.999),
        "slippery grid 100x100, in cache": problems.gridworld(100, 100, slip=0.1, gamma=0.999),
        "queue 1e4, in cache": problems.queue(9_999, gamma=0.999),
        "inventory 2e3": problems.inventory(1999, [0.02] * 50, max_order=39, gamma=0.999),
    }
    x = np.ones(64_000_000)  # of 128 MB, read over and over, a last cache of 32 MB was seen to keep a sixth
    read(tuple(x[:32].reshape(4, 8)))
    readers = {n: reader(x, n) for n in (1, 2)}
    rows = []
    for name, mdp in models.items():
        v = np.random.default_rng(0).random(mdp.n_states)
        u, rows_out = np.empty_like(v), np.empty(mdp.n_states, dtype=mdp.first.dtype)
        one, two = (partial(Sweeper(mdp, n).backup_into, v, u, rows_out) for n in (1, 2))
        names = ("read", "sweep", "matvec", "read2", "sweep2")
        times = by_turns([readers[1], one, partial(mdp.P.dot, v), readers[2], two], seconds, in_a_row=20)
        rows.append({"model": name, "bytes": swept(mdp), **dict(zip(names, times, strict=True))})
    return {"read": x.nbytes, "sweeps": rows}


if __name__ == "__main__":
    found = measure()
    for row in found["sweeps"]:
        rates = [found["read"] / row[key][0] for key in ("read", "read2")]
        parts = [row["bytes"] / row[key][0] / rate for key, rate in zip(("sweep", "sweep2"), rates, strict=True)]
        print(
            f"reading {rates[0] / 1e9:.1f} GB/s, two threads {rates[1] / 1e9:.1f} GB/s; "
            f"{row['model']:25s} sweep {row['sweep'][0] * 1e3:8.2f} ms ({parts[0]:.2f} of reading), two threads "
            f"{row['sweep2'][0] * 1e3:8.2f} ms ({parts[1]:.2f}), SciPy matvec {row['matvec'][0] * 1e3:8.2f} ms"
        )
