"""Policies and values as tables people read: `state, action, value` in CSV or JSON, and back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive
from tightrope.errors import InvalidArgument, InvalidFile, InvalidPolicy
from tightrope.model import validate
from tightrope.model.policy import Policy

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray

_COLUMNS = ("state", "action", "probability", "value")


def write_policy(path: str | os.PathLike[str], policy: Policy, value: FloatArray) -> None:
    """One row per state (per action with positive probability when stochastic): `state, action, [probability,] value`.

    States and actions appear by name where the model has distinct names, else by number; the extension, .csv or .json, decides.
    """
    pairs = policy.pairs
    v = validate.vector(value, pairs.n_states, "value", "state")
    rows = np.flatnonzero(policy.weights) if policy.rows is None else policy.rows
    states = pairs.states[rows] if policy.rows is None else np.arange(pairs.n_states)
    columns: dict[str, list[Any]] = {
        "state": _shown(pairs.state_names, states),
        "action": _shown(pairs.action_names, pairs.actions[rows]),
    }
    if policy.rows is None:
        columns["probability"] = policy.weights[rows].tolist()
    columns["value"] = v[states].tolist()
    records = zip(*columns.values(), strict=True)
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(records)
        content = text.getvalue()
    elif suffix == ".json":
        content = json.dumps({"policy": [dict(zip(columns, record, strict=True)) for record in records]}, indent=1) + "\n"
    else:
        raise InvalidArgument(f"a policy is written to .csv or .json; found {Path(path).name!r}")
    with archive.replacing(path) as file:
        file.write(content.encode())


def read_policy(path: str | os.PathLike[str], mdp: MDP) -> tuple[Policy, FloatArray]:
    """The policy and value in a file of `write_policy`, for the model they belong to."""
    columns = _columns(Path(path))
    pairs = mdp.pairs
    states = _numbers(path, "state", columns["state"], pairs.state_names, mdp.n_states)
    actions = _numbers(path, "action", columns["action"], pairs.action_names, pairs.n_actions)
    stated = _reals(path, "value", columns["value"])
    missing = np.flatnonzero(np.bincount(states, minlength=mdp.n_states) == 0)
    if len(missing):
        raise InvalidFile(f"{path} has no row for {pairs.state(int(missing[0]))}")
    value = np.empty(mdp.n_states)
    value[states] = stated
    try:
        if "probability" not in columns:
            if len(states) > mdp.n_states:
                twice = int(np.flatnonzero(np.bincount(states) > 1)[0])
                raise InvalidFile(f"{path} has several rows for {pairs.state(twice)} but no column of probabilities")
            chosen = np.empty(mdp.n_states, dtype=np.int64)
            chosen[states] = actions
            return Policy.deterministic(mdp, chosen), value
        table = np.zeros(mdp.n_pairs)
        rows = [pairs.row(s, a) for s, a in zip(states.tolist(), actions.tolist(), strict=True)]
        np.add.at(table, rows, _reals(path, "probability", columns["probability"]))
        return Policy.stochastic(mdp, table), value
    except InvalidPolicy as error:
        raise InvalidFile(f"{path}: {error}") from None


def _columns(path: Path) -> dict[str, list[Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        if text.lstrip().startswith("{"):
            records = json.loads(text)["policy"]
            names = list(records[0])
            columns = {name: [record[name] for record in records] for name in names}
        else:
            head, *body = csv.reader(io.StringIO(text))
            names = [name.strip().lower() for name in head]
            columns = dict(zip(names, map(list, zip(*body, strict=True)), strict=True))
    except FileNotFoundError:
        raise InvalidFile(f"{path}: there is no such file") from None
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, csv.Error, RecursionError) as error:
        raise InvalidFile(f"{path} is not a table of state, action, value ({type(error).__name__}: {error})") from None
    lacking = [name for name in ("state", "action", "value") if name not in columns]
    extra = [name for name in columns if name not in _COLUMNS]
    if lacking or extra:
        raise InvalidFile(f"{path} must have the columns state, action, value (and probability); found {', '.join(names)}")
    return columns


def _shown(names: Sequence[str] | None, numbers: IntArray) -> list[Any]:
    if names is None or len(set(names)) < len(names):
        return [int(number) for number in numbers]
    return [names[number] for number in numbers.tolist()]


def _numbers(path: object, what: str, found: list[Any], names: Sequence[str] | None, limit: int) -> IntArray:
    index = {name: i for i, name in enumerate(names)} if names is not None and len(set(names)) == len(names) else {}
    numbers = np.array([index.get(str(name), -1) for name in found], dtype=np.int64)
    for at in np.flatnonzero(numbers < 0).tolist():
        text = str(found[at])
        if not text.isdecimal() or len(text) > 18 or int(text) >= limit:
            known = f"its {what}s are {', '.join(list(index)[:10])}" if index else f"its {what}s are 0 to {limit - 1}"
            raise InvalidFile(f"{path}, row {at + 1}: the model has no {what} {text!r}; {known}")
        numbers[at] = int(text)
    return numbers


def _reals(path: object, what: str, found: list[Any]) -> FloatArray:
    try:
        numbers = np.array([float(x) for x in found])
    except (TypeError, ValueError) as error:
        raise InvalidFile(f"{path}: {what} is not a number ({error})") from None
    if not np.isfinite(numbers).all():
        raise InvalidFile(f"{path}, row {int(np.flatnonzero(~np.isfinite(numbers))[0]) + 1}: {what} is not finite")
    return numbers
