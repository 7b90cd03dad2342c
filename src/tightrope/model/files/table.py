"""A plain CSV table: `state, action, next_state, probability, reward` per transition, states and actions by name or number."""

from __future__ import annotations

import csv
import io
import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive
from tightrope.errors import InvalidFile, NotStored
from tightrope.model.files import text
from tightrope.model.files.actions import number_actions, row_names
from tightrope.model.files.reading import Reading, Wishes, assemble, by_pairs, firsts, with_deadlocks
from tightrope.model.files.text import Block, Names, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray

NAME = "CSV table"
COLUMNS = ("state", "action", "next_state", "probability", "reward")
_ALIASES = {"next": 2, "nextstate": 2, "s'": 2, "target": 2, "prob": 3, "p": 3, "s": 0, "a": 1, "r": 4, "source": 0} | {
    name.replace("_", ""): i for i, name in enumerate(COLUMNS)
}
_CHUNK = 1 << 16


def read(path: Path, wishes: Wishes) -> Reading:
    """The model of a CSV table; names that are all whole numbers are the numbers of states or actions."""
    separator, order, headed = _head(path)
    states, actions = _Column(), _Column()
    parts = [
        (states.take(s), actions.take(a), states.take(t), p, r)
        for s, a, t, p, r in _columns(path, separator, order, headed=headed)
    ]
    if not parts:
        raise InvalidFile(f"{path}, line 1: it lists no transitions")
    places = list(zip(*parts, strict=True))
    s, t, state_names = _numbered(path, states.finish(), states.joined(places[0]), states.joined(places[2]))
    p, r = np.concatenate(places[3]), np.concatenate(places[4])
    S = int(max(s.max(), t.max())) + 1
    text.plausible(path, S, len(p))
    known, a = actions.finish(), actions.joined(places[1])
    _, at, inverse = np.unique(s * (int(a.max()) + 1) + a, return_index=True, return_inverse=True)
    P, rows_s, choice, row = by_pairs(s, a if known is None else at[inverse], t, p, S)
    code = np.empty(len(rows_s), dtype=np.int64)
    code[row] = a
    rewards = _expected(row, p, r, len(rows_s))
    P, all_s, _, added = with_deadlocks(P, rows_s, choice, S)
    kept = np.delete(np.arange(len(all_s)), added)
    full, codes = np.zeros(len(all_s)), np.full(len(all_s), 0 if known is None else -1, dtype=np.int64)
    full[kept], codes[kept] = rewards, code
    notes = [f"{len(added)} states without actions are terminal"] if len(added) else []
    first = firsts(all_s, S)
    ids, action_names = (codes, None) if known is None else number_actions(known, codes, first, notes)
    return assemble(
        path,
        NAME,
        wishes,
        gamma=None,
        P=P,
        r=full,
        first=first,
        actions=ids,
        state_names=state_names,
        action_names=action_names,
        notes=notes,
    )


def write(mdp: MDP, path: Path, labels: Mapping[str, IntArray]) -> None:
    """One row per transition; every transition of a pair repeats its expected reward."""
    pairs, P = mdp.pairs, mdp.P
    if labels or not (mdp.start == 1.0 / mdp.n_states).all():
        lost = [name for name, there in (("start", not (mdp.start == 1.0 / mdp.n_states).all()), ("labels", labels)) if there]
        warnings.warn(f"{path}: a CSV table has no place for {' and '.join(lost)}", NotStored, stacklevel=3)
    names = _state_names(mdp, path)
    actions = row_names(mdp, path, spaces=True) or pairs.actions.tolist()
    row = np.repeat(np.arange(mdp.n_pairs), np.diff(P.indptr)).tolist()
    owner, rewards = pairs.states.tolist(), text.written(mdp.r)
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(COLUMNS)
    moves = zip(row, P.indices.tolist(), text.written(P.data), strict=True)
    writer.writerows((names[owner[l]], actions[l], names[t], p, rewards[l]) for l, t, p in moves)
    with archive.replacing(path) as file:
        file.write(content.getvalue().encode())


def _state_names(mdp: MDP, path: Path) -> Any:
    names = mdp.pairs.state_names
    if names is None:
        return range(mdp.n_states)
    good = len(set(names)) == len(names) and _decimal(list(names)) is None
    if good and all(name and name == name.strip() and len(name.splitlines()) == 1 for name in names):
        return names
    warnings.warn(
        f"{path}: state names were left out; they are not distinct, or would be read as numbers", NotStored, stacklevel=4
    )
    return range(mdp.n_states)


