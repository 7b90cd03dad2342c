"""BiCGSTAB on the chains of greedy policies, with Gauss-Seidel sweeps to and fro as its preconditioner.

A chain is in split form, v = r + P v with no diagonal in P. One sweep forth and one back take v to an affine function of it; what
BiCGSTAB looks for is where that function changes nothing. Its residual can grow without bound on the way, so the best is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.kernels.bounds import sweep_goal
from tightrope.kernels.in_place import gauss_seidel, split_sweep
from tightrope.kernels.serial import ONE, extent, fill, gather, scatter
from tightrope.kernels.tiers import loop, uint64

#: By how much the residual of a chain is to shrink before the policy is looked at again, at first.
SHARE = 0.1
#: Most steps before the policy is looked at again.
STEPS = 80
#: Share of what evaluating a policy costs that is spent on Bellman sweeps before the next evaluation.
AHEAD = 1 / 8
#: Share of the size of first values that values will have at least, as long as nothing better is known.
ROUGH = 0.01
#: A residual this much larger than the best one has gone astray.
ASTRAY = 1e8


def room(n: int) -> tuple[Any, Any, Any, Any]:
    """What `bicgstab` works in between x and `probe`: residual, shadow, direction and image, of n states."""
    return np.empty(n), np.empty(n, np.float32), np.empty(n), np.empty(n)


@loop
def to_and_fro(indptr, indices, data, r, x, n):
    """A sweep of the chain forth and one back, in place; r may be None, and is zero then."""
    for backwards in (False, True):  # not written out: a loop is compiled once for each constant that it is given
        split_sweep(x, backwards, True, None, indptr, indices, data, r, n)


@loop
def bicgstab(indptr, indices, data, r, v, x, residual, shadow, direction, image, probe, share, goal, most, n):
    """The value of a chain of n states, from v: until no residual exceeds `goal`, or `share` of what it was; up to `most` steps.

    v becomes the best that was found; the six vectors after it are scratch, and `probe` may be r. For `shadow`, which any vector
    would do for that is not at right angles to the residual, half the digits are enough. Returns how many steps there were, four
    sweeps each.
    """
    size = uint64(n)
    for s in range(size):
        residual[s] = v[s]
    to_and_fro(indptr, indices, data, r, residual, n)
    least, match = 0.0, 0.0
    for s in range(size):
        residual[s] -= v[s]
        direction[s] = residual[s]
        x[s] = v[s]
        least = max(least, abs(residual[s]))
    for s in range(size):
        shadow[s] = residual[s] / least if least > 0.0 else 0.0
        match += shadow[s] * residual[s]
    largest, goal, steps = least, max(goal, share * least), 0
    while steps < most and largest > goal and largest < ASTRAY * least:
        for s in range(size):
            image[s] = direction[s]
        to_and_fro(indptr, indices, data, None, image, n)
        total = 0.0
        for s in range(size):
            image[s] = direction[s] - image[s]
            total += shadow[s] * image[s]
        if total == 0.0:
            break
        along = match / total
        for s in range(size):
            residual[s] -= along * image[s]
            probe[s] = residual[s]
        to_and_fro(indptr, indices, data, None, probe, n)
        product, square = 0.0, 0.0
        for s in range(size):
            probe[s] = residual[s] - probe[s]
            product += probe[s] * residual[s]
            square += probe[s] * probe[s]
        down = product / square if square > 0.0 else 0.0
        before, match, largest = match, 0.0, 0.0
        for s in range(size):
            x[s] += along * direction[s] + down * residual[s]
            residual[s] -= down * probe[s]
            match += shadow[s] * residual[s]
            largest = max(largest, abs(residual[s]))
        steps += 1
        if not abs(match) < np.inf:  # nor are x and its residual numbers any more, which no comparison would show
            break
        if largest < least:
            least = largest
            for s in range(size):
                v[s] = x[s]
        if before == 0.0 or down == 0.0:
            break
        turn = match / before * along / down
        for s in range(size):
            direction[s] = residual[s] + turn * (direction[s] - down * image[s])
    return steps


@loop
def rewards(indptr, indices, data, r, gamma, held, order, to_r, lo, hi):
    """The rewards of the chain of the pairs `held` at the places lo..hi-1, solved for the chance of staying put."""
    for i in range(uint64(lo), uint64(hi)):
        s, stay = i if order is None else uint64(order[i]), 0.0
        for k in range(uint64(indptr[held[i]]), uint64(indptr[held[i] + ONE])):
            if indices[k] == s:
                stay = data[k]
        to_r[i] = (1.0 / (1.0 - gamma * stay) if stay > 0.0 else 1.0) * r[held[i]]


@loop
def inside(indptr, indices, data, r, v, order, lo, n):
    """The chain of the places lo..lo+n-1 in numbers of its own, from 0: what leads outside becomes reward, and zero."""
    first, beyond = uint64(lo), uint64(lo) + uint64(n)
    for i in range(first, beyond):
        for k in range(uint64(indptr[i]), uint64(indptr[i + ONE])):
            there = uint64(indices[k])
            if first <= there < beyond:
                indices[k] = there - first
            else:
                r[i] += data[k] * v[order[there]]
                indices[k] = i - first
                data[k] = 0.0


@loop
def krylov_round(
    indptr, indices, data, r, first, gamma, v, rows, held, begin, to_indices, to_data, to_r,
    x, residual, shadow, direction, image, inner,
    tol, atol, floor, order, place, bounds, lo, hi, share, most, steps, enough, backwards,
):  # fmt: skip
    """Policy iteration on one part of the states after the other, those of the places bounds[i]..bounds[i+1]-1 for lo <= i < hi.

    Unless it is None, `order` says which states come first, and `place` where each of them does. Every part is improved by
    Bellman sweeps in place, to and fro: what is worth going for far away is known there after one, be it ahead or behind. Its
    chain is evaluated by `bicgstab` in up to `steps`, or until the residual is `share` of what it was; less once that brought
    nothing. The vectors from `x` to `image` are scratch, and so is `inner` where there is an order.
    A part is done when a sweep changes so little that bounds will be close enough, and left after `most` improvements, or once
    `enough` states have been computed in sweeps of chains. Returns how many were left, the share it came to in them, which way
    to sweep next, the improvements, the pairs computed in Bellman sweeps, and the states computed in those of chains.
    """
    least, largest = extent(v)
    known = ROUGH * max(-least, largest)
    missed, deepest, improvements, computed, swept = 0, share, 0, 0, 0
    for part in range(lo, hi):
        start, stop = int(bounds[part]), int(bounds[part + 1])
        n = stop - start
        fill(held, len(r), start, stop)
        ahead, improved, size = 0, 0, known
        before, depth = np.inf, share
        while True:
            change, goal, size = np.inf, 0.0, known
            for _ in range(1 + ahead):
                change, _up, _down, _far = gauss_seidel(
                    indptr, indices, data, r, first, gamma, v, rows, backwards, order, place, None,
                    held, begin, to_indices, to_data, to_r, start, stop,
                )  # fmt: skip
                backwards = not backwards
                size = known
                for i in range(uint64(start), uint64(stop)):
                    s = i if order is None else uint64(order[i])
                    size = max(size, abs(v[s]))
                    computed += int(first[s + ONE] - first[s])
                goal = 0.5 * sweep_goal(size, gamma, tol, atol, floor)  # values may be too low here and too high there
                if change <= goal:
                    break
            if change >= before:  # policies evaluated so roughly may go round in circles
                depth *= SHARE
            if change <= goal or improved >= most or (improved > 0 and swept >= enough):
                if change > goal:
                    missed += 1
                    deepest = min(deepest, depth)
                break
            before = change
            chain = (begin[start : stop + 1], to_indices, to_data, to_r[start:stop])
            how = (x, residual, shadow, direction, image, chain[3], depth, 0.1 * goal, steps, n)
            if order is None:
                done = bicgstab(*chain, v[start:stop], *how)
            else:
                gather(v, order, start, n, inner)
                if n < len(v):
                    inside(begin, to_indices, to_data, to_r, v, order, start, n)
                done = bicgstab(*chain, inner, *how)
                scatter(inner, order, start, n, v)
            if n == len(v):
                rewards(indptr, indices, data, r, gamma, held, order, to_r, start, stop)
            else:
                fill(held, len(r), start, stop)  # it has other numbers, and rewards of this moment
            sweeps = 4 * done + 2
            swept += sweeps * n
            ahead = int(AHEAD * sweeps * len(v) / len(r))
            improved += 1
        improvements += improved
        known = max(known, size)
    return missed, deepest, backwards, improvements, computed, swept
