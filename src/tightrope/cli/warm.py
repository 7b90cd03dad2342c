"""`tightrope warm`: every loop compiled now, so that no run waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tightrope.cli import console

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.mdp import MDP


def warm() -> None:
    """Compile all loops that solving uses, and keep them on disk: for images and clusters, where no run should wait for it.

    Otherwise each is compiled when it is first needed on a machine, which takes a few seconds once. Takes about a minute.
    """
    from tightrope import progress
    from tightrope.kernels import tiers
    from tightrope.planning import kappa_pi, solve

    begin = time.perf_counter()
    makers = models()
    tiers.compile_loops()
    with progress.bar("compiling", len(makers)) as bar:
        for name, make in makers.items():
            bar.advance(0, name)
            mdp = make()
            for algorithm in (None, kappa_pi(0.9)):
                solve(mdp, algorithm)
            bar.advance(1, name)
    console.out().print(f"compiled for {', '.join(makers)} in {time.perf_counter() - begin:.0f} s")


def models() -> dict[str, Callable[[], MDP]]:
    """One model for every way to solve: each method, small and large, as numbered and not."""
    from tightrope.model import problems

    return {
        "small models": lambda: problems.garnet(1_000, 4, 5, gamma=0.99),
        "goals": lambda: problems.gridworld(60, 60, gamma=0.999),
        "goals in any order": lambda: shuffled(problems.gridworld(60, 60, gamma=0.999)),
        "bands": lambda: problems.queue(2_000, gamma=0.999),
        "single moves": lambda: problems.random_sparse_deterministic(2_000, gamma=0.999),
        "wide rows": lambda: problems.garnet(400, 8, 20, gamma=0.99),
        "dense rows": lambda: problems.garnet(200, 8, 200, gamma=0.99),
        "actions that lead alike": lambda: problems.inventory(200, [0.02] * 50, max_order=39),
        "networks": lambda: problems.tandem(40, gamma=0.999),
        "networks in any order": lambda: shuffled(problems.tandem(40, gamma=0.999)),
        "errands": lambda: errands(80, 0.95),
        "errands in any order": lambda: shuffled(errands(80, 0.95)),
        "errands without end": lambda: shuffled(errands(80, 0.999)),
        "components": lambda: copies(problems.garnet(60, 3, 5, gamma=0.999), 40),
        "policies that settle": lambda: shuffled(problems.queue(2_000, gamma=0.999)),
        "large models": lambda: problems.garnet(120_000, 4, 5, gamma=0.99),
        "large goals": lambda: problems.gridworld(450, 450, gamma=0.99),
        "large goals in any order": lambda: shuffled(problems.gridworld(450, 450, gamma=0.9)),
        "large errands": lambda: errands(220, 0.9),
        "large dense rows": lambda: problems.garnet(450, 4, 450, gamma=0.99),
        "large models that lead alike": lambda: problems.inventory(400, [0.02] * 50, max_order=39, gamma=0.99),
        "large bands": lambda: problems.queue(250_000, gamma=0.99),
        "large networks": lambda: problems.tandem(90, 3, gamma=0.9),
    }


def errands(size: int, gamma: float) -> MDP:
    """From one corner of a yard to the other, to the right or down but for slips; then it begins again."""
    import numpy as np

    from tightrope.model.mdp import MDP

    def dynamics(states: Any, action: int) -> tuple[Any, Any, Any]:
        row, column = np.divmod(states, size)
        steps = ((1, 0), (0, 1), (-1, 0)) if action == 0 else ((0, 1), (1, 0), (0, -1))
        to = [np.clip(row + down, 0, size - 1) * size + np.clip(column + right, 0, size - 1) for down, right in steps]
        done = states == size * size - 1
        return np.where(done[:, None], 0, np.stack(to, axis=1)), [0.8, 0.1, 0.1], 1.0 * done

    return MDP.from_function(dynamics, size * size, 2, gamma)


def copies(mdp: MDP, n: int) -> MDP:
    """The same model n times, side by side."""
    import numpy as np
    import scipy.sparse as sp

    from tightrope.model.mdp import MDP

    first = np.append(0, np.cumsum(np.tile(np.diff(mdp.first), n)))
    return MDP(sp.csr_array(sp.block_diag([mdp.P] * n, format="csr")), np.tile(mdp.r, n), mdp.gamma, first)


def shuffled(mdp: MDP) -> MDP:
    """The same model with its states numbered at random."""
    import numpy as np
    import scipy.sparse as sp

    from tightrope.model.mdp import MDP

    old = np.random.default_rng(0).permutation(mdp.n_states)
    counts = np.diff(mdp.first)[old]
    first = np.append(0, np.cumsum(counts))
    pairs = np.repeat(mdp.first[old] - first[:-1], counts) + np.arange(mdp.n_pairs)
    place = np.empty_like(old)
    place[old] = np.arange(mdp.n_states)
    P = sp.csr_array(mdp.P[pairs])
    P = sp.csr_array((P.data, place[P.indices], P.indptr), shape=P.shape)
    return MDP(P, mdp.r[pairs], mdp.gamma, first)
