"""The oracle that loses as much as it is allowed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.model import validate
from tightrope.model.policy import Policy
from tightrope.model.validate import frozen
from tightrope.operators import D_kappa, kappa_greedy, q_value, value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.approximate.problem import Problem
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import BoolArray, FloatArray, IntArray

#: Deterministic search stops this close to δ.
CLOSE = 0.99
#: Single states that deterministic search tries to turn in the end.
PATIENCE = 64
#: Times deterministic search begins anew.
RETRIES = 16


@dataclass(frozen=True)
class WorstCase:
    """A member of G_{κ,δ,ν}(v) that loses all it may: ν T_κ^π v = ν T_κ v - δ, found by search, not by noise.

    From the κ-greedy policy, states are turned one after another to what they do in the worst policy of all, the states that ν
    visits least first: there the loss weighs least in δ and can be largest elsewhere, which is what concentrability coefficients
    are about. The last state turned is mixed so that δ is met exactly. With `deterministic=True` no state is mixed; δ is then
    approached from below, at last with single states turned to any of their actions, to 1 % or as closely as whole states allow.
    If even the worst policy loses less than δ, that one is returned.

    Use it to see how tight a bound is; nobody solves problems with it.
    """

    delta: float
    deterministic: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", validate.finite(self.delta, "delta", low=0.0))

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:  # noqa: ARG002  (the protocol)
        """The worst policy found whose loss under ν is at most δ."""
        model = problem.known(self)
        best = kappa_greedy(model, problem.v, 1.0)
        top = float(nu @ value(model, best))

        def loss(pi: Policy) -> float:
            return top - float(nu @ value(model, pi))

        mirrored = model.reshaped(-model.r, model.gamma)
        worst = kappa_greedy(mirrored, -problem.v, 1.0)
        if loss(worst) <= self.delta:
            return worst
        return _search(model, best, worst, nu, self.delta, loss, deterministic=self.deterministic)


def _search(
    model: MDP,
    best: Policy,
    worst: Policy,
    nu: FloatArray,
    delta: float,
    loss: Callable[[Policy], float],
    *,
    deterministic: bool,
) -> Policy:
    """Turn states from best to worst, rarely visited ones first, while the loss stays within delta."""
    good, bad = np.asarray(best.rows), np.asarray(worst.rows)
    visits = D_kappa(model, best, 1.0).rmatvec(nu)
    order = np.argsort(visits, kind="stable")
    order = order[good[order] != bad[order]]
    rows = good.copy()
    turned = _longest(rows, bad, order, model, delta, loss)
    rows[order[:turned]] = bad[order[:turned]]
    if turned == len(order):
        return Policy.of_rows(model.pairs, rows)
    if not deterministic:
        return _mixed(model, rows, bad, int(order[turned]), delta, loss)
    refused = np.zeros(model.n_pairs, dtype=bool)
    found: list[tuple[float, Policy]] = []
    for _ in range(RETRIES):
        pi, spent, begun = _filled(model, rows, nu, delta, loss, refused.copy())
        found.append((spent, pi))
        if spent >= CLOSE * delta or begun is None:
            break
        refused[begun] = True  # begin with another pair next time: other gaps are left to fill
    return max(found, key=lambda each: each[0])[1]


def _longest(rows: IntArray, bad: IntArray, order: IntArray, model: MDP, delta: float, loss: Callable[[Policy], float]) -> int:
    """A number n of states of `order` that can be turned while one more would lose too much, by bisection."""

    def fits(n: int) -> bool:
        trial = rows.copy()
        trial[order[:n]] = bad[order[:n]]
        return loss(Policy.of_rows(model.pairs, trial)) <= delta

    if fits(len(order)):
        return len(order)
    yes, no = 0, len(order)
    while no - yes > 1:
        middle = (yes + no) // 2
        yes, no = (middle, no) if fits(middle) else (yes, middle)
    return yes


def _filled(
    model: MDP,
    rows: IntArray,
    nu: FloatArray,
    delta: float,
    loss: Callable[[Policy], float],
    refused: BoolArray,
) -> tuple[Policy, float, int | None]:
    """Single states turned to any action, the one predicted to come closest first, while the loss stays within delta.

    Returns the policy, its loss, and the pair it began with.
    """
    pairs, pi = model.pairs, Policy.of_rows(model.pairs, rows)
    spent = loss(pi)
    begun = None
    for _ in range(PATIENCE):
        if spent >= CLOSE * delta:
            break
        visits = D_kappa(model, pi, 1.0).rmatvec(nu) / (1.0 - model.gamma)
        q = q_value(model, pi)
        cost = np.repeat(visits, pairs.counts) * (np.repeat(q[pi.rows], pairs.counts) - q)
        fits = ~refused & (cost > 0.0) & (cost <= delta - spent)
        if not fits.any():
            break
        row = int(np.argmax(np.where(fits, cost, -np.inf)))
        turned = np.array(pi.rows)
        turned[pairs.states[row]] = row
        trial = Policy.of_rows(pairs, turned)
        total = loss(trial)
        if total <= delta:
            pi, spent = trial, total
            begun = row if begun is None else begun
        refused[row] = total > delta
    return pi, spent, begun


def _mixed(model: MDP, rows: IntArray, bad: IntArray, state: int, delta: float, loss: Callable[[Policy], float]) -> Policy:
    """The policy `rows`, with so much of the bad action mixed in at one state that the loss is delta."""
    weights = np.zeros(model.n_pairs)
    weights[rows] = 1.0

    def mixture(share: float) -> Policy:
        mass = weights.copy()
        mass[rows[state]] = 1.0 - share
        mass[bad[state]] = share
        return Policy(model.pairs, None, frozen(mass))

    from scipy.optimize import brentq  # noqa: PLC0415  (0.1 s to load, and only here)

    if loss(mixture(0.0)) >= delta:
        return Policy.of_rows(model.pairs, rows)
    share = brentq(lambda x: loss(mixture(x)) - delta, 0.0, 1.0, xtol=1e-14, rtol=1e-12)
    return mixture(share * (1.0 - 1e-9))  # a hair below, so that rounding cannot carry it over delta
