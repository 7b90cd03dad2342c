"""Optional dependencies, loaded when something needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tightrope.errors import MissingExtra


def pandas() -> Any:
    """Pandas (extra `data`): 0.3 s to load, so only when a table is asked for."""
    try:
        return import_module("pandas")
    except ImportError:
        raise MissingExtra("pandas", "data") from None


def distributed() -> Any:
    """Dask's scheduler and workers (extra `dask`): 0.5 s to load, so only when tasks are to run there."""
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingExtra("distributed", "dask") from None
