"""PRISM's explicit files: `.tra`, with `.sta`, `.lab`, `.srew` and `.trew` beside it; in PRISM's dialect and in Storm's.

Read after the appendix "Explicit Model Files" of PRISM's manual and Storm's explicit parsers. r(s,a) is the state reward plus
the expected transition reward. A state without choices (a deadlock) stays where it is, as both tools have it.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive
from tightrope.errors import InvalidFile, NotStored
from tightrope.model.files import text
from tightrope.model.files.actions import number_actions, row_names
from tightrope.model.files.prism_companions import (
    label_lines,
    read_labels,
    read_state_names,
    read_state_rewards,
    read_transition_rewards,
    reward_files,
)
from tightrope.model.files.reading import (
    Reading,
    Wishes,
    assemble,
    by_pairs,
    choose_reward,
    firsts,
    in_range,
    initial,
    one_line,
    starting_states,
    with_deadlocks,
)
from tightrope.model.files.text import Names, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray

NAME = "PRISM explicit"
_KEYWORD = re.compile(rb"\s*([A-Za-z]+)\s*$")


@dataclass(frozen=True, eq=False, slots=True)
class _Transitions:
    """The rows of a .tra file [n each], what its header declares, and the name of each row's action."""

    source: IntArray
    choice: IntArray
    target: IntArray
    p: FloatArray
    line: IntArray
    name: IntArray
    names: list[str]
    chain: bool
    declared: tuple[int, ...]


def read(path: Path, wishes: Wishes) -> Reading:
    """The model of a .tra file and its companions."""
    rows = _transitions(path)
    S = rows.declared[0] if rows.declared else int(max(rows.source.max(), rows.target.max())) + 1
    text.plausible(path, S, len(rows.p))
    for what, found in (("source state", rows.source), ("target state", rows.target)):
        in_range(path, what, found, S, lambda at: f"line {rows.line[at]}")
    P, states, choices, row = by_pairs(rows.source, rows.choice, rows.target, rows.p, S)
    if len(rows.declared) == 3 and rows.declared[1] != len(states):
        raise InvalidFile(f"{path} declares {rows.declared[1]} choices but lists {len(states)}; it is damaged or truncated")
    notes = ["a Markov chain: every state has one action"] if rows.chain else []
    name = np.zeros(len(states), dtype=np.int64)
    name[row] = rows.name
    mixed = np.flatnonzero(name[row] != rows.name)
    if len(mixed):
        raise InvalidFile(f"{path}, line {rows.line[mixed[0]]}: another action than the other lines of this choice name")
    structures = reward_files(path)
    chosen = choose_reward(path, wishes, list(structures))
    on_states, on_moves = (None, None) if chosen is None else list(structures.values())[chosen]
    moved = np.zeros(len(states)) if on_moves is None else read_transition_rewards(on_moves, P, states, choices, chain=rows.chain)
    P, all_states, _, added = with_deadlocks(P, states, choices, S)
    r = np.zeros(len(all_states))
    kept = np.delete(np.arange(len(all_states)), added)
    r[kept] = moved
    if len(added):
        notes.append(f"{len(added)} states without choices (deadlocks) stay where they are")
    if on_states is not None:
        r = read_state_rewards(on_states, S)[all_states] + r
    first = firsts(all_states, S)
    codes = np.full(len(all_states), -1, dtype=np.int64)
    codes[kept] = name
    ids, action_names = number_actions(rows.names, codes, first, notes) if any(rows.names) else (None, None)
    labels = read_labels(path, S)
    start = initial(labels, "init", S)
    labels.pop("init", None)
    return assemble(
        path,
        NAME,
        wishes,
        gamma=None,
        P=P,
        r=r,
        first=first,
        actions=ids,
        start=start,
        state_names=read_state_names(path, S),
        action_names=action_names,
        labels=labels,
        notes=notes,
    )


