"""What a model looks like to the engine: found once, from its transitions alone, and kept with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope import kernels
from tightrope.engine.alike import alike
from tightrope.engine.direct import model_band
from tightrope.engine.room import PIECES, begin_in
from tightrope.engine.sweep import reach
from tightrope.kernels import team

if TYPE_CHECKING:
    from tightrope.engine.direct import Band
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import IntArray

#: How many times larger than small a model is that is swept in place in pieces.
PLENTY = 2.0
#: Transitions of a pair from which on to leave one out saves more than to find out that it may be.
WIDE = 16
#: Transitions of a chain from which on two threads sweep it faster than one, which begins and ends 50 microseconds sooner.
CHAIN = 200_000
#: Share of the states in one component beyond which it is solved with the rest.
MOST = 0.5
#: Share of the distance to their successors that states must be nearer in an order for it to be better than their numbers.
NEARER = 0.5
#: That share where there is no goal that the order begins from; and the share of the states that are ends, or hubs, at most.
MUCH_NEARER, FEW = 0.25, 0.1
#: What discounting leaves, at the most, of what comes after an end for values to spread from there at first.
AFTERWARDS = 0.33
#: Share of the states that lie between a state and its successors, on average, where these are near.
NEARBY = 0.05
#: Share of the states between a state and its successors up to which numbers mean something: by chance it would be a third.
CHANCE = 0.2
#: More moves than this share of the states lead to a hub.
CROWD = 0.25
#: Share of the states that two sweeps may miss where their numbers will do.
MISSED = 0.25
#: Where values spread from if not from the sinks.
NOWHERE = (None, 0.0)
#: The order of states whose numbers will do.
AS_NUMBERED = (None, None)
#: Fewest steps that every cycle of moves takes a multiple of where time is said to pass; walks to and fro take two.
PERIOD = 3


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
    #: Whether whole rounds are compiled, and over before anybody wants to stop them.
    small: bool
    #: Whether Bellman sweeps in place are cut in pieces too, which see each other's values a sweep late.
    in_pieces: bool
    #: Whether rows are so wide, and actions so many, that leaving out those that cannot be best pays; a small band is eliminated,
    #: and distinct rows that are few are multiplied once each.
    wide: bool
    #: In how many pieces sweeps are cut, whatever the number of threads: results do not depend on that.
    pieces: int
    #: Whether chains are swept as a whole, by one thread: it would be done before another had begun.
    whole: bool
    #: Whether time passes whatever is done (hours, weeks, seasons): every cycle of moves takes a multiple of a few steps.
    timed: bool
    #: What a backup of the whole model takes, in multiplications.
    effort: int
    #: The few states, if there are any, from which whatever is done leads to one and the same, where nobody stays and no time
    #: passes: most likely all begins again after these. And how many steps others are from them at most.
    ends: Any
    steps: int


def outline(mdp: MDP) -> Outline:
    """Found once for a model and its twins."""
    found: Outline | None = mdp.facts.get("outline")
    if found is None:
        S, L, nnz = mdp.n_states, mdp.n_pairs, mdp.n_transitions
        band = None if mdp.has_sinks else model_band(mdp)
        distinct = alike(mdp)
        small, size = nnz < 2 * team.WORTH_IT, nnz / (2 * team.WORTH_IT)
        wide = nnz >= WIDE * L >= 3 * WIDE * S and not (small and band is not None) and distinct is None
        pieces = 1 if small else min(2 ** int(math.log2(max(size, 2.0))), PIECES)
        whole = small or nnz * S < CHAIN * L
        timed = band is None and not mdp.has_sinks and _time_passes(mdp)
        in_pieces = size >= PLENTY and not timed  # which would see late what a sweep brings all the way
        ends, steps = (None, 0) if band is not None or mdp.has_sinks or timed else _ends(mdp)
        shape = L / S, mdp.has_sinks, band, small, in_pieces, wide
        effort = nnz if distinct is None else distinct.effort
        found = Outline(S, L, nnz, *shape, pieces, whole, timed, effort, ends, steps)
        mdp.facts["outline"] = found
    return found


def _ends(mdp: MDP) -> tuple[Any, int]:
    """The states from which whatever is done leads to one and the same, if they are few, and how many steps others are away."""
    S, (indptr, indices, _, _, first, _) = mdp.n_states, mdp.arrays
    order, place = np.empty((2, S), indices.dtype)
    if not 0 < kernels.graph.ends(indptr, indices, first, False, order, place) <= FEW * S:
        return None, 0
    scratch = np.empty(S + 1, indptr.dtype), np.empty_like(indices)
    found, steps = kernels.graph.outward(indptr, indices, first, False, *scratch, order, place)
    return order[:found].copy(), int(steps)


def _time_passes(mdp: MDP) -> bool:
    """Whether every cycle of moves takes a multiple of a few steps; states are put in the order of time then, the latest first.

    They are left `AS_NUMBERED` where that is from the earliest to the latest. Those that come first are swept before what they
    lead to: as few as possible.
    """
    S, (indptr, indices, _, _, first, _) = mdp.n_states, mdp.arrays
    order, time = np.empty(S, indices.dtype), np.empty(S, np.int64)
    period = int(kernels.graph.period(indptr, indices, first, PERIOD, order, time))
    if period < PERIOD:
        return False
    time %= period
    steps = np.diff(time)
    last = np.flatnonzero(steps)  # of each time, if these follow each other
    if len(last) >= period or (steps[last] % period != 1).any() or PERIOD * (S - last[-1] - 1) > S:
        fewest = int(np.bincount(time).argmin())
        place = np.empty_like(order)
        order[:] = np.argsort((fewest - time) % period, kind="stable")
        place[order] = np.arange(S)
        mdp.facts["order"] = order, place
    return True


class Parts(NamedTuple):
    """States in parts that can be solved one after the other: from none does a transition lead to a later one."""

    #: Which states come first, and the place of each in that; None where their numbers will do.
    order: Any
    place: Any
    #: Where parts begin in that order, and where the last one ends.
    begin: Any

    @property
    def many(self) -> bool:
        """Whether there is more than one."""
        return len(self.begin) > 2


def strong_components(mdp: MDP) -> IntArray:
    """The number of each state's strongly connected component, from 0; none leads to one of a higher number [S]."""
    S, (indptr, indices, _, _, first, _) = mdp.n_states, mdp.arrays
    component = np.empty(S, np.int64)
    order, reached, waiting = np.empty(S, indices.dtype), np.empty(S, indptr.dtype), np.empty(S, indices.dtype)
    kernels.graph.components(indptr, indices, first, None, component, order, reached, waiting, np.empty(S, bool))
    return component


