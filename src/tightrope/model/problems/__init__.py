"""The zoo: well-known problems, each built by one function whose defaults already make an interesting model."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from tightrope.model.problems.classics import forest, gambler
from tightrope.model.problems.grids import Grid, cliff, gridworld
from tightrope.model.problems.operations import inventory, queue, replacement, sysadmin, tandem
from tightrope.model.problems.randomised import garnet, random_sparse_deterministic
from tightrope.model.problems.theory import chain, hesitant, tightrope

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.mdp import MDP

__all__ = [
    "Grid",
    "catalogue",
    "chain",
    "cliff",
    "forest",
    "gambler",
    "garnet",
    "gridworld",
    "hesitant",
    "inventory",
    "queue",
    "random_sparse_deterministic",
    "replacement",
    "sysadmin",
    "tandem",
    "tightrope",
]


def catalogue() -> dict[str, Callable[..., MDP]]:
    """Every problem by name: the exported functions that return an MDP; the first line of each docstring describes it."""
    functions = {name: globals()[name] for name in __all__ if inspect.isfunction(globals()[name])}
    return {name: f for name, f in functions.items() if f.__annotations__.get("return") == "MDP"}
