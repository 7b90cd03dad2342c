"""How near a fused Bellman sweep is to what memory allows, on one thread and two, and SciPy's bare matvec beside it.

    python benchmarks/bandwidth.py

Bytes of a sweep are those it must read and write once: data, indices, indptr, r, first, v, and u and the greedy pairs written.
Gathers from v that miss the cache cost more than counted, so random models show less than the bandwidth they cause.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from tightrope import problems
from tightrope.engine import Sweeper


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


def by_turns(calls, seconds, least=3):
    """The least wall and the least processor seconds of each call; whoever disturbs for a while disturbs all of them."""
    found = [(np.inf, np.inf)] * len(calls)
    begun, n = time.perf_counter(), 0
    while n < least or time.perf_counter() - begun < seconds * len(calls):
        for i, call in enumerate(calls):
            c, w = time.process_time(), time.perf_counter()
            call()
            wall = time.perf_counter() - w
            found[i] = min(found[i][0], wall), min(found[i][1], time.process_time() - c)
        n += 1
    return found


def stream(threads, seconds, size=16_000_000):
    """Bytes a second that `threads` threads read together from an array far larger than the cache."""
    x = np.ones(size)
    parts = [tuple(np.split(part, 4)) for part in np.split(x, threads)]
    read(tuple(x[:32].reshape(4, 8)))
    with ThreadPoolExecutor(threads) as pool:
        wall, cpu = best(lambda: list(pool.map(read, parts)), seconds)
    return x.nbytes / wall, x.nbytes / cpu


def swept(mdp):
    """Bytes a sweep reads and writes at the least."""
    P = mdp.P
    model = P.data.nbytes + P.indices.nbytes + P.indptr.nbytes + mdp.r.nbytes + mdp.first.nbytes
    return model + mdp.n_states * (8 + 8 + mdp.first.itemsize)


def measure(*, quick=False):
    """Bandwidth of reading, and for each model the fused sweep on one and two threads and SciPy's matvec."""
    seconds, size = (0.3, 100_000) if quick else (2.0, 1_000_000)
    side = round(size**0.5)
    models = {
        f"slippery grid {side}x{side}": problems.gridworld(side, side, slip=0.1, gamma=0.999),
        f"queue {size:.0e}": problems.queue(size - 1, gamma=0.999),
        f"garnet {size:.0e}": problems.garnet(size, 4, 5, gamma=0.99),
        "slippery grid 100x100, in cache": problems.gridworld(100, 100, slip=0.1, gamma=0.999),
        "queue 1e4, in cache": problems.queue(9_999, gamma=0.999),
        "inventory 2e3": problems.inventory(1999, [0.02] * 50, max_order=39, gamma=0.999),
    }
    reading = {n: stream(n, seconds) for n in (1, 2)}
    rows = []
    for name, mdp in models.items():
        v = np.random.default_rng(0).random(mdp.n_states)
        u, rows_out = np.empty_like(v), np.empty(mdp.n_states, dtype=mdp.first.dtype)
        sweepers = {n: Sweeper(mdp, n) for n in (1, 2)}
        times = {n: best(lambda s=s: s.backup_into(v, u, rows_out), seconds) for n, s in sweepers.items()}  # noqa: B023
        matvec = best(lambda: mdp.P @ v, seconds)  # noqa: B023
        rows.append({"model": name, "bytes": swept(mdp), "sweep": times[1], "sweep2": times[2], "matvec": matvec})
    return {"read": {str(n): rate for n, rate in reading.items()}, "sweeps": rows}


if __name__ == "__main__":
    found = measure()
    for n, (rate, _) in found["read"].items():
        print(f"reading on {n} thread(s): {rate / 1e9:.1f} GB/s")
    for row in found["sweeps"]:
        parts = [row["bytes"] / row[key][0] / found["read"][n][0] for key, n in (("sweep", "1"), ("sweep2", "2"))]
        print(
            f"{row['model']:25s} sweep {row['sweep'][0] * 1e3:8.2f} ms ({parts[0]:.2f} of reading), two threads "
            f"{row['sweep2'][0] * 1e3:8.2f} ms ({parts[1]:.2f}), SciPy matvec {row['matvec'][0] * 1e3:8.2f} ms"
        )
