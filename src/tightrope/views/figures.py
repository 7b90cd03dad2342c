"""Figures of experiments drawn: each panel a small picture of its own, which a page may put beside or below the others.

Colours follow `style`: a kappa has one colour everywhere, and what has no kappa is told apart by marker as well as by colour.
"""

from __future__ import annotations

import io
import re
from itertools import cycle, pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.experiments.figure import Heat, Lines
from tightrope.views import style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tightrope.experiments.figure import Figure, Panel, Series

#: Inches, and the letters that fit across: on a telephone a panel is as wide as the screen and its ticks are still 11 px high.
_WIDTH, _AXES, _LETTERS = 4.2, 2.5, 44
_MARKERS = "osD^vP"
_DASHES = ((0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
#: More points than this are a line without marks; more cells are a picture without numbers.
_MARKED, _NUMBERED = 30, 13
#: Of a colour map: even, so that zero lies between two; from 50 on Matplotlib would draw the bar as pixels.
_SHADES = 48
#: Read by who has no DejaVu Sans, in which the layout is measured; all of these run narrower.
_FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"


def draw(figure: Figure) -> Any:
    """The panels of a figure as one Matplotlib figure, at most two in a row."""
    columns = min(len(figure.panels), 2)
    rows = [figure.panels[i : i + columns] for i in range(0, len(figure.panels), columns)]
    heights = [max(_height(panel) for panel in row) for row in rows]
    with style.canvas(_WIDTH * columns, sum(heights)) as canvas:
        parts = canvas.subfigures(len(rows), columns, squeeze=False, height_ratios=heights)
        for part, panel in zip(parts.flat, figure.panels, strict=False):
            _draw(part, panel, _reach(figure, panel))
    return canvas


def svg(figure: Figure) -> tuple[str, ...]:
    """One SVG per panel, in the theme in force, on a transparent ground; the same figure gives the same text."""
    return tuple(style.decide(text, [style.choose(*pair) for pair in pairs].__getitem__) for text, pairs in _drawn(figure))


def adaptive(figure: Figure) -> tuple[str, ...]:
    """One SVG per panel that is light on a light screen and dark on a dark one: the screen sets the variables of its colours."""
    return tuple(_variables(style.decide(text, lambda i: f"var(--c{i})"), pairs) for text, pairs in _drawn(figure))


def _variables(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    light, dark = (";".join(f"--c{i}:{pair[side]}" for i, pair in enumerate(pairs)) for side in (0, 1))
    rules = f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    return text.replace("<defs>", f"{rules}<defs>", 1)


def _drawn(figure: Figure) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each panel as SVG with stand-ins for the colours that depend on the theme, and the pairs they stand for."""
    settings = {"svg.fonttype": "none", "svg.hashsalt": figure.name}
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    for panel in figure.panels:
        memory = io.StringIO()
        with (
            style.matplotlib().rc_context(settings),
            style.undecided() as pairs,
            style.canvas(_WIDTH, _height(panel)) as canvas,
        ):
            _draw(canvas, panel, _reach(figure, panel))
            canvas.set_facecolor("none")
            # Straight to the SVG: `savefig` would draw everything twice, the first time for the layout alone.
            style.svg_canvas(canvas).print_svg(memory, metadata=nothing)
        yield _trim(memory.getvalue()), pairs


def _trim(text: str) -> str:
    """The SVG without its document type (a foreign address) and comments, with fonts that every system has."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"'DejaVu Sans'[^;\"]*", _FONTS, text)
    # A hundredth of a point is finer than any screen. Only in paths: the numbers of a label are not ours to cut.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _reach(figure: Figure, panel: Panel) -> float:
    """The largest distance from zero in the maps of a figure that show the same quantity: equal colours mean equal numbers."""
    maps = [p.z for p in figure.panels if isinstance(p, Heat) and p.diverging and p.z_label == getattr(panel, "z_label", "")]
    return max((abs(number) for z in maps for row in z for number in row if np.isfinite(number)), default=0.0) or 1.0


def _draw(part: Any, panel: Panel, reach: float) -> None:
    ax = part.add_subplot()
    style.plain_axes(ax)
    ax.set_facecolor("none")
    if panel.title:
        ax.set_title(fill(panel.title, _LETTERS - 4))
    ax.set_xlabel(fill(panel.x_label, _LETTERS))
    ax.set_ylabel(fill(panel.y_label, 34))
    if isinstance(panel, Lines):
        _lines(part, ax, panel)
    else:
        _heat(part, ax, panel, reach)


def _height(panel: Panel) -> float:
    """Inches: the axes, and a line for every line of words above and below them."""
    words = 0.19 * (len(fill(panel.title, _LETTERS - 4).splitlines()) + len(fill(panel.x_label, _LETTERS).splitlines()))
    if isinstance(panel, Lines):
        names = _names(panel)
        rows = -(-len(names) // _columns(names)) if names else 0
        return _AXES + words + 0.21 * rows + (0.55 if _tilted(panel.ticks) else 0.15)
    return 1.0 + words + min(max(0.3 * len(panel.y), 1.2), 3.0) + (0.4 if _tilted(panel.x) else 0.0)


def _names(panel: Lines) -> list[str]:
    """What the legend tells."""
    labels = [*(series.label for series in panel.series), *(name for _, name in (*panel.across, *panel.upright))]
    return [label for label in labels if label]


def _columns(names: Sequence[str]) -> int:
    longest = max((len(name) for name in names), default=1)
    return max(1, min(len(names), 4, (_LETTERS + 8) // (longest + 6)))


def _tilted(ticks: Sequence[str]) -> bool:
    return bool(ticks) and max(len(text) for text in ticks) * len(ticks) > _LETTERS


def _lines(part: Any, ax: Any, panel: Lines) -> None:
    if panel.x_log:
        ax.set_xscale("log")
    if panel.y_log:
        ax.set_yscale("log")
    floor = _floor(panel)
    next_look = iter(cycle(zip(style.cycle(), _MARKERS, strict=True)))
    dodged = [series for series in panel.series if series.points and panel.ticks]
    for series in panel.series:
        shift = (dodged.index(series) - (len(dodged) - 1) / 2) * 0.5 / len(dodged) if series in dodged else 0.0
        colour, marker = _look(series) or next(next_look)
        _series(ax, series, panel, np.asarray(series.x, dtype=np.float64) + shift, colour, marker, floor)
    ink = style.theme().ink
    dashes = iter(cycle(_DASHES))
    for at, name in panel.across:
        ax.axhline(at, color=ink, linewidth=1.2, linestyle=next(dashes), label=name or None, zorder=1.5)
    for at, name in panel.upright:
        ax.axvline(at, color=ink, linewidth=1.2, linestyle=next(dashes), label=name or None, zorder=1.5)
    style.grid_lines(ax)
    if panel.y_log:
        _plain_numbers(ax)
    _ticks(ax, panel)
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        wide = {"ncols": _columns(labels), "handlelength": 1.8, "columnspacing": 1.2}
        part.legend(handles, labels, loc="outside lower left", fontsize=9.5, **wide)


def _look(series: Series) -> tuple[str, str] | None:
    """Colour and marker where the series has its own; None takes the next of the cycle."""
    if series.kappa is not None:
        return style.kappa_colour(series.kappa), "o"
    if series.h is not None:
        return style.h_colour(series.h), "o"
    return None


def _floor(panel: Lines) -> float:
    """The smallest number that a logarithmic axis can show of this panel: where bands that reach zero end."""
    if not panel.y_log:
        return -np.inf
    shown = [style.positive(numbers) for s in panel.series for numbers in (s.y, s.low, s.high) if numbers]
    shown = [numbers for numbers in shown if np.isfinite(numbers).any()]
    return 0.5 * min((float(np.nanmin(numbers)) for numbers in shown), default=2.0)


def _series(ax: Any, series: Series, panel: Lines, x: Any, colour: str, marker: str, floor: float) -> None:
    y = np.asarray(series.y, dtype=np.float64)
    shown = style.positive(y) if panel.y_log else y
    line = "" if series.points else "--" if series.dashed else "-"
    marker = marker if series.points or len(y) <= _MARKED else ""
    looks = {"color": colour, "linestyle": line, "marker": marker, "markersize": 5.5 if series.points else 3.6}
    filled = "none" if series.dashed else "full"
    if series.low and series.high:
        low, high = np.maximum(series.low, floor), np.maximum(series.high, floor)
        if series.points:
            ax.vlines(x, low, high, color=colour, linewidth=1.6, alpha=0.75)
        else:
            faint = 0.16 if len(panel.series) <= 3 else 0.09
            ax.fill_between(x, low, high, color=colour, alpha=faint, linewidth=0)
    ax.plot(x, shown, label=series.label or None, fillstyle=filled, **looks)
    zero = panel.y_log & (y <= 0.0)
    if zero.any():  # a logarithmic axis has no zero: it is marked on the lower edge
        there = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        ax.plot(x[zero], np.zeros(int(zero.sum())), color=colour, linestyle="", marker=7, markersize=6, **there)


def _ticks(ax: Any, panel: Lines) -> None:
    """Names where x are names; on a logarithmic axis the few x themselves, where they have room."""
    if panel.ticks:
        _texts(ax, range(len(panel.ticks)), panel.ticks)
        ax.set_xlim(-0.5, len(panel.ticks) - 0.5)
        return
    xs = sorted({x for series in panel.series for x in series.x if x > 0})
    if panel.x_log and 2 <= len(xs) <= 8 and all(x == float(f"{x:.2g}") for x in xs):
        steps = np.diff(np.log(xs))
        if steps.min() >= np.log(xs[-1] / xs[0]) / 14:
            ax.set_xticks(xs, [f"{x:g}" for x in xs])
            ax.set_xticks([], minor=True)


def _plain_numbers(ax: Any) -> None:
    """0.2, 0.5, 1 instead of powers of ten on a logarithmic axis, unless it spans too many of them."""
    ticker = style.matplotlib().ticker
    low, high = ax.get_ylim()
    if low >= 1e-3 and high <= 1e5:
        ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:,g}"))
    decades = np.log10(high / low)
    if decades < 2.0:
        ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if decades > 0.7 else range(1, 10)))
        ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:,g}"))
        ax.yaxis.set_minor_formatter(ticker.NullFormatter())


def _texts(ax: Any, at: Sequence[int], texts: Sequence[str]) -> None:
    tilt = {"rotation": 32, "ha": "right", "rotation_mode": "anchor"} if _tilted(texts) else {}
    ax.set_xticks(at, texts, **tilt)
    ax.tick_params(axis="x", length=0)


def _heat(part: Any, ax: Any, panel: Heat, reach: float) -> None:
    mpl, ink = style.matplotlib(), style.theme().ink
    z = np.ma.masked_invalid(np.asarray(panel.z, dtype=np.float64))
    if panel.diverging:
        colours, norm = style.diverging(_SHADES), mpl.colors.Normalize(-reach, reach)
    else:
        colours, norm = (
            mpl.colormaps["cividis"].resampled(_SHADES),
            mpl.colors.Normalize(*((z.min(), z.max()) if z.count() else (0.0, 1.0))),
        )
    rows, columns = z.shape
    shown = ax.pcolormesh(z, cmap=colours, norm=norm, edgecolors="face", linewidth=0.2)
    ax.spines[["left", "bottom"]].set_visible(False)
    thin = -(-columns // _NUMBERED)
    _texts(ax, (np.arange(0, columns, thin) + 0.5).tolist(), panel.x[::thin])
    thin = -(-rows // _NUMBERED)
    ax.set_yticks(np.arange(0, rows, thin) + 0.5, panel.y[::thin])
    ax.tick_params(axis="y", length=0)
    if not _rising(panel.y):
        ax.invert_yaxis()
    if panel.numbers and columns <= _NUMBERED:
        size = 9.5 if columns <= 6 else 8.5 if columns <= 9 else 7.5
        for (i, j), number in np.ndenumerate(z):
            masked = bool(np.ma.getmaskarray(z)[i, j])
            paint = ink if masked else _readable(mpl.colors.to_hex(colours(norm(number))))
            text = "–" if masked else f"{float(number):.2g}"
            ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=paint, fontsize=size)
    bar = part.colorbar(shown, ax=ax, location="bottom", shrink=0.9, aspect=32, pad=0.03)
    bar.set_label(fill(panel.z_label, _LETTERS))
    bar.outline.set_visible(False)
    bar.solids.set_edgecolor("face")
    bar.ax.tick_params(colors=ink, labelsize=9.5)


def _rising(names: Sequence[str]) -> bool:
    """Whether the names are numbers that grow, which are drawn upwards as on any axis; names are read downwards."""
    try:
        return all(a < b for a, b in pairwise(float(name) for name in names))
    except ValueError:
        return False


def _readable(colour: str) -> str:
    """Black or white, whichever has more contrast with the colour (WCAG's relative luminance)."""
    return style.choose(*("#000000" if _luminance(each) > 0.179 else "#ffffff" for each in style.pair(colour)))


def _luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))
