"""`tightrope info`: what is in a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli import console

if TYPE_CHECKING:
    from tightrope.model.files import Reading
    from tightrope.model.mdp import MDP

#: Stands in for a discount that nobody stated, where only the rest is looked at; never shown.
_ANY = 0.5


def info(
    model: Annotated[
        str, typer.Argument(help="A model file, a problem such as 'gridworld:height=50,width=50', or 'gym:FrozenLake-v1'.")
    ],
    gamma: Annotated[float | None, typer.Option(help="The discount, where another than the file's is wanted.")] = None,
    reward: Annotated[str | None, typer.Option(help="Which reward model, where a file has several.")] = None,
    costs: Annotated[
        bool | None, typer.Option("--costs/--rewards", help="Read the file's numbers as costs or as rewards.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON instead of a table.")] = False,
) -> None:
    """Show what is in a model: sizes, row widths, components, rewards, labels and names."""
    found, stated = _find(model, gamma, reward, costs)
    facts = _facts(found, stated)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        console.out().print(console.table(_shown(facts)))


def _find(model: str, gamma: float | None, reward: str | None, costs: bool | None) -> tuple[Reading, bool]:
    """The model, and whether its discount was stated; a file without one can still be looked at."""
    from tightrope.errors import MissingDiscount
    from tightrope.model.locate import find

    try:
        return find(model, gamma, reward, costs=costs), True
    except MissingDiscount:
        return find(model, _ANY, reward, costs=costs), False


def _facts(found: Reading, stated: bool) -> dict[str, Any]:
    import numpy as np

    mdp = found.mdp
    widths, counts = np.diff(mdp.P.indptr), mdp.pairs.counts
    components, largest, closed = _components(mdp)
    names = mdp.pairs.action_names
    return {
        "format": found.format,
        "notes": list(found.notes),
        "states": mdp.n_states,
        "pairs": mdp.n_pairs,
        "transitions": mdp.P.nnz,
        "actions_a_state": [int(counts.min()), int(counts.max())],
        "successors_a_pair": [int(widths.min()), float(widths.mean()), int(widths.max())],
        "gamma": mdp.gamma if stated else None,
        "rewards": list(mdp.reward_range),
        "terminal_states": int(mdp.terminal.sum()),
        "starting_states": int((mdp.start > 0).sum()),
        "components": components,
        "largest_component": largest,
        "closed_components": closed,
        "labels": {name: len(states) for name, states in found.labels.items()},
        "state_names": mdp.pairs.state_names is not None,
        "action_names": None if names is None else list(names),
        "bytes": mdp.nbytes,
    }


def _components(mdp: MDP) -> tuple[int, int, int]:
    """Strongly connected components under all actions: how many, the size of the largest, and how many cannot be left."""
    import numpy as np

    from tightrope.engine.outline import strong_components

    owner = np.repeat(mdp.pairs.states, np.diff(mdp.P.indptr))
    which = strong_components(mdp)
    sizes = np.bincount(which)
    left = np.zeros(len(sizes), dtype=bool)
    left[which[owner[which[owner] != which[mdp.P.indices]]]] = True
    return len(sizes), int(sizes.max()), int((~left).sum())


def _shown(facts: dict[str, Any]) -> dict[str, str]:
    """The facts as a person reads them."""
    low, high = facts["actions_a_state"]
    least, mean, most = facts["successors_a_pair"]
    labels, names = facts["labels"], facts["action_names"]
    actions = (
        ["none"] if names is None else [*(name or "(unnamed)" for name in names[:12]), *(["..."] if len(names) > 12 else [])]
    )
    return {
        "format": facts["format"],
        **{f"note {i}": note for i, note in enumerate(facts["notes"], 1)},
        "states": f"{facts['states']:,} ({facts['terminal_states']:,} terminal, {facts['starting_states']:,} where it may start)",
        "pairs": f"{facts['pairs']:,} ({low if low == high else f'{low} to {high}'} actions a state)",
        "transitions": f"{facts['transitions']:,} ({least} to {most} a pair, {mean:.3g} on average)",
        "discount": "not stated" if facts["gamma"] is None else f"{facts['gamma']:g}",
        "rewards": f"{facts['rewards'][0]:g} to {facts['rewards'][1]:g}",
        "components": f"{facts['components']:,} strongly connected, the largest of {facts['largest_component']:,} states; "
        f"{facts['closed_components']:,} cannot be left",
        "labels": ", ".join(f"{name} ({count:,})" for name, count in labels.items()) or "none",
        "state names": "yes" if facts["state_names"] else "none",
        "action names": ", ".join(actions),
        "memory": f"{facts['bytes'] / 1e6:,.3g} MB",
    }
