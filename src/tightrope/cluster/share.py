"""One rank's share of a model: its states with their rows, built or read here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.cluster import ranks
from tightrope.cluster.matrix import Rows
from tightrope.model import validate
from tightrope.model.function import Function
from tightrope.model.pairs import Pairs
from tightrope.model.rounding import Rounding
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy.sparse as sp

    from tightrope.model.function import Dynamics
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray

_MASK = (1 << 64) - 1


def span(n_states: int, rank: int, size: int) -> tuple[int, int]:
    """The states begin..end-1 of a rank: contiguous, and as many for each as can be."""
    return n_states * rank // size, n_states * (rank + 1) // size


@dataclass(frozen=True, eq=False, repr=False)
class Share:
    """The states begin..end-1 of a model with their pairs, seen as an MDP whose transitions reach into the shares of others.

    Everything with a length (r, start, pairs, vectors over states) is this rank's part, and so are n_states and n_pairs; every
    number that decides anything (gamma, slack, width, reward_range) is that of the whole model, the same on every rank.
    """

    comm: Any
    begin: int
    P: Rows
    r: FloatArray
    gamma: float
    pairs: Pairs
    start: FloatArray
    slack: float
    #: The largest number of successors of a pair.
    width: int
    whole: Whole
    #: What was decided while reading it.
    notes: tuple[str, ...] = ()

    @classmethod
    def of_rows(
        cls,
        comm: Any,
        n_states: int,
        gamma: float,
        rows: Any,
        *,
        start: Any = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        notes: Sequence[str] = (),
    ) -> Share:
        """Validate and assemble; `rows()` returns this rank's P [pairs, S], r, first (from 0) and action numbers (or None).

        Whatever goes wrong on one rank is raised on all of them. `start` is this rank's part of the initial distribution.
        """
        begin, end = span(n_states, comm.rank, comm.size)
        discount = validate.gamma(gamma)
        with ranks.agreeing(comm):
            P, r, first, ids = rows()
            names = None if state_names is None else tuple(state_names[begin:end])
            P, r, pairs, slack = _checked(P, r, discount, first, ids, begin, names, action_names)
            here = np.full(end - begin, 1.0 / n_states) if start is None else np.ascontiguousarray(start, dtype=np.float64)
        width = int(np.diff(P.indptr).max(initial=0))
        print_of = _fingerprint(P, r, pairs, comm.exscan(pairs.n_pairs) or 0)
        print_of = comm.allreduce(print_of) & _MASK
        slack, width = comm.allreduce(slack, op=ranks.engines()[1].MAX), comm.allreduce(width, op=ranks.engines()[1].MAX)
        actions = comm.allreduce(int(pairs.counts.max(initial=0)), op=ranks.engines()[1].MAX)
        fewest = comm.allreduce(int(pairs.counts.min(initial=2**31 - 1)), op=ranks.engines()[1].MIN)
        nbytes = sum(a.nbytes for a in (P.data, P.indices, P.indptr, r, pairs.first)) + (0 if ids is None else 4 * len(r))
        sums = ranks.total(comm, pairs.n_pairs, P.nnz, nbytes)
        whole = Whole(n_states, int(sums[0]), int(sums[1]), discount, int(sums[2]), (fewest, actions), comm.size, print_of)
        matrix = Rows.of(comm, P, end - begin)
        return cls(comm, begin, matrix, frozen(r), discount, pairs, frozen(here), slack, width, whole, tuple(notes))

    @property
    def n_states(self) -> int:
        """How many states this rank holds."""
        return self.pairs.n_states

    @property
    def n_pairs(self) -> int:
        """How many pairs this rank holds."""
        return self.pairs.n_pairs

    @property
    def first(self) -> IntArray:
        """Where each of these states' rows begin among this rank's."""
        return self.pairs.first

    @property
    def has_sinks(self) -> bool:
        """Whether values are to spread from states that cannot be left: not over ranks."""
        return False

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest reward of the whole model; first asked for by all ranks together."""
        return ranks.extremes(self.comm, float(self.r.min(initial=np.inf)), float(self.r.max(initial=-np.inf)))

    @property
    def reward_size(self) -> float:
        """max |r|."""
        low, high = self.reward_range
        return max(abs(low), abs(high))

    @cached_property
    def rounding(self) -> Rounding:
        """What rounding does to backups of the whole model."""
        return Rounding.of(self.reward_size, self.gamma, self.slack, self.width)

    def reshaped(self, r: FloatArray, gamma: float, reward_range: tuple[float, float] | None = None) -> Share:
        """The same transitions with other rewards and discount; P is shared. `reward_range` bounds the rewards of all ranks."""
        twin = replace(self, r=frozen(r), gamma=gamma)
        if reward_range is not None:
            twin.__dict__["reward_range"] = reward_range
        return twin

    def at_start(self, x: FloatArray) -> float:
        """The mean of a vector under the initial distribution, over all ranks."""
        return ranks.total(self.comm, float(self.start @ x))[0]

    def __repr__(self) -> str:
        return repr(self.whole)


