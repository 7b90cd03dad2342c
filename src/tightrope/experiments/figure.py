"""Figures as data: what an analysis wants drawn. Views draw them; nothing is computed there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Series:
    """One line or one set of points: y against x, with an optional band from low to high."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    #: Gives the line the colour that this kappa has everywhere; None takes the next colour of the cycle.
    kappa: float | None = None
    #: As above, for a horizon.
    h: int | None = None
    #: Points without a line between them.
    points: bool = False
    dashed: bool = False


def band(
    label: str,
    x: Sequence[float],
    estimates: Sequence[tuple[float, float, float]],
    *,
    floor: float = -math.inf,
    kappa: float | None = None,
    dashed: bool = False,
) -> Series:
    """The line through estimates (value, low, high) with their intervals as its band.

    Nothing lies below `floor`, which a logarithmic axis needs; an end that is not finite, as of one number alone, has no width.
    """
    y = tuple(max(value, floor) for value, _, _ in estimates)
    low = tuple(max(low if math.isfinite(low) else value, floor) for value, low, _ in estimates)
    high = tuple(max(high if math.isfinite(high) else value, floor) for value, _, high in estimates)
    return Series(label, tuple(x), y, low, high, kappa=kappa, dashed=dashed)


def spaced(numbers: Sequence[float]) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Even places 0, 1, 2, ... for numbers that crowd together, such as κ near 1, and their texts for `ticks`."""
    return tuple(float(i) for i in range(len(numbers))), tuple(f"{x:g}" for x in numbers)


@dataclass(frozen=True)
class Lines:
    """Series over one pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    #: Evenly spaced ticks with these texts, for x that are names; x are then 0, 1, 2, ...
    ticks: tuple[str, ...] = ()
    #: Horizontal and vertical lines for reference, with their names.
    across: tuple[tuple[float, str], ...] = ()
    upright: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Heat:
    """A number for each pair of x and y [len(y), len(x)]; `diverging` shows worse and better around zero, else dark is small."""

    title: str
    x_label: str
    y_label: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    z: tuple[tuple[float, ...], ...]
    z_label: str
    diverging: bool = False
    #: Write the number into its cell.
    numbers: bool = True


Panel: TypeAlias = Lines | Heat


@dataclass(frozen=True)
class Figure:
    """Panels side by side under one caption; `seen` says what the picture shows, for who cannot see it."""

    name: str
    caption: str
    seen: str
    panels: tuple[Panel, ...]
