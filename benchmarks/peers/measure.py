"""One peer on one model, in a process of its own: conversion, the loosest tolerance that is good enough, the best of repeats.

The child is forked from a process that has already loaded and warmed every package, so it starts at once and can be killed when
a method takes too long; what it shares with its parent does not count as its memory.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

#: The true error to reach, in sup norm relative to the value scale.
GOAL = 1e-6
#: How many times what a single solve may take all tries of a method may take together.
TRYING = 6
#: The ladder of tolerances relative to the value scale, as powers of ten.
LOOSEST, TIGHTEST = 2.0, -14.0


@dataclass(frozen=True)
class Record:
    """What one method did on one model."""

    model: str
    peer: str
    method: str
    #: "ok", "slow" (stopped), "missed" (no tolerance of the ladder reached the goal), "failed" (an error), "refused"
    status: str
    wall: float = np.inf
    cpu: float = np.inf
    #: True sup-norm error relative to the value scale.
    error: float = np.inf
    #: The tolerance given to the peer, relative to the value scale; NaN for methods without one.
    tolerance: float = np.nan
    repeats: int = 0
    convert_seconds: float = np.nan
    convert_bytes: float = np.nan
    solve_bytes: float = np.nan
    note: str = ""


@dataclass(frozen=True)
class Effort:
    """How much processor time one solve may take, and how long it is repeated."""

    limit: float
    repeat_seconds: float


def reference(mdp, solution):
    """A value function certified without our engine: |v - v*| <= |Tv - v|/(1-γ), with T in plain SciPy and NumPy."""
    v = solution.value
    q = mdp.r + mdp.gamma * (mdp.P @ v)
    residual = np.abs(np.maximum.reduceat(q, mdp.first[:-1]) - v).max()
    scale = float(np.abs(v).max())
    return v, scale, float(residual / (1.0 - mdp.gamma) / scale)


def run(adapter, name, mdp, truth, methods, effort, tolerances=None):
    """Records of the methods; a child that is too slow is killed and the next method gets a child of its own."""
    reasons = {method: adapter.refuses(mdp, method) for method in methods}
    records = [Record(name, adapter.name, method, "refused", note=reason) for method, reason in reasons.items() if reason]
    waiting, fork = [method for method in methods if not reasons[method]], multiprocessing.get_context("fork")
    while waiting:
        receiver, sender = fork.Pipe(duplex=False)
        child = fork.Process(target=_child, args=(sender, adapter, name, mdp, truth, waiting, effort, tolerances or {}))
        child.start()
        sender.close()
        converting = True
        while waiting:
            limit = max(30.0, effort.limit) if converting else effort.limit
            message = _await(receiver, child, limit)
            if isinstance(message, Record):
                records.append(message)
                waiting.pop(0)
            elif message in {"slow", "died"}:
                what = f"{'conversion' if converting else 'one solve'} stopped after {limit:.1f} s"
                note = what if message == "slow" else f"the process ended with exit code {child.exitcode}"
                lost = waiting if converting else waiting[:1]
                status = "slow" if message == "slow" else "failed"
                records += [Record(name, adapter.name, method, status, note=note) for method in lost]
                del waiting[: len(lost)]
                break
            converting = False
        child.kill()
        child.join()
        receiver.close()
    return records


def _await(receiver, child, limit):
    """The child's next message; "slow" once it has used `limit` seconds of processor time without one, "died" if it is gone."""
    begun, spent = time.perf_counter(), _processor_time(child.pid)
    while not receiver.poll(0.1):
        if _processor_time(child.pid) - spent > limit or time.perf_counter() - begun > 10.0 + 6.0 * limit:
            return "slow"
    try:
        return receiver.recv()
    except EOFError:
        child.join(1.0)
        return "died"