def components(mdp: MDP, order: Any, place: Any) -> Parts:
    """The strongly connected components of a model, successors first; those of one state each in a row are one part.

    Within a part, states are in this order. A component that has most of the states is as good as the whole. Found once for a
    model and its twins.
    """
    if "components" not in mdp.facts:
        S = mdp.n_states
        component = strong_components(mdp)
        sizes = np.bincount(component)
        if sizes.max() > MOST * S:
            mdp.facts["components"] = Parts(order, place, np.array([0, S]))
        else:
            index = mdp.arrays[1].dtype
            states = np.arange(S, dtype=index) if order is None else order
            states = states[np.argsort(component[states], kind="stable")]
            places = np.empty(S, index)
            places[states] = np.arange(S, dtype=index)
            single = sizes == 1
            begin = np.append(0, np.cumsum(sizes))
            begin = begin[~np.concatenate(([False], single[1:] & single[:-1], [False]))]
            mdp.facts["components"] = Parts(states, places, begin)
    found: Parts = mdp.facts["components"]
    return found


def distance(mdp: MDP) -> float:
    """How far from states their successors are as they are numbered, added up; found once for a model and its twins."""
    if "distance" not in mdp.facts:
        indptr, indices, _, _, first, _ = mdp.arrays
        mdp.facts["distance"] = float(kernels.graph.distance(indptr, indices, first, None, 0))
    found: float = mdp.facts["distance"]
    return found


def near(mdp: MDP) -> bool:
    """Whether states are near to their successors, as they are numbered."""
    return distance(mdp) <= NEARBY * mdp.n_states * mdp.n_transitions


def numbered(mdp: MDP) -> bool:
    """Whether numbers of states mean something, so that sweeping them one after the other is more than chance."""
    return distance(mdp) <= CHANCE * mdp.n_states * mdp.n_transitions


