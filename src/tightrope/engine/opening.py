"""Solves that one round is enough for, had again.

To decide how to begin, and to set up for it, takes longer than to solve a model of ten states. Whoever solves the same model once
more, to the same tolerance, gets there by the same round from the same arguments: a small model keeps them, and no values.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import empty

from tightrope import kernels
from tightrope.engine.certificate import Certificate
from tightrope.engine.monitor import Row, Status

if TYPE_CHECKING:
    from tightrope.engine.monitor import Monitor
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray

#: What solves when no algorithm is named, as it prints.
ENGINE = "Engine()"
#: Python looks for a member of an enumeration as long as it takes to sweep three states.
CONVERGED, INTERRUPTED = Status.CONVERGED, Status.INTERRUPTED


class Opening:
    """The round that was enough: the loop and all that it takes but u and the greedy pairs, and the model and tolerance.

    What the round tells is the same every time, so that nobody need copy it.
    """

    __slots__ = ("choices", "index", "loop", "model", "resolved", "states", "tol", "told")

    def __init__(self, mdp: MDP, tol: float, choices: list[str], loop: Any, *arguments: Any) -> None:
        self.model, self.states, self.index = mdp.arrays, mdp.n_states, mdp.first.dtype
        self.tol, self.choices, self.told = tol, tuple(choices), arguments[-1]
        self.loop, self.resolved = partial(loop, *arguments), False

    def play(self, mdp: MDP) -> tuple[Any, ...] | None:
        """The model, and its round once more, from nothing, as `Played.of` takes it; None if it was not enough for once."""
        begin, status = perf_counter(), CONVERGED
        u, rows = empty(self.states), empty(self.states, self.index)
        try:
            enough = self.loop(u, rows)
        except KeyboardInterrupt:  # comes when the loop is over, and takes away what it has returned
            status, enough = INTERRUPTED, self.loop(u, rows)
        if not enough:
            return None
        if not self.resolved:
            self._resolve(u, rows)
        return mdp, self, u, rows, status, perf_counter() - begin

    def _resolve(self, u: FloatArray, rows: IntArray) -> None:
        """Have the loop for arguments of these types at hand: to look it up for thirty takes a microsecond."""
        import numba  # noqa: PLC0415  (loaded, or the loop would not be compiled)

        arguments = self.loop.args
        loop: Any = self.loop.func
        self.loop = partial(loop.get_overload(tuple(numba.typeof(a) for a in (*arguments, u, rows))), *arguments)
        self.resolved = True


class Played(NamedTuple):
    """What an opening has come to: the pairs its policy takes and what is proved, one row, what was decided, how it ended."""

    best: tuple[IntArray, Certificate]
    rows: tuple[Row]
    choices: tuple[str, ...]
    status: Status

    @classmethod
    def of(cls, opening: Opening, u: FloatArray, rows: IntArray, status: Status, seconds: float) -> Played:
        """That of an opening, when somebody asks for it: to name things takes longer than some rounds."""
        below, above, least, most, low, high, scale, floor, computed, *_ = opening.told.tolist()
        certificate = Certificate(u, low, high, scale, floor, (least, most))
        row = Row(1, max(-below, above), certificate.gap, certificate.relative_gap, len(u), int(computed), seconds)
        return cls((rows, certificate), (row,), opening.choices, status)


def remember(mdp: MDP, watch: Monitor, status: Status) -> None:
    """Keep in its room how a solve began, if one round was enough and loops are compiled."""
    room, limits, begun = watch.room, watch.limits, watch.room.round
    if begun is None or isinstance(begun[0], kernels.tiers.Loop) or len(watch.rows) > 1 or status is not CONVERGED:
        return
    if limits.atol is not None or limits.max_iterations is not None:
        return
    if room.opening is None or room.opening.tol != limits.tol or room.opening.model is not mdp.arrays:
        room.opening = Opening(mdp, limits.tol, watch.choices, *begun)


def again(mdp: MDP, tol: float) -> tuple[Any, ...] | None:
    """`Opening.play` of a model that has just been solved to the same tolerance by one round; None if there was none such."""
    try:
        facts = mdp.facts
    except AttributeError:  # no model
        return None
    room = facts.pop("room", None)  # nobody else has it now
    if room is None:
        return None
    opening, played = room.opening, None
    if opening is not None and opening.tol == tol and opening.model is mdp.arrays:
        played = opening.play(mdp)
    facts["room"] = room
    return played
