"""Figures of experiments: every panel draws its numbers, in the colours of its kappas, as SVG that needs nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from tightrope.experiments.figure import Figure, Heat, Lines, Series
from tightrope.views import figures, style

KAPPAS = (0.0, 0.5, 0.9, 1.0)
LINES = Lines(
    "loss",
    "iteration",
    "loss of the policy",
    tuple(Series(f"κ = {k:g}", (1.0, 2.0, 4.0), (3.0, 2.0 - k, 1.999), kappa=k) for k in KAPPAS),
    across=((0.5, "the bound"),),
)
HEAT = Heat(
    "map", "α", "κ", ("0.1", "0.5", "1"), ("0.25", "0.75"), ((-1.0, 0.5, 2.0), (0.0, np.nan, 1.0)), "change", diverging=True
)
NAMES = Heat("share", "model", "", ("dense", "sparse"), ("sampled", "fitted"), ((0.1, 0.2), (0.3, 0.4)), "share")


def figure(*panels):
    return Figure("test", "A caption.", "What is seen.", panels)


def only_axes(panel):
    return figures.draw(figure(panel)).subfigs[0].axes[0]


def texts(svg):
    return [node.text for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314  (our own)


def test_a_kappa_has_its_colour_in_both_themes():
    drawn = [line.get_color() for line in only_axes(LINES).lines[: len(KAPPAS)]]
    assert drawn == [style.kappa_colour(k) for k in KAPPAS]
    with style.dark():
        there = [line.get_color() for line in only_axes(LINES).lines[: len(KAPPAS)]]
        assert there == [style.kappa_colour(k) for k in KAPPAS]
    assert there != drawn


def test_lines_draw_their_numbers_and_the_legend_names_them_all():
    ax = only_axes(LINES)
    for line, series in zip(ax.lines, LINES.series, strict=False):
        assert tuple(line.get_xdata()) == series.x
        assert tuple(line.get_ydata()) == series.y
    legend = ax.figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["κ = 0", "κ = 0.5", "κ = 0.9", "κ = 1", "the bound"]


def test_series_without_kappa_differ_by_marker_and_colour():
    many = tuple(Series(f"s{i}", (0.0, 1.0), (0.0, float(i))) for i in range(6))
    lines = only_axes(Lines("", "x", "y", many)).lines
    assert len({line.get_marker() for line in lines}) == len({line.get_color() for line in lines}) == 6


def test_points_with_names_stand_beside_each_other_with_their_intervals():
    two = tuple(Series(n, (0.0, 1.0), (1.0, 2.0), (0.5, 1.5), (1.5, 2.5), points=True) for n in ("a", "b"))
    ax = only_axes(Lines("", "", "y", two, ticks=("dense", "sparse")))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["dense", "sparse"]
    assert ax.lines[0].get_xdata()[0] < 0 < ax.lines[1].get_xdata()[0]
    assert np.allclose(ax.collections[0].get_segments()[0][:, 1], (0.5, 1.5))


def test_zero_on_a_logarithmic_axis_is_marked_at_its_edge_and_bands_end_there():
    series = Series("a", (1.0, 2.0, 3.0), (1.0, 0.0, 4.0), (-1.0, 0.0, 3.0), (2.0, 1.0, 5.0))
    ax = only_axes(Lines("", "x", "y", (series,), y_log=True))
    assert np.isnan(ax.lines[0].get_ydata()[1])
    assert tuple(ax.lines[1].get_xdata()) == (2.0,)
    assert ax.collections[0].get_paths()[0].vertices[:, 1].min() > 0.0
    empty = Series("all zero", (1.0, 2.0), (0.0, 0.0))
    assert figures.svg(figure(Lines("", "x", "y", (empty,), y_log=True)))


def test_few_x_are_the_ticks_of_a_logarithmic_axis():
    ax = only_axes(Lines("", "h", "y", (Series("a", (1.0, 2.0, 4.0, 64.0), (1.0, 2.0, 3.0, 4.0)),), x_log=True))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "4", "64"]


def test_a_heat_draws_its_numbers_upwards_if_they_grow_and_names_downwards():
    ax = only_axes(HEAT)
    assert np.ma.allequal(ax.collections[0].get_array(), np.ma.masked_invalid(HEAT.z))
    assert [text.get_text() for text in ax.texts] == ["-1", "0.5", "2", "0", "–", "1"]
    assert not ax.yaxis_inverted()
    assert ax.collections[0].norm.vmin == -ax.collections[0].norm.vmax
    assert only_axes(NAMES).yaxis_inverted()


def test_maps_of_one_quantity_share_their_colours():
    larger = replace(HEAT, z=((-9.0, 0.5, 2.0), (0.0, np.nan, 1.0)))
    drawn = figures.draw(figure(HEAT, larger, replace(HEAT, z_label="something else")))
    assert [part.axes[0].collections[0].norm.vmax for part in drawn.subfigs[:3]] == [9.0, 9.0, 2.0]


def test_numbers_in_cells_can_be_read():
    def luminance(colour):
        parts = np.array(mpl.colors.to_rgb(colour))
        return float(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722))

    for share in np.linspace(0.0, 1.0, 101):
        for colours in (style.diverging(), mpl.colormaps["cividis"]):
            cell = mpl.colors.to_hex(colours(share))
            light, dark = sorted((luminance(cell), luminance(figures._readable(cell))), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("panel", [LINES, HEAT, NAMES], ids=["lines", "heat", "names"])
def test_an_svg_is_well_formed_needs_nothing_and_is_the_same_each_time(panel):
    (svg,) = figures.svg(figure(panel))
    assert svg == figures.svg(figure(panel))[0]
    assert set(re.findall(r"https?://[^\"]+", svg)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert panel.title in texts(svg)
    assert panel.x_label in texts(svg)


@pytest.mark.parametrize("panel", [LINES, HEAT, NAMES], ids=["lines", "heat", "names"])
def test_one_svg_has_the_colours_of_both_themes(panel):
    def seen(svg):
        return re.findall(r"#[0-9a-f]{6}\b", svg)

    (light,) = figures.svg(figure(panel))
    with style.dark():
        (dark,) = figures.svg(figure(panel))
    (both,) = figures.adaptive(figure(panel))
    rules, rest = re.search(r"<style>(:root.*?)</style>", both)[1], re.sub(r"<style>:root.*?</style>", "", both)
    for text, part in zip((light, dark), rules.split("@media(prefers-color-scheme:dark)"), strict=True):
        colours = dict(re.findall(r"(--c\d+):(#[0-9a-f]{6})", part))
        assert re.sub(r"var\((--c\d+)\)", lambda name, known=colours: known[name[1]], rest) == text
    assert style.LIGHT.ink in seen(light)
    assert style.DARK.ink in seen(dark)
    assert style.LIGHT.ink not in seen(dark)
    assert not [colour for colour in seen(light + dark + both) if colour.startswith(style._STAND_IN)]


def test_the_numbers_of_a_label_are_kept_whole():
    across = Lines("", "x", "y", (Series("κ = 0.9995", (0.0, 1.0), (0.0, 1.0), kappa=0.9995),))
    assert "κ = 0.9995" in texts(figures.svg(figure(across))[0])


def test_a_figure_of_many_panels_has_two_in_a_row():
    drawn = figures.draw(figure(LINES, HEAT, NAMES))
    assert drawn.get_figwidth() == pytest.approx(8.4)
    assert len(figures.svg(figure(LINES, HEAT, NAMES))) == 3


def test_many_cells_are_drawn_without_numbers_and_with_fewer_ticks():
    names = tuple(f"{i}" for i in range(40))
    ax = only_axes(Heat("", "x", "y", names, names, tuple((1.0,) * 40 for _ in range(40)), "z"))
    assert not ax.texts
    assert len(ax.get_xticks()) <= 13
