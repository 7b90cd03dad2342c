"""The live line of a solver, and messages that stay on one line."""

from __future__ import annotations

import io
import math

import pytest
import typer

from tightrope.cli import console
from tightrope.solution import Row


class Terminal(io.StringIO):
    def isatty(self):
        return True


def row(iteration, gap):
    return Row(iteration, gap, gap, gap, 3, 1_000_000 * (1 + iteration), 0.5)


def test_nothing_is_drawn_where_nobody_looks(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with console.live(1e-6) as show:
        assert show is None


def test_a_terminal_sees_iteration_gap_and_backups_a_second(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with console.live(1e-6) as show:
        show(row(0, 1.0))
        show(row(1, 1e-3))
    drawn = screen.getvalue()
    assert "iteration 1" in drawn
    assert "relative gap 1.0e-03" in drawn
    assert "4M backups/s" in drawn


@pytest.mark.parametrize("begin", [0, 1])
def test_the_bar_moves_wherever_counting_begins(monkeypatch, begin):
    """The engine's first row is the end of its first round, not a look at nothing."""
    found = []
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(console, "_share_done", lambda *gaps: found.append(gaps) or 0.5)
    with console.live(1e-6) as show:
        show(row(begin, 1e-2))
        show(row(begin + 1, 1e-4))
    assert found == [(1.0, 1e-2, 1e-6), (1.0, 1e-4, 1e-6)]


@pytest.mark.parametrize(
    ("first", "now", "tol", "share"),
    [(1.0, 1e-3, 1e-6, 0.5), (1.0, 1.0, 1e-6, 0.0), (1.0, 1e-9, 1e-6, 1.0), (1.0, 2.0, 1e-6, 0.0), (math.inf, 1.0, 1e-6, 0.0)],
)
def test_the_bar_is_logarithmic_in_the_gap(first, now, tol, share):
    assert console._share_done(first, now, tol) == pytest.approx(share)


@pytest.mark.parametrize(("now", "tol"), [(0.0, 1e-6), (1e-3, 0.0), (math.nan, 1e-6)])
def test_the_bar_stays_empty_where_a_logarithm_would_fail(now, tol):
    assert console._share_done(1.0, now, tol) == 0.0


def test_an_error_is_one_line_whatever_is_in_it(capsys):
    with pytest.raises(typer.Exit) as stop:
        console.fail("a [bold]long\n message " + 40 * "again ")
    assert stop.value.exit_code == console.Exit.BAD_INPUT
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "[bold]long message" in text


def test_a_pipe_is_never_folded(capsys):
    console.out().print(console.table({"model": 30 * "word "}))
    assert capsys.readouterr().out.count("\n") == 1
