"""How fast model files are written and read: one model of a million transitions in every format.

python benchmarks/files.py [TRANSITIONS]
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import tightrope as tr
from tightrope.errors import NotStored
from tightrope.model import files

ENDINGS = (".npz", ".umb", ".bin", ".mat", ".csv", ".drn", ".tra", ".MDP")
#: Cassandra's format is read word by word; a tenth of the model is enough to see how fast.
SMALLER = {".MDP": 10}


def model(transitions):
    """Two actions a state, four successors a pair; probabilities and rewards with all their digits."""
    rng = np.random.default_rng(1)
    S = max(transitions // 8, 4)
    first = rng.integers(0, S, 2 * S)
    columns = (first[:, None] + np.array([0, 1, 2, 3]) * (S // 4 or 1)) % S
    weights = rng.random((2 * S, 4)) + 0.1
    P = sp.csr_array((weights.ravel(), columns.ravel(), np.arange(0, 8 * S + 1, 4)), shape=(2 * S, S))
    P = sp.csr_array(sp.diags_array(1.0 / (P @ np.ones(S))) @ P)
    return tr.MDP(P, rng.normal(size=2 * S), 0.99)


def timed(call):
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def main():
    transitions = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    warnings.simplefilter("ignore", NotStored)
    print(f"{'format':8}{'transitions':>13}{'MB':>9}{'write s':>9}{'read s':>9}{'M transitions/s read':>22}")
    with tempfile.TemporaryDirectory() as folder:
        for ending in ENDINGS:
            mdp = model(transitions // SMALLER.get(ending, 1))
            path = Path(folder) / f"P{ending}"
            wrote, _ = timed(lambda mdp=mdp, path=path: files.write(mdp, path))
            size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
            read, back = min((timed(lambda path=path: files.read(path, 0.99)) for _ in range(2)), key=lambda pair: pair[0])
            exact = back.P.data.tobytes() == mdp.P.data.tobytes() and (back.r == mdp.r).all()
            note = "" if exact else "  NOT EXACT"
            print(f"{ending:8}{mdp.P.nnz:13,}{size:9.1f}{wrote:9.2f}{read:9.2f}{mdp.P.nnz / read / 1e6:22.2f}{note}", flush=True)
            for file in Path(folder).iterdir():
                file.unlink()


if __name__ == "__main__":
    main()
