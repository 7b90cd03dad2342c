"""results.json: what was measured, on which machine, with which versions."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from peers.measure import Record

PACKAGES = ("tightrope", "quantecon", "mdpsolver", "stormpy", "mdptoolbox-hiive", "gymnasium", "numpy", "scipy", "numba")


def about(load, *, quick):
    """Date, versions, machine and how busy it was."""
    info = Path("/proc/cpuinfo").read_text()
    model = info.partition("model name")[2].partition(":")[2].partition("\n")[0].strip() or platform.processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "machine": f"{model}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, {platform.system()}",
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "quick": quick,
    }


def _version(name):
    try:
        return version(name)
    except ModuleNotFoundError:
        return "from source"


def save(folder, records, models, extras, context):
    """Everything in one file, whole or not at all."""
    rows = [asdict(record) for record in records]
    text = json.dumps({"about": context, "models": models, "records": rows, "extras": extras}, indent=1)
    (folder / "results.json.part").write_text(text + "\n")
    (folder / "results.json.part").replace(folder / "results.json")


def load(folder):
    """What `save` wrote, with records as records."""
    found = json.loads((folder / "results.json").read_text())
    return found | {"records": [Record(**row) for row in found["records"]]}
