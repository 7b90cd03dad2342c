"""One Bellman backup of a whole model, through the fused kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope import kernels
from tightrope.engine.alike import alike
from tightrope.kernels import team

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray


class Sweep(NamedTuple):
    """u = T v, its greedy pairs, and low <= T v - v <= high."""

    u: FloatArray
    rows: IntArray
    low: float
    high: float


#: Transitions, of a model or of a chain, and states whose values no cache holds.
LONG, WIDE = 1_000_000, 1_500_000
#: Transitions of a pair from which on, where they lead to neighbours, it pays to sum them four at a time.
MANY = 8


def reach(mdp: MDP) -> int:
    """The largest distance between the numbers of a state and a successor; found once for a model and its reshaped twins."""
    if "reach" not in mdp.facts:
        indptr, indices, _, _, first, _ = mdp.arrays
        mdp.facts["reach"] = int(kernels.reach(indptr, indices, first))
    found: int = mdp.facts["reach"]
    return found


def asked_for(mdp: MDP, transitions: float, v: FloatArray | tuple[()]) -> FloatArray | tuple[()] | None:
    """What backups of v by so many of the model's transitions ask for ahead of time besides these; `kernels.serial` says why."""
    if transitions < LONG or runs(mdp) is not None:
        return None
    return v if min(mdp.n_states, reach(mdp)) >= WIDE else ()


def runs(mdp: MDP) -> tuple[()] | None:
    """Whether the model's rows are `runs_of` neighbours; found once for a model and its twins."""
    if "runs" not in mdp.facts:
        mdp.facts["runs"] = runs_of(*mdp.arrays[:2])
    found: tuple[()] | None = mdp.facts["runs"]
    return found


def runs_of(indptr: Any, indices: Any) -> tuple[()] | None:
    """() where rows are runs of neighbours, and long, as `kernels.serial` asks; None elsewhere. Columns are sorted."""
    wide = len(indices) >= MANY * (len(indptr) - 1)
    return () if wide and kernels.graph.runs(indptr, indices) else None


def rows_of(mdp: MDP) -> tuple[Any, ...]:
    """The model's arrays as backups take them: a number for indptr, and for first, where all pairs, and states, have as many."""
    indptr, indices, data, r, first, gamma = mdp.arrays
    alike, (fewest, most) = mdp.width * mdp.n_pairs == mdp.n_transitions, mdp.actions_range
    lengths = (mdp.width if mdp.width > 1 else None) if alike else indptr
    return lengths, indices, data, r, most if fewest == most else first, gamma


class Sweeper:
    """Backs up value functions of one model; arrays are prepared once, ranges of states go to a thread each."""

    def __init__(self, mdp: MDP, threads: int | None = None) -> None:
        self.mdp, self.model, self.alike, self.runs = mdp, rows_of(mdp), alike(mdp), runs(mdp)
        self.threads = team.team_size(threads, mdp.n_transitions if self.alike is None else self.alike.effort)
        self.parts = team.ranges(mdp.P.indptr, mdp.first, self.threads) if self.threads > 1 else [(0, mdp.n_states)]
        self._pieces: list[tuple[Any, ...]] = [(None, None, None, None, *part) for part in self.parts]

    def backup(self, v: FloatArray | None) -> Sweep:
        """T v in fresh arrays; None is zero everywhere."""
        u = np.empty(self.mdp.n_states)
        rows = np.empty(len(u), dtype=self.mdp.first.dtype)
        return Sweep(u, rows, *(self.look_at_rewards(0.0, u, rows) if v is None else self.backup_into(v, u, rows)))

    def backup_into(
        self, v: FloatArray, u: FloatArray, rows: IntArray, pieces: list[tuple[Any, ...]] | None = None
    ) -> tuple[float, float]:
        """T v into the given arrays; returns the smallest and largest change.

        Pieces are ranges of states, each after room for the rows of P and r that the greedy policy uses there.
        """
        pieces = pieces or self._pieces
        if self.alike is None:
            arguments = (*self.model, v, u, rows, asked_for(self.mdp, self.mdp.n_transitions, v), self.runs)
            return extremes(team.each(kernels.backup, arguments, pieces, self.threads))
        *distinct, at = self.alike
        number = len(distinct[0]) - 1
        ahead, parts = np.empty(number), [(0, number)]
        if self.threads > 1:
            parts = team.ranges(distinct[0], np.arange(number + 1), self.threads)
        team.each(kernels.alike.product, (*distinct, v, ahead, self.runs), parts, self.threads)
        arguments = (*distinct, at, ahead, *self.mdp.arrays[3:], v, u, rows)
        return extremes(team.each(kernels.alike.backup, arguments, pieces, self.threads))

    def look_at_rewards(self, base: float, u: FloatArray, rows: IntArray) -> tuple[float, float]:
        """What `backup_into` comes to, up to rounding, where v is `base` everywhere: P need not be read."""
        arguments = (*self.mdp.arrays[3:], base, u, rows)
        return extremes(team.each(kernels.rounds.look_at_rewards, arguments, self.parts, self.threads))


def see_rewards(mdp: MDP, threads: int) -> None:
    """Have several threads look for `mdp.reward_range` where it is not known yet."""
    if threads > 1 and "reward_range" not in vars(mdp):
        vars(mdp)["reward_range"] = extent(mdp.r, threads)


def extent(x: FloatArray, threads: int) -> tuple[float, float]:
    """The smallest and the largest entry, looked for by so many threads at most; one if there are few."""
    threads = team.team_size(threads, len(x))
    parts = [(part,) for part in np.array_split(x, threads)] if threads > 1 else [(x,)]
    return extremes(team.each(kernels.extent, (), parts, threads))


def extremes(changes: list[tuple[float, float]]) -> tuple[float, float]:
    """The smallest and the largest change over all parts."""
    return min(low for low, _ in changes), max(high for _, high in changes)
