"""The models everybody solves: every class we know of, ten to a million states, discounts .9 to .9999, several seeds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import tightrope as tr
from peers import networks, worlds
from tightrope import problems
from tightrope.cli.warm import shuffled
from tightrope.experiments.tour import rooms

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Case:
    """A model by name, the class it belongs to, and whether the short form of the benchmark has it too."""

    name: str
    group: str
    build: Callable[[], tr.MDP]
    quick: bool = False


def gym(name, gamma, **options):
    """The newest version of a table environment; which one that is, the release of gymnasium says."""
    import gymnasium

    gymnasium.logger.min_level = gymnasium.logger.ERROR
    return tr.MDP.from_gymnasium(gymnasium.make(name, **options), gamma)


def any_order(world, *arguments):
    """A world whose states are numbered at random."""
    return shuffled(world(*arguments))


def garnet(size, actions, gamma, seed=0, successors=5):
    return partial(problems.garnet, size, actions, successors, gamma=gamma, seed=seed)


def grid(side, slip, gamma):
    return partial(problems.gridworld, side, side, slip=slip, gamma=gamma)


def inventory(capacity, gamma):
    """Demand spread evenly over 50 quantities: wide rows; up to 39 units a period can be ordered."""
    return partial(problems.inventory, capacity, [0.02] * 50, max_order=39, gamma=gamma)


def stages(count, size, gamma, seed=0):
    """Garnets in a row, 3 actions with 5 successors each: now and then a move leads on to the next, and none leads back."""
    rng = np.random.default_rng(seed)
    S = count * size
    successors = rng.integers(0, size, (3, S, 5)) + np.arange(S)[:, None] // size * size
    successors[..., 0] = np.where(rng.random((3, S)) < 0.1, np.minimum(successors[..., 0] + size, S - 1), successors[..., 0])
    chances, rewards = rng.dirichlet(np.ones(5), (3, S)), rng.normal(size=(3, S))

    def dynamics(states, action):
        return successors[action, states], chances[action, states], rewards[action, states]

    return tr.MDP.from_function(dynamics, S, 3, gamma)


def ring(size, actions, successors, width, gamma, far=0.0, seed=0):
    """States in a ring, from which moves lead at most `width` on or back, a share `far` of them anywhere; random rewards."""
    rng = np.random.default_rng(seed)
    shape = (actions, size, successors)
    near, anywhere = (np.arange(size)[:, None] + rng.integers(-width, width + 1, shape)) % size, rng.integers(0, size, shape)
    to = np.where(rng.random(shape) < far, anywhere, near)
    chances, rewards = rng.dirichlet(np.ones(successors), (actions, size)), rng.normal(size=(actions, size))

    def dynamics(states, action):
        return to[action, states], chances[action, states], rewards[action, states]

    return tr.MDP.from_function(dynamics, size, actions, gamma)


CASES = (
    Case("Taxi .99", "textbook", partial(gym, "Taxi", 0.99), quick=True),
    Case("FrozenLake 8x8 .99", "textbook", partial(gym, "FrozenLake", 0.99, map_name="8x8"), quick=True),
    Case("CliffWalking .99", "textbook", partial(gym, "CliffWalking", 0.99), quick=True),
    Case("tightrope .9", "textbook", problems.tightrope, quick=True),
    Case("garnet 100 .9", "garnet", garnet(100, 4, 0.9), quick=True),
    Case("garnet 1e3 .99", "garnet", garnet(1_000, 4, 0.99, 1), quick=True),
    Case("garnet 1e4 .9", "garnet", garnet(10_000, 4, 0.9)),
    Case("garnet 1e4 .99", "garnet", garnet(10_000, 4, 0.99), quick=True),
    Case("garnet 1e4 .99 seed 1", "garnet", garnet(10_000, 5, 0.99, 1)),
    Case("garnet 1e4 .99 seed 2", "garnet", garnet(10_000, 4, 0.99, 2)),
    Case("garnet 1e4 .9999", "garnet", garnet(10_000, 5, 0.9999), quick=True),
    Case("garnet 1e5 .99", "garnet", garnet(100_000, 4, 0.99)),
    Case("garnet 1e6 .99", "garnet", garnet(1_000_000, 4, 0.99)),
    Case("garnet 1e4, 1 successor .99", "garnet", garnet(10_000, 3, 0.99, successors=1)),
    Case("garnet 1e4, 2 successors .99", "garnet", garnet(10_000, 4, 0.99, successors=2), quick=True),
    Case("garnet 1e4, 2 successors .9999", "garnet", garnet(10_000, 4, 0.9999, successors=2)),
    Case("garnet 1e5, 2 successors .99", "garnet", garnet(100_000, 4, 0.99, successors=2)),
    Case("garnet 3e3, 200 successors .999", "garnet", garnet(3_000, 3, 0.999, successors=200)),
    Case("slippery grid 100 .99", "slippery grid", grid(10, 0.1, 0.99), quick=True),
    Case("slippery grid 1e3 .999", "slippery grid", grid(32, 0.1, 0.999)),
    Case("slippery grid 1e4 .9", "slippery grid", grid(100, 0.1, 0.9)),
    Case("slippery grid 1e4 .999", "slippery grid", grid(100, 0.1, 0.999), quick=True),
    Case("slippery grid 1e4 .9999", "slippery grid", grid(100, 0.2, 0.9999)),
    Case("slippery grid 1e5 .999", "slippery grid", grid(316, 0.1, 0.999)),
    Case("slippery grid 1e6 .999", "slippery grid", grid(1000, 0.1, 0.999)),
    Case("rooms 1e4 .99", "slippery grid", lambda: rooms().mdp(slip=0.2, gamma=0.99)),
    Case("maze 1e4 .999", "slippery grid", partial(worlds.maze, 70, 0.1, 0.2, 0.999)),
    Case("maze 1e4, moves certain .9999", "deterministic grid", partial(worlds.maze, 70, 0.1, 0.0, 0.9999)),
    Case("deterministic grid 1e4 .9999", "deterministic grid", grid(100, 0.0, 0.9999), quick=True),
    Case("deterministic grid 1e5 .9999", "deterministic grid", grid(316, 0.0, 0.9999)),
    Case("queue 100 .99", "queue", partial(problems.queue, 99, gamma=0.99), quick=True),
    Case("queue 1e3 .999", "queue", partial(problems.queue, 999, gamma=0.999)),
    Case("queue 1e4 .999", "queue", partial(problems.queue, 9_999, gamma=0.999), quick=True),
    Case("queue 1e4 .9999", "queue", partial(problems.queue, 9_999, gamma=0.9999)),
    Case("queue 1e5 .999", "queue", partial(problems.queue, 99_999, gamma=0.999)),
    Case("inventory 200 .99", "inventory", inventory(199, 0.99), quick=True),
    Case("inventory 2e3 .999", "inventory", inventory(1_999, 0.999), quick=True),
    Case(
        "inventory 500, any order size .95", "inventory", partial(problems.inventory, 499, [0.1] * 10, max_order=499, gamma=0.95)
    ),
    Case("forest 10 .9", "forest", partial(problems.forest, 10, gamma=0.9), quick=True),
    Case("forest 50 .95", "forest", partial(problems.forest, 50, gamma=0.95), quick=True),
    Case("forest 1e3 .99", "forest", partial(problems.forest, 1_000, gamma=0.99), quick=True),
    Case("forest 1e4 .999", "forest", partial(problems.forest, 10_000, gamma=0.999)),
    Case("replacement 90 .999", "replacement", partial(problems.replacement, 90, gamma=0.999), quick=True),
    Case("replacement 1e4 .9999", "replacement", partial(problems.replacement, 10_000, gamma=0.9999)),
    Case("sysadmin 256 .95", "sysadmin", partial(problems.sysadmin, 8, gamma=0.95), quick=True),
    Case("sysadmin 1024 .99", "sysadmin", partial(problems.sysadmin, 10, gamma=0.99)),
    Case("tandem 1e4 .999", "tandem", partial(problems.tandem, 99, gamma=0.999), quick=True),
    Case("tandem 3 x 30 .9999", "tandem", partial(problems.tandem, 29, 3, gamma=0.9999)),
    Case("ring 1e4 .99", "ring", partial(ring, 10_000, 4, 3, 20, 0.99), quick=True),
    Case("ring 1e4, far moves .999", "ring", partial(ring, 10_000, 4, 3, 20, 0.999, 0.02)),
    Case("ring 5e4 .999", "ring", partial(ring, 50_000, 3, 2, 200, 0.999)),
    Case("stages 1e4 .999", "worlds", partial(stages, 100, 100, 0.999), quick=True),
    Case("gambler 100 .9999", "worlds", partial(worlds.gambler, 100, 0.9999), quick=True),
    Case("gambler 1e3 .9999", "worlds", partial(worlds.gambler, 1_000, 0.9999)),
    Case("fleet 3e3 .999", "worlds", partial(worlds.fleet, 5, 5, 0.999)),
    Case("seasons 1e4 .999", "worlds", partial(worlds.seasons, 24, 400, 0.999), quick=True),
    Case("stocks 1e4 .999", "worlds", partial(worlds.stocks, 100, 0.999)),
    Case("pendulum 1e4 .999", "worlds", partial(worlds.pendulum, 100, 0.999)),
    Case("hill 1e4 .999", "worlds", partial(worlds.hill, 100, 0.999)),
    Case("reservoir 5e3 .999", "worlds", partial(worlds.reservoir, 400, 0.999)),
    Case("cab 5e3 .95", "worlds", partial(worlds.cab, 25, 200, 0.95)),
    Case("cab 5e3 .999", "worlds", partial(worlds.cab, 25, 200, 0.999)),
    Case("elevator 3e3 .95", "worlds", partial(worlds.elevator, 300, 0.95)),
    Case("elevator 3e3, any order .95", "worlds", partial(any_order, worlds.elevator, 300, 0.95)),
    Case("elevator 3e3 .999", "worlds", partial(worlds.elevator, 300, 0.999)),
    Case("errand 4e3 .95", "worlds", partial(worlds.errand, 60, 0.95)),
    Case("errand 4e3, any order .95", "worlds", partial(any_order, worlds.errand, 60, 0.95)),
    Case("errand 4e3 .999", "worlds", partial(worlds.errand, 60, 0.999)),
    Case("errand 6e4 .99", "worlds", partial(worlds.errand, 250, 0.99)),
    Case("dice 4e3 .95", "worlds", partial(worlds.dice, 60, 0.95)),
    Case("wear 3e3, any order .999", "worlds", partial(any_order, worlds.wear, 3_000, 0.999)),
    Case("belief 7e3 .95", "worlds", partial(worlds.belief, 9, 0.95)),
    Case("river 2e3 .99", "worlds", partial(worlds.river, 2_000, 0.99)),
    Case("rental 441 .9", "worlds", partial(worlds.rental, 20, 0.9), quick=True),
    Case("rental 441 .999", "worlds", partial(worlds.rental, 20, 0.999)),
    Case("racetrack 3e4 .99", "worlds", partial(worlds.racetrack, 25, 3, 0.99)),
    Case("lake 1e4 .99", "worlds", partial(worlds.lake, 100, 0.05, 0.99)),
    Case("thermostat 1e3, dense .999", "worlds", partial(worlds.thermostat, 1_000, 0.999)),
    Case("polling 5e3 .99", "worlds", partial(networks.polling, 50, 0.99)),
    Case("polling 2e4 .999", "worlds", partial(networks.polling, 100, 0.999)),
    Case("pursuit 1e4 .99", "worlds", partial(worlds.pursuit, 10, 0.99)),
    Case("torus 1e4 .9", "worlds", partial(worlds.torus, 100, 0.9)),
    Case("torus 1e4 .999", "worlds", partial(worlds.torus, 100, 0.999)),
    Case("cube 1e3 .95", "worlds", partial(networks.cube, 10, 0.95)),
    Case("routes 3e3 .9999", "worlds", partial(networks.routes, 3_000, 0.9999)),
)
