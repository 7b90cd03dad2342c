"""Action names in files that name each choice of each state: one numbering for the whole model, and back."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import NotStored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import IntArray


def number_actions(
    names: Sequence[str], codes: IntArray, first: IntArray, notes: list[str] | None = None
) -> tuple[IntArray | None, list[str] | None]:
    """Action numbers [L] (None: 0, 1, ... in every state) and names, from the name of each row, names[codes].

    The code -1 marks the one row of a state without choices of its own; it gets the number 0.
    Names that are numbers are the action numbers. Otherwise every name gets one number such that numbers rise within each
    state. Where names repeat within a state, or states list them in contradicting orders, rows are numbered by position
    and the names are dropped, which is noted.
    """
    used = np.unique(codes[codes >= 0])
    if not len(used):
        return None, None
    if all(names[i].isdecimal() and len(names[i]) < 10 for i in used.tolist()):
        numbers = np.array([int(name) if name.isdecimal() and len(name) < 10 else -1 for name in names], dtype=np.int64)
        numbers = np.where(codes < 0, 0, numbers[codes])
        if _rising(numbers, first):
            return numbers, None
    elif all(not names[i] for i in used.tolist()):
        return None, None
    order = _order(codes, first)
    if order is not None:
        rank = np.full(len(names), -1, dtype=np.int64)
        rank[order] = np.arange(len(order))
        numbers = np.where(codes < 0, 0, rank[codes])
        if _rising(numbers, first):
            return numbers, [names[i] for i in order.tolist()]
    if notes is not None:
        notes.append("action names were dropped: no one numbering fits the order in which states list them")
    return None, None


def row_names(mdp: MDP, path: object, *, spaces: bool = False, unnamed: bool = False) -> list[str] | None:
    """The name to write for each row, so that `number_actions` finds the same numbers again; None when none is needed.

    `spaces` says that names may contain them, `unnamed` that one may be empty.
    """
    pairs = mdp.pairs
    if pairs.action_names is not None:
        names = list(pairs.action_names)
        broken = str.isspace if not spaces else "\r\n".__contains__
        plain = all(name == name.strip() and not any(map(broken, name)) and not name.isdecimal() for name in names)
        plain = plain and (unnamed or "" not in names)
        if plain and len(set(names)) == len(names):
            ids, found = number_actions(names, pairs.actions, pairs.first)
            if ids is not None and found == names[: len(found or [])] and (ids == pairs.actions).all():
                return [names[a] for a in pairs.actions.tolist()]
        warnings.warn(
            f"{path}: action names were left out: they would not read back, or not with the same numbers", NotStored, stacklevel=4
        )
    return None if pairs.ids is None else [str(a) for a in pairs.ids.tolist()]


def _rising(numbers: IntArray, first: IntArray) -> bool:
    """Whether numbers rise within each state's rows."""
    rising = np.diff(numbers) > 0
    rising[first[1:-1] - 1] = True
    return bool(rising.all())


def _order(codes: IntArray, first: IntArray) -> IntArray | None:
    """A linear order of the names that agrees with the order of every state's rows; None if there is none.

    It depends on the rows alone, not on how names were coded: what is written and what is read get the same order.
    """
    used, at, inverse = np.unique(codes, return_index=True, return_inverse=True)
    seen = np.argsort(at)
    if used[0] < 0:
        seen = seen[seen > 0]
    rank = np.full(len(used), -1)
    rank[seen] = np.arange(len(seen))
    rows, n = rank[inverse], len(seen)
    within = np.ones(max(len(rows) - 1, 0), dtype=bool)
    within[first[1:-1] - 1] = False
    before, after = np.divmod(np.unique(rows[:-1][within] * n + rows[1:][within]), n)
    waiting = np.bincount(after, minlength=n)
    begins = np.searchsorted(before, np.arange(n + 1))
    ready = [name for name in range(n - 1, -1, -1) if not waiting[name]]
    order: list[int] = []
    while ready:
        name = ready.pop()
        order.append(name)
        for then in after[begins[name] : begins[name + 1]][::-1].tolist():
            waiting[then] -= 1
            if not waiting[then]:
                ready.append(then)
    return used[seen[order]] if len(order) == n else None
