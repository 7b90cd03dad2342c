"""The door: every number and array a user hands in is checked here once, and nowhere below.

An error names the place (state, action), what was found, what was expected and what to do about it.
"""

from __future__ import annotations

import inspect
import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tightrope.errors import InvalidArgument, InvalidModel, RowsRenormalised

if TYPE_CHECKING:
    from tightrope.model.pairs import Pairs

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]

#: Row sums this far from one are what adding floats gives; they are kept as they are.
ROUNDING = 1e-12
#: Row sums this far from one are what printed files give; they are renormalised with a warning.
PRINTED = 1e-5
#: Values may be this large: sums and bounds of such still fit into a float.
LARGEST = 1e300


def users_line() -> int:
    """The stacklevel with which a warning points at the caller's first line outside this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tightrope"):
        frame, level = frame.f_back, level + 1
    return level


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view that shares the array's memory."""
    view = array.view()
    view.setflags(write=False)
    return view


def real(x: object, name: str) -> float:
    """`x` as a float, or an error that says what was found instead."""
    try:
        return float(x)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be a number; found {x!r}") from None


def finite(x: object, name: str, *, low: float = -np.inf) -> float:
    """A finite number, not below `low`."""
    value = real(x, name)
    if not (np.isfinite(value) and value >= low):
        raise InvalidArgument(f"{name} must be a finite number{'' if low == -np.inf else f' >= {low:g}'}; found {value!r}")
    return value


def generator(seed: object) -> np.random.Generator:
    """A source of random numbers: the one given, or a new one started from an integer >= 0."""
    if isinstance(seed, np.random.Generator):
        return seed
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InvalidArgument(f"seed must be an integer >= 0 or a numpy.random.Generator; found {seed!r}")
    return np.random.default_rng(int(seed))


def gamma(x: object) -> float:
    """A discount in [0, 1)."""
    try:
        value = real(x, "gamma")
    except InvalidArgument as error:
        raise InvalidModel(str(error)) from None
    if not 0.0 <= value < 1.0:
        raise InvalidModel(
            f"gamma must lie in [0, 1); found {value!r}. "
            "For an undiscounted problem choose a discount close to one, such as 0.9999."
        )
    return value


def unit(x: object, name: str, *, open_left: bool = False) -> float:
    """A number in [0, 1], or in (0, 1] when `open_left`."""
    value = real(x, name)
    if not (0.0 < value <= 1.0 if open_left else 0.0 <= value <= 1.0):
        raise InvalidArgument(f"{name} must lie in {'(' if open_left else '['}0, 1]; found {value!r}")
    return value


def kappa(x: object) -> float:
    """The parameter of a kappa-greedy policy, in [0, 1]."""
    return unit(x, "kappa")


def alpha(x: object) -> float:
    """The step of a soft update, in (0, 1]."""
    return unit(x, "alpha", open_left=True)


def positive_integer(x: object, name: str, *, low: int = 1) -> int:
    """An integer >= 1, or >= `low`."""
    if type(x) is int and x >= low:
        return x
    try:
        value = operator.index(x)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidArgument(f"{name} must be an integer >= {low}; found {x!r}") from None
    if value < low or isinstance(x, bool):
        raise InvalidArgument(f"{name} must be an integer >= {low}; found {x!r}")
    return value


def horizon(x: object) -> int:
    """The number of steps an h-greedy policy looks ahead, an integer >= 1."""
    return positive_integer(x, "h")


def vector(x: object, n: int, name: str, what: str) -> FloatArray:
    """A finite float vector of length n; `what` says what it has one entry for."""
    try:
        array = np.ascontiguousarray(floats(x))
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} must be an array of numbers") from None
    if array.shape != (n,):
        raise InvalidArgument(f"{name} must have shape ({n},), one entry per {what}; found shape {array.shape}")
    if not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidArgument(f"{name}[{at}] is {array[at]}; every entry must be finite")
    return array


