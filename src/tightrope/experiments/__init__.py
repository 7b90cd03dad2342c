"""Computations that compare or demonstrate something; they return plain records, which views draw and never recompute.

The evaluation that the paper asks for is the list `NAMES`; `find(name)` loads one of them.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from tightrope.errors import InvalidArgument

if TYPE_CHECKING:
    from tightrope.experiments.experiment import Experiment

#: Every experiment and its module, in the order of the report.
_MODULES = {
    "theorem-1": "theorem_1",
    "lookahead": "planning",
    "online": "online",
    "trade-off": "trade_off",
    "bounds": "bounds",
    "non-cautious": "non_cautious",
    "api-psdp": "api_psdp",
    "cpi": "cpi",
}
NAMES = tuple(_MODULES)


def find(name: str) -> Experiment:
    """The experiment of this name; its module is loaded now and not before."""
    if name not in _MODULES:
        near = get_close_matches(name, NAMES, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise InvalidArgument(f"there is no experiment {name!r}. {hint}The experiments are {', '.join(NAMES)}")
    found: Experiment = import_module(f"tightrope.experiments.{_MODULES[name]}").EXPERIMENT
    return found
