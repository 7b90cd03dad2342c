"""What every command shares on the terminal: exit codes, one way to fail, one way to warn, and the live line of a solver."""

from __future__ import annotations

import math
import sys
import warnings
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from tightrope.errors import InvalidArgument, TightropeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import Console
    from typer import Context

    from tightrope.solution import Row

#: A pipe has no width: wide enough that no line of ours is folded.
PIPE_WIDTH = 200


class Exit(IntEnum):
    """What a script can learn from the exit code."""

    CONVERGED = 0
    LIMIT = 1
    BAD_INPUT = 2
    INTERRUPTED = 130


EXIT_CODES = (
    "Exit codes: 0 done (for solve: converged, certified), 1 stopped at a limit before the tolerance was reached, "
    "2 bad input or usage, 130 interrupted."
)


class Commands(TyperGroup):
    """The commands, with every error made on purpose printed as one line instead of a traceback."""

    def invoke(self, ctx: Context) -> Any:  # type: ignore[override]  # Typer narrows click's type
        """Run a command; a wrong input is exit code 2, Ctrl-C is 130."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except TightropeError as error:
            fail(str(error))
        except BrokenPipeError:
            raise
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError as error:
            fail(f"not enough memory for this model ({error})" if str(error) else "not enough memory for this model")
        except KeyboardInterrupt:
            say("interrupted", "before there was a result")
            raise typer.Exit(Exit.INTERRUPTED) from None


def fail(message: str) -> None:
    """Say what is wrong on stderr and end with exit code 2."""
    say("error", message)
    raise typer.Exit(Exit.BAD_INPUT) from None


def say(kind: str, message: str) -> None:
    """One line on stderr, whatever its length."""
    from rich.text import Text

    colour = {"error": "bold red", "warning": "yellow"}.get(kind, "bold")
    err().print(Text.assemble((f"{kind}: ", colour), " ".join(message.split())), soft_wrap=True)


def check_output(path: Path, endings: tuple[str, ...], rule: str) -> None:
    """Refuse a name that cannot be written before hours are spent on what would be written."""
    if path.suffix.lower() not in endings:
        raise InvalidArgument(f"-o {path}: {rule}")
    if not path.parent.is_dir():
        raise InvalidArgument(f"-o {path}: there is no folder {path.parent}")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say("warning", str(message))


def out() -> Console:
    """Standard output; never folded when it is not a terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


def err() -> Console:
    """Standard error: messages and progress, so that standard output stays clean for pipes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def table(rows: dict[str, str]) -> Any:
    """Names and values in two aligned columns."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, text in rows.items():
        grid.add_row(Text(name, style="bold"), Text(text))
    return grid


@contextmanager
def live(tol: float) -> Iterator[Callable[[Row], None] | None]:
    """A callback for `solve` that draws iteration, certified gap and backups a second on stderr; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from tightrope.solution import count

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err(), transient=True) as progress:
        task = progress.add_task("first round", total=1.0, note="")
        first = 1.0  # about the relative gap of knowing nothing

        def show(row: Row) -> None:
            nonlocal first
            first = max(first, row.relative_gap) if row.relative_gap < math.inf else first
            rate = count(row.backups / max(row.seconds, 1e-9))
            progress.update(
                task,
                description=f"iteration {row.iteration}",
                completed=_share_done(first, row.relative_gap, tol),
                note=f"relative gap {row.relative_gap:.1e}  {rate} backups/s",
            )

        yield show


def _share_done(first: float, now: float, tol: float) -> float:
    """How far the gap has come from where it began to the tolerance, on a logarithmic scale."""
    if not (0.0 < tol < first < math.inf and now > 0.0):
        return 0.0
    return min(max(math.log(first / now) / math.log(first / tol), 0.0), 1.0)
