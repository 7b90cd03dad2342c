"""Which format a file is in: by its first bytes, then by its extension."""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING, Any

from tightrope.errors import InvalidFile
from tightrope.model.files import cassandra, drn, mdptoolbox, npz, petsc, prism, table, umb

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: The formats that are written, by extension.
WRITERS: dict[str, Any] = {
    ".npz": npz,
    ".drn": drn,
    ".tra": prism,
    ".umb": umb,
    ".csv": table,
    ".mdp": cassandra,
    ".pomdp": cassandra,
    ".mat": mdptoolbox,
    ".bin": petsc,
}
_PETSC = petsc.MATRIX.to_bytes(4, "big")
_BINARY: list[tuple[Callable[[bytes], bool], Any]] = [
    (lambda head: head.startswith(b"MATLAB"), mdptoolbox),
    (lambda head: head[:4] == _PETSC or head[:8] == bytes(4) + _PETSC, petsc),
    (lambda head: head[:3] == b"\x1f\x8b\x08" or head[:6] == b"\xfd7zXZ\0" or head[257:262] == b"ustar", umb),
]
_TEXT = [
    (re.compile(r"^@(type|value_type|nr_states|reward_models|parameters)\b", re.MULTILINE), drn),
    (re.compile(r"\A\s*(\d+\s+\d+([ \t]+\d+)?|mdp|dtmc|ctmc|ma)[ \t\r]*(\n|$)", re.IGNORECASE), prism),
    (re.compile(r"^\s*(discount|values|states|actions|observations)\s*:", re.MULTILINE), cassandra),
    (re.compile(r"\A(#[^\n]*\n|\s)*[^\n,]*(,[^\n,]*){3,4}\n"), table),
]


def module(path: Path) -> Any:
    """The module that reads a file."""
    with path.open("rb") as file:
        head = file.read(4096)
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return npz if _is_ours(path) else mdptoolbox
    found: Any = next((reader for fits, reader in _BINARY if fits(head)), None)
    if found is None:
        words = head.decode("utf-8", "replace")
        found = next((reader for form, reader in _TEXT if form.search(words) and "\0" not in words), None)
    if found is table or found is None:
        found = {".tsv": table, ".txt": None}.get(path.suffix.lower(), WRITERS.get(path.suffix.lower(), found))
    if found is None:
        known = ", ".join(sorted(WRITERS))
        raise InvalidFile(f"{path} is in none of the known formats ({known}), going by its first bytes and its extension")
    return found


def _is_ours(path: Path) -> bool:
    """Whether a zip file holds the header of our own archives; a damaged one is for our reader to report."""
    try:
        with zipfile.ZipFile(path) as file:
            return "tightrope.json.npy" in file.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):  # the last: a kind of zip that zipfile does not know
        return True
