"""Model files: `read(path)` and `write(mdp, path)`; one module per format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import InvalidArgument, InvalidFile
from tightrope.model import validate
from tightrope.model.files import sniff
from tightrope.model.files.policies import read_policy, write_policy
from tightrope.model.files.reading import Reading, Wishes

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import IntArray

__all__ = ["Reading", "inspect", "read", "read_policy", "write", "write_policy"]


def read(
    path: str | os.PathLike[str], gamma: float | None = None, reward: str | None = None, *, costs: bool | None = None
) -> MDP:
    """The model in a file of any known format, which is recognised by content first, then by extension.

    Args:
        path: the file; of a PRISM model the .tra, of a PETSc pair the matrix P.
        gamma: the discount; needed where the format has none, and stronger than the file's where it has one.
        reward: which reward model, where a file has several.
        costs: True negates the numbers, False keeps them; by default as the format says.
    """
    return inspect(path, gamma, reward, costs=costs).mdp


def inspect(
    path: str | os.PathLike[str], gamma: float | None = None, reward: str | None = None, *, costs: bool | None = None
) -> Reading:
    """As `read`, with the format's name, notes on what was decided, and the labels."""
    file = Path(path)
    if file.is_dir():
        raise InvalidFile(f"{path} is a folder; name a model file in it")
    if not file.is_file():
        raise InvalidFile(f"{path}: there is no such file")
    try:
        with np.errstate(all="ignore"):  # a sum of rewards that overflows is refused as such, when the model is made
            return sniff.module(file).read(file, Wishes(gamma, reward, costs))
    except PermissionError:
        raise InvalidFile(f"{path} cannot be opened: permission denied") from None


def write(mdp: MDP, path: str | os.PathLike[str], *, labels: Mapping[str, IntArray] | None = None, storm: bool = False) -> None:
    """Write a model in the format of the extension; what the format cannot hold is named in a `NotStored` warning.

    Args:
        mdp: the model.
        path: where; replaced only when everything was written.
        labels: named sets of states, as `inspect` returns them.
        storm: whether a .tra file and its companions are written in Storm's dialect instead of PRISM's.
    """
    file = Path(path)
    module = sniff.WRITERS.get(file.suffix.lower())
    if module is None:
        raise InvalidArgument(f"no format for {file.name!r}; a model file ends in {', '.join(sorted(sniff.WRITERS))}")
    if storm and file.suffix.lower() != ".tra":
        raise InvalidArgument(f"Storm's dialect is one of .tra files; found {file.name!r}, which needs none")
    sets = {name: _states(name, states, mdp.n_states) for name, states in (labels or {}).items()}
    if storm:
        module.write(mdp, file, sets, storm=True)
    else:
        module.write(mdp, file, sets)


def _states(name: str, states: IntArray, n_states: int) -> IntArray:
    """A label's states, checked: sorted, distinct and in range, under a name every format can hold."""
    found = np.unique(validate.integers(states, f"label {name}")) if len(states) else np.empty(0, dtype=np.int64)
    if len(found) and not 0 <= found[0] <= found[-1] < n_states:
        raise InvalidArgument(f"label {name!r} names a state outside 0 to {n_states - 1}")
    if not name.strip() or name == "init" or any(mark in name for mark in '"\n\r'):
        raise InvalidArgument(f"{name!r} cannot be the name of a label: not empty, not 'init', no quotes or line breaks")
    return found
