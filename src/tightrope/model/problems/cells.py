"""Cells of a map as people write them: one, a list, a mask, a mapping to rewards, or drawn as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidArgument
from tightrope.model import validate

if TYPE_CHECKING:
    import numpy.typing as npt

    from tightrope.model.validate import BoolArray

Cell = tuple[int, int]


def drawn(text: str) -> npt.NDArray[np.str_]:
    """The characters of a map [height, width], without the blank lines around it and its common indentation."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgument(f"text must be a map with at least one cell; found {text!r}")
    lines = textwrap.dedent(text).strip("\n").split("\n")
    for i, line in enumerate(lines):
        if len(line) != len(lines[0]):
            raise InvalidArgument(
                f"line {i + 1} of the map has {len(line)} cells, line 1 has {len(lines[0])}; "
                "draw every cell, with '.' for a free one"
            )
        if strange := sorted(set(line) - set("#SGX. ")):
            raise InvalidArgument(
                f"line {i + 1}, column {line.index(strange[0]) + 1} of the map is {strange[0]!r}; "
                "a map has '#' wall, 'S' start, 'G' goal, 'X' trap, '.' or ' ' free"
            )
    return np.array([list(line) for line in lines])


def mask(walls: Any, H: int, W: int) -> BoolArray:
    """Walls as a boolean mask [H, W], from a mask or a list of cells."""
    if (given := _array(walls)).dtype == bool:
        if given.shape != (H, W):
            raise InvalidArgument(f"walls as a mask must have shape ({H}, {W}); found {given.shape}")
        return given.copy()
    blocked = np.zeros((H, W), dtype=bool)
    for cell in () if walls is None else listed(walls, "walls"):
        check_inside(cell, H, W, "walls")
        blocked[cell] = True
    return blocked


def payoffs(goals: Any, reward: float) -> dict[Cell, float]:
    """The reward of entering each goal."""
    if not isinstance(goals, Mapping):
        return dict.fromkeys(listed(goals, "goals"), validate.finite(reward, "goal_reward"))
    rewards = [validate.finite(x, f"the reward of goal {cell}") for cell, x in goals.items()]
    return dict(zip(listed(list(goals), "goals"), rewards, strict=True))


def listed(cells: Any, what: str) -> tuple[Cell, ...]:
    """One cell, or a list or set of cells, as distinct pairs of integers."""
    array = _array(cells)
    if array.size == 0:
        return ()
    array = np.atleast_2d(array)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InvalidArgument(f"{what} must be cells (row, column) of integers; found {cells!r}")
    return tuple(dict.fromkeys((int(row), int(column)) for row, column in array))


def check_inside(cell: Cell, H: int, W: int, what: str) -> None:
    """Refuse a cell that is not on the map."""
    if not (0 <= cell[0] < H and 0 <= cell[1] < W):
        raise InvalidArgument(f"{what} names cell {cell}, outside the grid: rows are 0 to {H - 1}, columns 0 to {W - 1}")


def where(mask: BoolArray) -> list[Cell]:
    """The cells at which the mask is true."""
    return [(int(row), int(column)) for row, column in np.argwhere(mask)]


def _array(x: Any) -> npt.NDArray[Any]:
    """What was given as an array; of objects when the rows are not of one length."""
    given = sorted(x) if isinstance(x, set | frozenset) else x
    try:
        return np.asarray(given)
    except ValueError:
        return np.asarray(given, dtype=object)
