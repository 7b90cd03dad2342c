"""Five ways to bring a value function nearer the optimum, each good on models where the others are poor.

Each takes the workspace, after a look (u = T v and its greedy pairs known) unless it is fresh, and leaves a better v behind. What
it returns can tell, if the round was not enough, what that cost and what finishing would cost at this rate, in multiplications.
"""

from __future__ import annotations

import math
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope import kernels
from tightrope.engine.direct import solve_chain
from tightrope.engine.downstream import downstream_round
from tightrope.engine.outline import components, numbered
from tightrope.engine.rounds import SCATTERED, factor_round, gauss_seidel_round, sweep_round
from tightrope.kernels.bounds import EPS
from tightrope.kernels.krylov import STEPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.engine.outline import Parts
    from tightrope.engine.workspace import Workspace

#: Chain sweeps after which slow convergence is plain to see.
TRIAL = 16
#: Whole backups that a round of chain sweeps may cost.
PATIENCE = 8.0
#: Backups of the whole model that sweeps take where they are the right method.
QUICK = 20.0
#: Backups of the whole model that other methods may take before Gauss-Seidel is tried; so many horizons 1/(1-γ) where those are
#: less and the numbers of states mean something: values come several steps nearer with a sweep.
HOPE, HORIZONS = 70.0, 2.0
#: Improvements that a policy takes to settle, whatever the method.
SETTLING = 4.0
#: Most Bellman sweeps in one round of Gauss-Seidel.
CYCLES = 40
#: Whole backups after which Gauss-Seidel must gain a factor of two with every Bellman sweep to go on; twice as many where there
#: is a sink, a quarter once values have spread.
BUDGET = 60.0
#: Improvements in one round of sweeps of a small model.
IN_A_ROW = 12
#: Improvements that policy iteration takes.
IMPROVEMENTS = 12.0


#: Transitions from which on BiCGSTAB takes so many sweeps that loops are worth compiling.
MANY = 5_000
#: Fewest steps of BiCGSTAB before the policy is looked at again, and the multiplications by a chain that more may take.
FEWEST, LONG = 8, 3e8
#: Whole backups after which a round of BiCGSTAB improves the policy no more, unless components are solved one by one.
ENOUGH = 120.0
#: States of components that are solved in one call.
BATCH = 100_000
#: What a search through a chain and its value in the order found take, in multiplications for each of its transitions.
SEARCH = 8.0
#: What elimination costs for each pair that a state may choose on the way, as a share of what it costs for each state.
CHOOSING = 0.5


class Report(NamedTuple):
    """What a round cost, what reaching the goal by more such rounds would cost, and how many policies that is judged by."""

    cost: float
    remaining: float
    policies: int = 1


def sweep(work: Workspace) -> Callable[[], Report]:
    """Modified policy iteration: sweeps of the greedy policy's chain until the span of the change has shrunk enough.

    Best where the chain mixes fast, because a constant error costs nothing.
    """
    look = work.effort / work.chain_nnz
    share, trial = min(0.1, 0.4 / look), max(TRIAL, int(look))
    improved = 1
    if work.small:
        enough = QUICK * work.actions if hope(work) < HOPE else inf
        improved, n = sweep_round(work, share, trial, PATIENCE * look, enough, work.improvements)
    else:
        work.look_at_rewards()
        told = work.chain_span, work.span, work.mixing, PATIENCE * look
        work.share = kernels.rounds.deeper(work.share, share, *told)
        goal = max(0.5 * work.goal / work.gap, work.share) * work.span
        work.take_chain()
        work.take_backup()
        n = work.policy_sweeps(trial, goal)
        if work.span > goal > 0.0 and 0.0 < work.mixing < 1.0:
            more = int(math.log(goal / work.span) / math.log(work.mixing)) + 1
            if more <= PATIENCE * look:
                n += work.policy_sweeps(2 * more, goal)
        work.chain_span = work.span

    def report() -> Report:
        digits = -math.log(max(work.goal / work.gap, EPS))
        improvements = SETTLING + digits / math.log(10.0)
        sweeps = digits / -math.log(work.mixing) if 0.0 < work.mixing < 1.0 else inf
        cost = work.chain_nnz * (3.0 * improved + n) + work.effort * (improved - 1)
        return Report(cost, work.chain_nnz * (sweeps + 3.0 * improvements) + work.effort * improvements, improved)

    return report


