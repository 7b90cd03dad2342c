"""Model classes to draw from: small random models of six kinds, the same for the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tightrope.experiments.experiment import generator
from tightrope.model.mdp import MDP
from tightrope.model.problems import garnet, gridworld, queue, random_sparse_deterministic

if TYPE_CHECKING:
    from collections.abc import Callable

#: The discount of every family.
GAMMA = 0.9


def draw(family: str, seed: int) -> MDP:
    """The model of this number in its family."""
    return FAMILIES[family](generator("family", {"family": family}, seed))


def uniform(mdp: MDP) -> np.ndarray:
    """Every state alike [S]."""
    return np.full(mdp.n_states, 1.0 / mdp.n_states)


def _dense(rng: np.random.Generator) -> MDP:
    return garnet(30, 3, 15, gamma=GAMMA, seed=rng)


def _sparse(rng: np.random.Generator) -> MDP:
    return garnet(30, 3, 2, gamma=GAMMA, seed=rng)


def _deterministic(rng: np.random.Generator) -> MDP:
    return random_sparse_deterministic(30, 3, density=0.2, gamma=GAMMA, seed=rng)


def _maze(rng: np.random.Generator) -> MDP:
    """A 6 x 6 grid with about eight walls, a goal in one corner that can be reached from the other, and a trap between them."""
    from scipy.ndimage import label  # noqa: PLC0415  (slow to load, and only mazes need it)

    while True:
        walls = rng.random((6, 6)) < 0.22
        trap = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
        walls[0, 0] = walls[5, 5] = walls[trap] = False
        region, _ = label(~walls)
        if region[0, 0] == region[5, 5] == region[trap]:
            break
    return gridworld(6, 6, walls=walls, goals={(5, 5): 1.0, trap: -1.0}, slip=float(rng.uniform(0.0, 0.3)), gamma=GAMMA)


def _queue(rng: np.random.Generator) -> MDP:
    slow = float(rng.uniform(0.1, 0.3))
    return queue(
        20,
        arrival=float(rng.uniform(0.2, 0.5)),
        services=(slow, float(rng.uniform(slow, 0.5))),
        service_costs=(0.0, float(rng.uniform(0.2, 2.0))),
        holding=float(rng.uniform(0.1, 1.0)),
        gamma=GAMMA,
    )


def _corridor(rng: np.random.Generator) -> MDP:
    """Walk or stay; every step costs one until the end, which pays one for ever: half of what is at stake is negative."""
    n = int(rng.integers(3, 9))
    stay, walk = np.eye(n), np.eye(n)[np.minimum(np.arange(n) + 1, n - 1)]
    r = np.where(np.arange(n) == n - 1, 1.0, -1.0)
    return MDP.from_actions([stay, walk], np.stack([r, r], axis=1), GAMMA, start=np.eye(n)[0])


FAMILIES: dict[str, Callable[[np.random.Generator], MDP]] = {
    "dense": _dense,
    "sparse": _sparse,
    "deterministic": _deterministic,
    "maze": _maze,
    "queue": _queue,
    "corridor": _corridor,
}
