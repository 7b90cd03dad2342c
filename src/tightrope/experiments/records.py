r"""Records on disk: JSON lines, one file for each form of an experiment, appended as they come and put in order at the end.

A file is `NAME.jsonl`, for the quick form `NAME.quick.jsonl`. Its lines are

    {"experiment":"theorem-1","format":1,"versions":{"code":"0f3c...","python":"3.11.7",...},"origin":{...}}
    {"setting":{"kappa":0.5},"seed":0,"result":{"loss":0.25},"measured":{"seconds":0.0125}}

where every record was made by the versions in the nearest head above it; its origin says when and on which machine, and is
never compared. JSON has no numbers for NaN and the infinities:
they are written {"float":"nan"}, {"float":"inf"} and {"float":"-inf"}, which nothing else can look like, since settings and
results hold numbers, texts, truths and lists only. What was measured is rounded to four digits; results are exact.

A process killed in the middle of a line leaves a last line without an end: it is dropped. Any other line that does not read
is damage, and said to be.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope import archive
from tightrope.errors import InvalidFile
from tightrope.experiments.experiment import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tightrope.experiments.experiment import Experiment, Setting

#: Where records are kept unless another folder is named.
FOLDER = Path("records")
_FORMAT = 1
_PARTS = {"setting": dict, "seed": int, "result": dict, "measured": dict}


@dataclass(frozen=True)
class Entry:
    """A record with the versions that made it, and where it comes from: `date` and `machine`."""

    record: Record
    versions: dict[str, str]
    origin: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """The records of one form of an experiment that are there, in the order of its grid, of the `needed` ones."""

    path: Path
    entries: tuple[Entry, ...]
    needed: int
    #: Records in the file that the grid does not ask for; they are left out.
    foreign: int

    @property
    def records(self) -> tuple[Record, ...]:
        """What an analysis is given."""
        return tuple(entry.record for entry in self.entries)

    @property
    def versions(self) -> tuple[dict[str, str], ...]:
        """Every combination of versions that made some of them, in order of appearance; one, unless old ones were kept."""
        return tuple({json.dumps(entry.versions): entry.versions for entry in self.entries}.values())

    @property
    def origins(self) -> tuple[dict[str, str], ...]:
        """Every date and machine that made some of them, in order of appearance."""
        return tuple({json.dumps(entry.origin): entry.origin for entry in self.entries}.values())

    @property
    def complete(self) -> bool:
        """Whether all that the grid asks for are there."""
        return len(self.entries) == self.needed


def location(folder: str | os.PathLike[str], name: str, *, quick: bool) -> Path:
    """The file of one form of an experiment."""
    return Path(folder) / f"{name}{'.quick' if quick else ''}.jsonl"


def grid(experiment: Experiment, *, quick: bool) -> list[tuple[Setting, int]]:
    """Every setting with every seed, in the order of the records."""
    return [(setting, seed) for setting in experiment.settings(quick) for seed in range(experiment.seeds(quick))]


def key(setting: Setting, seed: int) -> str:
    """What identifies a record of an experiment."""
    return f"{seed} {dumps(dict(sorted(setting.items())))}"


def load(experiment: Experiment, folder: str | os.PathLike[str] = FOLDER, *, quick: bool = False) -> Stored:
    """The records of an experiment; none where there is no file yet."""
    path = location(folder, experiment.name, quick=quick)
    found = {key(entry.record.setting, entry.record.seed): entry for entry in read(path, experiment.name)}
    wanted = [key(setting, seed) for setting, seed in grid(experiment, quick=quick)]
    entries = tuple(found[name] for name in wanted if name in found)
    return Stored(path, entries, len(wanted), len(found) - len(entries))


def read(path: Path, name: str) -> list[Entry]:
    """All whole lines of a file of records, in their order."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    entries: list[Entry] = []
    at: dict[str, int] = {}
    versions: dict[str, str] | None = None
    origin: dict[str, str] = {}
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last end of a line is empty, or torn
        content = _parsed(path, number, line)
        if "versions" in content:
            versions, origin = _head(path, number, content, name)
            continue
        if versions is None:
            raise _damaged(path, number, "it is a record with no head above it that says which versions made it")
        if content.keys() != _PARTS.keys() or not all(isinstance(content[part], kind) for part, kind in _PARTS.items()):
            raise _damaged(path, number, f"a record has the parts {', '.join(_PARTS)}; found {', '.join(content) or 'none'}")
        record = Record(**content)
        first = at.setdefault(key(record.setting, record.seed), number)
        if first != number:
            raise _damaged(path, number, f"it repeats the setting and seed of line {first}")
        entries.append(Entry(record, versions, origin))
    return entries


