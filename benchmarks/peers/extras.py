"""The sections of RESULTS.md about threads, bandwidth, κ-PI, growth, cold start, and why we are not faster."""

from __future__ import annotations

import numpy as np
from anatomy import described, inside

from peers.text import ms, table


def threads_section(threads, apart):
    rows = [(name, ms(one[0]), ms(two[0]), f"{one[0] / two[0]:.2f}x") for name, (one, two) in threads.items()]
    text = f"""Wall milliseconds of the default solve, the least of ten on one thread and ten on two, by turns; a machine with two
free cores is needed for this to mean much. On this one, at about the same time, two threads that sweep a small model of their own
each, in the nearest cache, did {apart:.2f} times what one does: 2 where each has a core to itself, little more than 1 where they
share one."""
    return f"## One thread and two\n\n{text}\n\n" + table(("model", "1 thread", "2 threads", "gain"), rows)


def bandwidth_section(found):
    one = [found["read"] / row["read"][1] for row in found["sweeps"]]
    two = [found["read"] / row["read2"][0] for row in found["sweeps"]]
    rows = []
    for row, alone, together in zip(found["sweeps"], one, two, strict=True):
        size = row["bytes"]
        shares = (size / row["sweep"][1] / alone, size / row["sweep2"][0] / together)
        matvec = row["matvec"][1] / row["sweep"][1]
        rows.append((row["model"], f"{size / 1e6:.0f}", ms(row["sweep"][1]), f"{shares[0]:.2f}", ms(row["sweep2"][0]),
                     f"{shares[1]:.2f}", ms(row["matvec"][1]), f"{matvec:.2f}"))  # fmt: skip
    text = f"""Reading a large array, by turns with the sweeps: {min(one) / 1e9:.1f} to {max(one) / 1e9:.1f} GB/s on one thread,
{min(two) / 1e9:.1f} to {max(two) / 1e9:.1f} GB/s on two. A fused sweep is T v, its greedy pairs and the range of the change in
one pass; its bytes are counted once, so models with random successors (garnet) show less than they cause, and a model that fits
the cache (inventory) more than memory has. One thread in processor time, two in wall time; those "in cache", never swept by two,
show what computing alone takes. The last column is SciPy's bare P @ v over our whole sweep: above 1 we are faster."""
    head = ("model", "MB a sweep", "sweep ms", "of reading", "2 threads ms", "of reading", "SciPy P @ v ms", "P @ v / sweep")
    return f"## Bandwidth\n\n{text}\n\n" + table(head, rows)


def kappa_section(kappa):
    rows = [(name, ms(default[1]), ms(k[1]), f"{k[1] / default[1]:.2f}x") for name, (default, k) in kappa.items()]
    text = "Processor milliseconds; we are after at most 1.5x."
    return f"## κ-PI(.9) against the default engine\n\n{text}\n\n" + table(("model", "default", "κ-PI(.9)", "ratio"), rows)


def anatomy_section(found):
    rows = []
    for name, part in found["parts"].items():
        compiled = min(inside(part["loops"]), part["seconds"])
        times = (part["seconds"], compiled, part["seconds"] - compiled, part["anew"], part["first"])
        rows.append((name, *map(ms, times), described(part["loops"])))
    text = """Processor milliseconds of a solve, of the compiled loops in it, and of Python around them; of a solve that is
set up anew, and does not begin as the last one did; of the first solve of a model that was just made, which finds out what the
model keeps for the next; and what those loops did. Bellman sweeps count the spreading of first values and the look that proves
the answer; κ-PI's `factor_round` solves an inner problem and `value` evaluates its policy."""
    parts = table(("solve", "ms", "loops", "Python", "anew", "first", "loops are"), rows)
    costs = [
        (name, ms(x["proved"]), f"{x['tolerance']:.0e}", ms(x["right"]), f"{x['right'] / x['proved']:.2f}")
        for name, x in found["proof"].items()
    ]
    proof = """What proof costs: the default solve beside one at the loosest tolerance that happens to reach a true error of 1e-6,
as our peers are given."""
    head = ("model", "proved, ms", "tolerance that will do", "right, ms", "share")
    return f"## Why not faster\n\n{text}\n\n{parts}\n\n{proof}\n\n" + table(head, costs)


def largest_section(found):
    return f"""## The largest model

A slippery grid of {found["states"]:,} states and {found["transitions"]:,} transitions, γ={found["gamma"]:g}, default solve
in a process of its own: built in {found["build"]:.0f} s, solved in {found["solve"]:.1f} s on two threads,
{found["peak"] / 2**30:.1f} GiB at the peak, of which the model's arrays are {found["arrays"] / 2**30:.1f}."""


def growth_section(growth):
    rows = []
    for name, points in growth.items():
        cells = ", ".join(f"{x:g}: {ms(cpu)}" for x, _, cpu in points)
        x, cpu = np.array([p[0] for p in points]), np.array([p[2] for p in points])
        half = x >= np.median(x)
        exponent = f"{np.polyfit(np.log(x[half]), np.log(cpu[half]), 1)[0]:.2f}" if x.min() > 0 and x.max() > 1 else ""
        rows.append((name, cells, exponent))
    text = "Processor milliseconds of a solve at each value; the exponent is the slope of the upper half in double logarithms."
    return f"## How cost grows\n\n{text}\n\n" + table(("with", "value: ms", "exponent"), rows)


def cold_section(cold):
    rows = [(name, f"{wall:.2f}", f"{cpu:.2f}") for name, (wall, cpu) in cold.items()]
    text = """Seconds of whole processes. A small model is solved by the loops as plain Python, to the same bits, before Numba
would have been loaded (we are after 2 s for the first ever and 0.6 s later); a larger one compiles them the first time, and finds
them in a cache on disk later. So does a small one that BiCGSTAB has to solve, such as the network: **there we are not where we
want to be.**"""
    return f"## Cold start\n\n{text}\n\n" + table(("what", "wall", "processor"), rows)
