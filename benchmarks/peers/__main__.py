"""Us against our peers: `python -m peers [--quick] [--only TEXT] [-o FOLDER]`, from the folder benchmarks.

One thread for everybody; our two-thread time beside it. Then bandwidth, growth, cold start and where our time goes
(`--no-extras` leaves them out). Writes results.json, pictures and RESULTS.md; `--report` only writes the report of what
results.json already holds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

if any(os.environ.get(name) != "1" for name in ONE_THREAD):
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    os.execv(sys.executable, [sys.executable, "-m", "peers", *sys.argv[1:]])  # noqa: S606  (libraries read it when they load)

# ruff: noqa: E402  (thread limits come before everything that reads them)
import numpy as np

import tightrope as tr
from peers import report, results
from peers.adapters import PEERS, Ours
from peers.measure import Effort, reference, run
from peers.models import CASES
from tightrope import kernels, problems
from tightrope.cli.warm import models

OURS = Ours()
HERE = Path(__file__).parents[1]


def warm():
    """Load and compile everything once, so that forked children need not."""
    kernels.tiers.compile_loops()
    for make in models().values():  # one for every way to solve
        tr.solve(make(), threads=1)
    tiny = problems.garnet(50, 2, 3, gamma=0.9)
    import_module("scipy.sparse.linalg")  # which the engine loads with its first sparse factorisation
    for adapter in PEERS:
        converted = adapter.convert(tiny)
        for method in adapter.methods:
            go, read = adapter.ready(converted, method, 1e-3)
            read(go())


def contest(case, *, quick):
    """Ours, every peer, then the two best peer methods and ours again, so that all of them saw the same machine."""
    mdp = case.build()
    # One thread: children are forked from here, and threads do not survive a fork.
    truth = reference(mdp, tr.solve(mdp, tol=1e-12, max_seconds=60.0, threads=1))
    repeat = 0.15 if quick else 0.5
    first = run(OURS, case.name, mdp, truth, OURS.methods, Effort(60.0, repeat))
    least, most = (0.4, 5.0) if quick else (1.5, 60.0)
    best, records = np.inf, []
    for adapter in PEERS:
        # A method that needs four times the processor time of the best so far, or ten times ours, is of no interest any more.
        limit = min(most, max(least, min(10 * first[0].cpu, 4 * best)))
        records += run(adapter, case.name, mdp, truth, adapter.quick if quick else adapter.methods, Effort(limit, repeat))
        best = min([best, *(r.cpu for r in records if r.status == "ok")])
    heats = []
    for rival in sorted((r for r in records if r.status == "ok"), key=lambda r: r.cpu)[:2]:
        if rival.convert_seconds < 5.0:
            adapter = next(a for a in PEERS if a.name == rival.peer)
            effort = Effort(most, repeat)
            heats += run(adapter, case.name, mdp, truth, [rival.method], effort, {rival.method: rival.tolerance})
    heats += run(OURS, case.name, mdp, truth, OURS.methods, Effort(60.0, repeat))
    records = [_better(record, heats) for record in [*first, *records]]
    size = {"states": mdp.n_states, "pairs": mdp.n_pairs, "transitions": int(mdp.P.nnz), "bytes": mdp.nbytes}
    about = {"name": case.name, "group": case.group, "gamma": mdp.gamma, **size, "reference": truth[2]}
    return records, about


def _better(record, heats):
    again = [h for h in heats if (h.peer, h.method, h.status) == (record.peer, record.method, "ok")]
    if record.status != "ok" or not again:
        return record
    wall, cpu = min(again[0].wall, record.wall), min(again[0].cpu, record.cpu)
    return replace(record, wall=wall, cpu=cpu, repeats=record.repeats + again[0].repeats)


#: The other measurements, each also a script of its own.
EXTRAS = ("bandwidth", "anatomy", "scaling", "cold")


def extras(names, *, quick):
    """The other measurements of these names."""
    found = {}
    for name in names:
        begun = time.perf_counter()
        found[name] = import_module(name).measure(quick=quick)
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models, short limits, fewer methods")
    parser.add_argument("--only", default="", help="only models whose name contains this")
    again_help = f"measure models whose name contains one of these again, {', '.join(EXTRAS)}, or all 'extras'; keep the rest"
    parser.add_argument("--again", nargs="+", default=[], help=again_help)
    parser.add_argument("--no-extras", action="store_true", help="leave out bandwidth, growth and cold start")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the report again")
    parser.add_argument("-o", "--out", type=Path, default=HERE, help="folder to write to")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report:
        begun = time.perf_counter()
        load = os.getloadavg()[0]
        warm()
        print(f"packages loaded and warm after {time.perf_counter() - begun:.0f} s", flush=True)
        records, models, more, again = [], [], {}, []
        all_extras = "extras" in options.again or not (options.no_extras or options.again)
        wanted = [name for name in EXTRAS if all_extras or name in options.again]
        context = partial(results.about, load, quick=options.quick)
        if options.again:
            before = results.load(options.out)
            again = [case.name for case in CASES if any(word in case.name for word in options.again)]
            if not again and not wanted:
                parser.error(
                    f"no model's name contains {' or '.join(options.again)}; the names are in {options.out / 'RESULTS.md'}"
                )
            records = [record for record in before["records"] if record.model not in again]
            models = [model for model in before["models"] if model["name"] not in again]
            more = before["extras"]
            about_then, now = before["about"], context()["date"]
            what = [*again, *wanted]
            context = partial(dict, about_then, again=[*about_then.get("again", []), f"{', '.join(what)} ({now})"])
        for case in CASES:
            if options.only not in case.name or (options.quick and not case.quick) or (options.again and case.name not in again):
                continue
            started = time.perf_counter()
            found, about = contest(case, quick=options.quick)
            records += found
            models.append(about)
            print(report.line(found, time.perf_counter() - started), flush=True)
            results.save(options.out, records, models, more, context())
        if wanted:
            more = more | extras(wanted, quick=options.quick)
        names = [case.name for case in CASES]
        records.sort(key=lambda record: names.index(record.model))
        models.sort(key=lambda model: names.index(model["name"]))
        results.save(options.out, records, models, more, context())
        print(f"{(time.perf_counter() - begun) / 60:.1f} minutes in all")
    report.write(options.out)


if __name__ == "__main__":
    main()
