"""Where pairs lead, if many lead alike: after-decision states, found from the transitions alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope import kernels

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP

#: Transitions of a model below which nobody looks for pairs that lead alike: it is solved before that would pay.
FEWEST = 20_000
#: How many times fewer numbers a backup must read, at the least, where it multiplies each distinct row once.
GAIN = 3
#: Rows to draw for each square root of all there are, and how many of them must have one alike among the rest. Were there as many
#: distinct rows as may be, and each as often as the next, there would be about two dozen.
DRAWN, ALIKE = 4, 6
#: What the ends of rows, and numbers of rows, are mixed with: random numbers would load a library.
MIX, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


class Alike(NamedTuple):
    """The distinct rows of P as a CSR matrix of their own, and which of them each pair has."""

    indptr: Any
    indices: Any
    data: Any
    at: Any

    @property
    def effort(self) -> int:
        """What a backup of the whole model takes, in multiplications: to look at a pair is about as much as one."""
        return len(self.data) + len(self.at)


def alike(mdp: MDP) -> Alike | None:
    """The distinct rows, where backups are far cheaper so; found once for a model and its twins."""
    if "alike" not in mdp.facts:
        mdp.facts["alike"] = _find(mdp)
    found: Alike | None = mdp.facts["alike"]
    return found


def _find(mdp: MDP) -> Alike | None:
    L, nnz = mdp.n_pairs, mdp.n_transitions
    most = nnz // GAIN - L
    if nnz < FEWEST or most <= 0:
        return None
    indptr, indices, data, r, *_ = mdp.arrays
    bits = data.view(np.uint64)
    number = min(int(DRAWN * L**0.5), L)
    drawn = np.arange(number, dtype=np.uint64)
    drawn = drawn * (L // number) + (drawn**3 * MIX >> HALF) % (L // number)  # one of each so many, whatever period they have
    begin, end = indptr[drawn], indptr[drawn + 1]
    ends = bits[begin] * MIX ^ bits[end - 1], indices[begin] * MIX ^ (end - begin)
    if number - len(np.unique(ends[0] * MIX ^ ends[1])) < ALIKE:
        return None
    number = L // GAIN
    table = np.zeros(1 << (2 * number).bit_length(), indices.dtype)
    at, owners = np.empty(L, indices.dtype), np.empty(number, indptr.dtype)
    n, transitions = map(int, kernels.alike.find(indptr, indices, bits, most, table, at, owners))
    if n == 0:
        return None
    found = Alike(np.empty(n + 1, indptr.dtype), np.empty(transitions, indices.dtype), np.empty(transitions), at)
    kernels.extract(indptr, indices, data, r, owners[:n], *found[:3], np.empty(n), 0, n)
    return found
