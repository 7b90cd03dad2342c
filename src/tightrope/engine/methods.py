"""Three ways to bring a value function nearer the optimum, each good on models where the others are poor.

Each takes the workspace after a look (u = T v and its greedy pairs known), leaves a better v behind and reports what that cost
and what finishing would cost at this rate, in multiplications. `need` is the factor by which the gap must still shrink.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.engine.certificate import EPS
from tightrope.engine.direct import solve_chain

if TYPE_CHECKING:
    from tightrope.engine.workspace import Workspace

#: Chain sweeps after which slow convergence is plain to see.
TRIAL = 16
#: Whole backups that a round of chain sweeps may cost.
PATIENCE = 8.0
#: Improvements that a policy takes to settle, whatever the method.
SETTLING = 4.0
#: Most Bellman sweeps in one round of Gauss-Seidel, and how many a fresh start spends on spreading values first.
CYCLES, SPREAD = 40, 4
#: Whole backups after which Gauss-Seidel must gain a factor of two with every Bellman sweep to go on; twice as many where there
#: is a sink, a quarter once values have spread.
BUDGET = 60.0
#: Chain sweeps between two Bellman sweeps of Gauss-Seidel.
BETWEEN = 30
#: Improvements that policy iteration takes.
IMPROVEMENTS = 12.0


class Report(NamedTuple):
    """What a round cost, and what reaching the goal by more such rounds would cost."""

    cost: float
    remaining: float


def sweep(work: Workspace, need: float) -> Report:
    """Modified policy iteration: sweeps of the greedy policy's chain until the span of the change has shrunk enough.

    Best where the chain mixes fast, because a constant error costs nothing.
    """
    work.extract()
    work.v, work.u = work.u, work.v
    goal = work.span * max(0.5 * need, min(0.1, 0.4 / work.actions))
    n = work.policy_sweeps(max(TRIAL, int(work.actions)), goal)
    if work.span > goal > 0.0 and 0.0 < work.mixing < 1.0:
        more = int(np.log(goal / work.span) / np.log(work.mixing)) + 1
        if more * work.chain_nnz <= PATIENCE * work.nnz:
            n += work.policy_sweeps(2 * more, goal)
    digits = -np.log(max(need, EPS))
    improvements = SETTLING + digits / np.log(10.0)
    sweeps = digits / -np.log(work.mixing) if 0.0 < work.mixing < 1.0 else np.inf
    return Report(work.chain_nnz * (3.0 + n), work.chain_nnz * (sweeps + 3.0 * improvements) + work.nnz * improvements)


def gauss_seidel(work: Workspace, need: float) -> Report:
    """Bellman sweeps in place, forwards and backwards in turn, with Gauss-Seidel sweeps of the greedy chain between them.

    Best where values spread from goals: one sweep carries them along a whole path.
    """
    goal = 0.5 * need * work.span
    budget = BUDGET * work.nnz * (2.0 if work.has_sinks else 1.0) * (0.25 if work.spread else 1.0)
    work.v, work.u = work.u, work.v
    cost, change, rate = 0.0, work.largest, 1.0
    for cycle in range(CYCLES):
        before, settled = change, work.spread or cycle >= SPREAD + work.seams
        if settled:
            cost += work.chain_nnz * (3.0 + 1.5 * work.split_sweeps(BETWEEN, max(0.1 * change, 0.5 * goal)))
        change = work.bellman_gauss_seidel()
        cost += 1.7 * work.nnz
        rate = change / before if settled and before > 0.0 else 1.0
        if change <= goal or (cost > budget and rate > 0.5):
            break
    work.spread = True
    if change <= goal:
        return Report(cost, work.nnz)
    cycles = np.log(goal / change) / np.log(rate) if goal > 0.0 and rate < 1.0 else np.inf
    return Report(cost, cycles * (1.7 * work.nnz + 1.5 * BETWEEN * work.chain_nnz))


def factorise(work: Workspace, need: float) -> Report:  # noqa: ARG001  (one signature for all methods)
    """Policy iteration: the greedy policy's chain solved exactly.

    Best on bands and planar graphs, where values neither mix nor spread fast.
    """
    work.extract()
    work.v = solve_chain(*work.chain(), work.gamma)
    work.factorised += 1
    cost = work.factor_cost()
    return Report(cost, max(IMPROVEMENTS - work.factorised, 2.0) * (work.nnz + cost))
