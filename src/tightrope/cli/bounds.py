"""`tightrope bounds`: what κ-API and κ-PSDP are guaranteed to lose on a model, at every kappa."""

from __future__ import annotations

import json
import math
from pathlib import Path  # noqa: TC003  (Typer reads the annotations)
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli import console
from tightrope.errors import InvalidArgument

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray
    from tightrope.theory import Bound, Concentrability, Interval, KappaCurve

#: The rows of the table; the picture and the advice use a finer grid.
ROWS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


def bounds(
    model: Annotated[
        str, typer.Argument(help="A model file, a problem such as 'gridworld:height=9,width=9', or 'gym:FrozenLake-v1'.")
    ],
    mu: Annotated[str, typer.Option(help="Where the loss is measured: 'start', 'uniform', or the number of a state.")] = "start",
    nu: Annotated[
        str, typer.Option(help="Where the oracle's error is controlled: 'start', 'uniform', or the number of a state.")
    ] = "uniform",
    delta: Annotated[
        str, typer.Option(help="The oracle's error: a number, or a table over kappa such as '0:0.01,0.9:0.05,1:0.3'.")
    ] = "0.01",
    kappa: Annotated[float | None, typer.Option(help="Every statement of both theorems at this kappa.")] = None,
    k: Annotated[int | None, typer.Option("--k", help="Iterations; without it, the limit of many.")] = None,
    gamma: Annotated[float | None, typer.Option(help="The discount, where the model states none or another is wanted.")] = None,
    reward: Annotated[str | None, typer.Option(help="Which reward model, where a file has several.")] = None,
    rtol: Annotated[float, typer.Option(help="Relative width of every coefficient's certified interval.")] = 1e-3,
    max_seconds: Annotated[
        float | None, typer.Option(help="Stop each coefficient after about this long, with a wider interval.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw both bounds against kappa (.png, .pdf, .svg).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON instead of tables.")] = False,
) -> None:
    """What approximate multi-step policy iteration is guaranteed to lose, and which kappa promises least.

    Concentrability coefficients of the model as certified intervals, the bounds of kappa-API and kappa-PSDP, and advice.

    Exit codes: 0 done, 1 stopped at --max-seconds or by Ctrl-C with wider intervals than asked for, 2 bad input or usage.
    """
    from tightrope.model.locate import locate
    from tightrope.theory import best_kappa, concentrability, kappa_api_bound, kappa_psdp_bound

    if output is not None:
        console.check_output(output, (".png", ".pdf", ".svg"), "a picture is saved as .png, .pdf or .svg")
    error = _error(delta)
    mdp = locate(model, gamma, reward)
    found = concentrability(
        mdp, _distribution(mdp, mu, "--mu"), _distribution(mdp, nu, "--nu"), rtol=rtol, max_seconds=max_seconds
    )
    both = (kappa_api_bound, kappa_psdp_bound)
    curves = [best_kappa(found, error, bound=bound, k=k) for bound in both]
    at = [] if kappa is None else [bound(found, kappa, _at(error, kappa), k) for bound in both]
    if output is not None:
        _draw(curves, output)
    if as_json:
        typer.echo(json.dumps(_record(found, curves, at), indent=2, allow_nan=False))
    else:
        _print(found, curves, at, (mu, nu), output)
    raise typer.Exit(console.Exit.CONVERGED if found.complete else console.Exit.LIMIT)


def _distribution(mdp: MDP, name: str, option: str) -> FloatArray:
    import numpy as np

    S = mdp.n_states
    if name == "start":
        return np.asarray(mdp.start)
    if name == "uniform":
        return np.full(S, 1.0 / S)
    if name.isdigit() and int(name) < S:
        point = np.zeros(S)
        point[int(name)] = 1.0
        return point
    raise InvalidArgument(f"{option} {name}: give 'start', 'uniform', or the number of a state, 0 to {S - 1}")


def _error(text: str) -> Any:
    """δ as a number, or as a table {κ: δ}."""
    try:
        if ":" not in text:
            return float(text)
        return {float(kappa): float(delta) for kappa, delta in (part.split(":") for part in text.split(","))}
    except ValueError:
        raise InvalidArgument(f"--delta {text}: give a number, or a table kappa:delta,kappa:delta such as 0:0.01,1:0.3") from None


