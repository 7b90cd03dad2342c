"""v = r + γ P v by factorisation, and what that would cost.

Many chains are a narrow band but for a few columns everybody jumps to (a new machine, an empty queue, the order-up-to level):
the hubs, which `kernels.band` splits off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tightrope import kernels
from tightrope.kernels import team, unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray, IntArray

    Solver = Callable[[FloatArray], FloatArray]

#: How far from the diagonal a column may be without being a hub.
NEAR = 64
#: Most hubs that are worth splitting off.
HUBS = 40
#: Room for a band, in numbers for each transition; and room that is never too much.
ROOM, SMALL = 4, 1_000_000
#: What eliminating the band of a model may cost, in sweeps of the model, to be the first method that is tried.
LITTLE = 25.0
#: Sweeps that a value must take to get from one end of a band to the other for that; at most one state in as many is a hub.
CROSSING = 3
#: A chain with so few transitions a state is little more than paths into cycles, which hardly fill in: the cost of each.
LONE, SPARSE = 1.2, 300.0
#: Largest model whose ordering is computed only to learn what a factorisation would cost.
ORDERED = 200_000


class Band(NamedTuple):
    """A chain's narrow band: which columns are hubs [S] (-1: none, else its number), how many, and how far the rest reaches.

    Where every state makes a single move, no band is needed: `hubs` is -1.
    """

    number: IntArray
    hubs: int
    below: int
    above: int

    def room(self, S: int) -> tuple[FloatArray, FloatArray]:
        """What elimination works in: what is left of the band of S states, and the right hand sides; nothing for single moves."""
        rows = 0 if self.hubs < 0 else S
        return np.empty((rows, 1 + max(self.below, self.above))), np.empty((rows, 1 + max(self.hubs, 0)))

    @property
    def cost(self) -> float:
        """About how many multiplications a factorisation takes, for each state."""
        if self.hubs < 0:
            return 30.0
        return 60.0 + 0.5 * self.below * self.above + 2.0 * (self.hubs + 1) * (self.below + self.above + 1)


def solve_chain(P: sp.csr_array, r: FloatArray, gamma: float) -> FloatArray:
    """The value of a chain by factorisation."""
    band = narrow_band(P)
    if band is not None:
        v = np.empty_like(r)
        kernels.band.value(unsigned(P.indptr), unsigned(P.indices), P.data, r, None, gamma, *band, *band.room(len(r)), v)
        return v
    solver = _sparse(P, gamma)
    v = solver(r)
    v += solver(r + gamma * (P @ v) - v)  # one step of refinement
    return v


def eliminate(mdp: MDP, rows: Any, band: Band, room: tuple[FloatArray, FloatArray], v: FloatArray, threads: int | None) -> None:
    """v = r^π + γ P^π v for the policy that takes the pairs `rows`, by elimination in `room`; from both ends at once if large."""
    (number, hubs, below, above), S, (left, columns) = band, len(v), room
    system, team_size = (*mdp.arrays[:4], rows, mdp.gamma, *band, *room), team.team_size(threads, mdp.n_transitions)
    if hubs < 0 or team_size == 1:
        kernels.band.value(*system, v)
        return
    half = kernels.band.middle(S, below, above)
    parts = [(0, half, True), (half, S, False)]
    team.each(kernels.band.eliminate, (*system, None, None), parts, team_size)
    kernels.band.meet(left, columns, below, above, v)
    team.each(kernels.band.substitute, (left, columns, below, above, v), parts, team_size)
    if hubs > 0:
        at_hubs = kernels.band.hub_values(number, hubs, columns)
        team.each(kernels.band.combine, (columns, at_hubs, v), [part[:2] for part in parts], team_size)


def improve(
    mdp: MDP, rows: Any, band: Band, room: tuple[FloatArray, FloatArray], v: FloatArray, down: bool, threads: int
) -> None:
    """`kernels.band.improve`: a policy that states choose on the way through the band, and its value.

    What a state needs to know of those before it fades with the distance. Another thread begins in the middle as if there were
    nobody before; once this one arrives there, it goes on until it finds what the other has found, to the last bit.
    """
    (_, hubs, below, above), (left, columns), S = band, room, len(v)
    if threads == 1 or hubs != 0 or max(below, above) != 1:
        kernels.band.improve(*mdp.arrays, v, rows, *band, *room, down)
        return
    half, loops = S // 2, kernels.tridiagonal
    before, after = ((0, half, down), (half, S, down)) if down else ((half, S, down), (0, half, down))
    system = (*mdp.arrays[:4], rows, mdp.gamma, band.number, hubs, left, columns, mdp.arrays[4], v)
    team.each(loops.eliminate, system, [(*before, False), (*after, False)], threads)
    loops.eliminate(*system, *after, True)
    team.each(loops.substitute, (left, columns, v), [(*after, False), (*before, False)], threads)
    loops.substitute(left, columns, v, *before, True)


def narrow_band(P: sp.csr_array, first: IntArray | None = None, near: int = NEAR) -> Band | None:
    """The band around the diagonal that all but a few columns stay in; None when they are too many to be hubs.

    State s owns the rows first[s]:first[s+1], or row s alone. Columns within `near` of it need not be hubs.
    """
    L, S = P.shape
    number = np.empty(S, dtype=np.int32)
    if P.nnz == L and (np.diff(P.indptr) == 1).all():  # a transposed chain has as many entries, but not one a row
        return Band(number, -1, 0, 0)
    owns = np.arange(S + 1, dtype=np.int32) if first is None else first
    hubs, below, above = kernels.band.far_columns(unsigned(P.indptr), unsigned(P.indices), unsigned(owns), near, HUBS, number)
    narrow = hubs <= HUBS and S * (below + 1 + above + hubs) <= max(ROOM * P.nnz, SMALL)
    return Band(number, hubs, below, above) if narrow else None


def model_band(mdp: MDP) -> Band | None:
    """The band of a whole model, if values take several sweeps to cross it and eliminating it costs little more than one.

    It depends on P alone.
    """
    S = mdp.n_states
    band = narrow_band(mdp.P, mdp.first, min(NEAR, S // CROSSING))
    if band is None or S * band.cost > LITTLE * mdp.P.nnz or CROSSING * max(band.below + 1 + band.above, band.hubs) > S:
        return None
    return band


def _sparse(P: sp.csr_array, gamma: float) -> Solver:
    """Sparse LU: I - γP is a diagonally dominant M-matrix, so no pivoting is needed and a symmetric ordering is right."""
    from scipy.sparse.linalg import splu  # noqa: PLC0415  (loads with the first factorisation)

    A = sp.csc_array(sp.identity(P.shape[0], format="csc") - gamma * P.tocsc())
    lu: Any = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return lu.solve


def factor_cost(P: sp.csr_array) -> float:
    """About how many multiplications a factorisation takes: S b^2 for a band of width b, 10 b^3 for a planar graph of width b."""
    S = P.shape[0]
    band = narrow_band(P)
    if band is not None:
        return S * band.cost
    if P.nnz <= LONE * S:
        return SPARSE * P.nnz
    if S > ORDERED:
        return np.inf
    indptr, indices = unsigned(P.indptr), unsigned(P.indices)
    scratch = np.empty(S + 1, indptr.dtype), np.empty_like(indices), *np.empty((2, S), indices.dtype)
    width = float(kernels.graph.width(indptr, indices, *scratch)) + 1.0
    return min(S * width * width, 10.0 * width**3 + 100.0 * P.nnz)
