"""`run`: iterate an approximate algorithm, measure every iteration where the model is known, and lose nothing on the way."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import progress
from tightrope.approximate.evaluation import ExactValue
from tightrope.approximate.problem import Problem, beginning, realised_delta
from tightrope.approximate.problem import measure as measured
from tightrope.approximate.result import Row, Run, Status
from tightrope.errors import InvalidArgument, OracleFailed
from tightrope.model import validate
from tightrope.model.mdp import MDP
from tightrope.model.validate import frozen
from tightrope.operators import T_kappa, value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.approximate.algorithms import Algorithm
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray


def run(
    mdp_or_source: Any,
    algorithm: Algorithm,
    *,
    pi0: Policy | None = None,
    mu: Any = None,
    seed: int = 0,
    measure: bool = True,
    resume: Run | None = None,
    on_iteration: Callable[[Row], None] | None = None,
    show_progress: bool | None = None,
) -> Run:
    """Run κ-API, κ-PSDP or any other `Algorithm` on a model or on a source of samples.

    With an MDP, the realised δ_k = ν(T_κ v - T_κ^{π_k} v) and the loss μ(v* - v^{π_k}) of every iteration go into the trace. The
    same seed gives the same run, resumed or not: iteration k has random numbers of its own. Ctrl-C is a status. An oracle that
    raises, or returns what is not a policy, ends the run with `OracleFailed`, whose `run` holds the iterates so far.

    Args:
        mdp_or_source: an MDP, or a source of samples (`tightrope.model.sampler`).
        algorithm: `KappaAPI(...)`, `KappaPSDP(...)`, `experimental.kappa_cpi(...)`.
        pi0: the policy to begin with; uniform by default.
        mu: the distribution the loss is measured with [S]; by default where the model starts.
        seed: an integer.
        measure: compute δ and the loss of every iteration where the model is known; each costs an exact solution.
        resume: a run to continue; `algorithm.iterations` counts from its beginning. Its pi0 and seed are used.
        on_iteration: called with each trace row as it is made.
        show_progress: draw a progress bar; by default on a terminal only.
    """
    original = Problem.original(mdp_or_source)
    if not hasattr(algorithm, "step") or isinstance(algorithm, type):
        raise InvalidArgument(f"algorithm must be one such as KappaAPI(0.9, SampledModel(10)); found {algorithm!r}")
    seed = validate.positive_integer(seed, "seed", low=0)
    nu, weights = measured(algorithm.nu, mdp_or_source, "nu"), beginning(mu, mdp_or_source, "mu")
    gauge = _Gauge(mdp_or_source, algorithm, nu, weights, on=measure and isinstance(mdp_or_source, MDP))
    now = (
        _begin(original, algorithm, pi0, seed, gauge, repr(mdp_or_source))
        if resume is None
        else _again(original, algorithm, resume)
    )
    gauge.catch_up(now)
    original.meter.samples = now.samples
    at_once = algorithm.kappa == 1.0 and not algorithm.soft
    goal = 1 if at_once else algorithm.iterations
    with progress.bar(type(algorithm).__name__, goal, show=show_progress) as bar:
        for k in range(now.iterations + 1, goal + 1):
            begin = time.perf_counter()
            rng = np.random.default_rng(np.random.SeedSequence(now.seed, spawn_key=(k,)))
            try:
                improved = algorithm.step(original, now.policies[-1] if now.policies else now.pi0, now.value, nu, rng)
                v = _grounded(improved.v, original)
                spent = time.perf_counter() - begin
                delta, loss, wrong = gauge.read(improved.problem, improved.answer, improved.pi, v)
            except KeyboardInterrupt:
                return replace(now, status=Status.INTERRUPTED)
            except Exception as error:
                raise OracleFailed(k, error, replace(now, status=Status.FAILED)) from error
            row = Row(k, delta, loss, wrong, original.meter.samples, now.seconds + spent)
            now = replace(now, policies=(*now.policies, improved.pi), value=v, rows=(*now.rows, row))
            bar.advance(1, "" if math.isnan(loss) else f"loss {loss:.3g}")
            if on_iteration is not None:
                on_iteration(row)
    return replace(now, status=Status.ONE_CALL if at_once else Status.FINISHED)


def _begin(original: Problem, algorithm: Algorithm, pi0: Policy | None, seed: int, gauge: _Gauge, model: str) -> Run:
    """The run before its first iteration: v is the value of π_0."""
    first = original.uniform() if pi0 is None else pi0
    if not first.pairs.same(original.pairs):
        raise InvalidArgument(f"pi0 is for another model: {first!r}")
    begin = time.perf_counter()
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    v = _grounded(algorithm.evaluate(original, first, gauge.nu, rng), original)
    spent = time.perf_counter() - begin
    loss, error = gauge.start(first, v)
    row = Row(0, math.nan, loss, error, original.meter.samples, spent)
    return Run(algorithm.kappa, first, (), v, (row,), Status.FINISHED, algorithm.switching, seed, repr(algorithm), model)


def _again(original: Problem, algorithm: Algorithm, earlier: Run) -> Run:
    """An earlier run, to be continued; what was done with another κ or model cannot be."""
    if not earlier.pi0.pairs.same(original.pairs):
        raise InvalidArgument("resume: this run was made with another model")
    if (earlier.kappa, earlier.switching) != (algorithm.kappa, algorithm.switching):
        raise InvalidArgument(f"resume: this run was made by {earlier.algorithm}, which cannot be continued by {algorithm!r}")
    return replace(earlier, algorithm=repr(algorithm))


def _grounded(v: Any, original: Problem) -> FloatArray:
    """An evaluation, checked, with terminal states at their true value of zero."""
    array = np.array(v, dtype=np.float64)
    if array.shape != (original.n_states,) or not np.isfinite(array).all():
        found = f"shape {array.shape}" if array.shape != (original.n_states,) else "numbers that are not finite"
        raise InvalidArgument(f"an evaluation must be a finite number per state, shape ({original.n_states},); found {found}")
    array[original.terminal] = 0.0
    return frozen(array)


class _Gauge:
    """Measures iterates against the exact optimum; reads nan when it is off."""

    def __init__(self, mdp: Any, algorithm: Algorithm, nu: FloatArray, mu: FloatArray, *, on: bool) -> None:
        self.mdp, self.algorithm, self.nu, self.mu, self.on = mdp, algorithm, nu, mu, on
        self.optimum = T_kappa(mdp, np.zeros(mdp.n_states), 1.0) if on else np.empty(0)
        self.exact = np.empty(0)

    def start(self, pi0: Policy, v: FloatArray) -> tuple[float, float]:
        """The loss of π_0 and the error of its evaluation."""
        if not self.on:
            return math.nan, math.nan
        self.exact = value(self.mdp, pi0)
        return self._loss(), float(np.abs(v - self.exact).max())

    def catch_up(self, run: Run) -> None:
        """Bring the exact value to where a resumed run stands."""
        if not self.on or not run.policies:
            return
        self.exact = value(self.mdp, run.pi0)
        for pi in run.policies if run.switching else run.policies[-1:]:
            self.exact = self.algorithm.exact(self.mdp, pi, self.exact)

    def read(self, problem: Problem, answer: Policy, pi: Policy, v: FloatArray) -> tuple[float, float, float]:
        """δ of the oracle's answer, the loss of the result so far, and the error of the evaluation."""
        if not self.on:
            return math.nan, math.nan, math.nan
        known = isinstance(self.algorithm.evaluate, ExactValue)
        self.exact = v if known else self.algorithm.exact(self.mdp, pi, self.exact)
        return realised_delta(problem, answer, self.nu), self._loss(), float(np.abs(v - self.exact).max())

    def _loss(self) -> float:
        return max(0.0, float(self.mu @ (self.optimum - self.exact)))
