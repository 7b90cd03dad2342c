"""Coefficients from samples alone: confidence intervals for a policy's mismatch, when there is no model to compute with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidArgument, InvalidPolicy
from tightrope.model import validate
from tightrope.model.sampler import source_of
from tightrope.theory import rates
from tightrope.theory.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.policy import Policy
    from tightrope.model.sampler import Source
    from tightrope.model.validate import FloatArray, IntArray


def sampled_C_star_kappa(
    source: Any,
    pi: Policy,
    mu: Any,
    nu: Any,
    kappa: float = 0.0,
    *,
    samples: int = 10_000,
    seed: Any = None,
    confidence: float = 0.95,
) -> Interval:
    """An interval that contains C_κ^π(μ,ν) with probability `confidence`, from walks of π that start in μ.

    A walk that stops at once with probability w, and else after each step with probability 1-γ, ends in a draw from d_{κ,μ}^π
    (Definition 4). Only a policy's own coefficients can be estimated so: c(i), a maximum over all policies, cannot be bounded
    from above by samples of some of them; for a model too large for it, `concentrability(..., max_seconds=...)` returns
    certified, wider intervals instead.

    Args:
        source: a model, a `Simulator`, or any source of samples.
        pi: the policy, the paper's π*.
        mu: start distribution [S].
        nu: covering distribution [S]. Where it is zero the upper end is infinite: samples cannot exclude a rare visit.
        kappa: in [0, 1].
        samples: how many walks.
        seed: a number or a Generator; the same seed gives the same interval.
        confidence: in (0, 1), for both ends together and all states at once.
    """
    draw, m, n, count, rng, level = _checked(source, pi, mu, nu, samples, seed, confidence)
    stay = rates.stay_weight(draw.gamma, kappa)
    steps = rng.geometric(1.0 - draw.gamma, count) - 1
    steps[rng.random(count) < stay] = 0
    return _mismatch(_ends(draw, pi, m, steps, rng), n, level)


def sampled_c_star(
    source: Any, pi: Policy, mu: Any, nu: Any, i: int, *, samples: int = 10_000, seed: Any = None, confidence: float = 0.95
) -> Interval:
    """An interval that contains c^π(i) with probability `confidence`, from walks of i steps; arguments as above."""
    draw, m, n, count, rng, level = _checked(source, pi, mu, nu, samples, seed, confidence)
    steps = np.full(count, validate.positive_integer(i, "i", low=0))
    return _mismatch(_ends(draw, pi, m, steps, rng), n, level)


def _checked(
    source: Any, pi: Policy, mu: Any, nu: Any, samples: Any, seed: Any, confidence: Any
) -> tuple[Source, FloatArray, FloatArray, int, np.random.Generator, float]:
    draw = source_of(source)
    S = draw.pairs.n_states
    level = validate.real(confidence, "confidence")
    if not 0.0 < level < 1.0:
        raise InvalidArgument(f"confidence must lie in (0, 1); found {level!r}. 0.95 is common")
    if not pi.pairs.same(draw.pairs):
        raise InvalidPolicy("the policy is for another model than the source: their states or actions differ")
    m, n = validate.distribution(mu, S, "mu"), validate.distribution(nu, S, "nu")
    return draw, m, n, validate.positive_integer(samples, "samples"), validate.generator(seed), level


def _ends(source: Source, pi: Policy, mu: FloatArray, steps: IntArray, rng: np.random.Generator) -> IntArray:
    """How often each state is the last of a walk that starts in μ and takes the given number of steps [S]."""
    S = len(mu)
    order = np.argsort(-steps, kind="stable")  # the walks still under way are then the first ones
    left = steps[order]
    states = rng.choice(S, size=len(steps), p=mu)
    choose = _chooser(pi)
    for step in range(int(left[0])):
        moving = int(np.searchsorted(-left, -step, side="left"))
        _, states[:moving] = source.sample(choose(states[:moving], rng), rng)
    return np.bincount(states, minlength=S)


def _chooser(pi: Policy) -> Callable[[IntArray, np.random.Generator], IntArray]:
    """The function (states [n], rng) -> pairs [n] drawn from π, its running sums made once for all steps."""
    if pi.rows is not None:
        rows = pi.rows
        return lambda states, _: rows[states]
    first, ends = pi.pairs.first, np.concatenate(([0.0], np.cumsum(pi.weights)))

    def choose(states: IntArray, rng: np.random.Generator) -> IntArray:
        low, high = ends[first[states]], ends[first[states + 1]]
        drawn = np.searchsorted(ends[1:], low + rng.random(len(states)) * (high - low), side="right")
        return np.minimum(drawn, first[states + 1] - 1)

    return choose


def _mismatch(counts: IntArray, nu: FloatArray, confidence: float) -> Interval:
    """max_s p(s)/ν(s) from counts of draws of p: exact binomial limits for all states at once."""
    if counts[nu == 0.0].any():
        return Interval(math.inf, math.inf)
    low, high = binomial_limits(counts, int(counts.sum()), (1.0 - confidence) / (2.0 * len(counts)))
    covered = nu > 0.0
    upper = float((high[covered] / nu[covered]).max()) if covered.all() else math.inf
    return Interval(max(1.0, float((low[covered] / nu[covered]).max())), upper)


def binomial_limits(counts: IntArray, n: int, risk: float) -> tuple[FloatArray, FloatArray]:
    """Exact limits (Clopper and Pearson) of probabilities seen `counts` [m] times in n >= 1 draws; each end errs with `risk`."""
    from scipy.special import betaincinv  # noqa: PLC0415  (loads with the first estimate)

    seen, missing = np.maximum(counts, 1), np.maximum(n - counts, 1)
    low = np.where(counts > 0, betaincinv(seen, n - seen + 1, risk), 0.0)
    high = np.where(counts < n, betaincinv(counts + 1, missing, 1.0 - risk), 1.0)
    return low, high
