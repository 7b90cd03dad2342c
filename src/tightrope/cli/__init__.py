"""The command line: one module per command, composed here."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="tightrope",
    help="Solve Markov decision processes with multi-step greedy policies, with a certificate beside every answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line."""
    app()
