"""Models for the hunt for counterexamples: drawn at random, changed by an adversary, or known; and schemes of step sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.experiments.tiny import Batch, follow

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.validate import FloatArray

#: The adversary keeps this many models and changes each of them this often.
KEPT, ROUNDS = 48, 40
#: Which part of the changes is of each kind: where a pair leads, rewards, γ and κ, a first action, step sizes.
CHANGES = ((0.0, 0.3), (0.25, 0.7), (0.7, 0.85), (0.85, 0.93), (0.93, 1.0))


class Scheme(NamedTuple):
    """How large steps are: a draw of step sizes [B, S] for given κ [B], and how many are taken."""

    shown: str
    draw: Callable[[np.random.Generator, FloatArray, int], FloatArray]
    steps: int
    #: Steps are in the end smaller than any number, or the same in every state: what the paper's algorithm does.
    regular: bool
    vanishing: bool = False


SCHEMES = {
    "equal": Scheme(
        "the same α < κ in every state",
        lambda rng, kappa, S: np.repeat((kappa * rng.uniform(0.1, 0.99, len(kappa)))[:, None], S, axis=1),
        3_000,
        regular=True,
    ),
    "small": Scheme("α = 0.03 in every state", lambda _, kappa, S: np.full((len(kappa), S), 0.03), 5_000, regular=True),
    "vanishing": Scheme(
        "αₙ = 1/(2 + n/5) in every state",
        lambda _, kappa, S: np.full((len(kappa), S), 0.5),
        5_000,
        regular=True,
        vanishing=True,
    ),
    "small, unequal": Scheme(
        "0.006 ≤ α(s) ≤ 0.06",
        lambda rng, kappa, S: 0.06 * 10.0 ** rng.uniform(-1.0, 0.0, (len(kappa), S)),
        15_000,
        regular=True,
    ),
    "unequal": Scheme(
        "0.05 ≤ α(s) ≤ 1",
        lambda rng, kappa, S: np.where(rng.random((len(kappa), S)) < 0.5, 1.0, 20.0 ** rng.uniform(-1.0, 0.0, (len(kappa), S))),
        4_000,
        regular=False,
    ),
}


def known(rng: np.random.Generator, n: int) -> Batch:
    """The counterexample, n times, with rewards off by up to 1 %: γ = .99, κ = .6, α = 1 in s0 and .1 in s1.

    s0: a0 pays -1 and leads to s1, a1 pays 1 and leads to s2. s1: a0 pays 0 and leads to s0, a1 pays 1 and stays. s2 pays .3 for
    ever. Staying in s1 for ever is best, and s0 should go there. But while s1 stays with probability p near 1/2 only, s0 goes and
    leaves in turn: when it leaves, s1 is worth staying in and s0 wants to go; when it goes, walking to and fro is so dear that s1
    sends it back and s0 wants to leave. p ends up alternating between (1-α)/(2-α) and 1/(2-α), for ever.
    """
    P = np.zeros((3, 2, 3))
    P[[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], [1, 2, 0, 1, 2, 2]] = 1.0
    r = np.array([[-1.0, 1.0], [0.0, 1.0], [0.3, 0.3]]) * rng.uniform(0.99, 1.01, (n, 3, 2))
    r[:, 2, 1] = r[:, 2, 0]
    start = np.eye(2)[[1, 0, 0]]
    gamma, kappa = np.full(n, 0.99), np.full(n, 0.6)
    return Batch(np.tile(P, (n, 1, 1, 1)), r, gamma, kappa, np.tile(start, (n, 1, 1)), np.tile([1.0, 0.1, 1.0], (n, 1)))


def drawn(rng: np.random.Generator, n: int, S: int, A: int, kind: str, scheme: str) -> Batch:
    """n random models, each with a random κ, discount, first policy and step sizes."""
    if kind == "deterministic":
        P = np.eye(S)[rng.integers(S, size=(n, S, A))]
    else:
        P = rng.dirichlet(np.full(S, 0.3 if kind == "sparse" else 1.0), size=(n, S, A))
    r = rng.normal(size=(n, S, A)) * np.exp(rng.normal(size=(n, S, A)))
    kappa = rng.uniform(0.2, 0.99, n)
    gamma = 1.0 - 10.0 ** rng.uniform(-2.0, -0.3, n)
    start = np.where(rng.random((n, 1, 1)) < 0.5, np.eye(A)[rng.integers(A, size=(n, S))], rng.dirichlet(np.ones(A), size=(n, S)))
    return Batch(P, r, gamma, kappa, start, SCHEMES[scheme].draw(rng, kappa, S))


def hunted(rng: np.random.Generator, S: int, A: int, scheme: str) -> Batch:
    """Models that an adversary has changed, step by step, to lose for as long as possible."""
    rule = SCHEMES[scheme]
    early = min(rule.steps // 20, 150)

    def badness(batch: Batch) -> FloatArray:
        return follow(batch, early, early, vanishing=rule.vanishing).area

    first = drawn(rng, 8 * KEPT, S, A, "sparse", scheme).replaced(
        rng.random(8 * KEPT) < 0.7, drawn(rng, 8 * KEPT, S, A, "deterministic", scheme)
    )
    score = badness(first)
    top = np.argsort(-score)[:KEPT]
    kept, score = first.take(top), score[top]
    for _ in range(ROUNDS):
        new = changed(rng, kept, scheme)
        found = badness(new)
        better = found > score
        kept, score = kept.replaced(better, new), np.maximum(score, found)
    return kept


def changed(rng: np.random.Generator, batch: Batch, scheme: str) -> Batch:
    """Every model with one thing changed: where a pair leads, some rewards, γ and κ, one state's first action, or the steps."""
    B, S, A = batch.r.shape
    other = drawn(rng, B, S, A, "sparse", scheme)
    P, r, start = batch.P.copy(), batch.r.copy(), batch.start.copy()
    what = np.asarray(rng.random(B))
    each, s, a = (np.asarray(x) for x in (np.arange(B), rng.integers(S, size=B), rng.integers(A, size=B)))
    row = np.where(rng.random((B, 1)) < 0.5, np.eye(S)[rng.integers(S, size=B)], 0.7 * P[each, s, a] + 0.3 * other.P[each, s, a])
    leads, pays, farther, begins, steps = (np.asarray((what >= low) & (what < high)) for low, high in CHANGES)
    P[each[leads], s[leads], a[leads]] = row[leads]
    noise = rng.normal(size=r.shape) * (rng.random(r.shape) < 0.5) * 10.0 ** rng.uniform(-2.0, 0.0, (B, 1, 1))
    r = np.where(pays[:, None, None], r + noise * np.abs(r).mean(axis=(1, 2), keepdims=True), r)
    start[each[begins], s[begins]] = np.eye(A)[a[begins]]
    gamma = np.where(farther, other.gamma, batch.gamma)
    kappa = np.where(farther, np.clip(batch.kappa + 0.1 * rng.normal(size=B), 0.2, 0.99), batch.kappa)
    redrawn = steps[:, None] & (rng.random((B, S)) < (0.5 if "unequal" in scheme else 1.0))
    step = np.where(redrawn, other.step, batch.step)
    # A step as large as κ is safe: the adversary may not win or lose by it.
    step = np.minimum(step, 0.99 * kappa[:, None]) if scheme == "equal" else step
    return Batch(P, r, gamma, kappa, start, step)
