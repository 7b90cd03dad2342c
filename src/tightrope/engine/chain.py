"""The value of one Markov chain, v = r + γ P v: by whatever this chain turns out to be made for.

Sweeps where it mixes fast, BiCGSTAB where values run along paths or diffuse, a factorisation where that is cheap. Each is tried
for a round and judged by how far it brought the residual down; a round that did not is undone.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import kernels
from tightrope.engine.direct import eliminate, factor_cost, narrow_band, solve_chain
from tightrope.engine.monitor import Limits, Monitor
from tightrope.engine.outline import outline
from tightrope.engine.sweep import runs_of
from tightrope.kernels import unsigned
from tightrope.kernels.bounds import EPS
from tightrope.kernels.krylov import STEPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray

#: Below this many states a factorisation costs less than deciding whether to make one.
SMALL = 2_000
#: Sweeps, or products with P, in one round of a method; and sweeps to measure what it achieved.
ROUND, MEASURE = 24, 3
#: The methods of a round, by name.
METHODS = ("sweep", "krylov")
#: Most Gauss-Seidel sweeps of a policy's chain in a model with sinks before other methods are tried.
PATHS = 8 * ROUND
#: Share of a chain's moves against its drift that over-relaxation makes up for.
BEYOND = 0.5
#: Products that are left at the present rate when other methods are worth a try.
LONG = 60
#: How fast a method that did badly is given another chance.
FORGIVENESS = 1.25
#: Rounds in a row that gained less than sweeps would but for rounding, after which rounding is to blame.
IDLE = 2 * len(METHODS)


def chain_value(
    P: sp.csr_array,
    r: FloatArray,
    gamma: float,
    guess: FloatArray | None = None,
    goal: float = 0.0,
    monitor: Monitor | None = None,
) -> FloatArray:
    """The solution of v = r + γ P v to within `goal`, or as exactly as floats allow if that is less; 0 asks for just that."""
    watch = monitor or Monitor(Limits())
    if goal == 0.0 and len(r) <= SMALL:
        watch.backups += len(r)
        return solve_chain(P, r, gamma)
    work = _Rounds(P, r, gamma, np.array(r if guess is None else guess))
    gains: dict[str, float] = {}
    cost, favourite = -1.0, watch.favourite
    span = least = work.measure()
    idle = 0
    while True:
        target = max(2.0 * goal, 8.0 * EPS * float(np.abs(work.v).max()) / (1.0 - gamma))
        if span <= target or idle >= IDLE or time.perf_counter() >= watch.deadline:
            watch.backups += work.products * len(r)
            watch.favourite = favourite
            return work.centred()
        favourite = max(gains, key=gains.__getitem__, default=favourite)
        left = np.log(span / target) / gains[favourite] if gains.get(favourite, 0.0) > 0.0 else np.inf
        if gains and left > LONG:
            # Finding out what a factorisation costs takes longer than to try all methods, but for a band.
            untried = next((method for method in METHODS if method not in gains), None)
            if cost < 0.0 and (untried is None or narrow_band(P) is not None):
                cost = factor_cost(P)
            if 0.0 <= cost < left * P.nnz:
                watch.backups += (work.products + 1) * len(r)
                return solve_chain(P, r, gamma)
            favourite = untried or favourite
        work.target = target
        before, done, span = span, work.products, work.try_round(getattr(work, favourite), span)
        gains = {method: FORGIVENESS * gain for method, gain in gains.items()}
        gains[favourite] = np.log(before / span) / (work.products - done) if span > 0.0 else np.inf
        # Sweeps shrink the span by γ each, whatever the chain; twice as slow is not the chain any more.
        idle = 0 if span < least * gamma ** (0.5 * (work.products - done)) else idle + 1
        least = min(least, span)


class _Rounds:
    """v on its way to the value of a chain."""

    def __init__(self, P: sp.csr_array, r: FloatArray, gamma: float, v: FloatArray) -> None:
        self.gamma, self.v = gamma, v
        self._scratch = np.empty_like(v)
        self._arrays = (unsigned(P.indptr), unsigned(P.indices), P.data, r)
        self._runs = runs_of(*self._arrays[:2])
        self._reach = gamma / (1.0 - gamma)
        #: The chain solved for the chance of staying put, v = r' + P' v with no diagonal in P', and what BiCGSTAB works in.
        self._split: tuple[Any, ...] | None = None
        self._vectors: tuple[FloatArray, ...] = ()
        self._shift = 0.0
        #: The spread of the error to reach.
        self.target = 0.0
        #: Products with P so far.
        self.products = 0

    def measure(self) -> float:
        """A bound on the spread of the error, from the last of a few sweeps."""
        low, high = self._sweeps(MEASURE)
        self._shift = 0.5 * (low + high) * self._reach
        return (high - low) * self._reach

    def centred(self) -> FloatArray:
        """v with the constant part of its error, which the sweeps have measured, taken off."""
        self.v += self._shift
        return self.v

    def try_round(self, method: Callable[[], None], span: float) -> float:
        """One round; undone if it made things worse. Returns the new spread."""
        before = self.v.copy()
        method()
        after = self.measure()
        if after < span:
            return after
        self.v = before
        return self.measure()

    def sweep(self) -> None:
        """Plain sweeps: a constant error costs nothing, and the rest shrinks as fast as the chain mixes."""
        self._sweeps(ROUND, self.target / self._reach)

    def krylov(self) -> None:
        """BiCGSTAB, preconditioned by sweeps in place to and fro: values run along a path in one of them."""
        n = len(self.v)
        if self._split is None:
            self._split = tuple(np.empty_like(array) for array in self._arrays)
            kernels.in_place.extract_split(*self._arrays, np.arange(n, dtype=np.uint32), self.gamma, *self._split)
            self._vectors = (np.empty(n), *kernels.krylov.room(n), np.empty(n))
        goal = 0.1 * self.target * (1.0 - self.gamma)
        steps = kernels.krylov.bicgstab(*self._split, self.v, *self._vectors, 0.0, goal, STEPS, n)
        self.products += 4 * steps + 2

    def _sweeps(self, most: int, target: float = -1.0) -> tuple[float, float]:
        n, low, high = kernels.policy_sweeps(*self._arrays, self.gamma, self.v, self._scratch, self._runs, most, target)
        self.products += n
        return low, high


def chain_flow(P: sp.csr_array, mass: FloatArray, gamma: float) -> FloatArray:
    """The solution of x = mass + γ Pᵀ x: discounted visits of a chain that starts with `mass`, as exactly as floats allow."""
    backwards = sp.csr_array(P.T)
    if len(mass) <= SMALL:
        return solve_chain(backwards, mass, gamma)
    x, moving = np.array(mass), np.array(mass)
    while float(np.abs(moving).sum()) > EPS * float(np.abs(x).sum()) * (1.0 - gamma):
        moving = gamma * (backwards @ moving)
        x += moving
    return x


def policy_value(mdp: MDP, policy: Policy, guess: FloatArray | None, goal: float, monitor: Monitor) -> FloatArray:
    """v^π of a policy of a model, to within `goal`: by what is known about the model, or else about the chain."""
    rows, S = policy.rows, mdp.n_states
    band = None if rows is None else outline(mdp).band
    if band is not None:
        v = np.empty(S)
        eliminate(mdp, rows, band, monitor.room.band(mdp, band), v, monitor.threads)
        monitor.backups += S
        return v
    if rows is None or (goal == 0.0 and S <= SMALL):
        return chain_value(*policy.induced(mdp), mdp.gamma, guess, goal, monitor)
    to = monitor.room.chain(mdp)
    if guess is not None and mdp.has_sinks and goal > 0.0:
        v = np.array(guess)
        *drift, far = kernels.in_place.extract_split(*mdp.arrays[:4], rows, mdp.gamma, *to)
        backwards, turn = kernels.rounds.direction(*drift, False)
        # A move against the drift ends near where it began: that this state's value changes as its own will is a good guess.
        beyond = 0.0 if turn else BEYOND * min(drift) / sum(drift)
        to[2][: to[0][S]] *= 1.0 / (1.0 - beyond)
        to[3][:] *= 1.0 / (1.0 - beyond)
        # A sweep that changed nothing by more than c leaves a residual of at most (γ + beyond) c, and errors 1/(1-γ) as large.
        target = goal * (1.0 - mdp.gamma) / (mdp.gamma + beyond) if mdp.gamma > 0.0 else np.inf
        for _ in range(PATHS // ROUND):
            how = (ROUND, target, backwards, turn, True, beyond / (beyond - 1.0), far)
            n, change, backwards = kernels.in_place.split_sweeps(*to, v, *how)
            monitor.backups += n * S
            if change <= target or time.perf_counter() >= monitor.deadline:
                return v
        guess = v
    kernels.extract(*mdp.arrays[:4], rows, *to, 0, len(rows))
    n, index = int(to[0][S]), mdp.P.indices.dtype
    P = sp.csr_array((to[2][:n], to[1][:n].view(index), to[0][: S + 1].view(index)), shape=(S, S))
    return chain_value(P, to[3], mdp.gamma, guess, goal, monitor)


def sweep_chain(P: sp.csr_array, r: FloatArray, gamma: float, v: FloatArray, m: int, monitor: Monitor) -> FloatArray:
    """(T^π)^m v: m backups of a chain."""
    v = v.copy()
    arrays = (unsigned(P.indptr), unsigned(P.indices), P.data, r)
    kernels.policy_sweeps(*arrays, gamma, v, np.empty_like(v), runs_of(*arrays[:2]), m, -1.0)
    monitor.backups += m * len(v)
    return v
