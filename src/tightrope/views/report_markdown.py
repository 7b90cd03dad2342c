"""The report for the documentation site: one Markdown page, and its figures as files for light and for dark pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope import archive
from tightrope.experiments.experiment import Answer
from tightrope.views import figures, style
from tightrope.views.chapters import estimate, machines, origin, score

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from tightrope.experiments.experiment import Table
    from tightrope.experiments.figure import Figure
    from tightrope.views.chapters import Chapter

NAME = "results.md"
_FIGURES = Path("img", "results")
_SIGNS = {Answer.YES: "✓", Answer.NO: "✗", Answer.MIXED: "±", Answer.OPEN: "?"}
_STYLE = """<style>
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); gap: 1rem; align-items: start; }
.panels img { width: 100%; max-width: 27rem; }
</style>"""


def write_markdown(
    chapters: Sequence[Chapter], folder: str | os.PathLike[str], *, done: Callable[[str], None] = lambda _: None
) -> Path:
    """Write results.md and img/results/*.svg into a folder of documentation; figures of an earlier report go. The page's path."""
    to = Path(folder)
    (to / _FIGURES).mkdir(parents=True, exist_ok=True)
    drawn: dict[str, str] = {}
    parts = [_head(chapters)]
    for number, chapter in enumerate(chapters, start=1):
        parts.append(_section(number, chapter, drawn))
        done(chapter.experiment.name)
    for name, svg in drawn.items():
        _write(to / _FIGURES / name, svg)
    for old in (to / _FIGURES).glob("*.svg"):
        if old.name not in drawn:
            old.unlink()
    _write(to / NAME, "\n\n".join(parts) + "\n")
    return to / NAME


def prose(text: str) -> str:
    """Text for Markdown: the stars of v* and the likes are themselves, but for code between backticks."""
    parts = text.split("`")
    return "`".join(
        part if i % 2 else re.sub(r"[*_<\[\]~]", lambda sign: f"&#{ord(sign[0])};", part) for i, part in enumerate(parts)
    )


def _write(path: Path, text: str) -> None:
    with archive.replacing(path) as file:
        file.write(text.encode())


def _head(chapters: Sequence[Chapter]) -> str:
    board = [f"- **{_linked(chapter)}** *{_answer(chapter)}.* {_says(chapter)}" for chapter in chapters]
    advice = [f"- {_linked(chapter)}: {prose(chapter.analysis.advice)}" for chapter in chapters if chapter.analysis]
    return "\n\n".join(
        (
            "# Results",
            "<!-- Written by `tightrope report --markdown`; what is changed here by hand is lost. -->",
            _STYLE,
            "What the paper claims, put to the test. Verdicts, numbers and pictures follow from the records by code.",
            machines(chapters),
            "## Did it hold?",
            score(chapters),
            "\n".join(board),
            "## When to use κ > 0",
            "\n".join(advice) or "No advice before there are records.",
        )
    )


def _linked(chapter: Chapter) -> str:
    return f"[{chapter.experiment.title}](#{chapter.experiment.name})"


def _answer(chapter: Chapter) -> str:
    if chapter.analysis is None:
        return "not yet run"
    answer = chapter.analysis.verdict.answer
    return f"{_SIGNS[answer]} {answer.value}"


def _says(chapter: Chapter) -> str:
    if chapter.analysis is None:
        return prose(chapter.experiment.question)
    return prose(f"{chapter.analysis.verdict.sentence} {estimate(chapter.analysis.verdict)}")


def _section(number: int, chapter: Chapter, drawn: dict[str, str]) -> str:
    experiment, analysis = chapter.experiment, chapter.analysis
    parts = [
        f"## {number}. {experiment.title} {{ #{experiment.name} }}",
        f"**{prose(experiment.question)}**",
        f"*The paper:* {prose(experiment.claim)}",
        f"*Verdict:* **{_answer(chapter)}.** " + ("" if analysis is None else _says(chapter)),
    ]
    if analysis is not None:
        parts += [_figure(experiment.name, figure, drawn) for figure in analysis.figures]
        parts += [_table(shown) for shown in analysis.tables]
        parts.append(f"*What to do:* {prose(analysis.advice)}")
    form = "Quick form. " if chapter.quick else ""
    made = "" if analysis is None else f" {form}{origin(chapter.stored)}"
    parts.append(f"*Run it:* `{chapter.command}`.{made}")
    return "\n\n".join(parts)


def _figure(experiment: str, figure: Figure, drawn: dict[str, str]) -> str:
    light = figures.svg(figure)
    with style.dark():
        dark = figures.svg(figure)
    said = figure.seen.replace("]", ")").replace("[", "(")
    pictures = []
    for number, pair in enumerate(zip(light, dark, strict=True), start=1):
        for theme, svg in zip(("light", "dark"), pair, strict=True):
            name = f"{experiment}-{figure.name}-{number}-{theme}.svg"
            drawn[name] = svg
            pictures.append(f"![{said}]({(_FIGURES / name).as_posix()}#only-{theme})")
    inside = "\n".join(pictures)
    return f'<div class="panels" markdown>\n{inside}\n</div>\n\n{prose(figure.caption)}'


def _table(shown: Table) -> str:
    rows = [[f"**{prose(cell)}**" if n == shown.best else prose(cell) for cell in row] for n, row in enumerate(shown.rows)]
    return f"{prose(shown.caption)}\n\n{_rows([prose(cell) for cell in shown.head], rows)}"


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines)
