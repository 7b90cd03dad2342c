"""The command line: one module per command, composed here."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from tightrope.cli import approximate, bounds, console, convert, demo, experiment, info, learn, problems, report, solve, warm

app = typer.Typer(
    name="tightrope",
    cls=console.Commands,
    help="Solve Markov decision processes with multi-step greedy policies, with a certificate beside every answer.",
    epilog=console.EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    solve.solve,
    info.info,
    problems.problems,
    convert.convert,
    learn.learn,
    approximate.approximate,
    bounds.bounds,
    demo.demo,
    report.report,
    warm.warm,
):
    app.command()(command)
app.add_typer(experiment.app)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"tightrope {version('tightrope')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; a character that the terminal cannot show becomes a question mark, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
