"""The Unified Markov Binary format: a tar archive of `index.json` and little-endian arrays.

After the specification in the public repository pmc-tools/umb (format version 1). A reward model may sit on states, choices
and branches; r(s,a) is their sum, branches weighted by probability. Our own files keep the discount and
state names in `file-data/parameters` and the start as an annotation of the group `tightrope`; other tools pass over both.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive
from tightrope.model.files.umb_reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tightrope.model.files.reading import Reading, Wishes
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import IntArray

_DOUBLE = {"type": "double", "size": 64}


def read(path: Path, wishes: Wishes) -> Reading:
    """The model of a UMB file."""
    return Reader(path).read(wishes)


def write(mdp: MDP, path: Path, labels: Mapping[str, IntArray]) -> None:
    """The model with one reward model, `reward`, on choices; labels become atomic propositions."""
    pairs, P, S = mdp.pairs, mdp.P, mdp.n_states
    begin = mdp.start > 0
    files: dict[str, bytes] = {
        "state-to-choices.bin": _u64(mdp.first),
        "state-is-initial.bin": _bits(begin),
        "choice-to-branches.bin": _u64(P.indptr),
        "branch-to-target.bin": _u64(P.indices),
        "branch-to-probability.bin": P.data.astype("<f8").tobytes(),
        "actions/choices/values.bin": pairs.actions.astype("<u4").tobytes(),
        "annotations/rewards/reward/choices/values.bin": mdp.r.astype("<f8").tobytes(),
        "annotations/tightrope/start/states/values.bin": mdp.start.astype("<f8").tobytes(),
    }
    if pairs.action_names is not None:
        files |= _strings("actions/choices/", pairs.action_names)
    annotations: dict[str, dict[str, Any]] = {
        "rewards": {"reward": {"alias": "reward", "applies-to": ["choices"], "type": _DOUBLE}},
        "tightrope": {"start": {"applies-to": ["states"], "type": _DOUBLE}},
    }
    for i, (name, states) in enumerate(labels.items()):
        mark = np.zeros(S, dtype=bool)
        mark[states] = True
        key = name if re.fullmatch(r"(?!label-)[0-9a-z_-]{1,64}", name) else f"label-{i}"
        annotations.setdefault("aps", {})[key] = {"alias": name, "applies-to": ["states"], "type": {"type": "bool", "size": 1}}
        files[f"annotations/aps/{key}/states/values.bin"] = _bits(mark)
    n_actions = pairs.n_actions if pairs.action_names is None else len(pairs.action_names)
    index = {
        "format-version": 1,
        "format-revision": 0,
        "model-data": {},
        "file-data": {"tool": "tightrope", "parameters": {"discount": mdp.gamma, "state-names": pairs.state_names}},
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": S,
            "#initial-states": int(begin.sum()),
            "#choices": mdp.n_pairs,
            "#choice-actions": n_actions,
            "#branches": P.nnz,
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": _DOUBLE,
        },
        "annotations": annotations,
    }
    with archive.replacing(path) as file, tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in {"index.json": json.dumps(index, indent=1).encode(), **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(content))


def _u64(array: Any) -> bytes:
    return bytes(np.asarray(array).astype("<u8").tobytes())


def _bits(mask: Any) -> bytes:
    """A bit per entry, the first the least significant, padded to whole 64-bit words."""
    packed = np.packbits(mask, bitorder="little")
    return bytes(packed.tobytes()) + bytes(-len(packed) % 8)


def _strings(folder: str, names: tuple[str, ...]) -> dict[str, bytes]:
    encoded = [name.encode() for name in names]
    ends = np.concatenate(([0], np.cumsum([len(name) for name in encoded])))
    return {f"{folder}string-mapping.bin": _u64(ends), f"{folder}strings.bin": b"".join(encoded)}
