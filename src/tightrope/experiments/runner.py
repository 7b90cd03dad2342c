"""Running experiments: what is missing is made, every record is kept as soon as it is there, and versions are never mixed."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from tightrope import progress
from tightrope.errors import OtherVersion, TaskFailed
from tightrope.executors import Failed, LocalProcesses
from tightrope.experiments import records
from tightrope.experiments.experiment import Record
from tightrope.experiments.records import FOLDER, Entry, Stored
from tightrope.experiments.versions import differing, origin, versions

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tightrope.executors import Executor
    from tightrope.experiments.experiment import Experiment, Outcome, Setting


class Old(Enum):
    """What to do with records that other versions have made."""

    REFUSE = "stop and say so"
    KEEP = "count them as done"
    DROP = "make all records anew"


@dataclass(frozen=True)
class Ran:
    """What a run did for one experiment: all its records now, and how many of them it made itself."""

    experiment: Experiment
    stored: Stored
    made: int
    #: Records of other versions that were counted as done.
    old: int


def run(
    *experiments: Experiment,
    quick: bool = False,
    executor: Executor | None = None,
    folder: str | os.PathLike[str] = FOLDER,
    old: Old = Old.REFUSE,
    show: bool | None = None,
) -> tuple[Ran, ...]:
    """Make the records that are missing; a run stopped at any time, even by kill -9, is continued by running again.

    Args:
        experiments: any number of them; their tasks share the executor and one progress bar.
        quick: the quick form instead of the full one; their records never meet.
        executor: where tasks run; None: a process for every core.
        folder: where the records are.
        old: what to do with records that other versions made.
        show: whether to draw a progress bar; None: on a terminal only.

    Raises:
        OtherVersion: there are records of other versions, and `old` does not say what to do with them.
        TaskFailed: some tasks raised; the records of all others are there.
    """
    with ExitStack() as stack:
        parts = [stack.enter_context(_part(experiment, folder, quick, old)) for experiment in experiments]
        tasks = [(part, setting, seed) for part in parts for setting, seed in part.missing]
        failures = _execute(tasks, executor or LocalProcesses(), show)
        done = tuple(part.finish() for part in parts)
    if failures:
        part, setting, seed, failed = failures[0]
        raise TaskFailed(
            f"{len(failures)} of {len(tasks)} tasks failed; the records of the others are kept. The first to fail was "
            f"{part.experiment.name} with setting {records.dumps(dict(setting))} and seed {seed}: {failed.reason}. "
            "Once that is mended, the same command makes what is missing.",
            failed.trace,
        )
    return done


def command(name: str, *, quick: bool) -> str:
    """What to type to make the records of an experiment."""
    return f"tightrope experiment run {name}{' --quick' if quick else ''}"


@dataclass(frozen=True, eq=False)
class _Part:
    """One experiment of a run: its file, held open, and what is in it."""

    experiment: Experiment
    path: Path
    grid: list[tuple[Setting, int]]
    #: What a record made now carries, and what writes it.
    now: dict[str, str]
    here: dict[str, str]
    append: Callable[[Record], None]
    before: dict[str, Entry]
    made: list[Entry] = field(default_factory=list)

    @property
    def missing(self) -> list[tuple[Setting, int]]:
        return [(setting, seed) for setting, seed in self.grid if records.key(setting, seed) not in self.before]

    def keep(self, setting: Setting, seed: int, outcome: Outcome) -> None:
        record = Record(setting, seed, outcome.result, outcome.measured)
        self.append(record)
        self.made.append(Entry(record, self.now, self.here))

    def finish(self) -> Ran:
        """Count what is there; when nothing is missing, put the file in order."""
        found = {**self.before, **{records.key(entry.record.setting, entry.record.seed): entry for entry in self.made}}
        entries = tuple(found[name] for name in (records.key(*place) for place in self.grid) if name in found)
        stored = Stored(self.path, entries, len(self.grid), len(found) - len(entries))
        if stored.complete:
            records.rewrite(self.path, self.experiment.name, entries)
        old = sum(entry.versions != self.now for entry in entries)
        return Ran(self.experiment, stored, len(self.made), old)


@contextmanager
def _part(experiment: Experiment, folder: str | os.PathLike[str], quick: bool, old: Old) -> Iterator[_Part]:
    path = records.location(folder, experiment.name, quick=quick)
    now, here = versions(experiment.run), origin()
    with records.appending(path, experiment.name, now, here, fresh=old is Old.DROP) as append:
        entries = records.read(path, experiment.name)
        if old is Old.REFUSE:
            _refuse_others(path, entries, now)
        before = {records.key(entry.record.setting, entry.record.seed): entry for entry in entries}
        yield _Part(experiment, path, records.grid(experiment, quick=quick), now, here, append, before)


def _refuse_others(path: Path, entries: list[Entry], now: dict[str, str]) -> None:
    other = [entry.versions for entry in entries if entry.versions != now]
    if other:
        raise OtherVersion(
            f"{path}: {len(other)} of its {len(entries)} records were made by another version ({differing(other[0], now)}), "
            "and results of different code are not mixed. --keep counts them as done all the same, --fresh makes all anew, "
            "--records DIR begins elsewhere."
        )


def _execute(
    tasks: list[tuple[_Part, Setting, int]], executor: Executor, show: bool | None
) -> list[tuple[_Part, Setting, int, Failed]]:
    """Run all tasks, keeping every record at once; those that failed, in the order of the tasks."""
    failures: dict[int, Failed] = {}
    calls = [(part.experiment.run, part.now, dict(setting), seed) for part, setting, seed in tasks]
    with progress.bar("experiments", len(tasks), show=show) as bar, closing(executor.run(_make, calls)) as answers:
        for index, answer in answers:
            part, setting, seed = tasks[index]
            if isinstance(answer, Failed):
                failures[index] = answer
            else:
                part.keep(setting, seed, answer)
            bar.advance(1, f"{part.experiment.name} {len(part.before) + len(part.made)}/{len(part.grid)}")
    return [(*tasks[index], failures[index]) for index in sorted(failures)]


def _make(call: tuple[Callable[[Setting, int], Outcome], dict[str, str], Setting, int]) -> Outcome:
    """One setting and seed, where the executor wants it; what cannot be written down fails here, where its place is known."""
    function, now, setting, seed = call
    loaded = _loaded(function)
    if loaded != now:
        raise OtherVersion(f"this worker has another version than the run began with ({differing(now, loaded)})")
    begun = time.perf_counter()
    outcome = function(setting, seed)
    measured = {"seconds": time.perf_counter() - begun, **outcome.measured}
    return replace(outcome, result=records.loads(records.dumps(dict(outcome.result))), measured=measured)


@cache
def _loaded(function: Callable[[Setting, int], Outcome]) -> dict[str, str]:
    """The versions as they were when this process first needed them: it may be on another machine, or outlive an edit."""
    return versions(function)
