"""What a model looks like to the engine: found once, from its transitions alone, and kept with it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope.engine.direct import model_band
from tightrope.engine.room import BLOCKS
from tightrope.kernels import team

if TYPE_CHECKING:
    from tightrope.engine.direct import Band
    from tightrope.model.mdp import MDP

#: Transitions below which a model is small: whole rounds are compiled, and over before anybody wants to stop them.
SMALL = 500_000
#: Transitions of a pair from which on to leave one out saves more than to find out that it may be.
WIDE = 16


class Outline(NamedTuple):
    """What matters about the transitions of a model."""

    states: int
    pairs: int
    transitions: int
    #: Actions a state has, on average.
    actions: float
    #: Whether some state cannot be left: values then most likely spread from there.
    has_sinks: bool
    #: The narrow band with a few hubs that every policy's chain is, and so quickly factorised; None where there is no such.
    band: Band | None
    #: Whether a round is one call.
    small: bool
    #: Whether sweeps are cut into blocks.
    cut: bool
    #: Whether rows are so wide, and actions so many, that leaving out those that cannot be best pays; a small band is eliminated.
    wide: bool


def outline(mdp: MDP) -> Outline:
    """Found once for a model and its twins."""
    if "outline" not in mdp.facts:
        S, L, nnz = mdp.n_states, mdp.n_pairs, mdp.n_transitions
        band = None if mdp.has_sinks else model_band(mdp)
        small = nnz < SMALL
        wide = nnz >= WIDE * L >= 3 * WIDE * S and not (small and band is not None)
        mdp.facts["outline"] = Outline(S, L, nnz, L / S, mdp.has_sinks, band, small, nnz >= 2 * team.WORTH_IT, wide)
    found: Outline = mdp.facts["outline"]
    return found


def cuts(mdp: MDP, order: Any = None) -> list[tuple[int, int, int, int]]:
    """Blocks of states, or of their places in `order`, and where their part of the room for a chain begins and ends.

    Found once for a model and its twins.
    """
    name = "cuts" if order is None else "cuts in order"
    if name not in mdp.facts:
        indptr, first = mdp.P.indptr, mdp.first
        widest = np.maximum.reduceat(np.diff(indptr), first[:-1])
        if order is not None:
            widest, sizes = widest[order], np.diff(indptr[first])[order]
            indptr, first = np.cumsum(np.append(0, sizes)), np.arange(len(first))
        states = team.ranges(indptr, first, BLOCKS)
        ends = np.cumsum([0, *(int(widest[lo:hi].sum()) for lo, hi in states)]).tolist()
        mdp.facts[name] = [(*part, *room) for part, room in zip(states, itertools.pairwise(ends), strict=True)]
    found: list[tuple[int, int, int, int]] = mdp.facts[name]
    return found
