"""What made a record: the versions of the libraries and a fingerprint of the code."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_PACKAGE = Path(__file__).parents[1]
_HERE = Path(__file__).parent
#: Rooms that show results, or say where they are computed, and so never change them.
_APART = ("views", "cli", "cluster")
_LIBRARIES = ("tightrope", "numpy", "scipy", "numba")


def versions(function: Callable[..., Any]) -> dict[str, str]:
    """The versions that records made by `function` carry; `code` is the fingerprint."""
    return {"code": fingerprint(function), "python": platform.python_version(), **{name: _installed(name) for name in _LIBRARIES}}


def origin() -> dict[str, str]:
    """When and where records made now are made: the day in universal time, the processor, its cores and the system."""
    info = Path("/proc/cpuinfo")
    listed = info.read_text(encoding="utf-8", errors="replace") if info.exists() else ""
    model = listed.partition("model name")[2].partition(":")[2].partition("\n")[0].strip() or platform.processor()
    cores = f"{os.cpu_count() or 1} cores"
    machine = ", ".join(part for part in (model or platform.machine(), cores, platform.system()) if part)
    return {"date": datetime.now(tz=UTC).strftime("%Y-%m-%d"), "machine": machine}


def fingerprint(function: Callable[..., Any]) -> str:
    """A hash of every source file that `function` can depend on.

    These are the library without its views, command line and experiments, the function's own module, and the experiments'
    modules that it imports. A changed comment counts as a change: deciding what
    does not matter is left to whoever runs with `--keep`.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_sources(function).items()):
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def differing(old: dict[str, str], new: dict[str, str]) -> str:
    """The entries in which two versions differ, as 'code 1234 -> 5678, numpy 1.26 -> 2.0'."""
    names = [name for name in {**new, **old} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name, 'unknown')} -> {new.get(name, 'unknown')}" for name in names)


def _sources(function: Callable[..., Any]) -> dict[str, Path]:
    library = {path.relative_to(_PACKAGE): path for path in _PACKAGE.rglob("*.py")}
    found = {name.as_posix(): path for name, path in library.items() if name.parts[0] not in (*_APART, _HERE.name)}
    own = Path(str(sys.modules[function.__module__].__file__))
    return found | {path.name: path for path in _with_imports(own, set())}


def _with_imports(path: Path, seen: set[Path]) -> Iterator[Path]:
    """A module, and those of the experiments' folder that it imports, and so on."""
    if path in seen:
        return
    seen.add(path)
    yield path
    prefix = f"{_PACKAGE.name}.{_HERE.name}"
    for node in ast.walk(ast.parse(path.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            file = _HERE / f"{name.removeprefix(prefix + '.')}.py"
            if name.startswith(prefix + ".") and file.is_file():
                yield from _with_imports(file, seen)


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
