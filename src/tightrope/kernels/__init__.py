"""The only compiled loops: arrays in, arrays out, no checks.

`kernels.backup` is a sweep kernel (`serial`, run on several threads by `team`); other rooms' kernels live in a module each
(`kernels.sampling`, `kernels.theory`, ...). Numba loads when it is needed: with the first module of another room, or when
`tiers` finds that sweeps have become worth compiling.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

#: Modules of loops, loaded at first use.
_MODULES = (
    "tiers",
    "bounds",
    "serial",
    "in_place",
    "rounds",
    "krylov",
    "downstream",
    "tridiagonal",
    "band",
    "pruned",
    "alike",
    "spread",
    "graph",
    "team",
    "sampling",
    "online",
    "approximate",
    "theory",
    "shares",
)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _MODULES:
        return import_module(f"tightrope.kernels.{name}")
    kernel = getattr(import_module("tightrope.kernels.serial"), name)
    if not isinstance(kernel, import_module("tightrope.kernels.tiers").Loop):
        globals()[name] = kernel
    return kernel


def unsigned(array: Any) -> Any:
    """The same memory as unsigned integers: loops over unsigned indices skip the wrap-around test and run up to 2.6x faster."""
    return array.view(np.uint32 if array.dtype.itemsize == 4 else np.uint64)
