"""`tightrope convert`: a model from one format into another."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  (Typer reads the annotations)
from typing import Annotated

import typer

from tightrope.cli import console


def convert(
    source: Annotated[
        str, typer.Argument(help="A model file of any known format, a problem such as 'gridworld:height=50', or 'gym:Taxi-v4'.")
    ],
    target: Annotated[
        Path, typer.Argument(help="Where to write; .npz, .drn, .tra, .umb, .csv, .MDP, .mat or .bin says in which format.")
    ],
    gamma: Annotated[float | None, typer.Option(help="The discount, where the model states none or another is wanted.")] = None,
    reward: Annotated[str | None, typer.Option(help="Which reward model, where a file has several.")] = None,
    costs: Annotated[
        bool | None, typer.Option("--costs/--rewards", help="Read the file's numbers as costs or as rewards.", show_default=False)
    ] = None,
    storm: Annotated[bool, typer.Option("--storm", help="Write .tra files in Storm's dialect instead of PRISM's.")] = False,
) -> None:
    """Convert a model from one file format to another.

    States, actions, rewards and probabilities arrive bit for bit; what the target has no place for is named in a warning.
    """
    from tightrope.model import files, locate

    found = locate.find(source, gamma, reward, costs=costs)
    files.write(found.mdp, target, labels=found.labels, storm=storm)
    size = sum(file.stat().st_size for file in _written(target))
    rows = {
        "read": f"{found.format}: {found.mdp!r}",
        **{f"note {i}": note for i, note in enumerate(found.notes, 1)},
        "wrote": f"{', '.join(file.name for file in _written(target))} ({size:,} bytes)",
    }
    console.out().print(console.table(rows))


def _written(target: Path) -> list[Path]:
    """The file written and its companions."""
    from tightrope.model.files.petsc import costs_path

    beside = {".tra": [target.with_suffix(end) for end in (".lab", ".trew", ".sta")], ".bin": [costs_path(target)]}
    return [target, *(file for file in beside.get(target.suffix.lower(), []) if file.exists())]
