"""How every picture looks: two themes, colours that colour-blind readers can tell apart, and one colour for each kappa."""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DPI = 150
#: Okabe and Ito's colours, without the ones too pale for a line.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
CYCLE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)


@dataclass(frozen=True)
class Theme:
    """Colours that depend on whether the page is light or dark."""

    ink: str
    faint: str
    paper: str
    #: Policy iteration, with which the lines of both h and kappa begin.
    plain: str
    #: The part of a sequential colour map that stands out from the paper.
    visible: tuple[float, float]


LIGHT = Theme(ink="#1f2328", faint="#d0d7de", paper="#ffffff", plain="#7d858d", visible=(0.0, 0.82))
DARK = Theme(ink="#e6edf3", faint="#3d444d", paper="#0d1117", plain="#8b949e", visible=(0.3, 1.0))
_theme: ContextVar[Theme] = ContextVar("theme", default=LIGHT)
_pairs: ContextVar[list[tuple[str, str]] | None] = ContextVar("pairs", default=None)
#: How a stand-in begins: a colour that nothing else has.
_STAND_IN = "#fe00"


def theme() -> Theme:
    """The theme in force; its colours are stand-ins while that is undecided."""
    if _pairs.get() is None:
        return _theme.get()
    names = ("ink", "faint", "paper", "plain")
    return Theme(**{name: choose(getattr(LIGHT, name), getattr(DARK, name)) for name in names}, visible=LIGHT.visible)


@contextmanager
def dark() -> Iterator[None]:
    """Draw for a dark page."""
    token = _theme.set(DARK)
    try:
        yield
    finally:
        _theme.reset(token)


@contextmanager
def undecided() -> Iterator[list[tuple[str, str]]]:
    """Draw once for light and dark pages: what depends on the theme gets a stand-in, which `decide` replaces in the drawing.

    Yields the pairs (light, dark), which grow as colours are asked for.
    """
    pairs: list[tuple[str, str]] = []
    token = _pairs.set(pairs)
    try:
        yield pairs
    finally:
        _pairs.reset(token)


def choose(light: str, dark: str) -> str:
    """The colour for the theme in force; while that is undecided, the stand-in for the pair."""
    pairs = _pairs.get()
    if pairs is None:
        return dark if _theme.get() is DARK else light
    if (light, dark) not in pairs:
        pairs.append((light, dark))
    return f"{_STAND_IN}{pairs.index((light, dark)):02x}"


def pair(colour: str) -> tuple[str, str]:
    """What a colour is on a light page and on a dark one."""
    pairs = _pairs.get()
    return (colour, colour) if pairs is None or not colour.startswith(_STAND_IN) else pairs[int(colour[-2:], 16)]


def decide(text: str, colour: Callable[[int], str]) -> str:
    """A drawing with colour(i) in place of the stand-in of the i-th pair."""
    return re.sub(rf"{_STAND_IN}([0-9a-f]{{2}})\b", lambda found: colour(int(found[1], 16)), text)


def kappa_colour(kappa: float) -> str:
    """The colour of a kappa, the same in every picture; it changes fastest near 1, where kappas crowd."""
    return theme().plain if kappa == 0.0 else _along("viridis", 1.0 - (1.0 - kappa) ** 0.4)


def h_colour(h: int) -> str:
    """The colour of a horizon."""
    return theme().plain if h == 1 else _along("plasma", 1.0 - h**-0.35)


def cycle() -> tuple[str, ...]:
    """The colours of what has neither kappa nor horizon, in order; lighter on a dark page, where thin lines would drown."""
    return tuple(choose(colour.lower(), _lighter(colour)) for colour in CYCLE)


def _lighter(colour: str) -> str:
    mpl = matplotlib()
    return str(mpl.colors.to_hex([0.72 * part + 0.28 for part in mpl.colors.to_rgb(colour)]))


def _along(name: str, share: float) -> str:
    mpl = matplotlib()
    spans = (LIGHT.visible, DARK.visible)
    return choose(*(str(mpl.colors.to_hex(mpl.colormaps[name](low + (high - low) * share))) for low, high in spans))