def _at(error: Any, kappa: float) -> float:
    if isinstance(error, dict):
        if kappa not in error:
            raise InvalidArgument(f"the table of --delta has no entry for --kappa {kappa:g}")
        return float(error[kappa])
    return float(error)


def _draw(curves: list[KappaCurve], path: Path) -> None:
    from tightrope.archive import replacing
    from tightrope.views import plot_bounds

    with replacing(path) as file:
        plot_bounds.bounds(curves).savefig(file, format=path.suffix[1:].lower())


def _coefficients(found: Concentrability) -> dict[str, Interval]:
    return {
        "c(0)": found.c(0),
        "C^(1)": found.C1,
        "C^(2)": found.C2,
        "C^pi*(1)": found.C_star_1,
        "C^pi*": found.C_star,
    }


def _print(
    found: Concentrability, curves: list[KappaCurve], at: list[Bound], names: tuple[str, str], output: Path | None
) -> None:
    to = console.out()
    rows = {"model": repr(found.mdp), "mu, nu": f"{names[0]}, {names[1]}"}
    rows |= {name: str(interval) for name, interval in _coefficients(found).items()}
    if found.uncovered is not None:
        where = found.mdp.pairs.state(found.uncovered)
        rows["infinite"] = f"nu is 0 at {where}, which some policy reaches from mu: no error is controlled there"
    if not found.complete:
        rows["note"] = "stopped early: the intervals are wider than asked for"
    to.print(console.table(rows))
    to.print()
    if at:
        for bound in at:
            to.print(str(bound), soft_wrap=True)
            for statement in bound.statements:
                to.print(f"  {_number(statement.total.upper):>10}  {statement.name}", soft_wrap=True)
    else:
        to.print(_table(curves))
    to.print()
    for curve in curves:
        to.print(str(curve), soft_wrap=True)
    if output is not None:
        to.print(f"\nsaved {output}", soft_wrap=True)


def _table(curves: list[KappaCurve]) -> Any:
    """Both bounds side by side, their two parts and the statement each comes from."""
    from rich.table import Table

    grid = Table(box=None, padding=(0, 2), header_style="bold")
    for column in ("kappa", "delta", *(part for c in curves for part in (c.best.algorithm, "error", "start", "by"))):
        grid.add_column(column, justify="left" if column == "by" else "right")
    for i, kappa in enumerate(curves[0].kappas):
        if kappa in ROWS or len(curves[0].bounds) <= len(ROWS):
            cells = [f"{kappa:g}", f"{curves[0].deltas[i]:g}"]
            for curve in curves:
                best = curve.bounds[i].best
                cells += [_number(curve.values[i]), _number(best.error.upper), _number(best.start), _short(best.name)]
            grid.add_row(*cells)
    return grid


def _short(name: str) -> str:
    return name.rsplit(", ", 1)[-1]


def _number(x: float) -> str:
    return "inf" if math.isinf(x) else f"{x:.4g}"


def _record(found: Concentrability, curves: list[KappaCurve], at: list[Bound]) -> dict[str, Any]:
    """Everything as plain data; infinity is null."""

    def plain(x: float) -> float | None:
        return float(x) if math.isfinite(x) else None

    def both(interval: Interval) -> list[float | None]:
        return [plain(interval.lower), plain(interval.upper)]

    def record(bound: Bound) -> dict[str, Any]:
        statements = [
            {"name": s.name, "total": plain(s.total.upper), "error": plain(s.error.upper), "start": plain(s.start)}
            for s in bound.statements
        ]
        return {
            "algorithm": bound.algorithm,
            "kappa": bound.kappa,
            "delta": bound.delta,
            "k": plain(bound.k),
            "bound": plain(bound.value),
            "by": bound.best.name,
            "statements": statements,
        }

    return {
        "states": found.mdp.n_states,
        "gamma": found.gamma,
        "complete": found.complete,
        "coefficients": {name: both(interval) for name, interval in _coefficients(found).items()},
        "at_kappa": [record(bound) for bound in at],
        "curves": [
            {"best_kappa": curve.kappa, "at_end": curve.at_end, "advice": str(curve), "bounds": [*map(record, curve.bounds)]}
            for curve in curves
        ],
    }
