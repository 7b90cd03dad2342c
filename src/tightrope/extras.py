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
