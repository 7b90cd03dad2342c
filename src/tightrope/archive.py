"""Results and models on disk: named arrays and a JSON header in one .npz, written whole or not at all, never pickled."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from tightrope.errors import InvalidFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEADER = "tightrope.json"
_VERSION = 1


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the name `path` only when everything was written: readers see the old file or the new one."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write an archive of the given kind; `header` is anything JSON can hold."""
    text = json.dumps({"kind": kind, "version": _VERSION, **header}, allow_nan=False)
    with replacing(path) as file:
        np.savez(file, **{_HEADER: np.frombuffer(text.encode(), dtype=np.uint8)}, **arrays)


def load(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read an archive of the given kind: its header and its arrays."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(arrays.pop(_HEADER).tobytes())
    except FileNotFoundError:
        raise InvalidFile(f"{path}: there is no such file") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise InvalidFile(f"{path} is not a tightrope {kind} file ({error}); it may be damaged or of another kind") from None
    if header.get("kind") != kind:
        raise InvalidFile(f"{path} holds a {header.get('kind')}, not a {kind}")
    if header.get("version") != _VERSION:
        raise InvalidFile(
            f"{path} has format version {header.get('version')}; this release reads version {_VERSION}. Upgrade tightrope."
        )
    return header, arrays
