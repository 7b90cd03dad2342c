"""c^π(i) and the discounted visits d of one policy: the flow of one chain from μ, with certified tails."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import kernels, progress
from tightrope.kernels import unsigned
from tightrope.kernels.bounds import EPS
from tightrope.theory.interval import Interval
from tightrope.theory.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.validate import FloatArray
    from tightrope.theory.all_policies import Effort

#: Steps between two looks at whether the tail is small enough.
LOOK = 16
#: From this many states on a step is worth more than one thread.
LARGE = 50_000


@dataclass(frozen=True, eq=False)
class Flow:
    """The terms c^π(i) and lower <= Σ_i γ^i μ(P^π)^i <= upper [S], which is d_0/(1-γ)."""

    terms: Terms
    lower: FloatArray
    upper: FloatArray


def one_policy(
    P: sp.csr_array,
    mu: FloatArray,
    nu: FloatArray,
    gamma: float,
    slack: float,
    effort: Effort,
    excess: Callable[[Flow], float],
) -> tuple[Flow, bool]:
    """x_0 = μ, x_{i+1} = x_i P until excess(flow) <= 1, and whether that was reached.

    c^π(i) = max(1, max_s x_i(s)/ν(s)). If b x_n <= x_{n+1} <= a x_n then b^{i-n} x_n <= x_i <= a^{i-n} x_n for all i >= n,
    because P is non-negative: a and b close in on 1 as the chain mixes. Besides, x_i(s) is at most the largest entry of
    column s of P, and never falls where s is absorbing.
    """
    S = len(mu)
    columns = sp.csr_array(P.T)
    arrays: Any = (unsigned(columns.indptr), unsigned(columns.indices), columns.data)
    per_nu = np.divide(1.0, nu, out=np.zeros(S), where=nu > 0.0)
    noise = 2.0 * EPS * (int(np.diff(columns.indptr).max()) + 3)
    most = np.empty(S)
    kernels.theory.largest_entries(unsigned(P.indices), P.data, most)
    ceiling = max(1.0, float((np.minimum(most, 1.0) * per_nu).max()))
    absorbing = P.diagonal() == 1.0
    slip = slack + (int(np.diff(P.indptr).max()) + 1) * EPS

    x, y, visits = np.array(mu), np.empty(S), np.array(mu)
    known = [max(1.0, float((x * per_nu).max()))]
    deadline = np.inf if effort.max_seconds is None else time.monotonic() + effort.max_seconds
    workers = effort.workers if S > LARGE else 1
    cuts = np.linspace(0, S, workers + 1).astype(np.int64)
    reach = 1.0
    flow: Flow | None = None
    with ThreadPoolExecutor(workers) as pool, progress.bar("flow of the policy", None) as bar:
        each = map if workers == 1 else pool.map
        try:
            while True:
                for _ in range(LOOK):
                    reach *= gamma
                    step = partial(_step, arrays, cuts, (x, y, per_nu, reach, visits))
                    parts = list(each(step, range(workers)))
                    known.append(max(1.0, *(part[0] for part in parts)))
                    x, y = y, x
                bar.advance(LOOK, f"{len(known)} terms")
                worst = noise * (len(known) + 1.0)
                rates = Interval(min(p[2] for p in parts) * (1.0 - worst), max(p[1] for p in parts) * (1.0 + worst))
                floor = max(1.0, float((x * per_nu)[absorbing].max(initial=0.0)))
                flow = _flow(gamma, np.array(known), Interval(floor, ceiling), slip, noise, rates, x, visits, reach)
                if excess(flow) <= 1.0:
                    return flow, True
                if time.monotonic() >= deadline:
                    return flow, False
        except KeyboardInterrupt:
            if flow is None:
                raise
            return flow, False


def _step(arrays: Any, cuts: Any, step: Any, i: int) -> tuple[float, float, float]:
    """One thread's states of one step."""
    result: tuple[float, float, float] = kernels.theory.flow(*arrays, cuts[i], cuts[i + 1], *step)
    return result


def _flow(
    gamma: float,
    known: FloatArray,
    later: Interval,
    slip: float,
    noise: float,
    rates: Interval,
    x: FloatArray,
    visits: FloatArray,
    reach: float,
) -> Flow:
    """What the last step x_n and its ratios to the one before prove about everything after it."""
    slips, worst = noise * (np.arange(len(known)) + 1.0), noise * (len(known) + 1.0)
    low, high = np.maximum(1.0, known * (1.0 - slips)), np.maximum(1.0, known * (1.0 + slips))
    tail = Interval(max(1.0, later.lower * (1.0 - worst)), later.upper * (1.0 + worst))
    anchor = Interval(float(low[-1]), float(high[-1]))
    terms = Terms(gamma, low[:-1], high[:-1], tail, slip, noise, anchor, rates)
    # `visits` holds Σ_{i<=n} γ^i x_i; what follows is Σ_{i>n} γ^i x_i, between the two geometric series.
    room = 1.0 - gamma * (1.0 + slip)
    rest = reach * gamma / room if room > 0.0 else np.inf
    left = 1.0 - gamma * rates.upper
    upper = visits * (1.0 + worst) + (np.minimum(rest, x * (reach * gamma * rates.upper / left)) if left > 0.0 else rest)
    shrinking = gamma * rates.lower
    lower = visits * (1.0 - worst) + (x * (reach * shrinking / (1.0 - shrinking)) * (1.0 - worst) if shrinking < 1.0 else 0.0)
    return Flow(terms, lower, upper)
