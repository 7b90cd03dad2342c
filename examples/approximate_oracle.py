"""An oracle of your own: sparse look-ahead from a generative model, checked and put to work.

    python examples/approximate_oracle.py

Any function (problem, nu, rng) -> Policy is an oracle. This one backs up v a few times, each time with fresh samples of every
pair. It needs no model, so it also works for a simulator.

κ-API jumps from one noisy policy to the next and can lose at every jump what it had; κ-PSDP builds on what it has: compare the
spread over seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import tightrope as tr
from tightrope.approximate import KappaAPI, KappaPSDP, Problem, run
from tightrope.testing import check_oracle

if TYPE_CHECKING:
    from tightrope import Policy


@dataclass(frozen=True)
class SparseLookahead:
    """Back up v for `depth` steps, each with n fresh samples of every pair: sampled value iteration."""

    n: int
    depth: int

    def __call__(self, problem: Problem, nu: np.ndarray, rng: np.random.Generator) -> Policy:  # noqa: ARG002  (looks everywhere)
        """The policy greedy in the last backup."""
        pairs = problem.pairs
        rows = np.repeat(np.arange(pairs.n_pairs), self.n)
        w = problem.v
        for _ in range(self.depth + 1):
            r, following = problem.sample(rows, rng)
            q = (r + problem.gamma * w[following]).reshape(-1, self.n).mean(axis=1)
            w = np.maximum.reduceat(q, pairs.first[:-1])
        best = [int(np.argmax(q[a:b])) for a, b in zip(pairs.first[:-1], pairs.first[1:], strict=True)]
        return tr.Policy.deterministic(problem, np.asarray(pairs.actions)[pairs.first[:-1] + best])


if __name__ == "__main__":
    print(check_oracle(SparseLookahead(n=20, depth=6)))
    mdp = tr.problems.gridworld(10, 10, gamma=0.95)
    mu = np.full(mdp.n_states, 1.0 / mdp.n_states)
    print("\nloss after 12 iterations, ten seeds    n = 2             n = 8             n = 32")
    for kind in (KappaAPI, KappaPSDP):
        cells = []
        for n in (2, 8, 32):
            algorithm = kind(0.8, SparseLookahead(n, depth=8), iterations=12)
            losses = [run(mdp, algorithm, mu=mu, seed=seed).loss for seed in range(10)]
            cells.append(f"{np.mean(losses):.3f} +- {np.std(losses):.3f}")
        print(f"{kind.__name__:38}" + "    ".join(cells))
