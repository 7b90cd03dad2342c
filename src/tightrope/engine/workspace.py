"""The arrays one solve works in: allocated once, used by every method."""

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import kernels
from tightrope.engine.certificate import Certificate, certify
from tightrope.engine.direct import eliminate, factor_cost, improve
from tightrope.engine.monitor import new
from tightrope.engine.outline import AS_NUMBERED, CHAIN, NOWHERE, cuts, nearby, outline, outward, promising, seams
from tightrope.engine.room import Room
from tightrope.engine.sweep import Sweeper, asked_for, extent, extremes, runs, see_rewards
from tightrope.kernels import team

if TYPE_CHECKING:
    from tightrope.engine.downstream import Flow
    from tightrope.engine.monitor import Aim
    from tightrope.engine.sweep import Sweep
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray

#: Sweeps of a whole chain in one call: nobody who wants to stop is to wait for long.
CALL = 64
#: Pairs of sweeps of a chain between two looks at how far it has come.
PAIRS = 2
#: Span of the change, as a share of twice its middle, below which an error is taken for a constant.
CONSTANT = 0.05


class Workspace:
    """v, u = T v, the greedy pairs, and the chain of the greedy policy."""

    #: The smallest and the largest change, T v - v, that the last look has seen.
    low = high = 0.0
    #: Whether u = T v, with its greedy pairs and the range of its change, is known.
    looked = False
    #: What a round has seen in the end, where that was the last look.
    seen: list[float] | None = None
    #: The gap to reach and the gap there is, as last certified.
    goal, gap = 0.0, inf
    #: When to stop, by `time.perf_counter`; rounds of large models look at the clock.
    deadline = inf
    #: How often a round may improve the policy.
    improvements = 1
    #: By how much a sweep of the chain shrinks the span, as last seen.
    mixing = 1.0
    #: The span of the last sweep of a chain.
    chain_span = 0.0
    #: Whether looks leave the greedy policy's chain behind, and whether the last one did.
    chaining = chained = False
    #: By how much chains are to shrink their span.
    share = 1.0
    #: Rows multiplied so far.
    backups = 0
    #: Whether room for chains holds what Gauss-Seidel sweeps keep there; how likely that chain's moves up and down are, and how
    #: far they lead.
    held, up, down, far = False, 0.0, 0.0, 0
    #: How many chains were factorised, and of how many of these states chose what to do on the way.
    factorised = chosen = 0
    #: By how much BiCGSTAB is to shrink the residual of a chain.
    depth = kernels.krylov.SHARE
    #: Whether components have been solved one by one.
    in_parts = False
    #: Where values spread from, if not from sinks, and what comes after.
    seeds = NOWHERE
    #: How often BiCGSTAB has evaluated a chain.
    improved = 0
    #: How values flow along the greedy policy, where they do.
    flow: Flow | None = None
    _factor_cost: float | None = None
    _caution = 0.0
    _blocks: list[tuple[Any, ...]] | None = None

    def __init__(self, mdp: MDP, v0: FloatArray | None, aim: Aim, threads: int | None = None, room: Room | None = None) -> None:
        self.room = room or Room()
        self.mdp, self.model, self.aim = mdp, mdp.arrays, aim
        self.gamma = mdp.gamma
        shape = outline(mdp)
        self.S, self.pairs, self.nnz, self.actions, self.has_sinks, self.band, self.small, self.in_pieces, self.wide, *_ = shape
        self._threads = team.team_size(threads, self.nnz)
        see_rewards(mdp, self._threads)
        if shape.ends is not None and v0 is None:
            self.seeds = promising(mdp)
        #: Whether values have spread through the model, so that the greedy policy means something.
        self.spread = v0 is not None
        #: Which states Gauss-Seidel sweeps first, and the place of each state in that; None where their numbers will do.
        self.order = mdp.facts.get("order", AS_NUMBERED)
        #: Which way Gauss-Seidel sweeps next.
        self.backwards = self.order[0] is None
        # From below: a goal's value then spreads outwards at once, where from above every state would have to count down to it.
        self.base = mdp.reward_range[0] / (1.0 - mdp.gamma) if v0 is None else -inf
        # Zeros stand for `base`: nobody reads v before it is set.
        self.v = np.zeros(self.S) if v0 is None else np.array(v0)
        self.u, self.rows = np.empty(self.S), np.empty(self.S, mdp.first.dtype)

    @property
    def span(self) -> float:
        """max(T v - v) - min(T v - v)."""
        return self.high - self.low

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() >= self.deadline

    @property
    def spreads(self) -> bool:
        """Whether there is somewhere that values spread from."""
        return self.has_sinks or self.seeds[0] is not None

    @property
    def scattered(self) -> bool:
        """Whether values spread slowly in every order that was thought of."""
        return self.order[0] is not None and self.order[0] is self.order[1]

    @property
    def settled(self) -> bool:
        """Whether it is known which order is best; P alone decides, so that a twin with other rewards finds the same."""
        return "order" in self.mdp.facts

    @property
    def whole(self) -> bool:
        """Whether chains are swept as a whole; an attribute more would make all the others slower."""
        return outline(self.mdp).whole

    @property
    def timed(self) -> bool:
        """Whether time passes, whatever is done."""
        return outline(self.mdp).timed

    @property
    def effort(self) -> float:
        """What a look costs, in multiplications."""
        return outline(self.mdp).effort

    @property
    def chain_nnz(self) -> float:
        """About how many transitions the chain of a policy has."""
        return self.nnz / self.actions

    def look(self) -> None:
        """Back v up once: u, the greedy pairs and the range of the change."""
        ceilings, before, caution = self.prune()
        if ceilings is not None:
            risen, size = kernels.pruned.rise(self.v, before)
            arguments = (*self.model, self.v, self.u, self.rows, ceilings, self.gamma * risen, caution * size, runs(self.mdp))
            parts = self._pieces() if self.chaining else [(None, None, None, None, *cut[:2]) for cut in cuts(self.mdp)]
            found = team.each(kernels.pruned.backup, arguments, parts, self._threads)
            self.low, self.high = extremes([part[:2] for part in found])
            self.backups += sum(part[2] for part in found) - self.pairs
        else:
            pieces = self._pieces() if self.chaining else None
            self.low, self.high = Sweeper(self.mdp, self._threads).backup_into(self.v, self.u, self.rows, pieces)
        self.backups += self.pairs
        self.looked, self.seen, self.chained = True, None, self.chaining
        self.held &= not self.chaining

    def prune(self) -> tuple[Any, Any, float]:
        """Ceilings on what pairs are worth, for which v, and the share of v that is more than rounding; None if rows are narrow.

        At first they are infinite, and any pair will do to begin with.
        """
        if not self.wide:
            return None, None, 0.0
        if self._caution == 0.0:
            _, of_values, leak, _, _ = self.mdp.rounding
            self._caution = 1e-9 + 8.0 * (of_values + leak)
            ceilings, before = self.room.ceilings(self.mdp)
            ceilings.fill(inf)
            before.fill(0.0)
            if not self.looked:
                self.rows[:] = self.mdp.first[:-1]
        return *self.room.ceilings(self.mdp), self._caution

    def extent(self, x: FloatArray) -> tuple[float, float]:
        """The smallest and the largest entry."""
        return extent(x, self._threads)

    def certificate(self) -> Certificate:
        """What the last look proves."""
        if self.seen is None:
            return certify(self.mdp, self.u, self.low, self.high, self.extent(self.u))
        _, _, least, most, low, high, scale, floor = self.seen
        return new(Certificate, (self.u, low, high, scale, floor, (least, most)))

    def look_at_rewards(self) -> None:
        """Unless there has been a look, what it comes to where v is still constant, up to rounding: the largest rewards."""
        if self.looked:
            return
        self.low, self.high = Sweeper(self.mdp, self._threads).look_at_rewards(self.base, self.u, self.rows)
        self.backups += self.pairs
        self.looked = True
        self._foresee((self.low + self.base, self.high + self.base))

    def stay(self) -> None:
        """v as if every state were stayed in for good."""
        team.each(kernels.rounds.stay, (*self.model[3:], self.v), Sweeper(self.mdp, self._threads).parts, self._threads)

    def _foresee(self, extent: tuple[float, float]) -> None:
        """The gap to reach and the gap there is, up to rounding, after a look that left a u of this extent."""
        reach = self.gamma / (1.0 - self.gamma)
        centre = 0.5 * reach * (self.low + self.high)
        least, most = extent
        self.goal, self.gap = self.aim.gap(max(abs(least + centre), abs(most + centre))), reach * self.span or inf

    def take_look(self, look: Sweep) -> None:
        """A look at v that somebody else has had; its u is used up."""
        self.u, self.rows[:], self.low, self.high = look
        self.looked = True
        self._foresee(self.extent(self.u) if self.aim.atol < 0.0 else (0.0, 0.0))  # atol is absolute

    def aim_at(self, found: Certificate) -> None:
        """Take note of what is proved by now, and so of what rounding allows."""
        self.aim = self.aim._replace(floor=2.0 * found.floor)
        self.goal, self.gap = self.aim.gap(found.scale), found.gap

    def take_backup(self, *, centre: bool = False) -> None:
        """v = u where u = T v is known; if asked, in the middle of its bounds where little but a constant is wrong with it.

        Sweeps leave one to the end, other methods do not. Where there are sinks it would have to leave through them again.
        """
        if self.looked:
            self.v, self.u, self.looked = self.u, self.v, False
            if centre and not self.has_sinks and self.span < CONSTANT * abs(self.low + self.high):
                self.v += 0.5 * (self.low + self.high) * self.gamma / (1.0 - self.gamma)

    def eliminate(self) -> None:
        """v = the value of the greedy policy, by elimination in the band."""
        assert self.band is not None  # noqa: S101  (the method asks before)
        eliminate(self.mdp, self.rows, self.band, self.room.band(self.mdp, self.band), self.v, self._threads)
        self.backups += self.S

    def choose(self) -> None:
        """A policy that states choose on the way through the band, the other way than the last time, and v = its value."""
        assert self.band is not None  # noqa: S101  (the method asks before)
        down = kernels.band.way(self.band.below, self.band.above, self.chosen)
        improve(self.mdp, self.rows, self.band, self.room.band(self.mdp, self.band), self.v, down, self._threads)
        self.backups, self.chosen = self.backups + self.pairs, self.chosen + 1

    def spread_values(self) -> tuple[int, bool]:
        """Values that spread from the sinks; returns how many sweeps that took, and whether any value is a guess."""
        arguments = (*self.model, self.v, self.rows, self.base, self.backwards, self.order[0], self.settled, *self.seeds)
        n, self.backwards, guessed, lost = kernels.spread.spread_values(*arguments)
        self.backups += n * self.pairs
        if lost > 0:
            self.put_in_order(outward(self.mdp, lost))
            return self.spread_values()
        self.mdp.facts["order"] = self.order
        return n, guessed

    def arrange(self) -> None:
        """Put states in order if values would spread slowly otherwise, even if they have: P alone is to decide. u is scratch."""
        if self.settled or self.timed:
            return
        n, lost, ends = 0, 0, outline(self.mdp).ends
        if self.has_sinks or ends is not None:
            n, _, _, lost = kernels.spread.spread_values(*self.model, self.u, self.rows, 0.0, True, None, False, ends, 0.0)
            self.backups += n * self.pairs
        self.put_in_order(outward(self.mdp, lost) if lost > 0 else self.order if n > 0 else nearby(self.mdp))

    def put_in_order(self, order: tuple[Any, Any]) -> None:
        """Sweep states in this order from now on."""
        self.mdp.facts["order"] = self.order = order
        self.backwards, self.held = order[0] is None, False

    def bellman_gauss_seidel(self) -> tuple[float, bool]:
        """One Bellman sweep of v in place; returns the largest change and whether the greedy chain has no drift. u is scratch."""
        self.backups += self.pairs
        chain = self.room.slots(self.mdp, self.order[0])
        if not self.held:
            chain[0].fill(self.pairs)  # none
            self.chained, self.held, self.up, self.down, self.far = False, True, 0.0, 0.0, 0
        others, blocks = None, [(0, self.S)]
        if self.in_pieces:
            for near in seams(self.mdp, self.order[0]):
                self.u[near] = self.v[near]
            others, blocks = self.u, [block[:2] for block in cuts(self.mdp, self.order[0])]
        arguments = (*self.model, self.v, self.rows, self.backwards, *self.order, others, *chain)
        found = team.each(kernels.in_place.gauss_seidel, arguments, blocks, self._threads)
        changes, up, down, far = zip(*found, strict=True)
        self.up, self.down, self.far = self.up + sum(up), self.down + sum(down), max(self.far, *far)
        self.backwards, turn = kernels.rounds.direction(self.up, self.down, self.backwards)
        return max(changes), turn

    def take_chain(self) -> None:
        """Copy the greedy policy's rows together, unless the look has; looks do so from now on, where chains are in pieces."""
        if not self.chained:
            team.each(kernels.extract, (*self.model[:4], self.rows), self._pieces(), self._threads)
        self.chaining, self.chained, self.held = not self.whole, True, False

    def policy_sweeps(self, most: int, target: float) -> int:
        """Sweeps of v along the chain taken until the span is <= target; returns how many. u is scratch."""
        span, n, pieces = self.span, 0, self._pieces()
        while n < most and (n == 0 or (self.span > target and not self.late)):
            now = self.gamma, self.v, self.u
            if self.whole:
                how = (*now, runs(self.mdp), min(CALL, most - n), target)
                more, self.low, self.high = kernels.policy_sweeps(*pieces[0][:4], *how)
            else:
                asked = asked_for(self.mdp, self.chain_nnz, self.v)
                changes = team.each(kernels.policy_backup, (*now, asked, runs(self.mdp)), pieces, self._threads)
                self.v, self.u, more, (self.low, self.high) = self.u, self.v, 1, extremes(changes)
            n += more
        self.backups += n * self.S
        self.mixing = min((self.span / span) ** (1.0 / n), 1.0) if span > 0.0 and n else 1.0
        return n

    def split_sweeps(self, most: int, target: float, turn: bool, leaps: bool = False) -> tuple[int, float]:
        """Gauss-Seidel sweeps of v along the chain that Bellman sweeps keep; returns how many and the last change.

        Threads take pairs of sweeps that follow each other: they find what they would have found one after the other. If
        asked, there are leaps between them as long as these are worth while. u is scratch.
        """
        (_, *chain), inner = self.room.slots(self.mdp, self.order[0]), self.room.inner(self.mdp, self.order[0])
        lag, n, change = kernels.in_place.behind(self.far, self.S), 0, inf
        due, halves = kernels.in_place.BETWEEN, not self.timed
        threads = self._threads if 2 * PAIRS * self.chain_nnz >= CHAIN else 1
        x = self.v if inner is None else inner
        if inner is not None:
            kernels.gather(self.v, self.order[0], 0, self.S, x)
        while n < most and change > target:
            if lag > 0:
                how = (x, self.backwards, asked_for(self.mdp, self.chain_nnz, ()), *chain, lag, np.zeros(PAIRS, np.int64))
                *_, change = team.each(kernels.in_place.split_pair, how, [(i,) for i in range(PAIRS)], threads)
                n += 2 * PAIRS
            else:
                change = kernels.in_place.split_sweep(x, self.backwards, halves, None, *chain, self.S)
                n += 1
            self.backwards ^= turn
            if leaps and n >= due and change > target:
                change, leaps, more = kernels.in_place.leap(x, self.backwards, halves, *chain, self.u)
                n, due = n + more, n + more + kernels.in_place.BETWEEN
        if inner is not None:
            kernels.scatter(x, self.order[0], 0, self.S, self.v)
        self.backups += n * self.S
        return n, change

    def _pieces(self) -> list[tuple[Any, ...]]:
        """Blocks of states, each with room of its own for its part of a chain; one if it is swept as a whole."""
        if self._blocks is None:
            indptr, indices, data, r = self.room.chain(self.mdp)
            parts = [(0, self.S, 0, len(data))] if self.whole else cuts(self.mdp)
            self._blocks = [
                (indptr[lo + n : hi + n + 1], indices[begin:end], data[begin:end], r[lo:hi], lo, hi)
                for n, (lo, hi, begin, end) in enumerate(parts)
            ]
        return self._blocks

    def factor_cost(self) -> float:
        """What a factorisation of the greedy policy's chain costs, in multiplications; measured once."""
        if self.band is not None:
            return self.S * self.band.cost
        if self._factor_cost is None:
            self._factor_cost = factor_cost(self.chain()[0])
        return self._factor_cost

    def chain(self) -> tuple[sp.csr_array, FloatArray]:
        """The greedy policy's chain as SciPy sees it, sharing memory: P^π and r^π."""
        indptr, indices, data, r = self.room.chain(self.mdp)
        kernels.extract(*self.model[:4], self.rows, indptr, indices, data, r, 0, self.S)
        self.chained, self.held = self.whole, False
        n, signed = int(indptr[self.S]), self.mdp.P.indices.dtype
        return sp.csr_array((data[:n], indices[:n].view(signed), indptr[: self.S + 1].view(signed)), shape=(self.S, self.S)), r
