"""Which format a file is in: by its first bytes, then by its extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tightrope.errors import InvalidFile
from tightrope.model.files import npz

if TYPE_CHECKING:
    from pathlib import Path

WRITERS: dict[str, Any] = {".npz": npz}


def module(path: Path) -> Any:
    """The module that reads a file."""
    with path.open("rb") as file:
        head = file.read(4096)
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return npz
    raise InvalidFile(f"{path} is not a model file of a known format")
