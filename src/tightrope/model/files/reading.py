"""What a reader hands back, and the checks that every format shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidArgument, InvalidFile, InvalidModel, MissingDiscount
from tightrope.model.mdp import MDP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tightrope.model.validate import FloatArray, IntArray


@dataclass(frozen=True, eq=False, slots=True)
class Reading:
    """A model, where it came from, what was decided while reading it, and its named sets of states."""

    mdp: MDP
    format: str
    notes: tuple[str, ...] = ()
    labels: Mapping[str, IntArray] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([f"{self.format}: {self.mdp!r}", *(f"note: {note}" for note in self.notes)])


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller says about a file: discount, reward model, and whether numbers are costs (None: as the format says)."""

    gamma: float | None = None
    reward: str | None = None
    costs: bool | None = None


def discount(path: object, wishes: Wishes, found: float | None) -> float:
    """The discount asked for, else the one in the file, else an error that says how to give one."""
    gamma = found if wishes.gamma is None else wishes.gamma
    how = "read(path, gamma=0.99), or --gamma 0.99"
    if gamma is None:
        raise MissingDiscount(f"{path} does not state a discount; give one: {how}")
    if wishes.gamma is None and not 0.0 <= gamma < 1.0:
        raise MissingDiscount(f"{path} states the discount {gamma:g}, outside [0, 1); give another: {how}")
    return gamma


def choose_reward(path: object, wishes: Wishes, names: Sequence[str]) -> int | None:
    """The position of the reward model asked for; the only one by default, None when the file has none."""
    listed = ", ".join(repr(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")
    if wishes.reward is not None:
        if wishes.reward not in names:
            raise InvalidFile(f"{path} has no reward model {wishes.reward!r}; it has {listed or 'none'}")
        return names.index(wishes.reward)
    if len(names) > 1:
        raise InvalidFile(
            f"{path} has {len(names)} reward models: {listed}; choose one: read(path, reward={names[0]!r}), or --reward"
        )
    return 0 if names else None


def assemble(
    path: object,
    format: str,  # noqa: A002  (the word users know)
    wishes: Wishes,
    *,
    gamma: float | None,
    P: sp.csr_array,
    r: FloatArray,
    first: Any,
    actions: Any = None,
    start: Any = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    labels: Mapping[str, IntArray] | None = None,
    costs: bool = False,
    notes: Sequence[str] = (),
) -> Reading:
    """The validated model of a file; an error in its numbers names the file as well as the state and action.

    `gamma` is the discount in the file, `costs` whether the format's numbers are to be minimised.
    """
    said = list(notes)
    if costs if wishes.costs is None else wishes.costs:
        r = 0.0 - r
        said.append("costs became rewards: every number was negated, so values are minus the expected cost")
    value = discount(path, wishes, gamma)
    try:
        mdp = MDP(P, r, value, first, start, actions=actions, state_names=state_names, action_names=action_names)
    except (InvalidModel, InvalidArgument) as error:
        raise InvalidFile(f"{path}: {error}") from None
    return Reading(mdp, format, tuple(said), dict(labels or {}))


def by_pairs(
    states: IntArray, choices: IntArray, targets: IntArray, p: FloatArray, n_states: int
) -> tuple[sp.csr_array, IntArray, IntArray, IntArray]:
    """Transitions in any order as rows of pairs: P [L, S], the state and choice of each row, the row of each transition."""
    key = states.astype(np.int64)
    rising = bool(((np.diff(key) > 0) | ((np.diff(key) == 0) & (np.diff(choices) >= 0))).all())
    order = np.arange(len(key)) if rising else np.lexsort((choices, key))
    s, c = key[order], choices[order]
    new = np.ones(len(s), dtype=bool)
    new[1:] = (np.diff(s) != 0) | (np.diff(c) != 0)
    rank = np.cumsum(new) - 1
    begins = np.flatnonzero(new)
    index = np.int32 if max(len(s), n_states) < 2**31 else np.int64
    indptr = np.append(begins, len(s)).astype(index)
    P = sp.csr_array((p[order], targets[order].astype(index), indptr), shape=(len(begins), n_states))
    rows = np.empty(len(s), dtype=np.int64)
    rows[order] = rank
    return P, s[begins], c[begins], rows


def with_deadlocks(
    P: sp.csr_array, states: IntArray, choices: IntArray, n_states: int
) -> tuple[sp.csr_array, IntArray, IntArray, IntArray]:
    """One self-loop for each state that has no choice: P, the state and choice of each row, and the added rows."""
    missing = np.flatnonzero(np.bincount(states, minlength=n_states) == 0)
    if not len(missing):
        return P, states, choices, missing
    loops = sp.csr_array((np.ones(len(missing)), missing, np.arange(len(missing) + 1)), shape=(len(missing), n_states))
    order = np.argsort(np.concatenate((states, missing)), kind="stable")
    grown = sp.csr_array(sp.vstack([P, loops], format="csr")[order])
    added = np.flatnonzero(order >= len(states))
    return (
        grown,
        np.concatenate((states, missing))[order],
        np.concatenate((choices, np.zeros_like(missing)))[order],
        added,
    )


def firsts(states: IntArray, n_states: int) -> IntArray:
    """Where each state's rows begin [S+1], for rows sorted by state."""
    return np.concatenate(([0], np.cumsum(np.bincount(states, minlength=n_states))))


def initial(labels: Mapping[str, IntArray], name: str, n_states: int) -> FloatArray | None:
    """The uniform distribution over the states with the given label; None when there are none."""
    states = labels.get(name)
    if states is None or not len(states):
        return None
    start = np.zeros(n_states)
    start[states] = 1.0
    return start / len(states)


def starting_states(mdp: MDP) -> IntArray | None:
    """The states of a start that is uniform over some states; None when it is not."""
    states = np.flatnonzero(mdp.start)
    return states if (mdp.start[states] == 1.0 / len(states)).all() else None


def in_range(path: object, what: str, found: IntArray, limit: int, line: Any) -> None:
    """Refuse a number outside 0..limit-1, naming the line that `line(position)` gives."""
    bad = (found < 0) | (found >= limit)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InvalidFile(f"{path}, {line(at)}: {what} {found[at]} is outside 0 to {limit - 1}")


def one_line(path: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, refused if one would break the lines of a text file."""
    if any(name.splitlines() not in ([name], []) or name != name.strip() for name in names):
        raise InvalidFile(f"{path}: a name contains a line break or begins or ends in white space; a text file cannot hold it")
    return names


def expected(P: Any, given: FloatArray) -> FloatArray:
    """Σ p r over each row of P, where `given` [nnz] holds r; the common value itself where all are equal."""
    r, full = np.zeros(P.shape[0]), np.flatnonzero(np.diff(P.indptr))
    if len(full):
        begins = P.indptr[:-1][full]
        low, high = np.minimum.reduceat(given, begins), np.maximum.reduceat(given, begins)
        r[full] = np.where(low == high, low, np.add.reduceat(P.data * given, begins))
    return r


def rectangular(mdp: MDP, path: object) -> int:
    """The number of actions, where every state offers every one; formats that know nothing else call this."""
    A = mdp.pairs.n_actions
    if mdp.pairs.ids is not None or mdp.n_pairs != mdp.n_states * A:
        s = int(mdp.pairs.counts.argmin())
        raise InvalidArgument(
            f"{path} cannot hold this model: its format gives every state the same actions, but {mdp.pairs.state(s)} offers "
            f"{mdp.pairs.counts[s]} of {A}. Write .npz, .drn, .tra, .umb or .csv instead."
        )
    return A
