"""Arrays that the steps of one run share, and the runs on one small model: memory is asked for once, and stays warm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.engine.alike import alike

if TYPE_CHECKING:
    from tightrope.engine.direct import Band
    from tightrope.engine.opening import Opening
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray

#: Most pieces that sweeps of a large model are cut in.
PIECES = 8
#: Transitions of a model below which its room is kept for the next run.
KEPT = 500_000


def begin_in(mdp: MDP, order: Any) -> Any:
    """`mdp.chain_begin` for rows in this order of states, or as they are numbered."""
    if order is None:
        return mdp.chain_begin
    begin = np.zeros_like(mdp.chain_begin)
    np.cumsum(np.diff(mdp.chain_begin)[order], out=begin[1:])
    return begin


class Room:
    """Room for the chain of a policy, its band, the rewards of a surrogate and ceilings, each used by one step at a time."""

    _P: Any = None
    _chain: tuple[Any, Any, Any, Any] | None = None
    _slots: tuple[Any, ...] | None = None
    _order: Any = None
    _inner: FloatArray | None = None
    _band: tuple[FloatArray, FloatArray] | None = None
    _rewards: FloatArray | None = None
    _ceilings: tuple[FloatArray, FloatArray] | None = None
    _ahead: FloatArray | None = None
    #: The last round in one call, if it can be had again: the loop and what it took, but for u and the greedy pairs.
    round: tuple[Any, ...] | None = None
    #: How a solve begins that one round is enough for.
    opening: Opening | None = None

    @classmethod
    def of(cls, mdp: MDP) -> Room:
        """The room that the last run on this model has kept, unless another run has it."""
        return mdp.facts.pop("room", None) or cls()

    def keep(self, mdp: MDP) -> None:
        """A run is over: leave the room to the next, if it is small."""
        self.round = None
        if mdp.n_transitions < KEPT:
            mdp.facts["room"] = self

    def __reduce__(self) -> tuple[type[Room], tuple[()]]:
        return Room, ()  # what is in it means nothing to another process

    def chain(self, mdp: MDP) -> tuple[Any, Any, Any, Any]:
        """indptr, with a number to spare for every piece, indices, data and r; large enough for every deterministic policy."""
        if self._P is not mdp.P:
            self._clear(mdp)
        if self._chain is None:
            S, room, index = mdp.n_states, mdp.chain_room, mdp.arrays[0].dtype
            self._chain = (np.empty(S + PIECES, index), np.empty(room, index), np.empty(room), np.empty(S))
        return self._chain

    def inner(self, mdp: MDP, order: Any) -> FloatArray | None:
        """Room for values in this order of states; None where they are as numbered."""
        if order is None:
            return None
        if self._P is not mdp.P:
            self._clear(mdp)
        if self._inner is None:
            self._inner = np.empty(mdp.n_states)
        return self._inner

    def blocks(self, mdp: MDP, states: int) -> tuple[Any, Any, Any, Any]:
        """Room for the chain of so many states: that of `chain` where there is such, otherwise for half as many transitions."""
        if self._chain is not None and self._P is mdp.P:
            return self._chain
        half, index = mdp.chain_room // 2 + 1, mdp.arrays[0].dtype
        return np.empty(states + 1, index), np.empty(half, index), np.empty(half), np.empty(states)

    def slots(self, mdp: MDP, order: Any) -> tuple[Any, ...]:
        """Room for a chain whose rows change one by one, in this order of states: held, begin, indices, data and r.

        All but `begin` are those of `chain`.
        """
        if self._slots is None or self._P is not mdp.P or self._order is not order:
            indptr, indices, data, r = self.chain(mdp)
            self._slots, self._order = (indptr[: mdp.n_states], begin_in(mdp, order), indices, data, r), order
        return self._slots

    def band(self, mdp: MDP, band: Band) -> tuple[FloatArray, FloatArray]:
        """What elimination in the band of the model works in."""
        if self._P is not mdp.P:
            self._clear(mdp)
        if self._band is None:
            self._band = band.room(mdp.n_states)
        return self._band

    def rewards(self, mdp: MDP) -> FloatArray:
        """One number for every pair."""
        if self._P is not mdp.P:
            self._clear(mdp)
        if self._rewards is None:
            self._rewards = np.empty(mdp.n_pairs)
        return self._rewards

    def ceilings(self, mdp: MDP) -> tuple[FloatArray, FloatArray]:
        """A number for every pair, and one for every state."""
        if self._P is not mdp.P:
            self._clear(mdp)
        if self._ceilings is None:
            self._ceilings = np.empty(mdp.n_pairs), np.empty(mdp.n_states)
        return self._ceilings

    def ahead(self, mdp: MDP) -> tuple[Any, Any, Any, Any, Any]:
        """The distinct rows of P and which of them pairs have, where many lead alike, and a number for each row; else nothing."""
        found = alike(mdp)
        if found is None:
            return None, None, None, None, None
        if self._P is not mdp.P:
            self._clear(mdp)
        if self._ahead is None:
            self._ahead = np.empty(len(found.indptr) - 1)
        return *found, self._ahead

    def _clear(self, mdp: MDP) -> None:
        """Begin anew for a model that does not share its transitions with the last one."""
        self._P, self._chain, self._slots, self._band = mdp.P, None, None, None
        self._inner, self._rewards, self._ceilings, self._ahead = None, None, None, None
