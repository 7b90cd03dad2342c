"""Whole rounds of a method in one call, for models so small that going back to Python after every sweep would cost more than it.

A round ends when the bounds on v* are as close as asked: tol times the value scale, or atol where that is not negative, and
never below `floor`, what rounding allows. It improves the policy at least once: whoever calls has seen that this is needed.
Every round takes last what the next solve of the same model has anew, and returns whether it was enough. What it has come to is
written to `told` at its end: what was seen, how many rows were computed, and numbers of its own. To hand them to Python one by
one would take as long as to solve a model of four states.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.kernels import alike, band, pruned
from tightrope.kernels.bounds import bounds, span_goal, sweep_goal
from tightrope.kernels.in_place import BETWEEN, gauss_seidel, leap, split_sweeps
from tightrope.kernels.serial import (
    backup,
    best_pairs,
    copy,
    extent,
    extract,
    fill,
    gather,
    policy_sweeps,
    scatter,
)
from tightrope.kernels.spread import spread_values
from tightrope.kernels.tiers import borrow, loop, uint64

#: A chain that moves one way this much more often than the other has a direction.
DRIFT = 0.3
#: By how much the sweeps of a chain shrink its change before the policy is looked at again.
DEPTH = 0.1
#: A policy has settled when the span of a Bellman backup is at most this much larger than that of its chain's last sweep.
SETTLED = 1.2
#: By how much one cycle can be hoped to shrink the change, for a look to be worth while.
NEAR = 0.1
#: How many numbers are seen in a look, and how many a round tells in all.
SEEN, TOLD = 8, 16
#: By how much the change of a Bellman sweep must have shrunk before there are leaps again: the policy may have to settle.
AGAIN = 0.5
#: Share of its change that a cycle leaves where it gains little: there is a budget then, and Bellman sweeps go to and fro.
STUCK = 0.5
#: Improvements of a policy after which no more sweeps should be left than after the first.
TRIED = 3
#: Multiplications that are over before Python would have begun another round: a round of fewer goes on, slow or not.
BRIEF = 30_000.0
#: Fewest and most sweeps of a chain between two Bellman sweeps, and how many there are at first.
FEWEST, MOST, FIRST = 4, 64, 8


@loop
def chain_patience(patience, sweeps, change, bellman_change):
    """How many sweeps of a chain to allow, after `sweeps` that ended with `change` and a Bellman sweep that changed more or less.

    A Bellman sweep that finds much to improve says that the policy was not worth so many, one that finds nothing that it was.
    """
    if bellman_change > 4.0 * change:
        return max(patience // 2, FEWEST)
    return min(2 * patience, MOST) if sweeps >= patience else patience


@loop
def direction(up, down, backwards):
    """Which way to sweep a chain that moves up and down so often, and whether to turn.

    A state is best swept after those it moves to; where the chain has no drift, sweeps go to and fro.
    """
    turn = abs(up - down) <= DRIFT * (up + down)
    return (not backwards if turn else up > down), turn


@loop
def tell(told, least, largest, low, high, tol, atol, reward_size, of_values, leak, grown, shrunk):
    """What a look has seen, least <= T v <= largest and low <= T v - v <= high: these four, and the numbers of its certificate.

    Returns whether the bounds on v* are as close as asked.
    """
    below, above, scale, floor = bounds(least, largest, low, high, reward_size, of_values, leak, grown, shrunk)
    told[0], told[1], told[2], told[3] = low, high, least, largest
    told[4], told[5], told[6], told[7] = below, above, scale, floor
    return above - below <= (tol * scale if atol < 0.0 else atol) < np.inf


@loop
def tell_nothing(told):
    """What was seen without a look."""
    for i in range(0, SEEN, 2):
        told[i], told[i + 1] = -np.inf, np.inf
    return False


@loop
def look_at_rewards(r, first, gamma, base, u, rows, lo, hi):
    """A look at v = `base` everywhere, up to rounding: u = T v and its greedy pairs in the states lo..hi-1.

    Returns the smallest and largest change.
    """
    best_pairs(r, first, u, rows, lo, hi)
    least, most = np.inf, -np.inf
    for s in range(uint64(lo), uint64(hi)):
        u[s] += gamma * base
        least, most = min(least, u[s]), max(most, u[s])
    return least - base, most - base


@loop
def gauss_seidel_round(
    v, tol, atol, floor, indptr, indices, data, r, first, gamma, held, begin, to_indices, to_data, to_r,
    base, backwards, budget, most, order, place, inner, settled, sinks, halves, seeds, after,
    reward_size, of_values, leak, grown, shrunk, told, u, rows,
):  # fmt: skip
    """Bellman sweeps of v in place, with sweeps of the greedy policy's chain between them; looks where the end seems near.

    A finite `base` means that v is not known yet: values spread from the sinks, or `seeds`, first. `inner` is scratch where there
    is an order, to hold values in it. Chains are swept in two `halves` side by side, unless time passes. There may be no look at
    u = T v in the end. Tells also Bellman sweeps, chain sweeps, the last change, the one that was aimed at, the factor of the
    last cycle, how many states were lost on the way, if that was all then, and which way to go next.
    """
    v, indptr, indices, data, r, first, held, begin, to_indices, to_data, to_r, told, u, rows = borrow(
        v, indptr, indices, data, r, first, held, begin, to_indices, to_data, to_r, told, u, rows
    )
    cycles, swept, patience, sweeps = 0, 0, FIRST, 0
    change = chain_change = np.inf
    rate, leapt = 1.0, 0.0 if sinks else np.inf
    whole, part = 1.7 * len(data), 1.5 * len(data) * len(v) / len(r)
    near, kept, up, down, far = False, False, 0.0, 0.0, uint64(0)
    fill(held, len(r), 0, len(v))
    if base > -np.inf:
        cycles, backwards, guessed, lost = spread_values(
            indptr, indices, data, r, first, gamma, v, rows, base, backwards, order, settled, seeds, after
        )  # fmt: skip
        if lost > 0:
            told[8], told[9], told[10], told[11] = cycles * len(r), cycles, 0, change
            told[12], told[13], told[14], told[15] = 0.0, rate, lost, backwards
            return tell_nothing(told)
        near = not guessed
    while True:
        before, went, low, high = change, backwards, -np.inf, np.inf
        if near:
            low, high = backup(indptr, indices, data, r, first, gamma, v, u, rows, None, None, None, None, None, None, 0, len(v))
            change = max(abs(low), abs(high))
        elif not kept:  # that one sweep was enough is to be seen before a whole chain is copied
            change, _, _, _ = gauss_seidel(
                indptr, indices, data, r, first, gamma, v, rows, backwards, order, place, None,
                None, begin, to_indices, to_data, to_r, 0, len(v),
            )  # fmt: skip
        else:
            change, more_up, more_down, further = gauss_seidel(
                indptr, indices, data, r, first, gamma, v, rows, backwards, order, place, None,
                held, begin, to_indices, to_data, to_r, 0, len(v),
            )  # fmt: skip
            up, down, far = up + more_up, down + more_down, max(far, further)
        cycles += 1
        least, largest = extent(u) if near else extent(v)
        goal = sweep_goal(max(-least, largest), gamma, tol, atol, floor)
        if before < np.inf:
            rate = change / before
            patience = chain_patience(patience, sweeps, chain_change, change)
        done = change <= goal or (near and high - low <= span_goal(least, largest, low, high, gamma, tol, atol, floor))
        if done or cycles >= most or (rate > STUCK and cycles * whole + swept * part > budget):
            computed = cycles * len(r) + swept * len(v)
            if done and not near:  # what is there to see is enough, most likely
                near = True
                low, high = backup(
                    indptr, indices, data, r, first, gamma, v, u, rows, None, None, None, None, None, None, 0, len(v)
                )  # fmt: skip
                least, largest = extent(u)
                computed += len(r)
            told[8], told[9], told[10], told[11] = computed, cycles, swept, change
            told[12], told[13], told[14], told[15] = goal, rate, 0, backwards
            if not near:
                return tell_nothing(told)
            return tell(told, least, largest, low, high, tol, atol, reward_size, of_values, leak, grown, shrunk)
        if near:
            copy(u, v)
            near = False
        else:
            near = change * min(rate, NEAR) <= goal
            if not kept:
                kept = True
                _, up, down, far = gauss_seidel(
                    indptr, indices, data, r, first, gamma, None, rows, backwards, order, place, None,
                    held, begin, to_indices, to_data, to_r, 0, len(v),
                )  # fmt: skip
            backwards, turn = direction(up, down, backwards)
            target = max(DEPTH * change, 0.5 * goal)
            x = v
            if order is not None:
                x = inner
                gather(v, order, 0, len(v), x)
            leaps = not turn and change < AGAIN * leapt
            leapt = change if leaps else leapt
            sweeps, chain_change = 0, np.inf
            while sweeps < patience and chain_change > target:
                left = patience - sweeps
                n, chain_change, backwards = split_sweeps(
                    begin, to_indices, to_data, to_r, x, min(BETWEEN, left) if leaps else left, target, backwards, turn, halves,
                    None, far,
                )  # fmt: skip
                sweeps += n
                if leaps and chain_change > target:
                    chain_change, leaps, n = leap(x, backwards, halves, begin, to_indices, to_data, to_r, u)
                    sweeps += n
            swept += sweeps
            if order is not None:
                scatter(x, order, 0, len(v), v)
            if halves and rate > STUCK and (sinks or (seeds is None and before < np.inf)):
                backwards = not went  # what is better to do than the policy does may be known behind, and travel a state a sweep


@loop
def stay(r, first, gamma, v, lo, hi):
    """v as if the states lo..hi-1 were stayed in for good: nearer to the truth than a constant where moves are to near states."""
    for s in range(uint64(lo), uint64(hi)):
        best = -np.inf
        for l in range(uint64(first[s]), uint64(first[s + uint64(1)])):
            best = max(best, r[l])
        v[s] = best / (1.0 - gamma)


@loop
def deeper(share, least, chain_span, span, mixing, patience):
    """By how much to shrink the span on the next chain, if a backup had this span after the last chain's had come to that.

    Where it found little to improve the policy has settled, and what is left is worth sweeping for, as far as that goes fast;
    otherwise by no more than `least`.
    """
    further = share * share if span <= SETTLED * chain_span else least
    return further if mixing**patience <= further else least


@loop
def sweep_round(
    v, tol, atol, floor, indptr, indices, data, r, first, gamma, to_indptr, to_indices, to_data, to_r,
    low, high, base, share, trial, patience, enough, most,
    ceilings, before, caution, one_indptr, one_indices, one_data, at, ahead, runs,
    reward_size, of_values, leak, grown, shrunk, told, u, rows,
):  # fmt: skip
    """Modified policy iteration from u = T v with its greedy pairs and low <= u - v <= high, up to `most` improvements.

    A finite `base` means that there has been no look yet, and v is that everywhere. Unless `ceilings` is None, backups are
    `pruned`, with a margin of `caution` times the size of values; unless `at` is None, they are those of `alike`. What `runs` are
    `serial` says.
    A chain is swept until its change has a span of `share` of what it was, or less once the policy has settled; `trial` times or,
    where that will do, `patience` times. If more than `enough` sweeps are left after a few improvements, and more than after the
    first, that is the end of the round. u = T v at the end too. Tells also the improvements, the chain sweeps, and by how much a
    sweep of a chain shrinks the span.
    """
    v, indptr, indices, data, r, first, to_indptr, to_indices, to_data, to_r, told, u, rows = borrow(
        v, indptr, indices, data, r, first, to_indptr, to_indices, to_data, to_r, told, u, rows
    )
    improvements, computed, swept, mixing, slow = 0, 0, 0, 1.0, False
    first_share, promised, brief = share, np.inf, BRIEF * len(r) / len(data)
    if base > -np.inf:
        low, high = look_at_rewards(r, first, gamma, base, u, rows, 0, len(v))
        computed = len(r)
    while True:
        least, largest = extent(u)
        span, goal = high - low, span_goal(least, largest, low, high, gamma, tol, atol, floor)
        slow &= computed + swept * len(v) > brief
        if improvements > 0 and (span <= goal or improvements >= most or slow):
            told[8], told[9], told[10], told[11] = computed + swept * len(v), improvements, swept, mixing
            return tell(told, least, largest, low, high, tol, atol, reward_size, of_values, leak, grown, shrunk)
        if improvements == 0:
            extract(indptr, indices, data, r, rows, to_indptr, to_indices, to_data, to_r, 0, len(v))
        copy(u, v)
        target = max(0.5 * goal, share * span)
        n, low, high = policy_sweeps(to_indptr, to_indices, to_data, to_r, gamma, v, u, runs, trial, target)
        mixing = min(((high - low) / span) ** (1.0 / n), 1.0) if span > 0.0 else 1.0
        swept += n
        if high - low > target > 0.0 and 0.0 < mixing < 1.0:
            more = int(math.log(target / (high - low)) / math.log(mixing)) + 1
            if more <= patience:
                n, low, high = policy_sweeps(to_indptr, to_indices, to_data, to_r, gamma, v, u, runs, 2 * more, target)
                swept += n
        chain_span = high - low
        n = len(r)
        if at is not None:
            alike.product(one_indptr, one_indices, one_data, v, ahead, runs, 0, len(ahead))
            low, high = alike.backup(
                one_indptr, one_indices, one_data, at, ahead, r, first, gamma, v, u, rows,
                to_indptr, to_indices, to_data, to_r, 0, len(v),
            )  # fmt: skip
        elif ceilings is None:
            low, high = backup(
                indptr, indices, data, r, first, gamma, v, u, rows, None, runs, to_indptr, to_indices, to_data, to_r, 0, len(v)
            )  # fmt: skip
        else:
            risen, size = pruned.rise(v, before)
            low, high, n = pruned.backup(
                indptr, indices, data, r, first, gamma, v, u, rows, ceilings, gamma * risen, caution * size, runs,
                to_indptr, to_indices, to_data, to_r, 0, len(v),
            )  # fmt: skip
        improvements, computed = improvements + 1, computed + n
        share = deeper(share, first_share, chain_span, high - low, mixing, patience)
        slow = chain_span > target or high - low > 0.9 * span
        if 0.0 < goal < high - low and 0.0 < mixing < 1.0:
            left = math.log(goal / (high - low)) / math.log(mixing)
            promised = left if improvements == 1 else promised
            slow |= improvements >= TRIED and left > promised and left > enough


@loop
def factor_round(
    v, tol, atol, floor, indptr, indices, data, r, first, gamma, low, high, base,
    number, hubs, below, above, left, columns, wait, most,
    reward_size, of_values, leak, grown, shrunk, told, u, rows,
):  # fmt: skip
    """Policy iteration from a look, by elimination in a band, up to `most` improvements; begins and ends as `sweep_round` does.

    After `wait` improvements that are greedy, one less where v is not known yet, comes one that is made on the way through the
    band. That costs more: see `band.improve`. Where it comes first, nobody need look before. Tells also the improvements, and how
    many were made on the way.
    """
    v, indptr, indices, data, r, first, number, left, columns, told, u, rows = borrow(
        v, indptr, indices, data, r, first, number, left, columns, told, u, rows
    )
    improvements, computed, waited, chosen, least, largest = 0, 0, 0, 0, 0.0, 0.0
    if base > -np.inf:
        waited = 1
        if hubs >= 0 and waited >= wait:
            stay(r, first, gamma, v, 0, len(v))
        else:
            low, high = look_at_rewards(r, first, gamma, base, u, rows, 0, len(v))
            computed = len(r)
    while improvements == 0 or (
        improvements < most and high - low > span_goal(least, largest, low, high, gamma, tol, atol, floor)
    ):
        if hubs >= 0 and waited >= wait:
            down = band.way(below, above, chosen)
            band.improve(indptr, indices, data, r, first, gamma, v, rows, number, hubs, below, above, left, columns, down)
            waited, chosen, computed = 0, chosen + 1, computed + len(r)
        else:
            band.value(indptr, indices, data, r, rows, gamma, number, hubs, below, above, left, columns, v)
            waited, computed = waited + 1, computed + len(v)
        low, high = backup(indptr, indices, data, r, first, gamma, v, u, rows, None, None, None, None, None, None, 0, len(v))
        least, largest = extent(u)
        improvements, computed = improvements + 1, computed + len(r)
    told[8], told[9], told[10] = computed, improvements, chosen
    return tell(told, least, largest, low, high, tol, atol, reward_size, of_values, leak, grown, shrunk)
