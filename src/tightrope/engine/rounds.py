"""Whole rounds of a method in one call, `kernels.rounds`, from a workspace and back into it. For small models."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import kernels
from tightrope.engine.outline import outward
from tightrope.engine.sweep import runs

if TYPE_CHECKING:
    from tightrope.engine.workspace import Workspace

#: Share of its budget that Gauss-Seidel has where no order brings states near to their successors.
SCATTERED = 0.25


def gauss_seidel_round(work: Workspace, budget: float, most: int) -> tuple[int, int, float, float, float]:
    """Bellman sweeps of v in place, chain sweeps between them, until the change is small enough.

    Returns how many there were of each, the last change, the one aimed at, and the factor of the last cycle.
    """
    base = -inf if work.spread or not work.spreads else work.base
    bellman, chain, change, goal, rate, lost, backwards = _round(
        work, "gauss_seidel_round", *work.model, *work.room.slots(work.mdp, work.order[0]), base, work.backwards,
        (SCATTERED if work.scattered else 1.0) * budget, most, *work.order,
        work.room.inner(work.mdp, work.order[0]), work.settled, work.has_sinks, not work.timed, *work.seeds,
    )  # fmt: skip
    work.backwards = backwards > 0.0
    if work.chained:  # Python makes an object slower with its thirtieth attribute
        work.chained = False
    if lost > 0:
        work.put_in_order(outward(work.mdp, int(lost)))
        return gauss_seidel_round(work, budget, most)
    if base > -inf:
        work.mdp.facts["order"] = work.order
    return int(bellman), int(chain), change, goal, rate


def sweep_round(work: Workspace, share: float, trial: int, patience: float, enough: float, most: int) -> tuple[int, int]:
    """Improvements and sweeps of the greedy policies' chains; returns how many of each."""
    distinct = work.room.ahead(work.mdp)
    told = (work.low, work.high, _unseen(work), share, trial, patience, enough, most, *work.prune(), *distinct, runs(work.mdp))
    n, swept, work.mixing, *_ = _round(work, "sweep_round", *work.model, *work.room.chain(work.mdp), *told)
    return int(n), int(swept)


def factor_round(work: Workspace, wait: int, most: int) -> None:
    """Improvements of the policy, each evaluated by elimination in the band."""
    assert work.band is not None  # noqa: S101  (the method asks before)
    room = work.room.band(work.mdp, work.band)
    told = (work.low, work.high, _unseen(work), *work.band, *room, wait, most)
    n, chosen, *_ = _round(work, "factor_round", *work.model, *told)
    work.factorised, work.chosen = work.factorised + int(n), work.chosen + int(chosen)


def _round(work: Workspace, name: str, *told: Any) -> list[float]:
    """Call a round of `kernels.rounds`, take note of what it has seen, and return the numbers of its own that it tells."""
    rounds, account = kernels.rounds, np.empty(kernels.rounds.TOLD)
    loop, arguments = getattr(rounds, name), (work.v, *work.aim, *told, *work.mdp.rounding, account)
    from_nothing = work.base > -inf and not (work.looked or work.wide)  # a look and ceilings are more than the arguments say
    loop(*arguments, work.u, work.rows)
    found = account.tolist()
    work.seen, (computed, *rest) = found[: rounds.SEEN], found[rounds.SEEN :]
    work.low, work.high = work.seen[:2]
    work.looked = work.high < inf
    work.room.round = (loop, *arguments) if from_nothing and work.looked else None
    work.backups += int(computed)
    return rest


def _unseen(work: Workspace) -> float:
    """What v is everywhere if there has been no look at it yet; the round that is told so looks first."""
    return -inf if work.looked else work.base
