"""The report: what the records of all experiments say, as one self-contained HTML page; the words are in report.html."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from tightrope import archive
from tightrope.experiments import runner
from tightrope.experiments.experiment import Answer
from tightrope.views import figures
from tightrope.views.chapters import estimate, machines, origin, score
from tightrope.views.page import drawing, page, table

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from tightrope.experiments.experiment import Analysis, Table
    from tightrope.experiments.figure import Figure
    from tightrope.views.chapters import Chapter

NAME = "report.html"
#: A class of its own and a sign for every answer: colour is never all that tells them apart.
_BADGES = {Answer.YES: ("yes", "✓"), Answer.NO: ("no", "✗"), Answer.MIXED: ("mixed", "±"), Answer.OPEN: ("open", "?")}


def write_report(
    chapters: Sequence[Chapter],
    folder: str | os.PathLike[str],
    *,
    done: Callable[[str], None] = lambda _: None,
    tour: bool = False,
) -> Path:
    """Write the page of these chapters into a folder; its path.

    `done` hears of every chapter; `tour` makes the page lead to the one of the demo beside it.
    """
    to = Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    path = to / NAME
    text = report(chapters, done=done, tour=tour)
    with archive.replacing(path) as file:
        file.write(text.encode())
    return path


def report(chapters: Sequence[Chapter], *, done: Callable[[str], None] = lambda _: None, tour: bool = False) -> str:
    """The page of these chapters, in their order."""
    parts = []
    for number, chapter in enumerate(chapters, start=1):
        parts.append(_section(number, chapter))
        done(chapter.experiment.name)
    body = Template(_resource("report.html")).substitute(
        asked=_asked(chapters),
        notice=_notice(chapters, tour=tour),
        contents="\n".join(_link(number, chapter) for number, chapter in enumerate(chapters, start=1)),
        score=score(chapters),
        board="\n".join(_card(chapter) for chapter in chapters),
        advice=_advice(chapters),
        chapters="\n".join(parts),
        made=_made(chapters),
    )
    return page("Does it pay to look further ahead?", body, _resource("report.css"))


def _resource(name: str) -> str:
    return files("tightrope.views").joinpath(name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """Text for HTML: what stands between backticks is code; outside of code γ^h and R_max are set as they are in print."""
    parts = escape(text).split("`")
    outside = [re.sub(r"\b([^\W\d_])_(\w+)", r"\1<sub>\2</sub>", re.sub(r"\^(\w+)", r"<sup>\1</sup>", x)) for x in parts[::2]]
    inside = [f"<code>{code}</code>" for code in parts[1::2]]
    return "".join(x for pair in zip_longest(outside, inside, fillvalue="") for x in pair)


def _asked(chapters: Sequence[Chapter]) -> str:
    count = sum(len(chapter.stored.entries) for chapter in chapters if chapter.analysis)
    return f"{len(chapters)} questions, {count:,} records, and an interval beside every answer"


def _notice(chapters: Sequence[Chapter], *, tour: bool) -> str:
    lines = []
    if tour:
        lines.append('<p>New to this? <a href="index.html">Take the tour first</a>: the ideas in pictures.</p>\n')
    quick = [chapter for chapter in chapters if chapter.analysis and chapter.quick]
    if quick:
        which = "All records here are" if len(quick) == sum(c.analysis is not None for c in chapters) else "Some records here are"
        lines.append(
            f'<p class="notice"><b>Quick records.</b> {which} of the quick form: small models and few seeds, enough to see '
            "how it works and too few to settle much. For the full form, which takes up to an hour: "
            "<code>tightrope experiment run</code>, then <code>tightrope report</code>.</p>\n"
        )
    return "".join(lines)


def _link(number: int, chapter: Chapter) -> str:
    return f'<li><a href="#{chapter.experiment.name}">{number}. {escape(chapter.experiment.title)}</a></li>'


def _badge(analysis: Analysis | None) -> str:
    kind, sign = _BADGES[analysis.verdict.answer] if analysis else ("open", "…")
    words = analysis.verdict.answer.value if analysis else "not yet run"
    return f'<span class="badge {kind}">{sign} {escape(words)}</span>'


def _card(chapter: Chapter) -> str:
    analysis, experiment = chapter.analysis, chapter.experiment
    kind = _BADGES[analysis.verdict.answer][0] if analysis else "open"
    head = f'<p class="head"><a href="#{experiment.name}">{escape(experiment.title)}</a> {_badge(analysis)}</p>'
    if analysis is None:
        return f'<li class="{kind}">{head}<p>{prose(experiment.question)}</p></li>'
    says = f"<p>{prose(analysis.verdict.sentence)}</p>"
    return f'<li class="{kind}">{head}{says}<p class="estimate">{prose(estimate(analysis.verdict))}</p></li>'


def _advice(chapters: Sequence[Chapter]) -> str:
    given = [(chapter.experiment, chapter.analysis.advice) for chapter in chapters if chapter.analysis]
    if not given:
        return f"<p>No advice before there are records: <code>{runner.command('', quick=False).strip()}</code>.</p>"
    lines = [f'<li><a href="#{e.name}">{escape(e.title)}</a>: {prose(advice)}</li>' for e, advice in given]
    return "<ul>\n" + "\n".join(lines) + "\n</ul>"


def _section(number: int, chapter: Chapter) -> str:
    analysis, experiment = chapter.analysis, chapter.experiment
    parts = [
        f'<section id="{experiment.name}" aria-labelledby="{experiment.name}-title">',
        f'<h2 id="{experiment.name}-title">{number}. {escape(experiment.title)} {_badge(analysis)}</h2>',
        f'<p class="question">{prose(experiment.question)}</p>',
        f"<h3>The paper</h3><p>{prose(experiment.claim)}</p>",
    ]
    if analysis is None:
        stored = chapter.stored
        there = (
            f"{len(stored.entries):,} of {stored.needed:,} records are there" if stored.entries else "There are no records yet"
        )
        parts.append(f'<p class="law">{there}. This makes them:</p>')
    else:
        verdict = analysis.verdict
        rests = f'<span class="estimate">{prose(estimate(verdict))}</span>'
        parts += [
            f'<p class="law {_BADGES[verdict.answer][0]}">{prose(verdict.sentence)}{rests}</p>',
            *(_figure(figure) for figure in analysis.figures),
            *(_table(shown) for shown in analysis.tables),
            f"<h3>What to do</h3><p>{prose(analysis.advice)}</p>",
            "<h3>Run it again</h3>",
        ]
    parts.append(f"<pre><code>{escape(chapter.command)}</code></pre>")
    if analysis is not None:
        form = "<b>Quick form.</b> " if chapter.quick else ""
        parts.append(f'<p class="origin">{form}{escape(origin(chapter.stored))}</p>')
    parts.append('<p class="back"><a href="#top">Back to top</a></p>\n</section>')
    return "\n".join(parts)


def _figure(figure: Figure) -> str:
    drawn = figures.adaptive(figure)
    names = [panel.title or figure.caption for panel in figure.panels]
    said = [figure.seen if len(names) == 1 else f"{name}. {figure.seen}" for name in names]
    panels = "".join(drawing(svg, text) for svg, text in zip(drawn, said, strict=True))
    return f'<figure><div class="panels">{panels}</div><figcaption>{prose(figure.caption)}</figcaption></figure>'


def _table(shown: Table) -> str:
    inside = table(shown.head, shown.rows, shown.best, name=shown.caption)
    return f'<figure class="table"><figcaption>{prose(shown.caption)}</figcaption>{inside}</figure>'


def _made(chapters: Sequence[Chapter]) -> str:
    again = "<code>tightrope experiment run</code>, then <code>tightrope report</code>"
    seen = sum(chapter.analysis is not None for chapter in chapters)
    return f"{seen} of {len(chapters)} experiments have records: {escape(machines(chapters))} All of it again: {again}."
