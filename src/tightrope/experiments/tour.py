"""The computations of the demo: a gridworld solved with growing lookahead, and Theorem 1 on the Tightrope."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tightrope import kernels
from tightrope.model.policy import mix
from tightrope.model.problems import Grid, hesitant, tightrope
from tightrope.operators import cautious, kappa_greedy, q_kappa, q_value, value
from tightrope.planning import h_pi, kappa_pi, policy_iteration, solve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tightrope.model.mdp import MDP
    from tightrope.model.problems.cells import Cell
    from tightrope.model.validate import FloatArray
    from tightrope.planning import PolicyIteration
    from tightrope.solution import Solution

H = (2, 4, 8, 16, 32, 64)
KAPPAS = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
#: How far below κ/(1-κ) the cost of falling stays, so that walking the rope is the only κ-greedy choice and not a tie.
BELOW = 1e-6


@dataclass(frozen=True, eq=False)
class World:
    """A gridworld with its certified solution and the way that the policy means to go from the start."""

    grid: Grid
    mdp: MDP
    solution: Solution
    path: tuple[Cell, ...]


@dataclass(frozen=True, eq=False)
class Lookahead:
    """One solved run per lookahead; policy iteration is h = 1 and κ = 0 at once, and comes first in both."""

    h: dict[int, Solution]
    kappa: dict[float, Solution]


@dataclass(frozen=True, eq=False)
class ImprovementMap:
    """What the update (1-α)π + απ_κ does to the hesitant policy on the hardest rope that the κ-greedy policy still walks.

    `change` [K, A] is v'(s0) - v(s0) divided by v(s2) - v(s3), what is at stake; row k belongs to kappas[k], whose rope has
    the cost of falling just below κ/(1-κ). Theorem 1: no MDP has a negative entry at α >= κ, and this family has one at
    every α < κ. The predicted boundary is α = κ.
    """

    gamma: float
    alphas: FloatArray
    kappas: FloatArray
    change: FloatArray

    @property
    def disagreements(self) -> int:
        """Cells whose sign is not the one Theorem 1 predicts."""
        predicted = self.alphas[None, :] >= self.kappas[:, None]
        return int(np.count_nonzero((self.change >= 0.0) != predicted))


@dataclass(frozen=True, eq=False)
class Dip:
    """v'(s0) of the update (1-α)π + απ' against α on one rope, for π' optimal (κ = 1) and for the cautious target."""

    c: float
    gamma: float
    alphas: FloatArray
    value: FloatArray
    cautious: FloatArray

    @property
    def threshold(self) -> float:
        """The predicted sign change, α = c/(1+c)."""
        return self.c / (1.0 + self.c)


@dataclass(frozen=True, eq=False)
class Tour:
    """Everything the demo shows."""

    world: World
    lookahead: Lookahead
    improvement: ImprovementMap
    dips: tuple[Dip, ...]


