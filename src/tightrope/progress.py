"""Progress on long work: one bar, drawn only where somebody is looking."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Bar(Protocol):
    """What a long computation reports to."""

    def advance(self, amount: float = 1, note: str = "") -> None:
        """Say that `amount` more of the total is done, and optionally a few words."""


class _Silent:
    def advance(self, amount: float = 1, note: str = "") -> None:
        pass


@contextmanager
def bar(title: str, total: float | None, *, show: bool | None = None) -> Iterator[Bar]:
    """Yield a bar for work of size `total` (None: unknown); `show=None` draws it only on a terminal."""
    if not (sys.stderr.isatty() if show is None else show):
        yield _Silent()
        return
    from rich.console import Console  # noqa: PLC0415  (rich costs 50 ms: load it when something is drawn)
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn  # noqa: PLC0415

    note = TextColumn("{task.fields[note]}")
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        note,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        task = progress.add_task(title, total=total, note="")

        class _Drawn:
            def advance(self, amount: float = 1, note: str = "") -> None:
                progress.update(task, advance=amount, note=note)

        yield _Drawn()
