"""Conservative policy iteration (Kakade and Langford, 2002) on the surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.approximate import walk
from tightrope.model import validate
from tightrope.model.policy import Policy, mix
from tightrope.model.validate import frozen
from tightrope.operators import D_kappa, q_value
from tightrope.operators.bellman import best, greedy_in

if TYPE_CHECKING:
    from tightrope.approximate.problem import Problem
    from tightrope.model.pairs import Pairs
    from tightrope.model.validate import FloatArray, IntArray

#: Walks from each of a state's actions before the state may change.
TRIED = 4.0


class Step(NamedTuple):
    """A direction to improve in: the policy, its advantage d_ν·A under ν, and the largest advantage of any state."""

    target: Policy
    advantage: float
    largest: float


@dataclass(frozen=True)
class ConservativePI:
    """Small certain steps: π <- (1-α)π + α π' from the uniform policy, α chosen so that ν v^π of the surrogate must grow.

    With g = κγ, d the discounted visits of π from ν, 𝔸 = Σ_s d(s) A(s, π') and ε >= max_s |A(s, π')|:
    ν(v^new - v) >= α/(1-g) (𝔸 - 2αε/(1-g)), which α = (1-g)𝔸/(4ε) makes at least α𝔸/(2(1-g)) (their Corollary 4.2). It stops
    when 𝔸 <= 2/3 `tolerance`, or after `rounds`.

    With `samples` (in all, spread evenly over the rounds) advantages come from walks that start from ν. Each round's walks
    measure 𝔸 of the target chosen from the rounds before, so that choosing the best of noisy numbers does not inflate it, and
    then join them; older walks fade as the policy moves on. Without samples, everything comes from the model.
    Use it when ν is what matters and a step backwards is worse than a slow one. Steps are small: it takes hundreds of rounds. The
    answer is stochastic.
    """

    samples: int | None = None
    rounds: int = 200
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.samples is not None:
            validate.positive_integer(self.samples, "samples")
        validate.positive_integer(self.rounds, "rounds")
        validate.finite(self.tolerance, "tolerance", low=0.0)

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:
        """The last policy of the chain."""
        pi = problem.uniform()
        pool = None if self.samples is None else Pool.empty(problem.pairs)
        for _ in range(self.rounds):
            if pool is None:
                step = exact_step(problem, pi, nu)
                if step.advantage <= 2.0 / 3.0 * self.tolerance:
                    break
            else:
                step, fresh = sampled_step(problem, pi, nu, pool, max(2, self.samples // self.rounds), rng)  # type: ignore[operator]
                pool = pool.joined(fresh)
            if step.advantage > 2.0 / 3.0 * self.tolerance and step.largest > 0.0:
                alpha = step_size(step, problem.gamma, self.tolerance)
                pi = mix(pi, step.target, alpha)
                pool = None if pool is None else pool.faded(alpha)
        return pi


def step_size(step: Step, g: float, tolerance: float = 0.0) -> float:
    """α = (1-g)(𝔸 - tolerance/3)/(4ε), at most 1."""
    return min(1.0, (1.0 - g) * (step.advantage - tolerance / 3.0) / (4.0 * step.largest))


def exact_step(problem: Problem, pi: Policy, nu: FloatArray) -> Step:
    """The greedy policy of q^π, with its advantage computed from the model."""
    model = problem.known(ConservativePI())
    q = q_value(model, pi)
    gain = best(q, model.pairs)[0] - pi.averaging() @ q
    visits = D_kappa(model, pi, 1.0).rmatvec(nu)
    return Step(greedy_in(q, model.pairs), float(visits @ gain), float(gain.max()))


class Pool(NamedTuple):
    """Walks so far: how often each pair began one [L], and the sum of what was earned [L]; both fade as the policy moves."""

    tried: FloatArray
    earned: FloatArray

    @classmethod
    def empty(cls, pairs: Pairs) -> Pool:
        """No walks yet."""
        return cls(np.zeros(pairs.n_pairs), np.zeros(pairs.n_pairs))

    def joined(self, other: Pool) -> Pool:
        """Both together."""
        return Pool(self.tried + other.tried, self.earned + other.earned)

    def faded(self, alpha: float) -> Pool:
        """What is still worth remembering after the policy has moved by α."""
        return Pool((1.0 - alpha) * self.tried, (1.0 - alpha) * self.earned)


def sampled_step(
    problem: Problem, pi: Policy, nu: FloatArray, pool: Pool, samples: int, rng: np.random.Generator
) -> tuple[Step, Pool]:
    """A direction from the pool, its advantage measured by fresh walks, and these; rarely tried states keep what they do."""
    pairs, g = problem.pairs, problem.gamma
    q = pool.earned / np.maximum(pool.tried, 1.0)
    known = np.minimum.reduceat(pool.tried, pairs.first[:-1]) >= TRIED
    v = pi.averaging() @ q
    top, chosen = best(q, pairs)
    change = -pi.weights * np.repeat(known, pairs.counts)
    change[chosen[known]] += 1.0
    target = Policy(pairs, None, frozen(np.maximum(pi.weights + change, 0.0)))

    choose = walk.choosing(pi)
    n = max(2, round(samples * (1.0 - g) / (1.0 + g)))
    states = visited(problem, nu, choose, n, rng)
    rows = walk.anything(pairs)(states, rng)
    earned = walk.returns(problem, rows, choose, rng)
    # a is uniform, so a return counts |A(s)| (π' - π)(a|s) times to be unbiased for Σ_a (π' - π) q; v takes out the noise of s
    advantage = float((pairs.counts[states] * change[rows] * (earned - v[states])).mean())
    tried = np.bincount(rows, minlength=pairs.n_pairs).astype(np.float64)
    fresh = Pool(tried, walk.sums(rows, earned, pairs.n_pairs))
    return Step(target, advantage, float((top - v)[known].max(initial=0.0))), fresh


def visited(problem: Problem, nu: FloatArray, choose: walk.Chooser, n: int, rng: np.random.Generator) -> IntArray:
    """n states drawn from d = (1-g) ν Σ_t (g P^π)^t: the last states of walks from ν that end with probability 1-g."""
    states = walk.starts(nu, n, rng)
    on = np.flatnonzero((rng.random(n) < problem.gamma) & ~problem.terminal[states])
    while len(on):
        _, following = problem.sample(choose(states[on], rng), rng)
        states[on] = following
        on = on[(rng.random(len(on)) < problem.gamma) & ~problem.terminal[following]]
    return states