def rooms(size: int = 100, room: int = 20, *, seed: int = 1, pools: int = 14) -> Grid:
    """A square of rooms with doors, pools to stay out of (-1), a small prize near the start (0.3), a large one far away (1)."""
    rng = np.random.default_rng(seed)
    walls = np.zeros((size, size), dtype=bool)
    lines = list(range(room, size, room))
    walls[lines, :] = walls[:, lines] = True
    ends = [-1, *lines, size]
    for line in lines:
        for begin, end in pairwise(ends):
            for upright in (False, True):
                at = int(rng.integers(begin + 2, end - 3))
                if rng.random() < 0.8:
                    door = (slice(at, at + 2), line) if upright else (line, slice(at, at + 2))
                    walls[door] = False
    wet = np.zeros_like(walls)
    for _ in range(pools):
        (y, x), (height, width) = rng.integers(3, size - 8, 2), rng.integers(2, 7, 2)
        wet[y : y + height, x : x + width] = True
    wet &= ~walls
    prizes = {(size - 6, size - 6): 1.0, (3 * size // 10, size // 10): 0.3}
    goals = {(int(y), int(x)): -1.0 for y, x in np.argwhere(wet)} | prizes
    for cell in prizes:
        walls[cell] = False
    return Grid(size, size, walls=walls, goals=goals, start=(2, 2))


def world(grid: Grid, *, slip: float = 0.2, gamma: float = 0.99, tol: float = 1e-6) -> World:
    """The gridworld solved by the engine."""
    mdp = grid.mdp(slip=slip, gamma=gamma)
    solution = _faster_of_two(mdp, None, tol)
    return World(grid, mdp, solution, intended_path(grid, mdp, solution))


def _faster_of_two(mdp: MDP, algorithm: PolicyIteration | None, tol: float) -> Solution:
    """The first that needs some loop on a machine waits until it is compiled, which says nothing about solving."""
    kernels.tiers.compile_loops()
    return min((solve(mdp, algorithm, tol=tol) for _ in range(2)), key=lambda found: found.seconds)


def intended_path(grid: Grid, mdp: MDP, solution: Solution) -> tuple[Cell, ...]:
    """The cells that the policy visits from the first start cell when no move slips."""
    actions, terminal = solution.policy.actions, mdp.terminal
    state, seen = int(grid.states[grid.start[0]]), [grid.start[0]]
    for _ in range(mdp.n_states):
        there = int(grid.move(np.array([state]), int(actions[state]))[0])
        if there < 0 or terminal[state]:
            break
        state = there
        seen.append(grid.cell(state))
    return tuple(seen)


def look_ahead(
    mdp: MDP,
    hs: Sequence[int] = H,
    kappas: Sequence[float] = KAPPAS,
    *,
    tol: float = 1e-6,
    done: Callable[[str], None] = lambda _: None,
) -> Lookahead:
    """Policy iteration, h-PI and κ-PI on one model, each to the same certified tolerance; `done` hears of each."""

    def run(name: str, algorithm: PolicyIteration) -> Solution:
        solution = _faster_of_two(mdp, algorithm, tol)
        done(name)
        return solution

    plain = run("PI", policy_iteration())
    far = {h: run(f"h-PI, h = {h}", h_pi(h)) for h in hs}
    weighted = {k: run(f"κ-PI, κ = {k:g}", kappa_pi(k)) for k in kappas}
    return Lookahead({1: plain} | far, {0.0: plain} | weighted)


def improvement_map(n: int = 50, *, gamma: float = 0.9, done: Callable[[str], None] = lambda _: None) -> ImprovementMap:
    """The change of v(s0) over an n x n grid of (α, κ), both at the middles of n equal parts of [0, 1].

    α is shifted by a quarter of a part so that no α equals a κ, where the sign is that of rounding.
    """
    kappas = (np.arange(n) + 0.5) / n
    alphas = (np.arange(n) + 0.75) / n
    change = np.empty((n, n))
    for k, kappa in enumerate(kappas):
        mdp = tightrope(kappa / (1.0 - kappa) * (1.0 - BELOW), gamma)
        pi = hesitant(mdp)
        v = value(mdp, pi)
        target = kappa_greedy(mdp, v, kappa)
        stake = 1.0 / (1.0 - gamma) - v[3]
        for a, alpha in enumerate(alphas):
            change[k, a] = (value(mdp, mix(pi, target, alpha))[0] - v[0]) / stake
        done(f"κ = {kappa:.2f}")
    return ImprovementMap(gamma, alphas, kappas, change)


def dip(c: float, *, gamma: float = 0.9, n: int = 101) -> Dip:
    """v'(s0) on the rope with cost c, for n steps α in (0, 1]."""
    mdp = tightrope(c, gamma)
    pi = hesitant(mdp)
    confident = kappa_greedy(mdp, value(mdp, pi), 1.0)
    careful = cautious(mdp, q_value(mdp, pi), q_kappa(mdp, pi, 1.0), pi)
    alphas = np.linspace(0.0, 1.0, n)[1:]
    soft = [[value(mdp, mix(pi, target, alpha))[0] for alpha in alphas] for target in (confident, careful)]
    return Dip(c, gamma, alphas, np.array(soft[0]), np.array(soft[1]))


def tour(*, quick: bool = False, advance: Callable[[float, str], None] = lambda _amount, _note: None) -> Tour:
    """The whole demo; `advance` hears of every part (amounts sum to 1). `quick` makes everything small."""
    grid = rooms(30, 10, seed=1, pools=3) if quick else rooms()
    hs, kappas = ((4, 16), (0.5, 0.9, 1.0)) if quick else (H, KAPPAS)
    n = 12 if quick else 50
    place = world(grid)
    advance(0.05, "the gridworld")
    ahead = look_ahead(place.mdp, hs, kappas, done=lambda name: advance(0.75 / (1 + len(hs) + len(kappas)), name))
    shown = improvement_map(n, done=lambda name: advance(0.15 / n, name))
    dips = tuple(dip(c, n=26 if quick else 101) for c in (0.25, 1.0, 4.0))
    advance(0.05, "the Tightrope")
    return Tour(place, ahead, shown, dips)
