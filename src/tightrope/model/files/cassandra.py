"""Cassandra's text format for MDPs and POMDPs (`.MDP`, `.POMDP`), as pomdp-solve reads it.

Of a POMDP the underlying MDP is read: r(s,a) = Σ_s' P(s'|s,a) Σ_o O(o|a,s') R(a,s,s',o). A later line overrides an earlier one.
Read after the file format's specification and the grammar of pomdp-solve's parser.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

import numpy as np

from tightrope import archive
from tightrope.errors import InvalidFile, NotStored
from tightrope.model.files import text
from tightrope.model.files.cassandra_parser import RESERVED, Parser
from tightrope.model.files.reading import Reading, Wishes, assemble, rectangular, starting_states

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import IntArray

NAME = "Cassandra"
#: Files of this format are written by hand or by scripts; larger ones are refused rather than expanded.
_LARGEST = 1 << 28


def read(path: Path, wishes: Wishes) -> Reading:
    """The MDP of a file, or the MDP underlying its POMDP."""
    if path.stat().st_size > _LARGEST:
        raise InvalidFile(f"{path} has more than {_LARGEST:,} bytes; convert it to a sparse format first")
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not text (byte {error.start})") from None
    model = Parser(path, content).parse()
    P = model.transitions()
    notes = ["the underlying MDP of a POMDP: observations are ignored"] if model.observations else []
    S, A = len(model.states), len(model.actions)
    return assemble(
        path,
        f"{NAME} {'POMDP' if model.observations else 'MDP'}",
        wishes,
        gamma=model.discount,
        P=P,
        r=model.rewards(P),
        first=np.arange(0, S * A + 1, A),
        start=model.start,
        state_names=model.states.names,
        action_names=model.actions.names,
        costs=model.costs,
        notes=notes,
    )


def write(mdp: MDP, path: Path, labels: Mapping[str, IntArray]) -> None:
    """An MDP file; every state must offer every action, because the format has no other."""
    A = rectangular(mdp, path)
    begin = starting_states(mdp)
    lost = ["labels"] if labels else []
    head = [f"discount: {mdp.gamma!r}", "values: reward"]
    for word, names, n in (("states", mdp.pairs.state_names, mdp.n_states), ("actions", mdp.pairs.action_names, A)):
        good = names is not None and len(names) == n and len(set(names)) == n and all(map(_is_name, names))
        lost += [f"{word[:-1]} names"] if names is not None and not good else []
        head.append(f"{word}: {' '.join(names) if good and names is not None else n}")
    if begin is not None and len(begin) == 1:
        head.append(f"start: {begin[0]}")
    elif not (mdp.start == 1.0 / mdp.n_states).all():
        lost.append("start")
    if lost:
        warnings.warn(f"{path}: an MDP file of this format has no place for {', '.join(lost)}", NotStored, stacklevel=3)
    states, actions = mdp.pairs.states.tolist(), mdp.pairs.actions.tolist()
    row = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.P.indptr)).tolist()
    moves = zip(row, mdp.P.indices.tolist(), text.written(mdp.P.data), strict=True)
    with archive.replacing(path) as file:
        file.write(("\n".join(head) + "\n\n").encode())
        file.write("".join(f"T: {actions[l]} : {states[l]} : {t} {p}\n" for l, t, p in moves).encode())
        rewards = zip(actions, states, text.written(mdp.r), strict=True)
        file.write("".join(f"R: {a} : {s} : * {r}\n" for a, s, r in rewards).encode())


def _is_name(name: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name)) and name not in RESERVED