def hope(work: Workspace) -> float:
    """The backups of the whole model that Gauss-Seidel is hoped to take, until it is tried.

    An order that was found before says nothing here: the same model is always solved alike.
    """
    horizons = HORIZONS / (1.0 - work.gamma)
    return horizons if horizons < HOPE and numbered(work.mdp) else HOPE


def gauss_seidel(work: Workspace) -> Callable[[], Report]:
    """Bellman sweeps in place with Gauss-Seidel sweeps of the greedy chain between them, against its drift where it has one.

    Best where values spread from goals: one sweep carries them along a whole path.
    """
    budget = max(BUDGET * work.nnz * (2.0 if work.spreads else 1.0) * (0.25 if work.spread else 1.0), kernels.rounds.BRIEF)
    work.take_backup(centre=True)
    if work.spread or not work.spreads:
        work.arrange()
    if not work.spreads:
        work.base = -inf  # sweeps begin with v as it is, be it zeros
    run = gauss_seidel_round if work.small else _cycles
    bellman, chain, change, goal, rate = run(work, budget, CYCLES)
    work.spread = True

    def report() -> Report:
        cost = 1.7 * work.nnz * bellman + work.chain_nnz * (3.0 * (bellman - 1) + 1.5 * chain)
        if change <= goal:
            return Report(cost, work.nnz)
        cycles = math.log(goal / change) / math.log(rate) if goal > 0.0 and 0.0 < rate < 1.0 else inf
        return Report(cost, cycles * cost / bellman)

    return report


def krylov(work: Workspace) -> Callable[[], Report]:
    """Policy iteration whose chains are evaluated by BiCGSTAB, component by component where the model falls into many.

    Best where values diffuse: networks of queues, walks without a goal, models in which few states can be come back to.
    """
    work.take_backup(centre=True)
    work.arrange()
    parts = components(work.mdp, *work.order)
    work.in_parts = parts.many
    most = (4 if parts.many else 1) * work.improvements
    steps = max(FEWEST, min(STEPS, int(LONG / work.chain_nnz)))
    enough = inf if parts.many else ENOUGH * work.nnz / (1.5 * work.chain_nnz) * work.S
    if work.nnz > MANY:
        kernels.tiers.compile_loops()
    before, lo, last = work.improved, 0, len(parts.begin) - 1
    missed = pairs = states = 0
    while lo < last and not work.late:
        hi = max(lo + 1, int(np.searchsorted(parts.begin, parts.begin[lo] + BATCH, side="right")) - 1)
        # A large part is improved once in a call, so that somebody who wants to stop need not wait for long.
        calls, times = (most, 1) if parts.begin[hi] - parts.begin[lo] > BATCH else (1, most)
        left = 1
        for _ in range(calls):
            left, computed, swept = improve_parts(work, parts, lo, hi, (times, steps, enough))
            pairs, states = pairs + computed, states + swept
            if left == 0 or work.late:
                break
        missed, lo = missed + left, hi

    def report() -> Report:
        cost = 1.7 * work.nnz * pairs / work.pairs + 1.5 * work.chain_nnz * states / work.S
        if missed == 0:
            return Report(cost, work.nnz)
        if parts.many:
            return Report(cost, cost)
        return Report(cost, max(0.5 * IMPROVEMENTS - work.improved, 2.0) * cost / (work.improved - before))

    return report


