"""One name for any model: a file, an environment or a problem of the zoo."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.errors import InvalidArgument, MissingDiscount
from tightrope.model import files, gym
from tightrope.model.files.reading import Reading
from tightrope.model.mdp import MDP

if TYPE_CHECKING:
    from collections.abc import Callable


def locate(name: str, gamma: float | None = None, reward: str | None = None, *, costs: bool | None = None) -> MDP:
    """The model called `name`: `path/to/file`, `gym:FrozenLake-v1`, or a problem such as `gridworld:height=50,width=50`.

    Arguments as in `files.read`.
    """
    return find(name, gamma, reward, costs=costs).mdp


def find(name: str, gamma: float | None = None, reward: str | None = None, *, costs: bool | None = None) -> Reading:
    """As `locate`, with what it is and notes on what was decided while reading it."""
    if name.startswith("gym:"):
        return _environment(name.removeprefix("gym:"), gamma)
    if Path(name).exists():
        return files.inspect(name, gamma, reward, costs=costs)
    return _problem(name, gamma)


def _environment(name: str, gamma: float | None) -> Reading:
    if gamma is None:
        raise MissingDiscount(f"gym:{name} states no discount; give one: --gamma 0.99")
    env = gym.make(name)
    try:
        mdp = MDP.from_gymnasium(env, gamma)
        extra = mdp.n_states - int(env.observation_space.n)
    finally:
        env.close()
    notes = ("episodes end in one extra state, the last",) if extra else ()
    return Reading(mdp, f"Gymnasium {name}", notes)


def _problem(name: str, gamma: float | None) -> Reading:
    """A problem of the zoo with its parameters written as key=value, separated by commas."""
    from tightrope.model import problems  # noqa: PLC0415  (a large module that files and environments do not need)

    title, _, text = name.partition(":")
    known: dict[str, Callable[..., MDP]] = dict(problems.catalogue())
    if title not in known:
        raise InvalidArgument(f"there is no file {name!r} and no problem {title!r}; problems are {', '.join(sorted(known))}")
    settings: dict[str, object] = {} if gamma is None else {"gamma": gamma}
    settings |= dict(_setting(name, part) for part in text.split(",") if part)
    accepted = list(inspect.signature(known[title]).parameters)
    for key in settings:
        if key not in accepted:
            raise InvalidArgument(f"{title} has no parameter {key!r}; it takes {', '.join(accepted)}")
    try:
        mdp = known[title](**settings)
    except TypeError as error:
        raise InvalidArgument(f"{name}: {error}") from None
    return Reading(mdp, f"problem {name}")


def _setting(name: str, part: str) -> tuple[str, object]:
    """`key=value` with the value read as a number or a truth value where it is one."""
    key, equals, value = part.partition("=")
    if not equals or not key.isidentifier():
        raise InvalidArgument(f"{name}: {part!r} is not of the form parameter=value")
    for read in (int, float):
        try:
            return key, read(value)
        except ValueError:
            continue
    return key, {"true": True, "false": False, "none": None}.get(value.lower(), value)