@contextmanager
def appending(
    path: Path, name: str, versions: dict[str, str], origin: dict[str, str] | None = None, *, fresh: bool = False
) -> Iterator[Callable[[Record], None]]:
    """A function that writes one more record, after those there unless `fresh`; nobody else may write meanwhile."""
    with _alone(path) as file:
        there = path.read_bytes()
        whole = 0 if fresh else there.rfind(b"\n") + 1
        if whole < len(there):  # a torn last line goes; a file that is whole keeps its date
            os.ftruncate(file, whole)
        begun = False

        def append(record: Record) -> None:
            nonlocal begun
            text = f"{_line(record)}\n" if begun else f"{head(name, versions, origin)}\n{_line(record)}\n"
            begun = True
            _write(file, text.encode())

        try:
            yield append
        finally:
            os.fsync(file)


def rewrite(path: Path, name: str, entries: Sequence[Entry]) -> None:
    """Put a file in order, if it is not: entries as given, a head wherever it changes; all of it or nothing."""
    lines: list[str] = []
    above = ""
    for entry in entries:
        needed = head(name, entry.versions, entry.origin)
        if needed != above:
            lines.append(needed)
            above = needed
        lines.append(_line(entry.record))
    text = "".join(f"{line}\n" for line in lines).encode()
    if not path.exists() or path.read_bytes() != text:
        with archive.replacing(path) as file:
            file.write(text)


def head(name: str, versions: dict[str, str], origin: dict[str, str] | None = None) -> str:
    """The line above the records that these versions made, on a date and a machine if that is known."""
    known = {"origin": origin} if origin else {}
    return dumps({"experiment": name, "format": _FORMAT, "versions": versions, **known})


def dumps(content: Any) -> str:
    """Compact JSON of numbers, texts, truths, lists and NumPy's forms of them."""
    return json.dumps(_plain(content), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def loads(text: str | bytes) -> Any:
    """What `dumps` wrote."""
    return json.loads(text, object_hook=_number)


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(name): _plain(part) for name, part in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(part) for part in content]
    if isinstance(content, float) and not math.isfinite(content):
        return {"float": repr(float(content))}
    return _plain(content.tolist()) if hasattr(content, "tolist") and not isinstance(content, float) else content


def _number(content: dict[str, Any]) -> Any:
    if content.keys() == {"float"}:
        return float(content["float"])
    return content


def _line(record: Record) -> str:
    measured = {name: float(f"{amount:.4g}") for name, amount in record.measured.items()}
    return dumps({"setting": dict(record.setting), "seed": record.seed, "result": dict(record.result), "measured": measured})


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        content = loads(line)
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(path, number, f"it is no JSON ({error})") from None
    if not isinstance(content, dict):
        raise _damaged(path, number, f"it is no record but {type(content).__name__}")
    return content


def _head(path: Path, number: int, content: dict[str, Any], name: str) -> tuple[dict[str, str], dict[str, str]]:
    if content.get("format") != _FORMAT:
        raise InvalidFile(f"{path} has format {content.get('format')}; this release reads format {_FORMAT}. Upgrade tightrope.")
    if content.get("experiment") != name:
        raise InvalidFile(f"{path}, line {number}: these are records of {content.get('experiment')!r}, not of {name!r}")
    parts = content["versions"], content.get("origin", {})
    if not all(isinstance(part, dict) for part in parts):
        raise _damaged(path, number, "its versions or its origin are no table of names and texts")
    return parts


def _damaged(path: Path, number: int, why: str) -> InvalidFile:
    return InvalidFile(f"{path}, line {number} is damaged: {why}. Remove that line to have its record made anew.")


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    """The file, opened to append and locked; a second process that wants it is refused."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = -1
    try:
        # Between opening and locking it, the file may have been put in order and so replaced: then open the new one.
        while file < 0 or not (path.exists() and os.path.samestat(os.fstat(file), path.stat())):
            if file >= 0:
                os.close(file)
            file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            _lock(file, path)
        yield file
    finally:
        if file >= 0:
            os.close(file)


def _lock(file: int, path: Path) -> None:
    try:
        import fcntl  # noqa: PLC0415  (not on every system; without it two runs at once are the user's care)
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidFile(f"{path} is being written by another run; wait for it, or use another folder: --records DIR") from None


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]
