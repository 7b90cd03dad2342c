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
    return arrays if pairs.ids is None else arrays | {"ids": pairs.ids}


def unpack(arrays: dict[str, Any]) -> list[Policy]:
    """The policies, sharing one index set."""
    pairs = Pairs.checked(arrays["first"], arrays.get("ids"), None, None)
    rows, mass = iter(arrays["rows"]), iter(arrays["mass"])
    return [
        Policy.of_rows(pairs, next(rows)) if deterministic else Policy(pairs, None, frozen(next(mass)))
        for deterministic in arrays["deterministic"]
    ]
