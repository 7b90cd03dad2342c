"""Policy iteration whose chains are solved in the order of their own moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope import kernels

if TYPE_CHECKING:
    from tightrope.engine.workspace import Workspace
    from tightrope.model.validate import FloatArray

#: Share of the states that can be come back to at most, and of the room for chains that a component of these takes.
MOST = 0.5
#: By how much the residual of a component is to shrink, and in how many steps at most.
SHARE, MANY = 1e-5, 40
#: Share of the span of the change that is left where improvements bring little.
LITTLE = 0.1
#: Improvements of a policy after which it is taken to have far to go: sweeps in place take it further than a step at a time.
FAR = 6
#: Backups before a policy means anything.
FORESIGHT = 3


class Flow(NamedTuple):
    """The components of a policy's chain, and its states in an order in which no component leads to a later one; then scratch."""

    component: Any
    order: Any
    reached: Any
    waiting: Any
    root: Any


def flows(work: Workspace) -> bool:
    """Whether values flow along the greedy policy: few states can be come back to. `work.flow` then says how."""
    if not work.looked:
        work.look_at_rewards()
        for _ in range(FORESIGHT):
            work.take_backup()
            work.look()
    return _search(work, work.rows)


def _search(work: Workspace, rows: Any) -> bool:
    """Whether values flow along the policy that takes these pairs, and how."""
    S, (indptr, indices, _, _, first, _) = work.S, work.model
    if work.flow is None:
        component, order, waiting = (np.empty(S, indices.dtype) for _ in range(3))
        work.flow = Flow(component, order, np.empty(S, indptr.dtype), waiting, np.empty(S, bool))
    inside, most = kernels.downstream.blocks(indptr, indices, first, rows, *work.flow)
    if inside > MOST * S or most > MOST * work.mdp.chain_room:
        work.flow = None
    return work.flow is not None


def downstream_round(work: Workspace, most: int) -> tuple[int, int]:
    """Up to `most` improvements of the policy, as long as values flow along it: from a look, and a flow, to a look.

    Returns how many there were, and how many states were computed in sweeps of components.
    """
    largest, n, swept, before = int(MOST * work.S), 0, 0, work.span
    room, inner, vectors = work.room.blocks(work.mdp, largest), np.empty(largest), kernels.krylov.room(largest)
    work.chaining = work.chained = work.held = False

    def evaluate(rows: Any, v: FloatArray) -> int:
        assert work.flow is not None  # noqa: S101  (whoever calls has asked)
        component, order, _, place, _ = work.flow
        least, greatest = work.extent(work.v)
        goal = 0.1 * kernels.bounds.sweep_goal(max(-least, greatest), work.gamma, *work.aim)
        told = (rows, v, component, order, place, *room, inner, work.u, *vectors, SHARE, goal, MANY)
        more = int(kernels.downstream.value(*work.model[:4], work.gamma, *told))
        work.backups += work.S + more
        return more

    while True:
        work.take_backup()
        swept += evaluate(work.rows, work.v)
        if n == FAR and work.span > LITTLE * before:
            # Policies that have far to go may have begun badly. Whichever is better in a state, this one or that of the largest
            # rewards: to improve on both at once is at least as good as to improve on either.
            rows, other = np.empty_like(work.rows), np.empty(work.S)
            kernels.best_pairs(*work.model[3:5], other, rows, 0, work.S)
            if _search(work, rows):
                other[:] = work.v
                swept += evaluate(rows, other)
                np.maximum(work.v, other, out=work.v)
        if n >= FAR:
            work.arrange()
            carry_on(work, n)
        work.look()
        n, end = n + 1, work.extent(work.u)
        done = work.span <= kernels.bounds.span_goal(*end, work.low, work.high, work.gamma, *work.aim)
        if done or n == most or work.late or not flows(work):
            return n, swept


def carry_on(work: Workspace, improved: int) -> None:
    """One Bellman sweep of v in place, forth and back by turns: what is worth going for is known all the way, not one step."""
    how = (improved % 2 == 0, *work.order, None, None, None, None, None, None, 0, work.S)
    kernels.in_place.gauss_seidel(*work.model, work.v, work.rows, *how)
    work.backups += work.pairs
