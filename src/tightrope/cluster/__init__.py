"""Past one machine, on engines that exist: PETSc over MPI for one huge model, Dask for many runs. Loaded when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public names and the module each lives in, so that one engine can be used without the other being installed.
_LATER = {
    "Dask": "tightrope.cluster.dask",
    "petsc": "tightrope.cluster.backend",
    "Petsc": "tightrope.cluster.backend",
    "Share": "tightrope.cluster.share",
    "from_function": "tightrope.cluster.share",
    "read": "tightrope.cluster.reading",
}

__all__ = ["Dask", "Petsc", "Share", "from_function", "petsc", "read"]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'tightrope.cluster' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
