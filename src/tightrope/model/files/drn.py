"""Storm's DRN format: a header, then each state with its actions and their transitions, one a line.

Read after Storm's DirectEncodingParser and DirectEncodingExporter. r(s,a) is the state reward plus the action reward of the
reward model chosen. Our own files say the discount in a comment, `// discount: 0.9`, which Storm passes over.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope import archive
from tightrope.errors import InvalidFile, NotStored
from tightrope.model.files import text
from tightrope.model.files.actions import row_names
from tightrope.model.files.drn_body import UNNAMED, Body
from tightrope.model.files.reading import Reading, Wishes, one_line, starting_states

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import IntArray


_SECTIONS = ("@type", "@value_type", "@parameters", "@reward_models", "@nr_states", "@nr_choices")


@dataclass(frozen=True, slots=True)
class Header:
    """What a DRN file says before its first state (0 choices: not said); `offset` and `line` are where the states begin."""

    kind: str
    rewards: list[str]
    states: int
    choices: int
    gamma: float | None
    offset: int
    line: int


def read(path: Path, wishes: Wishes) -> Reading:
    """The model of a DRN file."""
    header = _header(path)
    body = Body(path, header, wishes)
    for block in text.blocks(path, header.offset, header.line):
        body.take(block)
    return body.finish(wishes)


def write(mdp: MDP, path: Path, labels: Mapping[str, IntArray]) -> None:
    """The model with its rewards as action rewards of one reward model, `reward`."""
    pairs, P = mdp.pairs, mdp.P
    begin = starting_states(mdp)
    if begin is None:
        warnings.warn(
            f"{path}: DRN marks initial states but holds no distribution over them; start was left out", NotStored, stacklevel=3
        )
    marks = [""] * mdp.n_states
    for name, states in {"init": () if begin is None else begin.tolist(), **{k: v.tolist() for k, v in labels.items()}}.items():
        shown = f' "{name}"' if re.search(r"\s|^[\[{]", name) else f" {name}"
        for s in states:
            marks[s] += shown
    names = row_names(mdp, path, unnamed=True) or [str(a) for a in pairs.actions.tolist()]
    heads = [f"\taction {name or UNNAMED} [{r}]\n" for name, r in zip(names, text.written(mdp.r), strict=True)]
    moves = [f"\t\t{t} : {p}\n" for t, p in zip(P.indices.tolist(), text.written(P.data), strict=True)]
    begins, ends = mdp.first.tolist(), P.indptr.tolist()
    shown_states = one_line(path, pairs.state_names) if pairs.state_names is not None else None

    def lines() -> Iterator[str]:
        for s in range(mdp.n_states):
            yield f"state {s}{marks[s]}\n"
            if shown_states is not None:
                yield f"//[{shown_states[s]}]\n"
            for row in range(begins[s], begins[s + 1]):
                yield heads[row]
                yield from moves[ends[row] : ends[row + 1]]

    with archive.replacing(path) as file:
        file.write(
            f"// discount: {mdp.gamma!r}\n@type: MDP\n@parameters\n\n@reward_models\nreward\n"
            f"@nr_states\n{mdp.n_states}\n@nr_choices\n{mdp.n_pairs}\n@model\n".encode()
        )
        file.write("".join(lines()).encode())


def _header(path: Path) -> Header:
    """What stands before the line `@model`."""
    found: dict[str, tuple[str, str]] = {}
    gamma, number = None, 0
    with path.open("rb") as file:
        while True:
            number += 1
            raw = file.readline(text.LINE)
            line = raw.decode("utf-8", "replace").strip()
            place = f"{path}, line {number}"
            if line == "@model":
                break
            if line.startswith("@"):
                key, _, value = line.partition(":")
                if key in found or key not in _SECTIONS:
                    raise InvalidFile(f"{place}: {_refusal(key)}; found {line[:60]!r}")
                if not value:
                    number += 1
                    value = file.readline(text.LINE).decode("utf-8", "replace")
                found[key] = (f"{path}, line {number}", value.strip())
            elif line.startswith("//"):
                stated = re.fullmatch(r"//\s*discount:\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?)", line)
                gamma = float(stated[1]) if stated else gamma
            elif line or not raw:
                raise InvalidFile(f"{place}: a header line or @model expected; found {line[:60]!r}")
        offset = file.tell()
    return _checked(path, found, gamma, offset, number + 1)


def _checked(path: Path, found: dict[str, tuple[str, str]], gamma: float | None, offset: int, line: int) -> Header:
    for key in ("@type", "@nr_states"):
        if key not in found:
            raise InvalidFile(f"{path}: the header does not give {key}")
    place, kind = found["@type"]
    if kind.upper() not in ("MDP", "DTMC", "POMDP"):
        raise InvalidFile(f"{place}: models of type {kind[:40]} are not discrete-time MDPs and are not read")
    place, values = found.get("@value_type", ("", "double"))
    if values not in ("double", "rational"):
        raise InvalidFile(f"{place}: values of type {values[:40]} are not read; only double and rational are")
    place, parameters = found.get("@parameters", ("", ""))
    if parameters:
        raise InvalidFile(f"{place}: parametric models are not read; instantiate {parameters[:60]} first")
    counts = {}
    for key in ("@nr_states", "@nr_choices"):
        place, count = found.get(key, ("", "0"))
        if not count.isdecimal() or len(count) > 18:
            raise InvalidFile(f"{place}: a number expected after {key}; found {count[:60]!r}")
        counts[key] = int(count)
    rewards = found.get("@reward_models", ("", ""))[1].split()
    return Header(kind.upper(), rewards, counts["@nr_states"], counts["@nr_choices"], gamma, offset, line)


def _refusal(key: str) -> str:
    if key == "@placeholders":
        return "placeholders are not read; export the model without them"
    return f"{key} given twice" if key in _SECTIONS else "an unknown header line"