def _processor_time(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child(sender, adapter, name, mdp, truth, methods, effort, tolerances):
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    gc.disable()
    before, begun = _resident(), time.perf_counter()
    converted = adapter.convert(mdp)
    seconds, grown = time.perf_counter() - begun, _resident() - before
    sender.send("ready")
    for method in methods:
        blank = Record(name, adapter.name, method, "ok", convert_seconds=seconds, convert_bytes=grown)
        try:
            record = _climb(sender, adapter, converted, blank, truth, effort, tolerances.get(method))
        except Exception as error:  # noqa: BLE001  (whatever a peer does wrong is its result)
            record = replace(blank, status="failed", note=f"{type(error).__name__}: {error}"[:120])
        sender.send(record)
    sender.close()
    os._exit(0)


def _climb(sender, adapter, converted, record, truth, effort, known):
    """The loosest tolerance of the ladder that reaches the goal; the step is half a decade where that may matter."""
    v, scale, _ = truth
    power, begun, best = LOOSEST if known is None else np.log10(known), time.process_time(), np.inf
    while power >= TIGHTEST:
        sender.send("rung")
        tolerance = np.nan if record.method in adapter.exact else 10.0**power
        go, read = adapter.ready(converted, record.method, tolerance * scale)
        _reset_peak()
        before = _resident()
        wall, cpu, found = _clocked(go)
        peak = _peak() - before
        error = float(np.abs(read(found) - v).max() / scale)
        best = min(best, error)
        if error <= GOAL:
            if hasattr(adapter, "allocates"):
                peak = max(peak, adapter.allocates(converted, record.method))
            record = replace(record, wall=wall, cpu=cpu, error=error, tolerance=tolerance, solve_bytes=peak)
            return _repeat(sender, go, record, effort)
        if record.method in adapter.exact:
            break
        if time.process_time() - begun > TRYING * effort.limit:
            note = f"error {best:.0e} after {TRYING * effort.limit:.1f} s of trying tolerances"
            return replace(record, status="slow", note=note)
        # The error is about proportional to the tolerance: go on just before the place where it should be small enough.
        digits = np.log10(error / GOAL) if np.isfinite(error) else 0.5
        power -= max(0.5, min(np.floor(2 * digits) / 2 - 0.5, 4.0))
    return replace(record, status="missed", note=f"best error {best:.0e}")


def _repeat(sender, go, record, effort):
    """The best wall and the best CPU time of repeats: on a shared machine the minimum is what the method itself needs.

    One in a thousand is left out: the clock of the processor once showed less than half of the time that a solve took. What
    the clocks show where nothing is done, about a microsecond, is taken off.
    """
    repeats, begun, told = 1, time.process_time(), -np.inf
    walls, cpus = [record.wall], [record.cpu]
    while repeats < 3 or (time.process_time() - begun < effort.repeat_seconds and repeats < 10_000):
        if time.process_time() - begun > max(1.0, 0.5 * effort.limit):
            break
        if time.perf_counter() - told > 0.1:  # not after every repeat: a message would cost short solves their caches
            sender.send("repeat")
            told = time.perf_counter()
        wall, cpu, _ = _clocked(go)
        walls.append(wall)
        cpus.append(cpu)
        repeats += 1
    idle_walls, idle_cpus, _ = zip(*(_clocked(int) for _ in range(1000)), strict=True)
    wall, cpu = _least(walls) - _least(idle_walls), _least(cpus) - _least(idle_cpus)
    return replace(record, wall=wall, cpu=cpu, repeats=repeats)


def _least(times):
    return sorted(times)[len(times) // 1000]


def _clocked(go):
    cpu, wall = time.process_time(), time.perf_counter()
    found = go()
    wall = time.perf_counter() - wall
    return wall, time.process_time() - cpu, found


def _status(field):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(f"{field}:")[2].split()[0])


def _resident():
    return _status("VmRSS")


def _peak():
    return _status("VmHWM")


def _reset_peak():
    Path("/proc/self/clear_refs").write_text("5")


def save(records, path):
    path.write_text(json.dumps([asdict(record) for record in records], indent=1))


def load(path):
    return [Record(**record) for record in json.loads(path.read_text())]
