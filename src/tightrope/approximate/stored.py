"""Policies as arrays, and back: what runs and switching policies keep on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.model.pairs import Pairs
from tightrope.model.policy import Policy
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence


def pack(policies: Sequence[Policy]) -> dict[str, Any]:
    """Named arrays that hold the policies, all of one model: a row of pairs [S] or of weights [L] each."""
    pairs = policies[0].pairs
    kind = np.array([pi.is_deterministic for pi in policies])
    rows = [pi.rows for pi in policies if pi.rows is not None]
    mass = [pi.mass for pi in policies if pi.mass is not None]
    arrays = {
        "first": pairs.first,
        "deterministic": kind,
        "rows": np.array(rows) if rows else np.empty((0, pairs.n_states), dtype=pairs.first.dtype),
        "mass": np.array(mass) if mass else np.empty((0, pairs.n_pairs)),
    }
    extras = {"ids": pairs.ids, "state_names": pairs.state_names, "action_names": pairs.action_names}
    return arrays | {name: np.array(extra) for name, extra in extras.items() if extra is not None}


def unpack(arrays: dict[str, Any]) -> list[Policy]:
    """The policies, sharing one index set."""
    pairs = Pairs.checked(arrays["first"], *(arrays.get(name) for name in ("ids", "state_names", "action_names")))
    rows, mass = iter(arrays["rows"]), iter(arrays["mass"])
    return [
        Policy.of_rows(pairs, next(rows)) if deterministic else Policy(pairs, None, frozen(next(mass)))
        for deterministic in arrays["deterministic"]
    ]
