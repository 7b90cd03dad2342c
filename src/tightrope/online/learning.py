"""Learning from samples: G(ν, π), a simulator or a log; one seed or many."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import progress
from tightrope.engine import optimal
from tightrope.errors import InvalidArgument, TaskFailed
from tightrope.executors import Failed
from tightrope.model import validate
from tightrope.model.sampler import ModelSource, alias_table, source_of
from tightrope.online.advance import Job, advancing
from tightrope.online.log import Log
from tightrope.online.run import Chance, Run, Runs, trace_of
from tightrope.online.timescales import MayGetStuck, check_two_timescale
from tightrope.operators import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tightrope.executors import Executor
    from tightrope.model.mdp import MDP
    from tightrope.model.sampler import Source
    from tightrope.model.validate import FloatArray
    from tightrope.online.learner import Learner
    from tightrope.online.state import OnlineState
    from tightrope.progress import Bar

#: Seconds between two checkpoints.
CHECKPOINT = 30.0
#: Measurements per factor of ten in the number of steps.
PER_DECADE = 10


def learn(
    source: MDP | Source | Log,
    learner: Learner,
    steps: int,
    seed: int | np.random.SeedSequence = 0,
    *,
    state: OnlineState | None = None,
    nu: Any = None,
    restart: float = 1.0,
    model: MDP | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    show: bool | None = None,
) -> Run:
    """Run a learner for `steps` transitions of a source; the same seed gives the same bits.

    Ctrl-C keeps what was learned: the run comes back with `interrupted` set, and `resume` continues it.

    Args:
        source: an MDP, a source of samples (`Simulator`, `gymnasium_source`) or a `Log`, replayed in order.
        learner: `OnlineKappaPI`, `QLearning` or `ExpectedSarsa`.
        steps: transitions to learn from.
        seed: fixes states, actions and next states.
        state: where to begin, from `learner.init`; it is copied.
        nu: distribution states are drawn from [S]; uniform by default.
        restart: 1 draws every state from ν, as G(ν, π) does; less follows the chain and starts again from ν with this
            chance, and after every step in a terminal state. With 1, ν must give every state a chance.
        model: the true model, for measuring; that of the source by default.
        checkpoint: file that is rewritten every half minute and at the end.
        show: whether to draw a progress bar; None: on a terminal only.
    """
    job = _job(source, learner, steps, state, nu, restart, model)
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    with progress.bar("learning", job.steps, show=show) as bar, _interruptible() as stop:
        return _carry_on(job, _begin(job, sequence), stop, bar, checkpoint)


def learn_seeds(
    source: MDP | Source | Log,
    learner: Learner,
    steps: int,
    seed: int = 0,
    *,
    seeds: int = 8,
    workers: int | None = None,
    state: OnlineState | None = None,
    nu: Any = None,
    restart: float = 1.0,
    model: MDP | None = None,
    executor: Executor | None = None,
    show: bool | None = None,
) -> Runs:
    """`learn` with several seeds spawned from one, on all cores; as `learn`, and the number of workers changes nothing.

    An `executor` runs the seeds in other processes, here or elsewhere, with the same result; then Ctrl-C keeps those that
    are done, and the others come back as they began.
    """
    count = validate.positive_integer(seeds, "seeds")
    job = _job(source, learner, steps, state, nu, restart, model)
    starts = [_begin(job, child) for child in np.random.SeedSequence(seed).spawn(count)]
    if executor is not None:
        return _elsewhere(executor, job, starts, workers, show)
    # A Python simulator has a state of its own and holds the interpreter: its runs take turns.
    compiled = isinstance(job.source, ModelSource | Log)
    threads = validate.positive_integer(workers or os.cpu_count(), "workers") if compiled else 1
    with (
        progress.bar("learning", job.steps * count, show=show) as bar,
        _interruptible() as stop,
        ThreadPoolExecutor(threads) as pool,
    ):
        futures = [pool.submit(_carry_on, job, start, stop, bar, None) for start in starts]
        try:
            return Runs(tuple(future.result() for future in futures))
        except BaseException:
            stop.set()  # or the pool would wait for the other seeds to finish before the error is seen
            raise


def _elsewhere(executor: Executor, job: Job, starts: list[Run], workers: int | None, show: bool | None) -> Runs:
    """Every seed as a task of its own."""
    if workers is not None:
        raise InvalidArgument(f"workers={workers} is for threads of this process; the executor has workers of its own")
    if not isinstance(job.source, ModelSource | Log):
        raise InvalidArgument(
            "an executor needs a model or a log to learn from: a simulator has a state of its own, which stays here"
        )
    runs: dict[int, Run] = {}
    task = partial(_alone, job)
    with (
        progress.bar("learning", job.steps * len(starts), show=show) as bar,
        suppress(KeyboardInterrupt),
        closing(executor.run(task, starts)) as answers,
    ):
        for index, answer in answers:
            if isinstance(answer, Failed):
                raise TaskFailed(f"seed {starts[index].seed} failed: {answer.reason}", answer.trace)
            runs[index] = answer
            bar.advance(job.steps)
    return Runs(tuple(runs[i] if i in runs else _alone(job, start, stopped=True) for i, start in enumerate(starts)))


def _alone(job: Job, start: Run, *, stopped: bool = False) -> Run:
    """One seed as a task: in a process of its own or here, so what it began from is left as it was."""
    own = replace(start, state=start.state.copy(), chance=start.chance.copy())
    stop = threading.Event()
    if stopped:
        stop.set()
    with progress.bar("learning", job.steps, show=False) as bar:
        return _carry_on(job, own, stop, bar, None)


def resume(
    run: Run,
    source: MDP | Source | Log,
    steps: int,
    *,
    model: MDP | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    show: bool | None = None,
) -> Run:
    """Continue a run up to `steps` transitions in all, bit for bit as if it had never stopped."""
    job = _job(source, run.learner, steps, run.state, run.nu, run.restart, model, warn=False)
    if not run.state.pairs.same(job.source.pairs):
        raise InvalidArgument("this run was learned on a problem with other states or actions than this source")
    fresh = replace(run, state=run.state.copy(), chance=run.chance.copy(), interrupted=False)
    with progress.bar("learning", job.steps - run.steps, show=show) as bar, _interruptible() as stop:
        return _carry_on(job, fresh, stop, bar, checkpoint)


def _job(source: Any, learner: Learner, steps: Any, state: Any, nu: Any, restart: float, model: Any, *, warn: bool = True) -> Job:
    """Everything checked once, at the door."""
    origin = source if isinstance(source, Log) else source_of(source)
    count = validate.positive_integer(int(steps) if isinstance(steps, float) and steps.is_integer() else steps, "steps")
    chance = validate.unit(restart, "restart")
    start = learner.init(origin) if state is None else state.copy()
    if not start.pairs.same(origin.pairs):
        raise InvalidArgument("the first state of learning was made for other states or actions than the source has")
    if start.gamma != origin.gamma:
        raise InvalidArgument(f"the first state of learning discounts by {start.gamma:g}, the source by {origin.gamma:g}")
    known = origin.mdp if model is None and isinstance(origin, ModelSource) else model
    if known is not None and not known.pairs.same(origin.pairs):
        raise InvalidArgument("the model to measure against has other states or actions than the source")
    weights = _nu(nu, origin.pairs.n_states, chance)
    if warn and not isinstance(origin, Log):
        found = check_two_timescale(learner.fast, learner.slow, learner.explore, start.policy)
        if found.may_get_stuck:
            warnings.warn(found.warning, MayGetStuck, stacklevel=3)
    v_star = None if known is None else value(known, optimal(known, tol=1e-9).policy)
    return Job(origin, learner, count, start, weights, _nu_tables(weights), chance, known, v_star)


def _nu(nu: Any, n_states: int, restart: float) -> FloatArray:
    """The distribution states are drawn from, checked [S]."""
    if nu is None:
        return np.full(n_states, 1.0 / n_states)
    weights = validate.distribution(nu, n_states, "nu")
    if restart == 1.0 and not weights.all():
        s = int(np.flatnonzero(weights == 0.0)[0])
        raise InvalidArgument(
            f"nu[{s}] is 0, so state {s} would never be learned: with restart=1 every state is drawn from nu, which must give "
            "each of them a chance. Make it positive, or follow the chain with restart < 1."
        )
    return weights


def _nu_tables(nu: FloatArray) -> tuple[Any, Any]:
    """What states are drawn from; for a uniform ν an empty table, which the loops know to mean that."""
    indptr, alias = alias_table(sp.csr_array(nu[None, :]))
    return (indptr, alias[:0]) if (nu == nu[0]).all() else (indptr, alias)


def _begin(job: Job, seed: np.random.SeedSequence) -> Run:
    """A run of no steps."""
    name = f"{seed.entropy}" + "".join(f".{key}" for key in seed.spawn_key)
    scale = np.nan if job.v_star is None else float(np.abs(job.v_star).max())
    return Run(job.learner, job.start.copy(), trace_of([]), Chance.of(seed), job.nu, job.restart, name, scale, interrupted=False)


def _carry_on(job: Job, run: Run, stop: threading.Event, bar: Bar, checkpoint: Any) -> Run:
    """Learn in place up to job.steps, measuring at log-spaced steps; a set `stop` or Ctrl-C ends it early."""
    kept = np.isin(run.trace["step"], _points(run.steps))
    rows = [{name: column[i] for name, column in run.trace.items()} for i in np.flatnonzero(kept)]
    begun = saved = time.perf_counter() - (float(run.trace["seconds"][-1]) if len(run.trace["step"]) else 0.0)
    advance = advancing(job, run)
    points = set(_points(job.steps).tolist())
    for goal in sorted(p for p in points | {job.steps} if p > run.steps):
        before = run.steps
        while run.steps < goal and not stop.is_set():
            try:
                advance(goal, stop)
            except KeyboardInterrupt:
                stop.set()
            bar.advance(run.steps - before)
            before = run.steps
            now = time.perf_counter()
            if checkpoint is not None and now > saved + CHECKPOINT:
                _result(job, run, rows, now - begun, interrupted=False).save(checkpoint)
                saved = now
        if stop.is_set():
            break
        rows.append(_measure(job, run, time.perf_counter() - begun))
    result = _result(job, run, rows, time.perf_counter() - begun, interrupted=run.steps < job.steps)
    if checkpoint is not None:
        result.save(checkpoint)
    return result


def _result(job: Job, run: Run, rows: list[dict[str, Any]], seconds: float, *, interrupted: bool) -> Run:
    """The run as it stands, measured where it stands."""
    if not rows or rows[-1]["step"] != run.steps:
        rows = [*rows, _measure(job, run, seconds)]
    return replace(run, trace=trace_of(rows), interrupted=interrupted)


def _points(steps: int) -> Any:
    """The steps at which runs are measured, the same for runs of every length."""
    decades = np.arange(int(PER_DECADE * np.log10(max(steps, 1))) + 2) / PER_DECADE
    points = np.unique(np.round(10.0**decades).astype(np.int64))
    return points[points <= steps]


def _measure(job: Job, run: Run, seconds: float) -> dict[str, Any]:
    """One row of the trace."""
    state = run.state
    row: dict[str, Any] = dict.fromkeys(("loss", "loss_nu", "distance"), np.nan)
    if job.model is not None and job.v_star is not None:
        short = job.v_star - value(job.model, state.policy)
        row = {"loss": short.max(), "loss_nu": job.nu @ short, "distance": np.abs(state.v - job.v_star).max()}
    took = state.took_kappa
    visits = state.pair_visits.min()
    return {"step": run.steps, **row, "took_kappa": took, "min_visits": visits, "seconds": seconds}


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, so that learning stops between two steps; the second one interrupts as usual."""
    stop = threading.Event()
    ours = threading.current_thread() is threading.main_thread()
    usual = signal.getsignal(signal.SIGINT) if ours else None
    if usual is not signal.default_int_handler:  # somebody else listens, or nobody can
        yield stop
        return

    def ask(*_: Any) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
