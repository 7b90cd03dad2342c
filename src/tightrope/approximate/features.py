"""Features: what a learner that generalises sees of a (state, action) pair or of a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidArgument

if TYPE_CHECKING:
    from tightrope.model.pairs import Pairs


def tabular(n: int) -> sp.csr_array:
    """One indicator per pair (or per state) [n, n]: no generalisation at all."""
    return sp.csr_array(sp.identity(n, format="csr"))


def numbered(pairs: Pairs) -> Any:
    """The number of the state, and one indicator per action [L, 1 + A]: enough for trees, not for linear learners."""
    actions = np.arange(pairs.n_actions)
    return np.column_stack([pairs.states.astype(np.float64), pairs.actions[:, None] == actions])


def by_action(states: Any, pairs: Pairs) -> sp.csr_array:
    """Features of states [S, d] copied into one block per action [L, d·A], so that a linear learner can tell actions apart."""
    phi = checked(states, pairs.n_states, "features", "state").tocsr()[pairs.states]
    L, d = phi.shape
    columns = phi.indices + np.repeat(pairs.actions.astype(np.int64) * d, np.diff(phi.indptr))
    return sp.csr_array((phi.data, columns, phi.indptr), shape=(L, d * pairs.n_actions))


def aggregated(groups: Any) -> sp.csr_array:
    """One indicator per group of states [S, groups]: state aggregation, groups[s] being the group of state s."""
    index = np.asarray(groups)
    if index.dtype.kind not in "iu" or index.ndim != 1 or (index < 0).any():
        raise InvalidArgument(f"groups must be one integer >= 0 per state; found {index.dtype} of shape {index.shape}")
    return sp.csr_array((np.ones(len(index)), (np.arange(len(index)), index)), shape=(len(index), int(index.max()) + 1))


def described(features: Any) -> str:
    """How a learner prints its features."""
    return "a table" if features is None else f"{(np.shape(features) or (0,))[-1]} features"


def checked(features: Any, n: int, name: str, what: str) -> sp.csr_array:
    """A user's features as a sparse matrix [n, d] of finite numbers."""
    try:
        matrix = sp.csr_array(features if sp.issparse(features) else np.asarray(features, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be a matrix of numbers with one row per {what}") from None
    if matrix.ndim != 2 or matrix.shape[0] != n:
        raise InvalidArgument(f"{name} must have shape ({n}, d), one row per {what}; found {matrix.shape}")
    if not np.isfinite(matrix.data).all():
        row = int(np.searchsorted(matrix.indptr, np.flatnonzero(~np.isfinite(matrix.data))[0], side="right")) - 1
        raise InvalidArgument(f"{name} of {what} {row} are not finite")
    return matrix


def of_pairs(features: Any, pairs: Pairs) -> sp.csr_array:
    """Features per pair [L, d]: given so, or per state [S, d] and then copied per action, or None for a table."""
    if features is None:
        return tabular(pairs.n_pairs)
    rows = np.shape(features)[0] if np.ndim(features) == 2 or sp.issparse(features) else -1
    if rows == pairs.n_pairs:
        return checked(features, pairs.n_pairs, "features", "pair")
    if rows == pairs.n_states:
        return by_action(features, pairs)
    raise InvalidArgument(
        f"features must have one row per pair ({pairs.n_pairs}) or one per state ({pairs.n_states}); "
        f"found shape {np.shape(features)}"
    )
