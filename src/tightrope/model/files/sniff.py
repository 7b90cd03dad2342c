"""Which format a file is in: by its first bytes, then by its extension."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tightrope.errors import InvalidFile
from tightrope.model.files import drn, npz, prism, table

if TYPE_CHECKING:
    from pathlib import Path

WRITERS: dict[str, Any] = {".npz": npz, ".drn": drn, ".tra": prism, ".csv": table}
_SIZES = re.compile(r"(\d+\s+\d+(\s+\d+)?|mdp|dtmc|ctmc|ma)\s*$", re.IGNORECASE)


def module(path: Path) -> Any:
    """The module that reads a file."""
    with path.open("rb") as file:
        head = file.read(4096)
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return npz
    first = next((line for line in head.decode("utf-8", "replace").splitlines() if line.strip()), "")
    if re.search(r"^@(type|nr_states|reward_models|parameters)", head.decode("utf-8", "replace"), re.MULTILINE):
        return drn
    if _SIZES.match(first):
        return prism
    if path.suffix.lower() in (".csv", ".tsv") or first.count(",") in (3, 4):
        return table
    raise InvalidFile(f"{path} is not a model file of a known format")
