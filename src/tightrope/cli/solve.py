"""`tightrope solve`: the optimal policy of a model, with its certificate."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path  # noqa: TC003  (Typer reads the annotations)
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli import console
from tightrope.errors import InvalidArgument

if TYPE_CHECKING:
    from tightrope.planning import PolicyIteration
    from tightrope.solution import Solution

#: Models up to this many states are shown state by state.
FEW = 20


class Algorithm(StrEnum):
    """Names of algorithms on the command line."""

    AUTO = "auto"
    PI = "pi"
    VI = "vi"
    MPI = "mpi"
    H_PI = "h-pi"
    H_VI = "h-vi"
    KAPPA_PI = "kappa-pi"
    KAPPA_VI = "kappa-vi"
    KAPPA_LAMBDA_PI = "kappa-lambda-pi"


def solve(
    model: Annotated[
        str, typer.Argument(help="A model file, a problem such as 'gridworld:height=50,width=50', or 'gym:FrozenLake-v1'.")
    ],
    kappa: Annotated[
        float | None, typer.Option(help="kappa-PI: look ahead with weights kappa^t; 0 is PI, 1 is optimal at once.")
    ] = None,
    h: Annotated[int | None, typer.Option("--h", help="h-PI: look h steps ahead.")] = None,
    lam: Annotated[
        float | None,
        typer.Option(help="kappa-lambda-PI: evaluate with T_lambda, lambda between kappa and 1; kappa is 0 unless given."),
    ] = None,
    m: Annotated[int | None, typer.Option("--m", help="mpi: backups of the policy per iteration (10).")] = None,
    algorithm: Annotated[
        Algorithm | None, typer.Option(help="By name; 'auto', the default without any of the above, lets the engine choose.")
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="The discount, where the model states none or another is wanted.")] = None,
    reward: Annotated[str | None, typer.Option(help="Which reward model, where a file has several.")] = None,
    costs: Annotated[
        bool | None, typer.Option("--costs/--rewards", help="Read the file's numbers as costs or as rewards.", show_default=False)
    ] = None,
    tol: Annotated[float, typer.Option(help="The certified gap to reach, relative to the value scale.")] = 1e-6,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after about this long, with the best policy so far.")] = None,
    max_iterations: Annotated[int | None, typer.Option(help="Stop after this many improvements.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the whole solution (.npz) or the policy and value (.csv, .json).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON instead of a table.")] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Solve on the ranks of an MPI job: mpiexec -n 64 tightrope solve MODEL --cluster.")
    ] = False,
    checkpoint: Annotated[
        Path | None, typer.Option(help="--cluster: save the state of the run here, and go on from it if it is there.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="--cluster: how often the checkpoint is written.")] = 10.0,
) -> None:
    """Find the optimal policy of a model, and prove how good it is.

    Ctrl-C ends a run with the best policy so far and its certificate (exit code 130).

    Exit codes: 0 converged, 1 stopped at a limit first, 2 bad input or usage, 130 interrupted.
    """
    from tightrope.model.locate import find
    from tightrope.planning import solve as run

    if output is not None:
        console.check_output(output, (".npz", ".csv", ".json"), "a solution is saved as .npz, a policy as .csv or .json")
    chosen = _algorithm(algorithm, {"kappa": kappa, "h": h, "lam": lam, "m": m})
    if cluster:
        limits = {"tol": tol, "max_seconds": max_seconds, "max_iterations": max_iterations}
        _on_cluster(
            model, chosen, {"gamma": gamma, "reward": reward, "costs": costs}, limits, (checkpoint, minutes), output, as_json
        )
    if checkpoint is not None:
        raise InvalidArgument("--checkpoint is for --cluster; Ctrl-C on one machine keeps what was reached, with -o on disk")
    found = find(model, gamma, reward, costs=costs)
    with console.live(tol) as on_iteration:
        solution = run(
            found.mdp,
            chosen,
            tol=tol,
            max_iterations=max_iterations,
            max_seconds=max_seconds,
            on_iteration=on_iteration,
        )
    if output is not None:
        _save(solution, output)
    lower, upper = float(found.mdp.start @ solution.lower), float(found.mdp.start @ solution.upper)
    if as_json:
        typer.echo(json.dumps(_record(found.mdp, solution, model, (lower, upper), output), indent=2, allow_nan=False))
    else:
        _print(solution, found.format, found.notes, (lower, upper), output)
    _leave(solution)


def _on_cluster(
    model: str,
    chosen: PolicyIteration | None,
    wishes: dict[str, Any],
    limits: dict[str, Any],
    checkpoint: tuple[Path | None, float],
    output: Path | None,
    as_json: bool,
) -> None:
    """The same on every rank of an MPI job; rank 0 speaks for all."""
    from tightrope.cluster.backend import petsc
    from tightrope.cluster.ranks import agreeing, speaking_once, world
    from tightrope.cluster.reading import find
    from tightrope.planning import solve as run

    with speaking_once():
        with agreeing(world()):
            backend = petsc(checkpoint[0], minutes=checkpoint[1])
            found = find(model, **wishes)
        share: Any = found.mdp
        with console.live(limits["tol"]) if backend.leads else nullcontext() as on_iteration:
            solution = run(share, chosen, **limits, on_iteration=on_iteration, backend=backend)
        if output is not None and output.suffix.lower() == ".npz":
            backend.save(solution, output)
        few = share.whole.n_states <= FEW
        whole = backend.gather(solution) if few or (output is not None and output.suffix.lower() != ".npz") else None
        start = share.at_start(solution.lower), share.at_start(solution.upper)
        if backend.leads and output is not None and whole is not None and output.suffix.lower() != ".npz":
            _save(whole, output)
    if backend.leads and as_json:
        typer.echo(json.dumps(_record(share.whole, solution, model, start, output), indent=2, allow_nan=False))
    elif backend.leads:
        _print(whole or solution, found.format, found.notes, start, output, few=few)
    if not backend.leads:  # mpiexec ends all ranks with the first whose exit code is not 0, before rank 0 has spoken
        raise typer.Exit
    _leave(solution)


def _leave(solution: Solution) -> None:
    """End with the exit code that says how the run ended."""
    from tightrope.solution import Status

    if solution.status is Status.INTERRUPTED:
        raise typer.Exit(console.Exit.INTERRUPTED)
    raise typer.Exit(console.Exit.CONVERGED if solution.converged else console.Exit.LIMIT)


def _algorithm(name: Algorithm | None, given: dict[str, Any]) -> PolicyIteration | None:
    """The recipe a command line asks for: by name, or by which of its parameters are given."""
    from tightrope import planning

    given = {key: value for key, value in given.items() if value is not None}
    if name is None:
        name = _named_by(set(given))
    recipes: dict[Algorithm, tuple[Any, set[str]]] = {
        Algorithm.AUTO: (lambda: None, set()),
        Algorithm.PI: (planning.policy_iteration, set()),
        Algorithm.VI: (planning.value_iteration, set()),
        Algorithm.MPI: (planning.modified_policy_iteration, {"m"}),
        Algorithm.H_PI: (planning.h_pi, {"h"}),
        Algorithm.H_VI: (planning.h_vi, {"h"}),
        Algorithm.KAPPA_PI: (planning.kappa_pi, {"kappa"}),
        Algorithm.KAPPA_VI: (planning.kappa_vi, {"kappa"}),
        Algorithm.KAPPA_LAMBDA_PI: (planning.kappa_lambda_pi, {"kappa", "lam"}),
    }
    recipe, wanted = recipes[name]
    defaults: dict[Algorithm, dict[str, Any]] = {Algorithm.MPI: {"m": 10}, Algorithm.KAPPA_LAMBDA_PI: {"kappa": 0.0}}
    settings = defaults.get(name, {}) | given
    if set(settings) != wanted:
        takes = " and ".join(f"--{key}" for key in sorted(wanted)) or "none of --kappa, --h, --lam, --m"
        found = ", ".join(f"--{key}" for key in given) or "none of them"
        raise InvalidArgument(f"--algorithm {name} takes {takes}; found {found}")
    return recipe(**settings)


def _named_by(given: set[str]) -> Algorithm:
    names = {"h": Algorithm.H_PI, "kappa": Algorithm.KAPPA_PI, "lam": Algorithm.KAPPA_LAMBDA_PI, "m": Algorithm.MPI}
    if given == {"kappa", "lam"}:
        return Algorithm.KAPPA_LAMBDA_PI
    if len(given) > 1:
        raise InvalidArgument(f"give one of {', '.join(f'--{key}' for key in sorted(given))}: each names another algorithm")
    return names[given.pop()] if given else Algorithm.AUTO


def _save(solution: Solution, path: Path) -> None:
    from tightrope.model.files import write_policy

    if path.suffix.lower() == ".npz":
        solution.save(path)
    else:
        write_policy(path, solution.policy, solution.value)


def _record(mdp: Any, solution: Solution, name: str, start: tuple[float, float], output: Path | None) -> dict[str, Any]:
    """The result as plain data; an infinite gap is null. `mdp` says how large the model is, `start` what its start is worth."""
    lower, upper = start
    numbers = {
        "gap": solution.gap,
        "relative_gap": solution.relative_gap,
        "start_value_lower": lower,
        "start_value_upper": upper,
        "seconds": solution.seconds,
    }
    return {
        "model": name,
        "states": mdp.n_states,
        "pairs": mdp.n_pairs,
        "gamma": mdp.gamma,
        "algorithm": solution.algorithm,
        "status": solution.status.name.lower(),
        "converged": solution.converged,
        "iterations": solution.iterations,
        "backups": solution.backups,
        **{key: x if math.isfinite(x) else None for key, x in numbers.items()},
        "output": None if output is None else str(output),
    }


def _print(
    solution: Solution, source: str, notes: tuple[str, ...], start: tuple[float, float], output: Path | None, *, few: bool = True
) -> None:
    from tightrope.solution import count

    rate = count(round(solution.backups / max(solution.seconds, 1e-9)))
    lower, upper = start
    rows = {
        "status": str(solution.status),
        "model": f"{source}: {solution.model}",
        **{f"note {i}": note for i, note in enumerate(notes, 1)},
        "algorithm": solution.algorithm,
        "iterations": f"{solution.iterations:,}",
        "gap": f"v* - v^pi <= {solution.gap:.2g} everywhere ({solution.relative_gap:.1e} of the value scale)",
        "value at start": f"{0.5 * (lower + upper):.6g}, certified in [{lower:.9g}, {upper:.9g}]",
        "work": f"{count(solution.backups)} backups in {solution.seconds:.3g} s, {rate} backups/s",
        **{f"decided {i}": choice for i, choice in enumerate(solution.choices, 1)},
        **({} if output is None else {"saved": str(output)}),
    }
    to = console.out()
    to.print(console.table(rows))
    if few and solution.policy.n_states <= FEW:
        to.print(_policy_table(solution))


def _policy_table(solution: Solution) -> Any:
    from rich.table import Table

    pairs = solution.policy.pairs
    shown = Table("state", "action", "v* from", "to", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for s, a in enumerate(solution.policy.actions.tolist()):
        state = pairs.state_names[s] if pairs.state_names else str(s)
        action = pairs.action_names[a] if pairs.action_names else str(a)
        shown.add_row(state, action, f"{solution.lower[s]:.6g}", f"{solution.upper[s]:.6g}")
    return shown
