"""What stands beside a .tra file: labels (.lab), state names (.sta), state and transition rewards (.srew, .trew)."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidFile
from tightrope.model.files import text
from tightrope.model.files.reading import expected, in_range
from tightrope.model.files.text import Block, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tightrope.model.validate import FloatArray, IntArray


def companion(path: Path, suffix: str) -> Path | None:
    """The file of the same name with another suffix, if there is one."""
    beside = path.with_suffix(suffix)
    return beside if beside.is_file() else None


def read_labels(path: Path, S: int) -> dict[str, IntArray]:
    """The states of each label; none without a .lab file."""
    file = companion(path, ".lab")
    if file is None:
        return {}
    sets: dict[str, list[Any]] = {}
    meaning: dict[str, str] | None = None
    storm = False
    for block in text.blocks(file):
        part = block
        if meaning is None:
            meaning, part, storm = _declared(file, block)
            sets = {name: [np.empty(0, dtype=np.int64)] for name in meaning.values()}
        tokens = Tokens.of(part.blanked(part.data == ord(":")) if not storm else part)
        first, counts = tokens.by_line()
        states = np.repeat(tokens[first].whole("a state"), counts - 1)
        rest = np.ones(len(tokens), dtype=bool)
        rest[first] = False
        marks = tokens[rest]
        in_range(file, "state", states, S, lambda at, marks=marks: f"line {marks.line[at]}")
        codes, found = marks.words()
        for code, mark in enumerate(found):
            if mark not in meaning:
                raise marks.fail(int(np.flatnonzero(codes == code)[0]), "a declared label expected")
            sets[meaning[mark]].append(states[codes == code])
    return {name: np.unique(np.concatenate(parts)) for name, parts in sets.items()}


def _declared(file: Path, block: Block) -> tuple[dict[str, str], Block, bool]:
    """What each mark of a .lab file means, the lines that follow, and whether the dialect is Storm's.

    PRISM declares numbers, `0="init" 1="goal"`; Storm names, `#DECLARATION init goal #END`.
    """
    raw = block.data.tobytes()
    storm = re.match(rb"\s*#DECLARATION\s+([^#]*)#END", raw)
    if storm:
        return {name: name for name in storm[1].decode("utf-8", "replace").split()}, _after(block, storm.end()), True
    head = raw.lstrip().split(b"\n", 1)[0]
    pairs = re.findall(rb'(\d{1,9})="([^"]*)"', head)
    if [int(i) for i, _ in pairs] != list(range(len(pairs))) or not pairs:
        raise InvalidFile(f'{file}, line {block.numbers[0]}: labels expected, as 0="init" 1="goal" or #DECLARATION ... #END')
    return {i.decode(): name.decode("utf-8", "replace") for i, name in pairs}, _after(block, raw.index(head) + len(head)), False


def _after(block: Block, end: int) -> Block:
    return block.blanked(np.arange(len(block.data)) < end)


def label_lines(sets: Mapping[str, IntArray], *, storm: bool) -> Iterator[str]:
    """The content of a .lab file in PRISM's dialect or Storm's."""
    numbered = np.concatenate([np.asarray(states, dtype=np.int64) for states in sets.values()])
    which = np.repeat(np.arange(len(sets)), [len(states) for states in sets.values()])
    order = np.lexsort((which, numbered))
    shown = list(sets) if storm else [str(i) for i in range(len(sets))]
    yield (
        "#DECLARATION\n" + " ".join(sets) + "\n#END\n"
        if storm
        else " ".join(f'{i}="{name}"' for i, name in enumerate(sets)) + "\n"
    )
    last = -1
    for s, i in zip(numbered[order].tolist(), which[order].tolist(), strict=True):
        head = "" if last < 0 else "\n"
        yield f" {shown[i]}" if s == last else f"{head}{s}{'' if storm else ':'} {shown[i]}"
        last = s
    yield "\n" if last >= 0 else ""


def read_state_names(path: Path, S: int) -> list[str] | None:
    """Names from a .sta file: `i:(x,y)` becomes "a=x,b=y", or the text itself when the only variable is `name`."""
    file = companion(path, ".sta")
    if file is None:
        return None
    try:
        head, *lines = file.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidFile(f"{file} does not list states ({error})") from None
    variables = head.strip().removeprefix("(").removesuffix(")").split(",")
    names: list[str | None] = [None] * S
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        match = re.fullmatch(r"\s*(\d{1,18}):\((.*)\)\s*", line)
        if match is None or int(match[1]) >= S:
            raise InvalidFile(f"{file}, line {number}: 'index:(values)' with an index below {S} expected; found {line[:60]!r}")
        values = match[2].split(",")
        plain = variables == ["name"] or len(values) != len(variables)
        names[int(match[1])] = match[2] if plain else ",".join(f"{a}={x}" for a, x in zip(variables, values, strict=True))
    if None in names:
        raise InvalidFile(f"{file} does not name state {names.index(None)}")
    return [str(name) for name in names]


def reward_files(path: Path) -> dict[str, tuple[Path | None, Path | None]]:
    """The state and transition rewards (.srew, .trew) of every reward structure, by name.

    One structure has the name of the model, several have it followed by 1, 2, ...; each is called as a comment in its
    files says (`# Reward structure "time"`), else `reward` or by its number.
    """
    found: dict[str, tuple[Path | None, Path | None]] = {}
    for number in count():
        stem = path.with_name(f"{path.stem}{number or ''}{path.suffix}")
        beside = companion(stem, ".srew"), companion(stem, ".trew")
        if beside != (None, None):
            found[next(filter(None, map(_structure, beside)), str(number) if number else "reward")] = beside
        elif number:
            break
    return found


def _structure(file: Path | None) -> str | None:
    """The name of the reward structure that a comment at the top of a file states."""
    if file is None:
        return None
    with file.open("rb") as content:
        head = content.read(4096).decode("utf-8", "replace")
    stated = re.match(r'#\s*Reward structure\s+"([^"\n]+)"', head)
    return stated[1] if stated else None


def read_state_rewards(path: Path, S: int) -> FloatArray:
    """The reward of each state [S] from a .srew file."""
    (state, value), line = _entries(path, 2, S)
    in_range(path, "state", state, S, lambda at: f"line {line[at]}")
    _refuse_twins(path, state, line)
    rewards = np.zeros(S)
    rewards[state] = value
    return rewards


def _refuse_twins(path: Path, key: IntArray, line: IntArray) -> None:
    """What is given twice has no one value."""
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[order]) == 0)
    if len(twice):
        one, other = sorted(line[order[twice[0] : twice[0] + 2]].tolist())
        raise InvalidFile(f"{path}, line {other}: a reward that line {one} gives already")


def read_transition_rewards(file: Path, P: Any, states: IntArray, choices: IntArray, *, chain: bool) -> FloatArray:
    """The expected transition reward of each row of P; exactly the number given when all successors have the same."""
    columns, line = _entries(file, 3 if chain else 4, P.shape[1])
    source, target, value = columns[0], columns[-2], columns[-1]
    choice = np.zeros(len(source), dtype=np.int64) if chain else columns[1]
    S = P.shape[1]
    for what, found, limit in (("state", source, S), ("choice", choice, int(choices.max()) + 1), ("state", target, S)):
        in_range(file, what, found, limit, lambda at: f"line {line[at]}")
    width = int(choices.max()) + 1
    keys = states * width + choices
    at = np.minimum(np.searchsorted(keys, source * width + choice), len(keys) - 1)
    stray = np.flatnonzero(keys[at] != source * width + choice)
    entry, where = rows_of(P, at, target)
    stray = np.union1d(stray, np.flatnonzero(~entry))
    if len(stray):
        raise InvalidFile(f"{file}, line {line[stray[0]]}: a reward for a transition that the .tra file does not have")
    _refuse_twins(file, where, line)
    given = np.zeros(P.nnz)
    given[where] = value
    return expected(P, given)


def rows_of(P: Any, row: IntArray, target: IntArray) -> tuple[Any, IntArray]:
    """Whether P (made canonical) has an entry at each (row, target), and where in its data."""
    P.sum_duplicates()
    key = np.repeat(np.arange(P.shape[0], dtype=np.int64), np.diff(P.indptr)) * P.shape[1] + P.indices
    wanted = row * P.shape[1] + target
    at = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    return key[at] == wanted, at


def _entries(path: Path, width: int, S: int) -> tuple[list[Any], Any]:
    """The columns of a reward file (whole numbers, then one real), with or without a header of sizes and comments."""
    parts: list[tuple[Any, ...]] = []
    declared: int | None = None
    begun = False
    for block in text.blocks(path):
        tokens = Tokens.of(_without_comments(block))
        first, counts = tokens.by_line()
        if len(first) and not begun:
            begun = True
            declared = _header(tokens, int(counts[0]), width, S)
            first, counts = (first, counts) if declared is None else (first[1:], counts[1:])
        if not len(first):
            continue
        bad = np.flatnonzero(counts != width)
        if len(bad):
            raise tokens.fail(int(first[bad[0]]), f"{width} entries expected, {counts[bad[0]]} on the line")
        whole = [tokens[first + i].whole("an index") for i in range(width - 1)]
        parts.append((*whole, tokens[first + width - 1].real("a reward"), tokens.line[first]))
    none = np.empty(0, dtype=np.int64)
    parts = parts or [(*[none] * (width - 1), np.empty(0), none)]
    *columns, lines = (np.concatenate(column) for column in zip(*parts, strict=True))
    if declared is not None and declared != len(lines):
        raise InvalidFile(f"{path} declares {declared} rewards but lists {len(lines)}; it is damaged or truncated")
    return columns, lines


def _header(tokens: Tokens, entries: int, width: int, S: int) -> int | None:
    """How many rewards the first line declares, if it is a header, which begins with a number that no state has."""
    headed = entries == width - 1 or (width == 2 and entries == 2 and tokens.text(0) == str(S))
    return int(tokens[entries - 1 : entries].whole("a number of rewards")[0]) if headed else None


def _without_comments(block: Block) -> Block:
    if not (block.data == ord("#")).any():
        return block
    return block.only(block.data[block.lines()[0]] != ord("#"))
