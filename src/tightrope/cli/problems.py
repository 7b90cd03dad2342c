"""`tightrope problems`: the zoo on the command line."""

from __future__ import annotations

import inspect
from pathlib import Path  # noqa: TC003  (Typer reads the annotations)
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli import console
from tightrope.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tightrope.model.mdp import MDP


def problems(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Problems to describe, or with -o one to write, e.g. 'garnet:n_states=1000,seed=3'.", metavar="[NAME ...]"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the one problem named to this file; its extension is the format.")
    ] = None,
) -> None:
    """List the problems that come with the library, describe some, or write one to a file.

    Parameters are written as 'name:key=value,key=value'; `tightrope solve` takes the same names.
    """
    from tightrope.model.problems import catalogue

    known = catalogue()
    chosen = names or []
    if output is not None:
        if len(chosen) != 1:
            raise InvalidArgument(f"-o {output} takes one problem to write; found {', '.join(chosen) or 'none'}")
        _write(chosen[0], output)
    elif chosen:
        for name in chosen:
            title = name.partition(":")[0]
            if title not in known:
                raise InvalidArgument(f"there is no problem {title!r}; problems are {', '.join(sorted(known))}")
            _describe(title, known[title])
    else:
        _list(known)


def _list(known: Mapping[str, Callable[..., MDP]]) -> None:
    """One line a problem: its name, the size its defaults make, and what it is."""
    from rich.table import Table
    from rich.text import Text

    shown = Table("problem", "states", "pairs", "what it is", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.columns[1].justify = shown.columns[2].justify = "right"
    for name, make in known.items():
        mdp = make()
        line = (inspect.getdoc(make) or "").partition("\n")[0]
        shown.add_row(Text(name, style="bold"), f"{mdp.n_states:,}", f"{mdp.n_pairs:,}", Text(line))
    to = console.out()
    to.print(shown)
    to.print("\nDescribe one: tightrope problems garnet    Solve one: tightrope solve garnet:n_states=1000,seed=3", style="dim")


def _describe(name: str, make: Callable[..., MDP]) -> None:
    """The parameters with their defaults, then the documentation of the function."""
    from rich.text import Text

    settings = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default}" for p in inspect.signature(make).parameters.values()
    )
    to = console.out()
    to.print(Text.assemble((name, "bold"), f"({settings})"), soft_wrap=True)
    to.print(Text((inspect.getdoc(make) or "") + "\n"), soft_wrap=True)


def _write(name: str, path: Path) -> None:
    from tightrope.model.files import write
    from tightrope.model.locate import find

    found = find(name)
    write(found.mdp, path)
    console.out().print(console.table({"wrote": str(path), "model": f"{found.format}: {found.mdp!r}"}))
