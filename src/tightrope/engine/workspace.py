"""The arrays one solve works in: allocated once, used by every method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import kernels
from tightrope.engine.direct import factor_cost
from tightrope.engine.sweep import Sweeper, extremes
from tightrope.kernels import team, unsigned

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray

#: Blocks that Gauss-Seidel works on side by side in a large model: fixed, so that results do not depend on the number of threads.
BLOCKS = 8
#: A chain that moves one way this much more often than the other has a direction.
DRIFT = 0.3


class Workspace:
    """v, u = T v, the greedy pairs, and the chain of the greedy policy."""

    def __init__(self, mdp: MDP, v0: FloatArray | None, threads: int | None = None) -> None:
        P, S = mdp.P, mdp.n_states
        self.S, self.gamma = S, mdp.gamma
        self.nnz = P.nnz
        self.actions = mdp.n_pairs / S
        self._P, self._room = P, mdp.chain_room
        #: Whether some state cannot be left: values then most likely spread from there.
        self.has_sinks = mdp.has_sinks
        self._sweeper = Sweeper(mdp, threads)
        large = P.nnz >= 2 * team.WORTH_IT
        self._blocks = team.ranges(P.indptr[mdp.first], BLOCKS) if large else [(0, S)]
        #: Seams between blocks, each of which values cross once a sweep.
        self.seams = len(self._blocks) - 1
        # From below: a goal's value then spreads outwards at once, where from above every state would have to count down to it.
        self.v = np.full(S, mdp.reward_range[0] / (1.0 - mdp.gamma)) if v0 is None else np.array(v0, dtype=np.float64)
        self.u = np.empty(S)
        self.rows = np.empty(S, dtype=mdp.first.dtype)
        self.low = self.high = 0.0
        #: By how much a sweep of the chain shrinks the span, as last seen.
        self.mixing = 1.0
        self.backups = 0
        self._backwards = self._turn = True
        #: Whether values have spread through the model, so that the greedy policy means something.
        self.spread = v0 is not None
        #: How many chains were factorised.
        self.factorised = 0
        self._factor_cost: float | None = None
        self._chain: tuple[Any, Any, Any, Any] | None = None

    @property
    def span(self) -> float:
        """max(T v - v) - min(T v - v)."""
        return self.high - self.low

    @property
    def largest(self) -> float:
        """max |T v - v|."""
        return max(abs(self.low), abs(self.high))

    @property
    def chain_nnz(self) -> float:
        """About how many transitions the chain of a policy has."""
        return self.nnz / self.actions

    def look(self) -> None:
        """Back v up once: u, the greedy pairs and the range of the change."""
        self.low, self.high = self._sweeper.backup_into(self.v, self.u, self.rows)
        self.backups += len(self._P.indptr) - 1

    def bellman_gauss_seidel(self) -> float:
        """One Bellman sweep of v in place, turning where the chain has no drift; returns the largest change. u is scratch."""
        arguments = (*self._sweeper.model, self.v, unsigned(self.rows))
        self.backups += len(self._P.indptr) - 1
        return self._in_place(kernels.gauss_seidel, arguments)

    def extract(self) -> None:
        """Copy the greedy policy's rows together."""
        kernels.extract(*self._sweeper.pairs, unsigned(self.rows), *self._buffers())

    def policy_sweeps(self, most: int, target: float) -> int:
        """Sweeps of v along the extracted chain until the span is <= target; returns how many. u is scratch."""
        span, n, chain = self.span, 0, (*self._buffers(), self.gamma)
        if self._sweeper.threads == 1:
            n, self.low, self.high = kernels.policy_sweeps(*chain, self.v, self.u, most, target)
        else:
            while n < most and (n == 0 or self.span > target):
                changes = team.each(kernels.policy_backup, (*chain, self.v, self.u), self._sweeper.parts, self._sweeper.threads)
                self.low, self.high = extremes(changes)
                self.v, self.u = self.u, self.v
                n += 1
        self.backups += n * self.S
        self.mixing = min((self.span / span) ** (1.0 / n), 1.0) if span > 0.0 and n else 1.0
        return n

    def split_sweeps(self, most: int, target: float) -> int:
        """Gauss-Seidel sweeps of v along the greedy policy's chain; returns how many. u is scratch."""
        chain = self._buffers()
        drift = kernels.extract_split(*self._sweeper.pairs, unsigned(self.rows), self.gamma, *chain)
        # A state is best swept after those it moves to: against the drift where there is one, to and fro where there is none.
        self._turn = abs(drift) < DRIFT
        self._backwards = self._backwards if self._turn else bool(drift > 0.0)
        if len(self._blocks) == 1:
            n = int(kernels.split_sweeps(*chain, self.v, most, target, self._backwards, self._turn))
            self._backwards ^= self._turn and bool(n % 2)
        else:
            n, change = 0, np.inf
            while n < most and change > target:
                change = self._in_place(kernels.split_gauss_seidel, (*chain, self.v))
                n += 1
        self.backups += n * self.S
        return n

    def _in_place(self, kernel: Any, arguments: tuple[Any, ...]) -> float:
        """One Gauss-Seidel sweep over all blocks, each seeing the others as they were before; returns the largest change."""
        others = self.v
        if len(self._blocks) > 1:
            self.u[:] = self.v
            others = self.u
        arguments = (*arguments, self._backwards, others)
        self._backwards ^= self._turn
        return max(team.each(kernel, arguments, self._blocks, self._sweeper.threads))

    def factor_cost(self) -> float:
        """What a factorisation of the greedy policy's chain costs, in multiplications; measured once."""
        if self._factor_cost is None:
            self.extract()
            self._factor_cost = factor_cost(self.chain()[0])
        return self._factor_cost

    def take_backups(self) -> int:
        """Rows multiplied since this was last asked."""
        n, self.backups = self.backups, 0
        return n

    def chain(self) -> tuple[sp.csr_array, FloatArray]:
        """The extracted chain as SciPy sees it, sharing memory: P^π and r^π."""
        indptr, indices, data, r = self._buffers()
        n = int(indptr[-1])
        signed = self._P.indices.dtype
        return sp.csr_array((data[:n], indices[:n].view(signed), indptr.view(signed)), shape=(self.S, self.S)), r

    def _buffers(self) -> tuple[Any, Any, Any, Any]:
        if self._chain is None:
            room, index = self._room, self._sweeper.pairs[0].dtype
            self._chain = (np.empty(self.S + 1, index), np.empty(room, index), np.empty(room), np.empty(self.S))
        return self._chain
