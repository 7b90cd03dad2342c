"""`tightrope approximate`: kappa-API and kappa-PSDP with an oracle of your choice."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from pathlib import Path  # noqa: TC003  (Typer reads the annotations)
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli import console
from tightrope.errors import InvalidArgument, OracleFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.approximate import Run
    from tightrope.model.mdp import MDP


class Algorithm(StrEnum):
    """Names of algorithms on the command line."""

    API = "api"
    PSDP = "psdp"


class Measure(StrEnum):
    """Distributions over states on the command line."""

    UNIFORM = "uniform"
    START = "start"


ORACLES = {
    "exact": "exact",
    "worst": "worst:DELTA",
    "noisy": "noisy:SIGMA",
    "vi": "vi:SWEEPS",
    "sampled": "sampled:N (samples of every pair)",
    "cpi": "cpi:SAMPLES",
    "fitted": "fitted:SAMPLES",
    "lspi": "lspi:SAMPLES",
    "search": "search:SAMPLES",
}
EVALUATIONS = {"exact": "exact", "mc": "mc:N (walks from every state)", "lstd": "lstd:SAMPLES"}


def approximate(
    model: Annotated[
        str, typer.Argument(help="A model file, a problem such as 'gridworld:height=50,width=50', or 'gym:FrozenLake-v1'.")
    ],
    algorithm: Annotated[Algorithm, typer.Option(help="kappa-API (Algorithm 2) or kappa-PSDP (Algorithm 3).")] = Algorithm.API,
    kappa: Annotated[float, typer.Option(help="0 is API or PSDP as known before, 1 is one call on the whole problem.")] = 0.9,
    oracle: Annotated[str, typer.Option(help=f"Who solves the surrogates: {', '.join(ORACLES.values())}.")] = "sampled:10",
    evaluate: Annotated[str, typer.Option(help=f"How values are found: {', '.join(EVALUATIONS.values())}.")] = "exact",
    iterations: Annotated[int, typer.Option(help="How many iterations.")] = 20,
    nu: Annotated[Measure, typer.Option(help="Where the oracle's error counts.")] = Measure.UNIFORM,
    mu: Annotated[Measure, typer.Option(help="Where the loss is measured.")] = Measure.START,
    bound: Annotated[bool, typer.Option("--bound", help="Compute what Theorem 5 or 6 guarantees, and show it beside.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 0,
    gamma: Annotated[float | None, typer.Option(help="The discount, where the model states none or another is wanted.")] = None,
    reward: Annotated[str | None, typer.Option(help="Which reward model, where a file has several.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw loss and error against iterations into this .png.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Save the whole run (.npz).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON instead of a table.")] = False,
) -> None:
    """Improve policies with an approximate oracle, and see what its errors cost.

    The loss is the mean of v* - v under mu, delta what each answer of the oracle loses under nu.

    An oracle that fails ends the run with exit code 2, Ctrl-C with 130; what was done until then is shown and saved.
    """
    from tightrope import approximate as room
    from tightrope.model.locate import locate

    _check_paths(output, plot)
    solver, evaluation = _oracle(oracle), _evaluation(evaluate)
    mdp = locate(model, gamma, reward)
    kind = room.KappaAPI if algorithm is Algorithm.API else room.KappaPSDP
    failure = None
    try:
        found = room.run(mdp, kind(kappa, solver, _measure(mdp, nu), iterations, evaluation), mu=_measure(mdp, mu), seed=seed)
    except OracleFailed as error:
        found, failure = error.run, error
    limits = _bounds(mdp, found, _measure(mdp, mu), _measure(mdp, nu)) if bound else None
    if output is not None:
        found.save(output)
    if plot is not None:
        _draw(found, limits, plot)
    if as_json:
        typer.echo(json.dumps(_record(found, model, limits, output), indent=2, allow_nan=False))
    else:
        _print(found, limits, output, plot)
    if failure is not None:
        raise failure
    if found.status is room.Status.INTERRUPTED:
        raise typer.Exit(console.Exit.INTERRUPTED)


def _oracle(text: str) -> Any:
    """An oracle from its name and number."""
    from tightrope import approximate as room

    makers: dict[str, Callable[..., Any]] = {
        "exact": room.Exact,
        "worst": lambda x: room.WorstCase(_number(text, x)),
        "noisy": lambda x: room.Noisy(_number(text, x)),
        "vi": lambda x: room.ApproximateVI(_whole(text, x)),
        "sampled": lambda x: room.SampledModel(_whole(text, x)),
        "cpi": lambda x: room.ConservativePI(_whole(text, x)),
        "fitted": lambda x: room.FittedQ(samples=_whole(text, x)),
        "lspi": lambda x: room.LSPI(samples=_whole(text, x)),
        "search": lambda x: room.PolicySearch(_whole(text, x)),
    }
    return _made("--oracle", text, makers, ORACLES)


def _evaluation(text: str) -> Any:
    """An evaluation from its name and number."""
    from tightrope import approximate as room

    makers: dict[str, Callable[..., Any]] = {
        "exact": room.ExactValue,
        "mc": lambda x: room.MonteCarloValue(_whole(text, x)),
        "lstd": lambda x: room.LSTDValue(samples=_whole(text, x)),
    }
    return _made("--evaluate", text, makers, EVALUATIONS)


def _made(option: str, text: str, makers: dict[str, Callable[..., Any]], forms: dict[str, str]) -> Any:
    name, colon, rest = text.partition(":")
    if name not in makers or bool(colon) != (name != "exact"):
        raise InvalidArgument(f"{option} {text!r} is not one of {', '.join(forms.values())}")
    return makers[name](rest) if colon else makers[name]()


def _number(text: str, part: str) -> float:
    try:
        return float(part)
    except ValueError:
        raise InvalidArgument(f"{text}: {part!r} is not a number") from None


def _whole(text: str, part: str) -> int:
    number = _number(text, part)  # 1e6 is a good way to write a million
    if not number.is_integer():
        raise InvalidArgument(f"{text}: {part!r} is not a whole number")
    return int(number)


def _measure(mdp: MDP, name: Measure) -> Any:
    import numpy as np

    return mdp.start if name is Measure.START else np.full(mdp.n_states, 1.0 / mdp.n_states)


def _bounds(mdp: MDP, found: Run, mu: Any, nu: Any) -> list[float]:
    """What is guaranteed after each iteration, given the largest error so far."""
    from tightrope import theory

    coefficients = theory.concentrability(mdp, mu, nu)
    guarantee = theory.kappa_psdp_bound if found.switching else theory.kappa_api_bound
    limits, worst = [], 0.0
    for row in found.rows[1:]:
        worst = max(worst, row.delta)
        limits.append(guarantee(coefficients, found.kappa, worst, row.iteration, pi0=found.pi0).value)
    return limits


def _check_paths(output: Path | None, plot: Path | None) -> None:
    """Refuse a name that cannot be written before time is spent on what would be written."""
    for option, path, suffix in (("-o", output, ".npz"), ("--plot", plot, ".png")):
        if path is not None and path.suffix.lower() != suffix:
            raise InvalidArgument(f"{option} {path}: the name must end in {suffix}")
        if path is not None and not path.parent.is_dir():
            raise InvalidArgument(f"{option} {path}: there is no folder {path.parent}")


def _draw(found: Run, limits: list[float] | None, path: Path) -> None:
    from tightrope.archive import replacing
    from tightrope.views import plot_approximate, style

    name = plot_approximate.type_of(found)
    picture = style.png(plot_approximate.approximation(found, bounds=None if limits is None else {name: limits}))
    with replacing(path) as file:
        file.write(picture)


def _record(found: Run, model: str, limits: list[float] | None, output: Path | None) -> dict[str, Any]:
    """The result as plain data; what was not measured is null."""
    rows = [{key: x if math.isfinite(x) else None for key, x in row._asdict().items()} for row in found.rows]
    for row, limit in zip(rows[1:], limits or [], strict=False):
        row["bound"] = limit if math.isfinite(limit) else None
    return {
        "model": model,
        "algorithm": found.algorithm,
        "status": found.status.name.lower(),
        "iterations": found.iterations,
        "seed": found.seed,
        "trace": rows,
        "output": None if output is None else str(output),
    }


def _print(found: Run, limits: list[float] | None, output: Path | None, plot: Path | None) -> None:
    from rich.table import Table

    to = console.out()
    rows = {"status": str(found.status), "model": found.model, "algorithm": found.algorithm}
    rows |= {} if output is None else {"saved": str(output)}
    rows |= {} if plot is None else {"picture": str(plot)}
    to.print(console.table(rows))
    headings = ["iteration", "delta", "loss", *(["bound"] if limits else []), "value error", "samples", "seconds"]
    shown = Table(*headings, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in shown.columns:
        column.justify = "right"
    for row in found.rows:
        limit = [] if not limits else ["" if row.iteration == 0 else f"{limits[row.iteration - 1]:.4g}"]
        delta = "" if row.iteration == 0 else f"{row.delta:.3g}"
        shown.add_row(
            str(row.iteration),
            delta,
            f"{row.loss:.4g}",
            *limit,
            f"{row.value_error:.2g}",
            f"{row.samples:,}",
            f"{row.seconds:.3f}",
        )
    to.print(shown)