def promising(mdp: MDP) -> tuple[Any, float]:
    """Where all begins again, if the largest reward of all waits there and discounting leaves little of what comes after it.

    And a guess at what that is worth: it takes as many steps as anybody needs to get there again, at the mean reward.
    """
    ends, steps = outline(mdp)[-2:]
    left = mdp.gamma**steps
    if ends is None or left > AFTERWARDS:
        return NOWHERE
    largest = mdp.reward_range[1]
    if max(mdp.r[mdp.first[s] : mdp.first[s + 1]].max() for s in ends.tolist()) < largest:
        return NOWHERE
    return ends, (float(mdp.r.mean()) * (1.0 - left) / (1.0 - mdp.gamma) + left * largest) / (1.0 - mdp.gamma * left)


def outward(mdp: MDP, missed: int) -> tuple[Any, Any]:
    """The states in the order of their distance from the sinks, or from where all begins again, and the place of each in that.

    They are left `AS_NUMBERED` where that is near and few were `missed`, unless moves are certain and lead to a single sink: one
    sweep is then enough. They are also left so where neither is near and no order would help: the same array twice says that.
    """
    S, (indptr, indices, _, _, first, _) = mdp.n_states, mdp.arrays
    order, place = np.empty((2, S), indices.dtype)
    scratch = np.empty(S + 1, indptr.dtype), np.empty_like(indices)
    sinks, _ = kernels.graph.outward(indptr, indices, first, mdp.has_sinks, *scratch, order, place)
    if near(mdp) and missed <= MISSED * S and (sinks > 1 or mdp.n_transitions > mdp.n_pairs):
        return AS_NUMBERED
    limit = max(NEARBY * S * mdp.n_transitions, NEARER * distance(mdp))
    if kernels.graph.distance(indptr, indices, first, place, 0) > limit:
        order = place = np.arange(S, dtype=indices.dtype)
    return order, place


def nearby(mdp: MDP) -> tuple[Any, Any]:
    """The states in the order of their distance from one that is far from others, hubs left out, and the place of each in that.

    They are left `AS_NUMBERED` where that is far nearer to their successors than chance, or where the order is not much nearer.
    """
    S, (indptr, indices, _, _, first, _) = mdp.n_states, mdp.arrays
    if numbered(mdp):
        return AS_NUMBERED
    order, place = np.empty((2, S), indices.dtype)
    scratch = np.empty(S + 1, indptr.dtype), np.empty_like(indices)
    hubs = kernels.graph.nearby(indptr, indices, first, *scratch, int(CROWD * S), order, place)
    limit = min(NEARBY * S * mdp.n_transitions, MUCH_NEARER * distance(mdp))
    nearer = hubs <= FEW * S and kernels.graph.distance(indptr, indices, first, place, hubs) <= limit
    return (order, place) if nearer else AS_NUMBERED


def cuts(mdp: MDP, order: Any = None) -> list[tuple[int, int, int, int]]:
    """Blocks of states, or of their places in `order`, and where their part of the room for a chain begins and ends.

    Found once for a model and its twins.
    """
    name = "cuts" if order is None else "cuts in order"
    if name not in mdp.facts:
        indptr, first, begin = mdp.P.indptr, mdp.first, mdp.chain_begin
        if order is not None:
            sizes, begin = np.diff(indptr[first])[order], begin_in(mdp, order)
            indptr, first = np.cumsum(np.append(0, sizes)), np.arange(len(first))
        states = team.ranges(indptr, first, outline(mdp).pieces)
        ends = [(int(begin[lo]), int(begin[hi])) for lo, hi in states]
        mdp.facts[name] = [(*part, *room) for part, room in zip(states, ends, strict=True)]
    found: list[tuple[int, int, int, int]] = mdp.facts[name]
    return found


def seams(mdp: MDP, order: Any = None) -> list[slice]:
    """What blocks of states see of each other: the neighbourhood of every cut that a transition can cross, or everything."""
    S, far, ends = mdp.n_states, reach(mdp), [cut[0] for cut in cuts(mdp)[1:]]
    if order is not None or 2 * far * len(ends) >= S:
        return [slice(0, S)]
    return [slice(max(end - far, 0), end + far) for end in ends]