def write(mdp: MDP, path: Path, labels: Mapping[str, IntArray], *, storm: bool = False) -> None:
    """The `.tra`, `.lab` and `.trew` files (and `.sta` where states have names), in PRISM's dialect or in Storm's.

    Companions that an older model left under the same name are replaced or removed: they would be read with this one.
    """
    P, pairs = mdp.P, mdp.pairs
    begin = starting_states(mdp)
    if begin is None:
        warnings.warn(
            f"{path}: the start is not uniform over some states, which .lab files cannot say; it was left out",
            NotStored,
            stacklevel=3,
        )
    if storm and mdp.reward_range[0] < 0:
        warnings.warn(
            f"{path}: Storm refuses negative rewards in .trew files; write .drn or .umb for it", NotStored, stacklevel=3
        )
    widths = np.diff(P.indptr)
    choice = np.arange(mdp.n_pairs, dtype=np.int64) - np.repeat(mdp.first[:-1], pairs.counts)
    heads = [f"{s} {c} " for s, c in zip(pairs.states.tolist(), choice.tolist(), strict=True)]
    names = row_names(mdp, path, unnamed=True)
    each = np.repeat(np.arange(mdp.n_pairs), widths).tolist()
    targets, p = P.indices.tolist(), text.written(P.data)
    tails = [""] * mdp.n_pairs if names is None else [f" {name}" if name else "" for name in names]
    sizes = "mdp\n" if storm else f"{mdp.n_states} {mdp.n_pairs} {P.nnz}\n"
    _save(path, sizes, (f"{heads[i]}{t} {x}{tails[i]}\n" for i, t, x in zip(each, targets, p, strict=True)))
    r = text.written(mdp.r)
    listed = np.flatnonzero(np.repeat(mdp.r != 0, widths))
    sizes = "" if storm else f"{mdp.n_states} {mdp.n_pairs} {len(listed)}\n"
    _save(path.with_suffix(".trew"), sizes, (f"{heads[each[k]]}{targets[k]} {r[each[k]]}\n" for k in listed.tolist()))
    if storm and any(re.search(r"\s", name) for name in labels):
        labels = {name: states for name, states in labels.items() if not re.search(r"\s", name)}
        warnings.warn(f"{path}: labels with white space in their names were left out, as Storm requires", NotStored, stacklevel=3)
    sets = {"init": begin if begin is not None else np.empty(0, dtype=np.int64), **labels}
    _save(path.with_suffix(".lab"), "", label_lines(sets, storm=storm))
    if pairs.state_names is not None:
        _save(
            path.with_suffix(".sta"), "(name)\n", (f"{s}:({name})\n" for s, name in enumerate(one_line(path, pairs.state_names)))
        )
    for stale in (".srew", *((".sta",) if pairs.state_names is None else ())):
        path.with_suffix(stale).unlink(missing_ok=True)  # of a model that had this name before


def _save(path: Path, head: str, lines: Iterator[str]) -> None:
    with archive.replacing(path) as file:
        file.write(head.encode())
        file.write("".join(lines).encode())


def _transitions(path: Path) -> _Transitions:
    header: tuple[str, ...] | None = None
    parts: list[tuple[Any, ...]] = []
    names = Names()
    for block in text.blocks(path):
        tokens = Tokens.of(block)
        if header is None and len(tokens):
            header, tokens = _header(tokens)
        if header is not None and len(tokens):
            parts.append(_rows(tokens, names, chain=header[0] == "dtmc"))
    if header is None or not parts:
        raise InvalidFile(f"{path}, line 1: it lists no transitions")
    columns: Any = [np.concatenate(column) for column in zip(*parts, strict=True)]
    declared = tuple(map(int, header[1:]))
    if declared and declared[-1] != len(columns[0]):
        raise InvalidFile(f"{path} declares {declared[-1]} transitions but lists {len(columns[0])}; it is damaged or truncated")
    source, choice, target, p, line, name = columns
    return _Transitions(source, choice, target, p, line, name, names.names, header[0] == "dtmc", declared)


def _header(tokens: Tokens) -> tuple[tuple[str, ...], Tokens]:
    """The kind of model and the sizes declared, and the tokens that follow."""
    _first, counts = tokens.by_line()
    n = int(counts[0])
    if n == 1:
        kind = tokens.text(0).lower()
        if kind not in ("mdp", "dtmc"):
            raise tokens.fail(
                0,
                "a header expected: 'mdp', 'dtmc', or the numbers of states, choices and transitions (other models are not MDPs)",
            )
        return (kind,), tokens[1:]
    if n not in (2, 3):
        raise tokens.fail(0, "a header expected: the numbers of states, choices and transitions, or 'mdp'")
    sizes = tokens[:n].whole("a size")
    return ("mdp" if n == 3 else "dtmc", *map(str, sizes.tolist())), tokens[n:]


def _rows(tokens: Tokens, names: Names, *, chain: bool) -> tuple[Any, ...]:
    """source, choice, target, p, line and action name of each line of a block."""
    first, counts = tokens.by_line()
    width = 3 if chain else 4
    bad = np.flatnonzero((counts != width) & (counts != width + 1))
    if len(bad):
        form = "source, target, probability" if chain else "source, choice, target, probability"
        raise tokens.fail(int(first[bad[0]]), f"{form} [action] expected, {counts[bad[0]]} entries on the line")
    source = tokens[first].whole("a state")
    choice = np.zeros(len(first), dtype=np.int64) if chain else tokens[first + 1].whole("a choice")
    target = tokens[first + width - 2].whole("a state")
    p = tokens[first + width - 1].real("a probability")
    named = np.flatnonzero(counts == width + 1)
    name = np.full(len(first), names(np.zeros(1, dtype=np.int64), [""])[0])
    if len(named):
        name[named] = names(*tokens[first[named] + width].words())
    return source, choice, target, p, tokens.line[first], name
