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

PROGRAM = "import tightrope as tr; tr.solve(tr.problems.gridworld(20, 20)); import sys; sys.exit(0)"


def measure(*, quick=False):
    """Wall and processor seconds of a whole process: first ever, and the best of later ones."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        first = _process(PROGRAM, environment)
        later = [_process(PROGRAM, environment) for _ in range(2 if quick else 5)]
    imports = [_process("import tightrope", os.environ) for _ in range(2 if quick else 5)]
    arrays = [_process("import numpy, scipy.sparse", os.environ) for _ in range(2 if quick else 5)]
    return {
        "first solve ever, process included": first,
        "later processes": [min(x) for x in zip(*later, strict=True)],
        "import tightrope alone": [min(x) for x in zip(*imports, strict=True)],
        "import numpy and scipy.sparse alone": [min(x) for x in zip(*arrays, strict=True)],
    }


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