def improve_parts(work: Workspace, parts: Parts, lo: int, hi: int, limits: tuple[int, int, float]) -> tuple[int, int, int]:
    """Policy iteration on the parts lo..hi-1: how many are not solved yet, and the rows and states computed. u is scratch.

    The limits are improvements, steps of BiCGSTAB for each of them, and states that sweeps may compute.
    """
    size = int(np.diff(parts.begin[lo : hi + 1]).max())
    chain, inner = work.room.slots(work.mdp, parts.order), work.room.inner(work.mdp, parts.order)
    arguments = (*work.model, work.v, work.rows, *chain, work.u, *kernels.krylov.room(size), inner, *work.aim, *parts, lo, hi)
    found = kernels.krylov.krylov_round(*arguments, work.depth, *limits, work.backwards)
    missed, work.depth, work.backwards, improved, computed, swept = found
    work.backups, work.improved = work.backups + computed + swept, work.improved + improved
    work.chained = work.held = False
    return missed, computed, swept


def downstream(work: Workspace) -> Callable[[], Report]:
    """Policy iteration whose chains are solved in the order of their own moves, each state after all it leads to.

    Best where few states are come back to: stocks that are sold down, batteries that run down, controllers that settle.
    """
    improved, swept = downstream_round(work, work.improvements)

    def report() -> Report:
        cost = improved * (work.effort + SEARCH * work.chain_nnz) + 1.5 * work.chain_nnz * swept / work.S
        return Report(cost, 0.5 * IMPROVEMENTS * cost / improved, improved)

    return report


def _cycles(work: Workspace, budget: float, most: int) -> tuple[int, int, float, float, float]:
    """`kernels.rounds.gauss_seidel_round` for a model that is not small."""
    rounds = kernels.rounds
    swept, patience, sweeps = 0, rounds.FIRST, 0
    change, chain_change, rate, leapt = inf, inf, 1.0, 0.0 if work.has_sinks else inf
    whole, part = 1.7 * work.nnz, 1.5 * work.chain_nnz
    cycles, guessed = (0, True) if work.spread or not work.spreads else work.spread_values()
    if work.scattered:  # which spreading may have found out
        budget *= SCATTERED
    near = not guessed
    while True:
        before, turn, went = change, False, work.backwards
        if near:
            work.look()
            change = max(-work.low, work.high)
        else:
            change, turn = work.bellman_gauss_seidel()
        cycles += 1
        least, largest = work.extent(work.u if near else work.v)
        goal = kernels.bounds.sweep_goal(max(-least, largest), work.gamma, *work.aim)
        if before < inf:
            rate = change / before
            patience = rounds.chain_patience(patience, sweeps, chain_change, change)
        over = work.late or cycles >= most or (rate > rounds.STUCK and cycles * whole + swept * part > budget)
        done = near and work.span <= kernels.bounds.span_goal(least, largest, work.low, work.high, work.gamma, *work.aim)
        if done or change <= goal or over:
            return cycles, swept, change, goal, rate
        if near:
            work.take_backup()
            near = False
        else:
            near = change * min(rate, rounds.NEAR) <= goal
            leaps = not turn and change < rounds.AGAIN * leapt
            sweeps, chain_change = work.split_sweeps(patience, max(rounds.DEPTH * change, 0.5 * goal), turn, leaps)
            swept, leapt = swept + sweeps, change if leaps else leapt
            if rate > rounds.STUCK and (work.has_sinks or (before < inf and not (work.spreads or work.timed))):
                work.backwards = not went


def factorise(work: Workspace) -> Callable[[], Report]:
    """Policy iteration: the greedy policy's chain solved exactly.

    Best on bands and planar graphs, where values neither mix nor spread fast.
    """
    band, before = work.band, work.factorised
    if band is None:
        work.look_at_rewards()
    cost = work.factor_cost()
    wait = 0 if band is None else int(CHOOSING * work.pairs * band.cost / (cost + work.nnz))
    if work.small and band is not None:
        factor_round(work, wait, work.improvements)
    else:
        if band is None:
            work.v = solve_chain(*work.chain(), work.gamma)
        elif band.hubs >= 0 and (before + (work.base > -inf) - wait) % (wait + 1) == 0:
            if not work.looked:
                work.stay()
            work.choose()
        else:
            work.look_at_rewards()
            work.eliminate()
        work.looked, work.factorised = False, before + 1

    def report() -> Report:
        done = work.factorised - before
        return Report(done * cost + (done - 1) * work.effort, max(IMPROVEMENTS - work.factorised, 2.0) * (work.effort + cost))

    return report
