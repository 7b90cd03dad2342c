"""`tightrope demo`: the tour, then the evaluation in its quick form."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli import console

if TYPE_CHECKING:
    from tightrope.experiments.tour import Tour


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the pictures and the pages.")] = Path("demo-out"),
    quick: Annotated[bool, typer.Option("--quick", help="A small tour in a few seconds; the experiments are left out.")] = False,
) -> None:
    r"""Take the tour, then see whether it holds: two HTML pages that lead to each other, from numbers made here and now.

    The tour is a gridworld solved with growing lookahead and Theorem 1 on the Tightrope; the report is every experiment in
    its quick form, with verdicts. Needs Matplotlib (pip install 'tightrope\[plot]'); takes less than two minutes on two cores.
    """
    from tightrope import progress
    from tightrope.experiments.tour import tour
    from tightrope.views import style
    from tightrope.views.tour import write_page, write_pictures

    # What can go wrong for want of a library or a folder goes wrong before the work, not after it.
    style.matplotlib()
    output.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    with progress.bar("the tour", 1.0) as bar:
        found = tour(quick=quick, advance=lambda amount, name: bar.advance(0.75 * amount, name))
        pictures = write_pictures(found, output, done=lambda name: bar.advance(0.05, f"drawing {name}"))
        index = write_page(found, pictures, output)
    rows = _told(found) | {"pictures": ", ".join(f"{name}.png" for name in pictures)}
    to = console.out()
    to.print(console.table(rows | {"seconds": f"{time.perf_counter() - begin:.1f}"}))
    if quick:
        to.print("\nLeft out of the quick tour: the experiments. See them with: tightrope demo")
    else:
        begin = time.perf_counter()
        rows = _evaluate(output)
        index = write_page(found, pictures, output, report="report.html")
        to.print()
        to.print(console.table(rows | {"seconds": f"{time.perf_counter() - begin:.1f}"}))
    to.print(f"\nOpen [bold]{index.resolve().as_uri()}[/bold] in a browser.", soft_wrap=True)


def _told(found: Tour) -> dict[str, str]:
    plain, last = found.lookahead.h[1], list(found.lookahead.kappa.items())[-2]
    updates = found.improvement
    return {
        "gridworld": str(found.world.solution).partition("\n")[0],
        "lookahead": f"PI took {plain.iterations} iterations, κ-PI with κ = {last[0]:g} took {last[1].iterations}",
        "Theorem 1": f"{updates.change.size:,} soft updates, {updates.disagreements} against the theorem",
    }


def _evaluate(output: Path) -> dict[str, str]:
    """Run every experiment in its quick form, into the folder `records` of the demo, and write the report; what it says."""
    from tightrope import experiments, progress
    from tightrope.experiments import runner
    from tightrope.views.chapters import chapters, score
    from tightrope.views.report import write_report

    folder = output / "records"
    chosen = [experiments.find(name) for name in experiments.NAMES]
    # Made anew each time: a demo shows what this code does, here and now.
    runner.run(*chosen, quick=True, folder=folder, old=runner.Old.DROP)
    found = chapters(folder)
    with progress.bar("the report", len(found)) as bar:
        write_report(found, output, done=lambda name: bar.advance(1, name), tour=True)
    answers = {c.experiment.title: c.analysis.verdict.answer.value for c in found if c.analysis}
    return {"the report": score(found)} | answers
