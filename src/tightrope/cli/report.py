"""`tightrope report`: what the records say, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli import console


def report(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for the page, report.html.")] = Path(
        "report-out"
    ),
    folder: Annotated[Path, typer.Option("--records", metavar="DIR", help="The folder of the records.")] = Path("records"),
    pdf: Annotated[bool, typer.Option("--pdf", help="Also print the page as report.pdf; needs Chromium or Chrome.")] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write results.md and img/results/*.svg for a documentation site there instead."),
    ] = None,
) -> None:
    r"""Put the records of all experiments on one HTML page: claims, verdicts with their intervals, figures, tables, advice.

    The page needs no network. Experiments without records are listed with the command that makes them.
    Needs Matplotlib (pip install 'tightrope\[plot]').
    """
    from tightrope import progress
    from tightrope.errors import InvalidArgument
    from tightrope.views import pdf as printing
    from tightrope.views import style
    from tightrope.views.chapters import chapters, score
    from tightrope.views.report import write_report
    from tightrope.views.report_markdown import write_markdown

    # What can go wrong for want of a library, a program or a folder goes wrong before the work, not after it.
    style.matplotlib()
    if pdf and markdown:
        raise InvalidArgument("--pdf prints the page and --markdown writes none; give one of the two")
    if pdf:
        printing.browser()
    if not folder.is_dir():
        raise InvalidArgument(
            f"--records {folder}: there is no such folder. Make records first: tightrope experiment run --quick"
        )
    (markdown or output).mkdir(parents=True, exist_ok=True)
    found = chapters(folder)
    with progress.bar("the report", len(found)) as bar:
        path = (
            write_markdown(found, markdown, done=lambda name: bar.advance(1, name))
            if markdown
            else write_report(found, output, done=lambda name: bar.advance(1, name))
        )
    to = console.out()
    answers = {c.experiment.name: c.analysis.verdict.answer.value if c.analysis else f"not yet run: {c.command}" for c in found}
    to.print(console.table(answers))
    to.print(f"\n{score(found)}")
    if pdf:
        to.print(f"Printed as {printing.write_pdf(path)}.", soft_wrap=True)
    to.print(f"Written: {path}" if markdown else f"Open [bold]{path.resolve().as_uri()}[/bold] in a browser.", soft_wrap=True)
