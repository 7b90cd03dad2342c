"""The value of one Markov chain, v = r + γ P v: by sweeps while they converge fast, by factorisation where that is cheaper."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from tightrope import kernels
from tightrope.engine.certificate import EPS
from tightrope.engine.direct import factor_cost, solve_chain
from tightrope.engine.monitor import Limits, Monitor
from tightrope.kernels import unsigned

if TYPE_CHECKING:
    from tightrope.model.validate import FloatArray

#: Below this many states a factorisation costs less than deciding whether to make one.
SMALL = 2_000
#: Sweeps between two looks at how fast they converge.
LOOK = 16


def chain_value(
    P: sp.csr_array,
    r: FloatArray,
    gamma: float,
    guess: FloatArray | None = None,
    goal: float = 0.0,
    monitor: Monitor | None = None,
) -> FloatArray:
    """The solution of v = r + γ P v to within `goal`; 0 means as exactly as floats allow."""
    watch = monitor or Monitor(Limits())
    S = len(r)
    if goal == 0.0 and S <= SMALL:
        watch.backups += S
        return solve_chain(P, r, gamma)
    v = np.array(r if guess is None else guess)
    out = np.empty_like(v)
    arrays = (unsigned(P.indptr), unsigned(P.indices), P.data, r, gamma)
    reach = gamma / (1.0 - gamma)
    before, cost = np.inf, -1.0
    while True:
        low, high = sweep_into(arrays, v, out, LOOK)
        watch.backups += LOOK * S
        span = (high - low) * reach
        target = max(2.0 * goal, 8.0 * EPS * float(np.abs(v).max()) / (1.0 - gamma))
        if span <= target or time.perf_counter() >= watch.deadline:
            v += 0.5 * (low + high) * reach
            return v
        rate = min((span / before) ** (1.0 / LOOK), gamma) if span < before else 1.0
        remaining = np.log(target / span) / np.log(rate) if 0.0 < rate < 1.0 else 1e9 * rate
        before = span
        if remaining > 4 * LOOK:
            cost = factor_cost(P) if cost < 0.0 else cost
            if cost < remaining * P.nnz:
                watch.backups += S
                return solve_chain(P, r, gamma)


def chain_flow(P: sp.csr_array, mass: FloatArray, gamma: float) -> FloatArray:
    """The solution of x = mass + γ Pᵀ x: discounted visits of a chain that starts with `mass`, as exactly as floats allow."""
    if len(mass) <= SMALL:
        return solve_chain(sp.csr_array(P.T), mass, gamma)
    backwards = sp.csr_array(P.T)
    x, moving = np.array(mass), np.array(mass)
    while float(np.abs(moving).sum()) > EPS * max(float(np.abs(x).sum()), EPS) * (1.0 - gamma):
        moving = gamma * (backwards @ moving)
        x += moving
    return x


def sweep_chain(P: sp.csr_array, r: FloatArray, gamma: float, v: FloatArray, m: int, monitor: Monitor) -> FloatArray:
    """(T^π)^m v: m backups of a chain."""
    v = v.copy()
    sweep_into((unsigned(P.indptr), unsigned(P.indices), P.data, r, gamma), v, np.empty_like(v), m)
    monitor.backups += m * len(v)
    return v


def sweep_into(arrays: tuple[object, ...], v: FloatArray, out: FloatArray, m: int) -> tuple[float, float]:
    """m sweeps, the result in v; returns the smallest and largest change of the last one."""
    low = high = 0.0
    for i in range(m):
        here, there = (v, out) if i % 2 == 0 else (out, v)
        low, high = kernels.policy_backup(*arrays, here, there)
    if m % 2:
        v[:] = out
    return low, high
