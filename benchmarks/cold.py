"""Cold start: the first solve ever (nothing compiled yet) and later processes, imports included.

python benchmarks/cold.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

PROGRAM = "import tightrope as tr; tr.solve(tr.problems.{model})"
#: Models that are solved before compiled loops would be loaded, and one that is worth compiling for.
MODELS = {
    "400 states": "gridworld(20, 20)",
    "a Garnet of 1,000 states": "garnet(1000, 4, 5)",
    "a network of 1,681 states": "tandem(40, gamma=0.999)",
    "10,000 states": "gridworld(100, 100)",
}


def measure(*, quick=False):
    """Wall and processor seconds of a whole process: first ever, and the best of later ones."""
    repeats, found = 2 if quick else 5, {}
    for name, model in MODELS.items():
        program = PROGRAM.format(model=model)
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            found[f"first solve ever, {name}"] = _best(program, environment, 1)
            found[f"later processes, {name}"] = _best(program, environment, repeats)
    found["import tightrope alone"] = _best("import tightrope", os.environ, repeats)
    found["import numpy and scipy.sparse alone"] = _best("import numpy, scipy.sparse", os.environ, repeats)
    return found


def _best(program, environment, repeats):
    return [min(x) for x in zip(*(_process(program, environment) for _ in range(repeats)), strict=True)]


def _process(program, environment):
    wall, cpu = time.perf_counter(), _children()
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    return [time.perf_counter() - wall, _children() - cpu]


def _children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    for what, (wall, cpu) in measure().items():
        print(f"{what:40s} {wall:6.2f} s   processor {cpu:6.2f} s")
