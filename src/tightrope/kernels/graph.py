"""The graph of a model's transitions: how wide it is, what can be left and reached, and orders in which values spread fast."""

from __future__ import annotations

import math

from tightrope.kernels.serial import ONE
from tightrope.kernels.tiers import loop, uint64


@loop
def survey(indptr, indices, first, begin):
    """The largest number of successors of a pair, and whether some state cannot be left, whatever is done.

    `begin` [S+1] becomes where room for each state's row of a chain begins that is enough for its widest pair.
    """
    width, sinks, total = uint64(0), False, uint64(0)
    begin[0] = 0
    for s in range(uint64(len(first) - 1)):
        widest, stays = uint64(0), True
        for l in range(uint64(first[s]), uint64(first[s + ONE])):
            lo, hi = uint64(indptr[l]), uint64(indptr[l + ONE])
            widest = max(widest, hi - lo)
            stays = stays and hi == lo + ONE and indices[lo] == s
        width, sinks, total = max(width, widest), sinks or stays, total + widest
        begin[s + ONE] = total
    return width, sinks


@loop
def runs(indptr, indices):
    """Whether every row has successors, and these are neighbours: none need be known but the first. Columns are sorted."""
    for l in range(uint64(len(indptr) - 1)):
        k, end = uint64(indptr[l]), uint64(indptr[l + ONE])
        if end == k or uint64(indices[end - ONE]) - uint64(indices[k]) != end - ONE - k:
            return False
    return True


@loop
def predecessors(indptr, indices, first, begin, sources):
    """The transitions turned round: `sources` of those that lead to state j end before begin[j], and begin where j - 1's end.

    State s owns the rows first[s]..first[s+1]-1, or row s alone where first is None. Who stays put is left out.
    """
    size = uint64(len(begin) - 1)
    for s in range(size + ONE):
        begin[s] = 0
    for s in range(size):
        lo, hi = (s, s + ONE) if first is None else (uint64(first[s]), uint64(first[s + ONE]))
        for k in range(uint64(indptr[lo]), uint64(indptr[hi])):
            j = uint64(indices[k])
            if j != s:
                begin[j + ONE] += ONE
    for s in range(size):
        begin[s + ONE] += begin[s]
    for s in range(size):
        lo, hi = (s, s + ONE) if first is None else (uint64(first[s]), uint64(first[s + ONE]))
        for k in range(uint64(indptr[lo]), uint64(indptr[hi])):
            j = uint64(indices[k])
            if j != s:
                sources[begin[j]] = s
                begin[j] += ONE


@loop
def follow(neighbours, lo, hi, order, place, found):
    """Have those of neighbours[lo:hi] without a place follow in `order`, where `found` have one; returns how many have then."""
    unmet = uint64(len(place))
    for k in range(uint64(lo), uint64(hi)):
        j = uint64(neighbours[k])
        if place[j] == unmet:
            order[found] = j
            place[j] = found
            found += ONE
    return found


@loop
def ends(indptr, indices, first, stay, order, place):
    """The states from which whatever is done leads to one and the same, or that have no choice but to stay; returns how many.

    They come first in `order`, and all others have no `place` yet. If `stay`, only those that cannot be left: the sinks.
    """
    size, found = uint64(len(place)), uint64(0)
    for s in range(size):
        lo, hi = uint64(first[s]), uint64(first[s + ONE])
        k, last = uint64(indptr[lo]), uint64(indptr[hi])
        to = uint64(indices[k])
        end = last - k == hi - lo and (to == s or (not stay and hi > lo + ONE))
        while end and k < last:
            end = indices[k] == to
            k += ONE
        place[s] = size
        if end:
            order[found] = s
            place[s] = found
            found += ONE
    return found


@loop
def outward(indptr, indices, first, stay, begin, sources, order, place):
    """All states in the order of how many steps they are from one of `ends` at least, and the place of each; then the rest.

    Returns how many ends there are, and the most steps that anybody is from them. `begin` [S+1] and `sources` [transitions] are
    scratch: from where each state can be reached.
    """
    size = uint64(len(place))
    predecessors(indptr, indices, first, begin, sources)
    number = found = level = ends(indptr, indices, first, stay, order, place)
    done, steps = uint64(0), 0
    while done < found:
        if done == level:
            level = found
            steps += 1
        j = uint64(order[done])
        found = follow(sources, uint64(begin[j - ONE]) if j > 0 else uint64(0), begin[j], order, place, found)
        done += ONE
    for s in range(size):
        if place[s] == size:
            order[found] = s
            place[s] = found
            found += ONE
    return number, steps


@loop
def nearby(indptr, indices, first, begin, sources, crowd, order, place):
    """All states in the order of their distance from one that is far from others, and the place of each.

    Moves are followed either way: that is Cuthill and McKee's order, but for who comes first among neighbours. More than `crowd`
    moves lead to a hub: hubs come first, and nobody is near because of them. Returns how many there are. `begin` [S+1] and
    `sources` [transitions] are scratch: from where each state can be reached.
    """
    size = uint64(len(place))
    predecessors(indptr, indices, first, begin, sources)
    known = uint64(0)
    for s in range(size):
        place[s] = size
        if begin[s] > crowd + (begin[s - ONE] if s > 0 else uint64(0)):
            order[known] = s
            place[s] = known
            known += ONE
    hubs = known
    for s in range(size):
        if place[s] < size:
            continue
        start = s
        for again in range(2):  # who is reached last is far from others
            found = known + ONE
            order[known] = start
            place[start] = known
            done = known
            while done < found:
                i = uint64(order[done])
                lo, hi = (i, i + ONE) if first is None else (uint64(first[i]), uint64(first[i + ONE]))
                found = follow(indices, indptr[lo], indptr[hi], order, place, found)
                found = follow(sources, uint64(begin[i - ONE]) if i > 0 else uint64(0), begin[i], order, place, found)
                done += ONE
            start = uint64(order[found - ONE])
            if again == 0:
                for i in range(known, found):
                    place[order[i]] = size
        known = found
    return hubs