def distribution(x: object, n: int, name: str, what: str = "state") -> FloatArray:
    """A probability distribution over n states (or whatever `what` says), renormalised when off by rounding only."""
    p = vector(x, n, name, what)
    if (p < 0).any():
        at = int(np.flatnonzero(p < 0)[0])
        raise InvalidArgument(f"{name}[{at}] is {p[at]:.12g}; probabilities cannot be negative")
    total = p.sum()
    if abs(total - 1.0) > PRINTED:
        raise InvalidArgument(f"{name} sums to {total:.12g}; a distribution over {what}s sums to 1. Divide it by its sum.")
    return p if abs(total - 1.0) <= ROUNDING else p / total


def integers(x: object, name: str) -> IntArray:
    """An array of integers; floats are accepted only when they are whole numbers."""
    array = np.asarray(x)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        return array.astype(np.int64)
    raise InvalidModel(f"{name} must be integers; found an array of {array.dtype} that starts {array.ravel()[:3].tolist()}")


def floats(x: object) -> FloatArray:
    """`x` as a float64 array, shared when it fits; TypeError or ValueError for text, complex numbers and ragged lists."""
    array = np.asarray(x)
    if array.dtype.kind not in "biufO":
        raise TypeError
    return array.astype(np.float64, copy=False)


def transitions(P: object) -> sp.csr_array:
    """P as a canonical CSR matrix: float64, columns sorted, duplicates summed, no explicit zeros; shared when it fits."""
    if not sp.issparse(P):
        try:
            P = floats(P)
        except (TypeError, ValueError):
            raise InvalidModel("P must be a matrix of numbers with one row per (state, action) pair") from None
    if P.ndim != 2:  # type: ignore[attr-defined]
        raise InvalidModel(
            f"P must have two dimensions [pairs, states]; found shape {P.shape}. "  # type: ignore[attr-defined]
            "For P[S, A, S] use MDP.from_dense; for one matrix per action use MDP.from_actions."
        )
    if sp.issparse(P):
        sound(P)
    given: Any = P if sp.issparse(P) and P.format == "csr" else sp.csr_array(P)  # type: ignore[attr-defined]
    # A matrix of our own, which knows nothing that was true of the other once.
    matrix = sp.csr_array((given.data.astype(np.float64, copy=False), given.indices, given.indptr), shape=given.shape)
    if not matrix.has_canonical_format or not matrix.data.all():
        if given is P:
            matrix = matrix.copy()  # tidying up works in place, and that memory is the user's
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    if matrix.indices.dtype != np.int32 and max(matrix.nnz, *matrix.shape) < 2**31:
        narrow = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
        matrix = sp.csr_array(narrow, shape=matrix.shape)
    return matrix


def sound(P: Any) -> None:
    """Refuse a sparse matrix of complex numbers or with indices out of range: SciPy alone would read past the end of arrays."""
    if P.dtype.kind not in "biuf":
        raise InvalidModel(f"P holds {P.dtype} numbers; probabilities are real")
    if P.format == "csr" and len(P.indices) and (P.indices.min() < 0 or P.indices.max() >= P.shape[1]):
        entry = int(np.flatnonzero((P.indices < 0) | (P.indices >= P.shape[1]))[0])
        row = int(np.searchsorted(P.indptr, entry, side="right")) - 1
        raise InvalidModel(
            f"row {row} of P names the successor state {P.indices[entry]}, but states are numbered 0 to {P.shape[1] - 1}; "
            "P needs one column per state"
        )
    if P.format in ("csr", "csc", "bsr"):
        try:
            P.check_format(full_check=True)
        except ValueError as error:
            raise InvalidModel(f"P is not a valid sparse matrix: {error}. Rebuild it from its entries.") from None