@dataclass(frozen=True, repr=False)
class Whole:
    """What all ranks know about the model they share."""

    n_states: int
    n_pairs: int
    nnz: int
    gamma: float
    nbytes: int
    actions: tuple[int, int]
    ranks: int
    #: The same number for the same model, whatever the number of ranks.
    fingerprint: int

    def __repr__(self) -> str:
        low, high = self.actions
        actions = f"{low}" if low == high else f"{low} to {high}"
        size = self.nbytes / 1e6
        return (
            f"MDP({self.n_states:,} states, {self.n_pairs:,} pairs ({actions} actions a state), "
            f"{self.nnz:,} transitions, gamma={self.gamma:g}, {size:,.{1 if size >= 0.1 else 4}f} MB, "
            f"on {self.ranks} rank{'' if self.ranks == 1 else 's'})"
        )


def of_mdp(comm: Any, mdp: MDP, notes: Sequence[str] = ()) -> Share:
    """This rank's share of a model that every rank holds whole."""
    begin, end = span(mdp.n_states, comm.rank, comm.size)
    lo, hi = int(mdp.first[begin]), int(mdp.first[end])
    ids = mdp.pairs.ids

    def rows() -> tuple[Any, ...]:
        return mdp.P[lo:hi], np.array(mdp.r[lo:hi]), mdp.first[begin : end + 1] - lo, None if ids is None else ids[lo:hi]

    names = {"state_names": mdp.pairs.state_names, "action_names": mdp.pairs.action_names}
    return Share.of_rows(comm, mdp.n_states, mdp.gamma, rows, start=np.array(mdp.start[begin:end]), notes=notes, **names)


def of_function(comm: Any, function: Function, notes: Sequence[str] = ()) -> Share:
    """This rank's share of a model given as a function, built for its own states only."""
    S = function.n_states
    begin, end = span(S, comm.rank, comm.size)
    start = None
    if function.start is not None:
        with ranks.agreeing(comm):
            start = validate.distribution(function.start, S, "start")[begin:end].copy()
    quiet = function if comm.rank == 0 else replace(function, show_progress=False)
    names = {"state_names": function.state_names, "action_names": function.action_names}
    return Share.of_rows(comm, S, function.gamma, lambda: quiet.rows(begin, end), start=start, notes=notes, **names)


def from_function(
    dynamics: Dynamics,
    n_states: int,
    n_actions: int,
    gamma: float,
    *,
    terminal: Any = None,
    start: Any = None,
    action_names: Sequence[str] | None = None,
    chunk: int = 1 << 15,
    show_progress: bool | None = None,
) -> Share:
    """As `MDP.from_function`, with every rank of the job calling `dynamics` for its own states only."""
    function = Function(
        dynamics,
        n_states,
        n_actions,
        gamma,
        terminal,
        start,
        action_names=action_names,
        chunk=chunk,
        show_progress=show_progress,
    )
    return of_function(ranks.world(), function)


def _checked(
    P: Any, r: Any, discount: float, first: Any, ids: Any, begin: int, state_names: Any, action_names: Any
) -> tuple[sp.csr_array, FloatArray, Pairs, float]:
    """This rank's rows through the same door as a whole model; states are named by their number in the whole."""
    matrix = validate.transitions(P)
    if len(first) == 1:  # more ranks than states
        return matrix, np.empty(0), Pairs(np.zeros(1, dtype=np.int32), None, (), _names(action_names), begin), 0.0
    n_pairs, n_states = matrix.shape[0], len(first) - 1
    starts = validate.first_pairs(first, n_states, n_pairs)
    pairs = replace(Pairs.checked(starts, ids, state_names, action_names), begin=begin)
    matrix, slack = validate.probabilities(matrix, pairs)
    return matrix, validate.rewards(r, pairs, discount), pairs, slack


def _names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _fingerprint(P: sp.csr_array, r: FloatArray, pairs: Pairs, before: int) -> int:
    """A sum over transitions and pairs of numbers that depend on each alone, so that it does not matter who adds them up."""
    total = 0
    step = 1 << 16  # rows at a time: a few megabytes
    actions, counts = pairs.actions, pairs.counts
    for lo in range(0, P.shape[0], step):
        hi = min(lo + step, P.shape[0])
        row = np.arange(before + lo, before + hi, dtype=np.uint64)
        cut = slice(int(P.indptr[lo]), int(P.indptr[hi]))
        at = np.repeat(row, np.diff(P.indptr[lo : hi + 1]))
        total += int(_mixed(at, P.indices[cut].astype(np.uint64), P.data[cut]).sum(dtype=np.uint64))
        total += int(_mixed(row, actions[lo:hi].astype(np.uint64) + np.uint64(1 << 40), r[lo:hi]).sum(dtype=np.uint64))
    for lo in range(0, pairs.n_states, step):
        owned = counts[lo : lo + step]
        state = np.arange(pairs.begin + lo, pairs.begin + lo + len(owned), dtype=np.uint64)
        total += int(_mixed(state, owned.astype(np.uint64) + np.uint64(1 << 41), np.zeros(len(owned))).sum(dtype=np.uint64))
    return total & _MASK


def _mixed(a: Any, b: Any, x: FloatArray) -> Any:
    """64 bits in which every bit of the three depends on every other."""
    h = a * np.uint64(0x9E3779B97F4A7C15)
    for part in (b, (x + 0.0).view(np.uint64)):
        h = (h ^ (h >> np.uint64(29)) ^ part) * np.uint64(0xBF58476D1CE4E5B9)
    return (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