def diverging(shades: int = 256) -> Any:
    """A colour map from worse (vermilion) to better (blue), with a jump at zero: the sign shows however small the number.

    An even number of `shades` keeps zero between two of them.
    """
    to_hex = matplotlib().colors.to_hex
    light, dark = ([to_hex(colour) for colour in _diverging(look.paper)(np.arange(256))] for look in (LIGHT, DARK))
    chosen = np.linspace(0, 255, shades).round().astype(int)
    return matplotlib().colors.ListedColormap([choose(light[i], dark[i]) for i in chosen], "worse_better")


@cache
def _diverging(paper: str) -> Any:
    mix = matplotlib().colors.to_rgb
    pale = [tuple(0.25 * c + 0.75 * p for c, p in zip(mix(colour), mix(paper), strict=True)) for colour in (VERMILION, BLUE)]
    steps = [(0.0, VERMILION), (0.5, pale[0]), (0.5, pale[1]), (1.0, BLUE)]
    return matplotlib().colors.LinearSegmentedColormap.from_list("worse_better", steps)


@contextmanager
def canvas(width: float, height: float) -> Iterator[Any]:
    """An empty figure of `width` x `height` inches in the theme in force, without pyplot and its global state."""
    mpl, colours = matplotlib(), theme()
    settings = {
        "font.size": 10.5,
        "text.color": colours.ink,
        "axes.labelcolor": colours.ink,
        "axes.titlecolor": colours.ink,
        "axes.titlesize": 11.5,
        "axes.titlelocation": "left",
        "axes.facecolor": colours.paper,
        "axes.edgecolor": colours.ink,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
    }
    with mpl.rc_context(settings):
        yield _figure_class()(figsize=(width, height), layout="constrained", facecolor=colours.paper, dpi=DPI)


@contextmanager
def panels(width: float, height: float, rows: int = 1, columns: int = 1, **layout: Any) -> Iterator[tuple[Any, Any]]:
    """A figure of `width` x `height` inches and its axes [rows, columns]."""
    with canvas(width, height) as figure:
        axes = figure.subplots(rows, columns, squeeze=False, **layout)
        for ax in axes.flat:
            plain_axes(ax)
        yield figure, axes


def plain_axes(ax: Any) -> None:
    """Two spines, and ticks in the colour of the ink."""
    ax.spines[["top", "right"]].set_visible(False)
    # Given here because ticks are made when the figure is drawn, long after these settings are gone.
    ax.tick_params(which="both", colors=theme().ink, labelsize=9.5)
    ax.set_axisbelow(True)


def grid_lines(ax: Any, axis: str = "both") -> None:
    """Faint lines behind the data."""
    ax.grid(visible=True, axis=axis, which="major", color=theme().faint, linewidth=0.7)


def positive(x: Any) -> Any:
    """The numbers that a logarithmic axis can show, nan elsewhere."""
    x = np.asarray(x, dtype=np.float64)
    return np.where((x > 0) & np.isfinite(x), x, np.nan)


def png(figure: Any, dpi: int = DPI) -> bytes:
    """The figure as a PNG file."""
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=dpi, metadata={"Software": None})
    return memory.getvalue()


def svg_canvas(figure: Any) -> Any:
    """What writes a figure as SVG."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415  (optional, and slow to load)

    return FigureCanvasSVG(figure)


def matplotlib() -> Any:
    """Matplotlib with the parts used here; the extra `plot`."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  (optional, and slow to load)
        import matplotlib.colors  # noqa: PLC0415
        import matplotlib.figure  # noqa: PLC0415
        import matplotlib.ticker  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    return mpl


@cache
def _figure_class() -> type:
    """Figures that a notebook shows although pyplot never heard of them."""

    def shown(self: Any) -> bytes:
        return png(self)

    return type("Figure", (matplotlib().figure.Figure,), {"_repr_png_": shown, "__module__": __name__})
