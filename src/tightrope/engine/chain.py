"""The value of one Markov chain, v = r + γ P v: by whatever this chain turns out to be made for."""

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
    arrays = (unsigned(P.indptr), unsigned(P.indices), P.data)
    reach = gamma / (1.0 - gamma)
    before, cost, split = np.inf, -1.0, None
    while True:
        # A few plain sweeps measure the error (its span bounds it, whatever the constant part) and reduce it.
        _, low, high = kernels.policy_sweeps(*arrays, r, gamma, v, out, LOOK, 0.0)
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
            # Too large to factorise: Gauss-Seidel both ways carries values along the whole chain in one sweep.
            split = _split(P, r, gamma) if split is None else split
            kernels.split_sweeps(*split, v, 2 * LOOK, 0.0, False)
            watch.backups += 2 * LOOK * S


def _split(P: sp.csr_array, r: FloatArray, gamma: float) -> tuple[object, ...]:
    """The chain solved for the chance of staying put."""
    indptr, indices, data, shaped = np.empty_like(P.indptr), np.empty_like(P.indices), np.empty_like(P.data), np.empty_like(r)
    chain = (unsigned(P.indptr), unsigned(P.indices), P.data, r, np.arange(len(r), dtype=np.uint32))
    kernels.extract_split(*chain, gamma, unsigned(indptr), unsigned(indices), data, shaped)
    return unsigned(indptr), unsigned(indices), data, shaped


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


def sweep_chain(P: sp.csr_array, r: FloatArray, gamma: float, v: FloatArray, m: int, monitor: Monitor) -> FloatArray:
    """(T^π)^m v: m backups of a chain."""
    v = v.copy()
    kernels.policy_sweeps(unsigned(P.indptr), unsigned(P.indices), P.data, r, gamma, v, np.empty_like(v), m, -1.0)
    monitor.backups += m * len(v)
    return v
