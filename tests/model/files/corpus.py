"""Valid files of every format, and ways to break them: what the fuzzer starts from."""

from __future__ import annotations

import gzip
import tempfile
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from models import RAGGED, RECTANGULAR, random_model
from test_cassandra import MDP, TIGER
from test_drn import STORM
from test_prism import TRA
from test_table import NAMED
from test_umb import example, packed

from tightrope.errors import InvalidFile, NotStored, RowsRenormalised
from tightrope.model import files

#: No damaged file of a few kilobytes may make a reader ask for more than this.
MEMORY = 64 << 20

HUGE = [
    b"999999999",
    b"99999999999999999999",
    b"-1",
    b"1e308",
    b"1e-320",
    b"0x10",
    b"nan",
    b"inf",
    b"1/0",
    b"\xff\xfe",
    b"*",
    b"",
    b" ",
]


def seeds():
    """Name -> {file name: content}; the first file is the one to read."""
    found = {
        "tra": {
            "m.tra": TRA.encode(),
            "m.sta": b"(x,b)\n0:(0,false)\n1:(1,false)\n2:(1,true)\n3:(2,true)\n",
            "m.lab": b'0="init" 1="deadlock" 2="goal"\n0: 0\n2: 2\n3: 2 1\n',
            "m.srew": b"4 2\n1 2.5\n3 -1\n",
            "m.trew": b"4 5 3\n0 0 1 8\n0 0 2 4\n0 1 3 7\n",
        },
        "drn": {"m.drn": STORM.replace("other cost", "cost").replace("[1, ", "[").replace("[0, ", "[").encode()},
        "csv": {"m.csv": NAMED.encode()},
        "quoted": {"m.csv": NAMED.replace("sunny", '"sun, ny"').encode()},
        "pomdp": {"m.POMDP": TIGER.encode()},
        "mdp": {"m.MDP": MDP.encode()},
        "umb": {"m.umb": packed(*example())},
        "umb.gz": {"m.umb": gzip.compress(packed(*example()))},
    }
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotStored)
        for ending in RAGGED + RECTANGULAR:
            place = Path(folder) / ending[1:]
            place.mkdir()
            files.write(random_model(5, 7, ragged=ending in RAGGED, names=True), place / f"P{ending}")
            order = sorted(place.iterdir(), key=lambda file: file.name != f"P{ending}")
            found[f"ours{ending}"] = {file.name: file.read_bytes() for file in order}
        np.savez(Path(folder) / "t.npz", P=np.eye(3)[None], R=np.ones(3))
        found["toolbox"] = {"t.npz": (Path(folder) / "t.npz").read_bytes()}
    return found


SEEDS = seeds()


@st.composite
def broken(draw, name):
    """A copy of a seed with a few changes: cut, flipped, overwritten, doubled, with numbers made huge, or noise."""
    contents = dict(SEEDS[name])
    for _ in range(draw(st.integers(1, 4))):
        file = draw(st.sampled_from(sorted(contents)))
        data = contents[file]
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        end = min(len(data), at + draw(st.integers(0, 40)))
        kind = draw(st.sampled_from(["cut", "flip", "splice", "double", "noise", "token", "token", "remove"]))
        if kind == "cut":
            data = data[:at]
        elif kind == "flip" and data:
            data = data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :]
        elif kind == "splice":
            data = data[:at] + draw(st.binary(max_size=24)) + data[end:]
        elif kind == "double":
            data = data[:end] + data[at:]
        elif kind == "noise":
            data = data[:at] + draw(st.binary(max_size=200))
        elif kind == "token":
            words = data.split(b" ")
            i = draw(st.integers(0, len(words) - 1))
            words[i] = draw(st.sampled_from(HUGE))
            data = b" ".join(words)
        elif file != next(iter(contents)):
            del contents[file]
            continue
        contents[file] = data
    return contents


def attempt(contents, *, measure=False):
    """Read a broken file: refused with InvalidFile, or read as a valid model; anything else is a bug. The peak of memory."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RowsRenormalised)
        for name, data in contents.items():
            (Path(folder) / name).write_bytes(data)
        if measure:
            tracemalloc.start()
        try:
            found = files.inspect(Path(folder) / next(iter(contents)), 0.9)
        except InvalidFile as error:
            named = folder in str(error)
        else:
            named = True
            P = found.mdp.P
            assert P.shape == (found.mdp.n_pairs, found.mdp.n_states)
            assert np.abs(P.sum(axis=1) - 1.0).max() <= 1e-9
            assert np.isfinite(found.mdp.r).all()
        finally:
            peak = tracemalloc.get_traced_memory()[1] if measure else 0
            if measure:
                tracemalloc.stop()
        assert named
        assert {file.name for file in Path(folder).iterdir()} == set(contents)  # nothing is unpacked beside it
    return peak