@loop
def width(indptr, indices, begin, sources, order, place):
    """How wide a band a chain is whose states are in the order of `nearby`; all but the chain is scratch."""
    nearby(indptr, indices, None, begin, sources, uint64(len(indices)), order, place)
    furthest = uint64(0)
    for s in range(uint64(len(place))):
        here = uint64(place[s])
        for k in range(uint64(indptr[s]), uint64(indptr[s + ONE])):
            there = uint64(place[indices[k]])
            furthest = max(furthest, there - here if there > here else here - there)
    return furthest


@loop
def period(indptr, indices, first, least, order, depth):
    """The largest number that divides the length of every cycle of a model; given up once that is known to be below `least`.

    It may be taken for less if some states cannot be reached from state 0. depth[s] [S] becomes the steps from there to s,
    whatever is done, modulo that; `order` [S] is scratch.
    """
    size, unmet = uint64(len(depth)), len(depth) + 1
    for s in range(size):
        depth[s] = unmet
    done = found = uint64(0)
    common = 0
    for start in range(size):
        if depth[start] != unmet:
            continue
        depth[start] = 0
        for k in range(uint64(indptr[first[start]]), uint64(indptr[first[start + ONE]])):
            if depth[indices[k]] < unmet and indices[k] != start:  # nobody leads here, but here leads to those met before
                depth[start] = depth[indices[k]] - 1
                break
        order[found] = start
        found += ONE
        while done < found:
            s = uint64(order[done])
            ahead = depth[s] + 1
            for k in range(uint64(indptr[first[s]]), uint64(indptr[first[s + ONE]])):
                j = uint64(indices[k])
                if depth[j] == unmet:
                    depth[j] = ahead
                    order[found] = j
                    found += ONE
                elif depth[j] != ahead:
                    common = math.gcd(common, abs(ahead - depth[j]))
                    if common < least:
                        return common
            done += ONE
    return common


@loop
def components(indptr, indices, first, rows, component, order, reached, waiting, root):
    """The strongly connected components of a model, each numbered after all it leads to, from 0; returns how many.

    Where `rows` is not None, those of the chain of a policy that takes these pairs. `order` becomes the states in the order of
    their components, within one each after most of those it leads to. Pearce's algorithm: what has been met has the number at
    which it was, or the smallest that it leads back to, and once its component is complete a number above all these. The rest is
    scratch [S]: `reached` is the next transition of each state; `waiting` holds the path from the front, and from the back those
    who wait for their component to be complete.
    """
    size = uint64(len(component))
    for s in range(size):
        component[s] = 0
    met, top, last, done = uint64(1), uint64(size), uint64(2) * size, uint64(0)
    complete = last
    for start in range(size):
        if component[start] != 0:
            continue
        depth = uint64(0)
        waiting[depth] = start
        component[start] = met
        met += ONE
        reached[start] = indptr[first[start] if rows is None else rows[start]]
        root[start] = True
        while True:
            s = uint64(waiting[depth])
            k, stop = uint64(reached[s]), uint64(indptr[first[s + ONE] if rows is None else rows[s] + ONE])
            smallest, j = uint64(component[s]), s
            deeper = False
            while k < stop:
                j = uint64(indices[k])
                number = uint64(component[j])
                if number == 0:
                    deeper = True
                    break
                if number < smallest:
                    smallest = number
                    root[s] = False
                k += ONE
            component[s] = smallest
            reached[s] = k
            if deeper:
                depth += ONE
                waiting[depth] = j
                component[j] = met
                met += ONE
                reached[j] = indptr[first[j] if rows is None else rows[j]]
                root[j] = True
                continue
            if root[s]:
                met -= ONE
                begin = top
                while top < size and component[waiting[top]] >= smallest:
                    component[waiting[top]] = complete
                    top += ONE
                    met -= ONE
                i = top
                while i > begin:  # who waits longest was done first
                    i -= ONE
                    order[done] = waiting[i]
                    done += ONE
                component[s] = complete
                order[done] = s
                done += ONE
                complete -= ONE
            else:
                top -= ONE
                waiting[top] = s
            if depth == 0:
                break
            depth -= ONE
    for s in range(size):
        component[s] = last - uint64(component[s])
    return last - complete


@loop
def distance(indptr, indices, first, place, hubs):
    """How far from states their successors are, added up: in this order of places, but for the first `hubs`, or as numbered."""
    total = 0.0
    for s in range(uint64(len(first) - 1)):
        here = s if place is None else uint64(place[s])
        for k in range(uint64(indptr[first[s]]), uint64(indptr[first[s + ONE]])):
            j = uint64(indices[k])
            there = j if place is None else uint64(place[j])
            if there >= hubs:
                total += there - here if there > here else here - there
    return total