def _head(path: Path) -> tuple[str, tuple[int, ...], bool]:
    """The separator, the place of each column, and whether the first row is a header."""
    with path.open("rb") as file:
        line = next((raw for raw in iter(lambda: file.readline(text.LINE), b"") if raw.strip() and raw[:1] != b"#"), b"")
    first = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
    separator = max(",;\t", key=first.count)
    try:
        fields = next(csv.reader([first], delimiter=separator), [])
    except csv.Error as error:
        raise InvalidFile(f"{path}, line 1: not a row of a CSV table ({error})") from None
    found = [_ALIASES.get(name.strip().lower().replace("_", "").replace(" ", ""), -1) for name in fields]
    if sorted(found) in ([0, 1, 2, 3], [0, 1, 2, 3, 4]):
        return separator, tuple(found.index(i) for i in sorted(found)), True
    if len(fields) not in (4, 5) or not _is_number(fields[3]):
        raise InvalidFile(f"{path}, line 1: the columns {', '.join(COLUMNS)} expected; found {first[:80]!r}")
    return separator, tuple(range(len(fields))), False


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _columns(path: Path, separator: str, order: tuple[int, ...], *, headed: bool) -> Iterator[tuple[Any, ...]]:
    """(codes, names) of state, action and next state, then probability and reward, block by block."""
    width = len(order)
    for block in text.blocks(path):
        if (block.data == ord('"')).any():
            break
        part = block.only(block.data[block.lines()[0]] != ord("#"))
        if not len(part.numbers):
            continue
        fields = Tokens.fields(part, separator.encode())
        first, counts = fields.by_line()
        bad = np.flatnonzero(counts != width)
        if len(bad):
            raise fields.fail(int(first[bad[0]]), f"{width} columns expected, {counts[bad[0]]} on the line")
        first = first[1:] if headed else first
        headed = False
        if not len(first):
            continue
        names = [_entry(fields[first + order[i]]) for i in range(3)]
        p = fields[first + order[3]].real("a probability")
        yield *names, p, fields[first + order[4]].real("a reward") if width == 5 else np.zeros(len(p))
    else:
        return
    yield from _quoted(path, separator, order, skip=headed, begin=block)


def _entry(fields: Tokens) -> Any:
    """A column of one block: numbers if they all are, else (codes, names)."""
    numbers = fields.numbers()
    if numbers is not None:
        return numbers
    codes, names = fields.words()
    return codes, [name.strip().lstrip("\ufeff") for name in names]


class _Column:
    """A column gathered block by block: numbers as long as there is nothing else, else names by number of appearance."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.kinds: list[bool] = []
        self.names = Names()

    def take(self, entry: Any) -> int:
        """Add a block's entry; its place among the parts."""
        self.parts.append(self.names(*entry) if isinstance(entry, tuple) else entry)
        self.kinds.append(isinstance(entry, tuple))
        return len(self.parts) - 1

    def finish(self) -> list[str] | None:
        """The names, or None when everything was a number."""
        if any(self.kinds):
            for i, named in enumerate(self.kinds):
                if not named:
                    distinct, inverse = np.unique(self.parts[i], return_inverse=True)
                    self.parts[i] = self.names(inverse, list(map(str, distinct.tolist())))
            numbers = _decimal(self.names.names)
            if numbers is None:
                return self.names.names
            self.parts = [numbers[part] for part in self.parts]
        return None

    def joined(self, places: Iterable[int]) -> IntArray:
        """The parts at the given places, one after the other."""
        return np.concatenate([self.parts[i] for i in places])


def _quoted(path: Path, separator: str, order: tuple[int, ...], *, skip: bool, begin: Block) -> Iterator[tuple[Any, ...]]:
    """As `_columns` from the given block on, for tables in which names are quoted: read by the csv module, chunk by chunk."""
    line = int(begin.numbers[0]) - 1
    with path.open(encoding="utf-8", newline="") as file:
        try:
            for _ in range(line):
                file.readline()
            reader = csv.reader((row for row in file if not row.startswith("#")), delimiter=separator, strict=True)
            while rows := [row for row in islice(reader, _CHUNK) if row]:
                body = rows[1:] if skip else rows
                skip = False
                if any(len(row) != len(order) for row in body):
                    found = next(len(row) for row in body if len(row) != len(order))
                    raise InvalidFile(f"{path}, near line {line + reader.line_num}: {len(order)} columns expected, {found} found")
                if not body:
                    continue
                columns = [list(column) for column in zip(*body, strict=True)]
                names = [_coded(columns[order[i]]) for i in range(3)]
                p = _reals(path, columns[order[3]], "a probability", line + reader.line_num)
                r = _reals(path, columns[order[4]], "a reward", line + reader.line_num) if len(order) == 5 else np.zeros(len(p))
                yield *names, p, r
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidFile(f"{path}, after line {line}: not a CSV table ({error})") from None


def _coded(column: list[str]) -> tuple[IntArray, list[str]]:
    names = Names()
    codes = names(np.arange(len(column)), [name.strip() for name in column])
    return codes, names.names


def _reals(path: Path, column: list[str], what: str, line: int) -> FloatArray:
    try:
        numbers = np.array([float(field) for field in column])
    except ValueError as error:
        raise InvalidFile(f"{path}, near line {line}: {what} expected ({error})") from None
    if not np.isfinite(numbers).all():
        raise InvalidFile(f"{path}, near line {line}: {what} must be finite")
    return numbers


def _decimal(names: list[str]) -> IntArray | None:
    """The names as whole numbers, if they all are."""
    if not all(name.isdecimal() and name.isascii() and len(name) < 10 for name in names):
        return None
    return np.array([int(name) for name in names], dtype=np.int64)


def _numbered(path: Path, names: list[str] | None, s: IntArray, t: IntArray) -> tuple[IntArray, IntArray, list[str] | None]:
    """States by number: their own, or in order of first appearance as a state, those that only appear as next states last."""
    if names is None:
        return s, t, None
    if "" in names:
        raise InvalidFile(f"{path}: a state has an empty name")
    used, at = np.unique(s, return_index=True)
    order = np.concatenate((used[np.argsort(at)], np.setdiff1d(np.arange(len(names)), used)))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[s], rank[t], [names[i] for i in order.tolist()]


def _expected(row: IntArray, p: FloatArray, r: FloatArray, n: int) -> FloatArray:
    """Σ p r over each row's transitions; the common reward itself where all are equal."""
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, row, r)
    np.maximum.at(high, row, r)
    return np.where(low == high, low, np.bincount(row, p * r, minlength=n))
