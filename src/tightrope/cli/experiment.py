"""`tightrope experiment`: the evaluation that the paper asks for, to list, run and read."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli import console
from tightrope.errors import InvalidArgument, InvalidFile

if TYPE_CHECKING:
    from tightrope.executors import Executor
    from tightrope.experiments.experiment import Experiment, Table
    from tightrope.experiments.records import Stored
    from tightrope.experiments.runner import Old, Ran

app = typer.Typer(
    name="experiment",
    help="List, run and read the experiments: what the paper claims, put to the software.",
    no_args_is_help=True,
    add_completion=False,
)

Records = Annotated[Path, typer.Option("--records", metavar="DIR", help="The folder of the records.")]
DEFAULT = Path("records")


@app.command("list")
def list_(folder: Records = DEFAULT) -> None:
    """Say what each experiment asks, and how many of its records are there."""
    from rich.table import Table
    from rich.text import Text

    from tightrope import experiments
    from tightrope.experiments import records

    shown = Table("experiment", "quick", "full", "question", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.columns[1].justify = shown.columns[2].justify = "right"
    for name in experiments.NAMES:
        experiment = experiments.find(name)
        counts = [_count(records.load(experiment, folder, quick=quick)) for quick in (True, False)]
        shown.add_row(Text(name, style="bold"), *counts, Text(experiment.question))
    to = console.out()
    to.print(shown)
    to.print("\nRun one: tightrope experiment run theorem-1 --quick    Read it: tightrope experiment show theorem-1", style="dim")


@app.command()
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="The experiments to run, see `tightrope experiment list`; all by default.", metavar="[NAME ...]"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The quick form: fewer settings and seeds, in files of its own.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes to start; one for every core by default.")] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on the Dask scheduler at this address; 'local' starts workers here."),
    ] = None,
    folder: Records = DEFAULT,
    fresh: Annotated[bool, typer.Option("--fresh", help="Make all records anew, and drop those that are there.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Count records of other versions of the code as done.")] = False,
) -> None:
    """Make the records of experiments that are missing.

    Stop it at any time, with Ctrl-C or by force: the same command goes on where it was, and the records are the same.
    """
    from tightrope import experiments
    from tightrope.experiments import records, runner

    chosen = [experiments.find(name) for name in dict.fromkeys(names or experiments.NAMES)]
    begun = time.perf_counter()
    try:
        done = runner.run(
            *chosen, quick=quick, executor=_executor(dask, workers), folder=folder, old=_old(fresh=fresh, keep=keep)
        )
    except KeyboardInterrupt:
        left = [records.load(experiment, folder, quick=quick) for experiment in chosen]
        there, needed = sum(len(stored.entries) for stored in left), sum(stored.needed for stored in left)
        console.say("interrupted", f"{there:,} of {needed:,} records are there; the same command makes the others")
        raise typer.Exit(console.Exit.INTERRUPTED) from None
    _say_what_was_kept(done)
    made = sum(ran.made for ran in done)
    to = console.out()
    to.print(
        console.table({ran.experiment.name: f"{_count(ran.stored)}, {ran.made:,} of them new, {ran.stored.path}" for ran in done})
    )
    to.print(
        f"\n{made:,} records made in {time.perf_counter() - begun:.1f} s. Read them: tightrope experiment show {chosen[0].name}"
    )


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The experiment to read, see `tightrope experiment list`.", metavar="NAME")],
    quick: Annotated[bool, typer.Option("--quick", help="The quick form, even if there is the full one.")] = False,
    folder: Records = DEFAULT,
) -> None:
    """Print the verdict of an experiment with its interval, its tables, and the command that re-runs it."""
    from rich.text import Text

    from tightrope import experiments
    from tightrope.experiments import runner

    experiment = experiments.find(name)
    stored, short = _complete(experiment, folder, quick=quick)
    found = experiment.analyse(stored.records)
    verdict = found.verdict
    to = console.out()
    to.print(Text(f"{experiment.title}\n", style="bold"))
    interval = f"{verdict.estimate:.4g}, {100 * verdict.confidence:g} % interval [{verdict.low:.4g}, {verdict.high:.4g}]"
    rows = {
        "question": experiment.question,
        "the paper": experiment.claim,
        "verdict": f"{verdict.answer.value}. {verdict.sentence}",
        "estimate": f"{verdict.quantity}: {interval}",
        "advice": found.advice,
        "records": f"{len(stored.entries):,} of the {'quick' if short else 'full'} form, {stored.path}",
        "made by": "; ".join(_made_by(each) for each in stored.versions),
        "to re-run": runner.command(name, quick=short) + ("" if folder == DEFAULT else f" --records {folder}"),
    }
    to.print(console.table(rows))
    for table in found.tables:
        to.print()
        to.print(_drawn(table))


def _executor(dask: str | None, workers: int | None) -> Executor:
    if dask is None:
        from tightrope.executors import LocalProcesses

        return LocalProcesses(workers)
    from tightrope import extras
    from tightrope.cluster.dask import LOCAL, Dask

    extras.distributed()  # if it is missing, say so before anything is done
    if workers is not None and dask != LOCAL:
        raise InvalidArgument(f"--workers {workers}: how many workers there are at {dask} is decided where they are started")
    return Dask(dask, workers)


def _old(*, fresh: bool, keep: bool) -> Old:
    from tightrope.experiments.runner import Old

    if fresh and keep:
        raise InvalidArgument("--fresh drops the records that are there and --keep keeps them; give one of the two")
    return Old.DROP if fresh else Old.KEEP if keep else Old.REFUSE


def _say_what_was_kept(done: tuple[Ran, ...]) -> None:
    for ran in done:
        if ran.old:
            console.say("warning", f"{ran.old:,} records of {ran.experiment.name} were made by other versions and kept")
        if ran.stored.foreign:
            what = "dropped" if ran.stored.complete else "left out"
            console.say("warning", f"{ran.stored.foreign:,} records of {ran.experiment.name} are not of its grid and were {what}")


def _count(stored: Stored) -> str:
    there, needed = len(stored.entries), stored.needed
    return f"{needed:,} records" if stored.complete else f"{there:,} of {needed:,}"


def _complete(experiment: Experiment, folder: Path, *, quick: bool) -> tuple[Stored, bool]:
    """The records to read and whether they are of the quick form: the full form if it is complete."""
    from tightrope.experiments import records, runner

    forms = (True,) if quick else (False, True)
    found = {short: records.load(experiment, folder, quick=short) for short in forms}
    for short, stored in found.items():
        if stored.complete:
            return stored, short
    most = max(found, key=lambda short: len(found[short].entries) / found[short].needed)
    stored = found[most]
    raise InvalidFile(
        f"{len(stored.entries):,} of the {stored.needed:,} records in {stored.path} are there, and a verdict needs all of them. "
        f"Make them: {runner.command(experiment.name, quick=most)}"
    )


def _made_by(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {text}" for name, text in versions.items())


def _drawn(table: Table) -> Any:
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(*table.head, title=Text(table.caption), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, row in enumerate(table.rows):
        drawn.add_row(*(Text(text) for text in row), style="bold" if number == table.best else None)
    return drawn
