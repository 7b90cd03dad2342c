"""The value of a chain in the order of its own moves: each state after all that it leads to, and cycles by BiCGSTAB.

Few states are come back to under most policies that are any good: stocks are sold down to where they are ordered again, cabs run
down to where they charge. Such a chain is triangular but for small blocks, and one pass is enough for the rest of it.
"""

from __future__ import annotations

from tightrope.kernels.graph import components
from tightrope.kernels.krylov import bicgstab
from tightrope.kernels.serial import ONE
from tightrope.kernels.tiers import loop, uint64


@loop
def blocks(indptr, indices, first, rows, component, order, reached, waiting, root):
    """The components of the chain of a policy, as `components` finds them.

    Returns how many states are in components of several, and the most transitions that one of these has.
    """
    components(indptr, indices, first, rows, component, order, reached, waiting, root)
    size, lo = uint64(len(order)), uint64(0)
    inside, most = uint64(0), uint64(0)
    while lo < size:
        hi, transitions = lo, uint64(0)
        while hi < size and component[order[hi]] == component[order[lo]]:
            l = uint64(rows[order[hi]])
            transitions += uint64(indptr[l + ONE]) - uint64(indptr[l])
            hi += ONE
        if hi > lo + ONE:
            inside += hi - lo
            most = max(most, transitions)
        lo = hi
    return inside, most


@loop
def block(indptr, indices, data, r, gamma, rows, v, component, order, place, lo, hi, to_indptr, to_indices, to_data, to_r, inner):
    """The chain of the states order[lo:hi], one component, in numbers of its own: v = r + P v with no diagonal in P.

    What leads outside becomes reward. `inner` becomes v in these numbers.
    """
    for i in range(lo, hi):
        place[order[i]] = i - lo
    at, own = uint64(0), component[order[lo]]
    to_indptr[0] = 0
    for i in range(lo, hi):
        s, begin = uint64(order[i]), at
        l = uint64(rows[s])
        outside, stay = 0.0, 0.0
        for k in range(uint64(indptr[l]), uint64(indptr[l + ONE])):
            j = uint64(indices[k])
            if j == s:
                stay = data[k]
            elif component[j] == own:
                to_indices[at] = place[j]
                to_data[at] = gamma * data[k]
                at += ONE
            else:
                outside += data[k] * v[j]
        scale = 1.0 / (1.0 - gamma * stay)
        for k in range(begin, at):
            to_data[k] *= scale
        to_r[i - lo] = scale * (r[l] + gamma * outside)
        to_indptr[i - lo + ONE] = at
        inner[i - lo] = v[s]


@loop
def value(
    indptr, indices, data, r, gamma, rows, v, component, order, place,
    to_indptr, to_indices, to_data, to_r, inner, x, residual, shadow, direction, image, share, goal, steps,
):  # fmt: skip
    """v = r + gamma P v along the pairs `rows`, whose components `blocks` has found; larger ones as `bicgstab` is told to.

    All from `place` [S] to `image` is scratch, with room for the largest of them. Returns how many states sweeps have computed.
    """
    size, lo, swept = uint64(len(v)), uint64(0), 0
    while lo < size:
        s, hi = uint64(order[lo]), lo + ONE
        while hi < size and component[order[hi]] == component[s]:
            hi += ONE
        if hi == lo + ONE:
            l, total, stay = uint64(rows[s]), 0.0, 0.0
            for k in range(uint64(indptr[l]), uint64(indptr[l + ONE])):
                j = uint64(indices[k])
                if j == s:
                    stay = data[k]
                else:
                    total += data[k] * v[j]
            v[s] = (r[l] + gamma * total) / (1.0 - gamma * stay)
        else:
            block(
                indptr, indices, data, r, gamma, rows, v, component, order, place, lo, hi,
                to_indptr, to_indices, to_data, to_r, inner,
            )  # fmt: skip
            n = int(hi - lo)
            rewards = to_r[:n]
            how = (x, residual, shadow, direction, image, rewards, share, goal, steps, n)
            done = bicgstab(to_indptr[: n + 1], to_indices, to_data, rewards, inner, *how)
            for i in range(lo, hi):
                v[order[i]] = inner[i - lo]
            swept += (4 * done + 2) * n
        lo = hi
    return swept