def first_pairs(first: object, n_states: int, n_pairs: int) -> IntArray:
    """Where each state's rows begin; by default every state has the same number of actions."""
    if n_states < 1:
        raise InvalidModel("P has no columns; a model has at least one state")
    index = np.int32 if n_pairs < 2**31 else np.int64
    if first is None:
        if n_pairs % n_states or n_pairs == 0:
            raise InvalidModel(
                f"P has {n_pairs} rows for {n_states} states, which is not the same number of actions in every state. "
                "Give first=[...] (state s owns rows first[s]:first[s+1]), or use MDP.from_pairs."
            )
        return np.arange(0, n_pairs + 1, n_pairs // n_states, dtype=index)
    array = integers(first, "first")
    if array.shape != (n_states + 1,) or array[0] != 0 or array[-1] != n_pairs:
        raise InvalidModel(
            f"first must have {n_states + 1} entries that run from 0 to {n_pairs}, the number of rows of P; "
            f"found {array.shape} running from {array.ravel()[:1]} to {array.ravel()[-1:]}"
        )
    counts = np.diff(array)
    if (counts <= 0).any():
        s = int(np.flatnonzero(counts <= 0)[0])
        raise InvalidModel(
            f"state {s} has no action (first[{s}]={array[s]}, first[{s + 1}]={array[s + 1]}); every state needs at least one. "
            "Make it terminal: one action that stays there with reward 0."
        )
    return np.ascontiguousarray(array, dtype=index)


def probabilities(P: sp.csr_array, pairs: Pairs) -> tuple[sp.csr_array, float]:
    """Refuse what is not a probability row; return P (renormalised if off by rounding) and the largest |row sum - 1|."""
    if P.nnz and not (P.data.min() >= 0 and P.data.max() < np.inf):  # also true for nan
        entry = int(np.flatnonzero(~((P.data >= 0) & (P.data < np.inf)))[0])
        row = int(np.searchsorted(P.indptr, entry, side="right")) - 1
        raise InvalidModel(
            f"P at {pairs.describe(row)} to state {P.indices[entry]} is {P.data[entry]:.12g}; "
            "a probability is a number in [0, 1]."
        )
    sums = P.sum(axis=1)
    off = float(np.abs(sums - 1.0).max())
    if off <= ROUNDING:
        return P, off
    if not off <= PRINTED:
        row = int(np.flatnonzero(~(np.abs(sums - 1.0) <= PRINTED))[0])
        raise InvalidModel(
            f"probabilities at {pairs.describe(row)} sum to {sums[row]:.12g}; they must sum to 1. "
            "Add the missing transitions (to a terminal state if the process ends there), or divide the row by its sum."
        )
    count = int((np.abs(sums - 1.0) > ROUNDING).sum())
    warnings.warn(
        f"{count} of {P.shape[0]} rows of P did not sum to 1 (off by at most {off:.2g}); they were divided by their sums",
        RowsRenormalised,
        stacklevel=users_line(),
    )
    data = P.data / np.repeat(sums, np.diff(P.indptr))
    P = sp.csr_array((data, P.indices, P.indptr), shape=P.shape)
    return P, float(np.abs(P.sum(axis=1) - 1.0).max())


def rewards(r: object, pairs: Pairs, discount: float) -> FloatArray:
    """One finite reward per pair, and no larger than what values can be computed with at this discount."""
    try:
        array = np.ascontiguousarray(floats(r))
    except (TypeError, ValueError):
        raise InvalidModel("r must be an array of numbers") from None
    if array.shape != (pairs.n_pairs,):
        raise InvalidModel(
            f"r must have shape ({pairs.n_pairs},), one reward per (state, action) pair; found shape {array.shape}. "
            "For r[S, A] use MDP.from_dense or MDP.from_actions."
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidModel(
            f"r at {pairs.describe(row)} is {array[row]}; rewards must be finite. "
            "Leave out an action that is not allowed rather than giving it an infinite cost."
        )
    limit = LARGEST * (1.0 - discount)
    if array.min() < -limit or array.max() > limit:
        row = int(np.abs(array).argmax())
        raise InvalidModel(
            f"r at {pairs.describe(row)} is {array[row]:g}; at gamma={discount:g} values may be {1.0 / (1.0 - discount):.3g} "
            "times as large, more than can be computed with. Give rewards in a larger unit."
        )
    return array
