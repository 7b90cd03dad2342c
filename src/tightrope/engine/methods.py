"""Three ways to bring a value function nearer the optimum, each good on models where the others are poor.

Each takes the workspace after a look (u = T v and its greedy pairs known) and leaves a better v behind; it returns what that
cost, in multiplications. `need` is the factor by which the gap must still shrink.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tightrope.engine.direct import solve_chain

if TYPE_CHECKING:
    from tightrope.engine.workspace import Workspace

#: Chain sweeps after which slow convergence is plain to see.
TRIAL = 16
#: Whole backups that a round of chain sweeps may cost.
PATIENCE = 8.0
#: Most Bellman sweeps in one round of Gauss-Seidel, and how many a fresh start spends on spreading values first.
CYCLES, SPREAD = 12, 4


def sweep(work: Workspace, need: float) -> float:
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
    return work.chain_nnz * (3.0 + n)


def gauss_seidel(work: Workspace, need: float) -> float:
    """Bellman sweeps in place, forwards and backwards in turn, with Gauss-Seidel sweeps of the greedy chain between them.

    Best where values spread from goals: one sweep carries them along a whole path.
    """
    work.v, work.u = work.u, work.v
    cost, first, change, slow = 0.0, 0.0, work.largest, 0
    for cycle in range(CYCLES):
        before, settled = change, work.spread or cycle >= SPREAD
        if settled:
            cost += work.chain_nnz * (3.0 + 1.5 * work.split_sweeps(30, 0.1 * change))
        change = work.bellman_gauss_seidel()
        cost += 1.7 * work.nnz
        first = first or change
        slow += settled and change > 0.5 * before
        if slow == 2 or change <= first * min(0.5, need):
            break
    work.spread = True
    return cost


def factorise(work: Workspace, need: float) -> float:  # noqa: ARG001  (one signature for all methods)
    """Policy iteration: the greedy policy's chain solved exactly.

    Best on bands and planar graphs, where values neither mix nor spread fast.
    """
    work.extract()
    work.v = solve_chain(*work.chain(), work.gamma)
    return work.factor_cost()
