"""`tightrope learn`: Algorithm 1 on samples of a model or an environment, with several seeds at once."""

from __future__ import annotations

import json
import math
import time
from enum import StrEnum
from pathlib import Path  # noqa: TC003  (Typer reads the annotations)
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli import console
from tightrope.errors import InvalidArgument

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.sampler import Source
    from tightrope.online import Runs
    from tightrope.online.learner import Learner


class Baseline(StrEnum):
    """Learners other than Algorithm 1."""

    Q_LEARNING = "q-learning"
    EXPECTED_SARSA = "expected-sarsa"


def learn(
    model: Annotated[
        str, typer.Argument(help="A model file, a problem such as 'tightrope:c=2,gamma=0.9', or 'gym:FrozenLake8x8-v1'.")
    ],
    kappa: Annotated[float, typer.Option(help="0 is asynchronous policy iteration; at 1, q_kappa is Q-learning.")] = 0.9,
    steps: Annotated[str, typer.Option(help="Samples to learn from, such as 1e6.")] = "1e6",
    seeds: Annotated[int, typer.Option(help="How many runs, each with a seed of its own.")] = 8,
    seed: Annotated[int, typer.Option(help="The seed all others are spawned from.")] = 0,
    explore: Annotated[float, typer.Option(help="Chance of a uniform action instead of one drawn from pi.")] = 0.1,
    fast_power: Annotated[float, typer.Option(help="Step sizes of q and q_kappa: n^-power.")] = 0.6,
    slow_power: Annotated[float, typer.Option(help="Step sizes of pi: (n+1)^-power.")] = 1.0,
    cautious: Annotated[bool, typer.Option(help="Whether b_s falls back on the one-step greedy action.")] = True,
    baseline: Annotated[Baseline | None, typer.Option(help="Learn with this instead of Algorithm 1.")] = None,
    restart: Annotated[
        float, typer.Option(help="1 draws every state anew; less follows the chain and starts again with this chance.")
    ] = 1.0,
    gamma: Annotated[float | None, typer.Option(help="The discount, where the model states none or another is wanted.")] = None,
    reward: Annotated[str | None, typer.Option(help="Which reward model, where a file has several.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Save all measurements (.csv), a picture (.png, .pdf, .svg) or the first run (.npz)."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON instead of a table.")] = False,
) -> None:
    """Learn a policy from samples alone, by online kappa-policy iteration with cautious updates (Algorithm 1).

    Where the model is known it serves as the source of samples and to measure the loss, never to learn.
    Ctrl-C keeps what was learned (exit code 130).
    """
    from tightrope.online import learn_seeds

    if output is not None:
        allowed = (".csv", ".png", ".pdf", ".svg", ".npz")
        console.check_output(output, allowed, "measurements are saved as .csv, a picture as .png, .pdf or .svg, a run as .npz")
    learner = _learner(baseline, kappa, fast_power, slow_power, explore, cautious=cautious)
    source = _source(model, gamma, reward)
    begun = time.perf_counter()
    runs = learn_seeds(source, learner, _whole(steps), seed, seeds=seeds, restart=restart)
    seconds = time.perf_counter() - begun
    if output is not None:
        _save(runs, output, model)
    record = _record(runs, model, seconds)
    if as_json:
        typer.echo(json.dumps(record, indent=2, allow_nan=False))
    else:
        _print(source, record, output)
    if any(run.interrupted for run in runs):
        raise typer.Exit(console.Exit.INTERRUPTED)


def _learner(
    baseline: Baseline | None, kappa: float, fast_power: float, slow_power: float, explore: float, *, cautious: bool
) -> Learner:
    from tightrope.online import ExpectedSarsa, OnlineKappaPI, QLearning, StepSchedule

    fast = StepSchedule(fast_power)
    if baseline is Baseline.Q_LEARNING:
        return QLearning(fast, explore)
    if baseline is Baseline.EXPECTED_SARSA:
        return ExpectedSarsa(fast, explore)
    return OnlineKappaPI(kappa, fast, StepSchedule(slow_power, n0=1.0), explore, cautious)


def _source(name: str, gamma: float | None, reward: str | None) -> MDP | Source:
    """The model called `name`; an environment without a table is asked step by step."""
    from tightrope.model import gym
    from tightrope.model.locate import locate
    from tightrope.model.sampler import gymnasium_source

    if not name.startswith("gym:"):
        return locate(name, gamma, reward)
    if gamma is None:
        raise InvalidArgument(f"{name} states no discount; give one: --gamma 0.99")
    return gymnasium_source(gym.make(name.removeprefix("gym:")), gamma)


def _whole(steps: str) -> int:
    """A number of steps, written 1000000 or 1e6."""
    try:
        value = float(steps)
    except ValueError:
        value = math.nan
    if not (value >= 1 and value.is_integer()):
        raise InvalidArgument(f"--steps {steps}: a whole number >= 1 is needed, such as 1000000 or 1e6")
    return int(value)


def _save(runs: Runs, path: Path, title: str) -> None:
    if path.suffix.lower() == ".npz":
        runs[0].save(path)
    elif path.suffix.lower() == ".csv":
        runs.to_dataframe().to_csv(path, index=False)
    else:
        from tightrope.online import OnlineKappaPI
        from tightrope.views.plot_online import learning

        learner = runs[0].learner
        name = f"κ = {learner.kappa:g}" if isinstance(learner, OnlineKappaPI) else type(learner).__name__
        learning({title: {name: runs}}).savefig(path)


def _record(runs: Runs, name: str, seconds: float) -> dict[str, Any]:
    """The result as plain data; what is unknown is null."""
    known = not math.isnan(runs[0].scale)
    total = sum(run.steps for run in runs)
    return {
        "model": name,
        "learner": str(runs[0].learner),
        "seeds": len(runs),
        "steps": [run.steps for run in runs],
        "loss": runs.loss.tolist() if known else None,
        "value_scale": runs[0].scale if known else None,
        "took_kappa": [float(run.trace["took_kappa"][-1]) for run in runs],
        "min_visits": [int(run.trace["min_visits"][-1]) for run in runs],
        "seconds": seconds,
        "samples_per_second": total / max(seconds, 1e-9),
        "interrupted": any(run.interrupted for run in runs),
    }


def _print(source: Any, record: dict[str, Any], output: Path | None) -> None:
    import numpy as np

    loss, scale = record["loss"], record["value_scale"]
    said = "unknown: there is no model to measure against"
    if loss is not None:
        low, middle, high = np.quantile(loss, (0.0, 0.5, 1.0))
        share = 100.0 / scale if scale > 0 else math.nan
        said = f"{middle:.4g} (best {low:.4g}, worst {high:.4g}), {middle * share:.3g} % of the value scale {scale:.4g}"
    took = np.mean(record["took_kappa"])
    rows = {
        "model": repr(getattr(source, "mdp", source)),
        "learner": record["learner"],
        "samples": _samples(record),
        "loss": f"max (v* - v^pi) = {said}" if loss is not None else said,
        "kappa-greedy": f"in {100 * took:.0f} % of states at the end",
        "least visited": f"pair: {min(record['min_visits']):,} times",
        "work": f"{record['seconds']:.2f} s, {record['samples_per_second']:,.0f} samples/s",
        **({} if output is None else {"saved": str(output)}),
    }
    console.out().print(console.table(rows))


def _samples(record: dict[str, Any]) -> str:
    low, high = min(record["steps"]), max(record["steps"])
    if not record["interrupted"]:
        return f"{low:,} for each of {record['seeds']} seeds"
    return f"{low:,} to {high:,} for each of {record['seeds']} seeds (interrupted)"
