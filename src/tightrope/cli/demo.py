"""`tightrope demo`: the tour."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli import console


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the pictures and the page.")] = Path("demo-out"),
    quick: Annotated[bool, typer.Option("--quick", help="A small version, in a few seconds.")] = False,
) -> None:
    r"""Take the tour: a gridworld solved with growing lookahead, Theorem 1 on the Tightrope, pictures and one HTML page.

    Needs Matplotlib (pip install 'tightrope\[plot]'); takes well under a minute.
    """
    from tightrope import progress
    from tightrope.experiments.tour import tour
    from tightrope.views import style
    from tightrope.views.tour import write_tour

    # What can go wrong for want of a library or a folder goes wrong before the work, not after it.
    style.matplotlib()
    output.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    with progress.bar("the tour", 1.0) as bar:
        found = tour(quick=quick, advance=lambda amount, name: bar.advance(0.75 * amount, name))
        index = write_tour(found, output, done=lambda name: bar.advance(0.05, f"drawing {name}"))
    pictures = sorted(path.name for path in output.glob("*.png"))
    plain, last = found.lookahead.h[1], list(found.lookahead.kappa.items())[-2]
    updates = found.improvement
    to = console.out()
    to.print(
        console.table(
            {
                "gridworld": str(found.world.solution).partition("\n")[0],
                "lookahead": f"PI took {plain.iterations} iterations, κ-PI with κ = {last[0]:g} took {last[1].iterations}",
                "Theorem 1": f"{updates.change.size:,} soft updates, {updates.disagreements} against the theorem",
                "pictures": ", ".join(pictures),
                "seconds": f"{time.perf_counter() - begin:.1f}",
            }
        )
    )
    to.print(f"\nOpen [bold]{index.resolve().as_uri()}[/bold] in a browser.", soft_wrap=True)
