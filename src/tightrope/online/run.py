"""What came of learning: a run, or several runs that differ in their seed only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import archive, extras
from tightrope.errors import InvalidArgument, InvalidFile
from tightrope.model.pairs import Pairs
from tightrope.model.validate import frozen
from tightrope.online.learner import ExpectedSarsa, Learner, OnlineKappaPI, QLearning
from tightrope.online.schedule import StepSchedule
from tightrope.online.state import OnlineState

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray

#: What is measured at log-spaced steps, and what it means. Without a model the first three are nan.
COLUMNS = {
    "loss": "max_s v*(s) - v^π(s), by exact evaluation of π_n",
    "loss_nu": "Σ_s ν(s) (v*(s) - v^π(s))",
    "distance": "max_s |v_n(s) - v*(s)| of the learner's own estimate v_n = Σ_a π_n q_n",
    "took_kappa": "the fraction of states in which b_s is the κ-greedy action",
    "min_visits": "visits of the least visited pair",
    "seconds": "time spent learning",
}
_KIND = "online run"


@dataclass(frozen=True, eq=False, slots=True)
class Chance:
    """All the randomness of a run: the generator's words [4], [steps done, state reached or -1], a simulator's generator."""

    words: Any
    place: Any
    generator: np.random.Generator

    @classmethod
    def of(cls, seed: np.random.SeedSequence) -> Chance:
        """The randomness that a seed fixes."""
        ours, theirs = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(2)
        place = np.array([0, -1], dtype=np.int64)
        return cls(ours.generate_state(4, np.uint64), place, np.random.Generator(np.random.PCG64(theirs)))

    def copy(self) -> Chance:
        """The same randomness, to be used a second time."""
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = self.generator.bit_generator.state
        return Chance(self.words.copy(), self.place.copy(), generator)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Run:
    """One run of a learner: what it knows, how it got there, and all that is needed to go on.

    `state` is the learner's; `trace` maps "step" and each name of `COLUMNS` to an array, one entry per measurement;
    `scale` is max |v*| (nan when the model is unknown); `nu` [S] and `restart` say where states came from.
    """

    learner: Learner
    state: OnlineState
    trace: Mapping[str, Any]
    chance: Chance
    nu: FloatArray
    restart: float
    seed: str
    scale: float
    interrupted: bool

    @property
    def steps(self) -> int:
        """Transitions learned from."""
        return int(self.chance.place[0])

    @property
    def policy(self) -> Policy:
        """π after the last step."""
        return self.state.policy

    @property
    def loss(self) -> float:
        """max(v* - v^π) at the end; nan when the model is unknown."""
        return float(self.trace["loss"][-1])

    def to_dataframe(self) -> Any:
        """The trace as a pandas DataFrame, one row per measurement."""
        return extras.pandas().DataFrame(dict(self.trace))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole run to one file, from which it can be read and continued."""
        learner = {"name": type(self.learner).__name__, "explore": self.learner.explore}
        header = {
            "learner": learner | {"kappa": self.learner.kappa, "cautious": self.learner.cautious},
            "fast": self.learner.fast.to_json(),
            "slow": self.learner.slow.to_json(),
            "gamma": self.state.gamma,
            "restart": self.restart,
            "seed": self.seed,
            "scale": None if np.isnan(self.scale) else self.scale,
            "interrupted": self.interrupted,
            "generator": _jsonable(self.chance.generator.bit_generator.state),
        }
        pairs = self.state.pairs
        arrays: dict[str, Any] = {"first": pairs.first} | ({} if pairs.ids is None else {"ids": pairs.ids})
        arrays |= {"table": self.state.table, "state_visits": self.state.state_visits, "nu": self.nu}
        arrays |= {"words": self.chance.words, "place": self.chance.place}
        archive.save(path, _KIND, header, arrays | {f"trace.{name}": column for name, column in self.trace.items()})

    @classmethod
    def load(cls, path: str | os.PathLike[str], learner: Learner | None = None) -> Run:
        """Read what `save` wrote; a learner with custom step sizes must be given again."""
        header, arrays = archive.load(path, _KIND)
        try:
            return cls._held(header, arrays, learner)
        except (KeyError, TypeError) as error:
            raise InvalidFile(f"{path} lacks {error} of an {_KIND}; it was written by something else, or cut") from None

    @classmethod
    def _held(cls, header: Mapping[str, Any], arrays: Mapping[str, Any], learner: Learner | None) -> Run:
        """The run that a file's header and arrays describe."""
        ids = arrays.get("ids")
        pairs = Pairs(frozen(arrays["first"]), None if ids is None else frozen(ids))
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = header["generator"]
        return cls(
            _learner(header) if learner is None else learner,
            OnlineState(pairs, header["gamma"], arrays["table"], arrays["state_visits"]),
            {name: arrays[f"trace.{name}"] for name in ("step", *COLUMNS)},
            Chance(arrays["words"], arrays["place"], generator),
            arrays["nu"],
            header["restart"],
            header["seed"],
            np.nan if header["scale"] is None else header["scale"],
            header["interrupted"],
        )

    def __repr__(self) -> str:
        end = {name: column[-1] for name, column in self.trace.items()}
        known = "" if np.isnan(end["loss"]) else f", loss {end['loss']:.3g} of {self.scale:.3g}"
        cut = " (interrupted)" if self.interrupted else ""
        return f"Run({self.learner}, {self.steps:,} steps{cut}{known}, least visited pair {end['min_visits']:,} times)"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Runs:
    """The same learning with several seeds."""

    runs: tuple[Run, ...]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __getitem__(self, i: int) -> Run:
        return self.runs[i]

    @property
    def loss(self) -> FloatArray:
        """The final loss of each run [seeds]."""
        return np.array([run.loss for run in self.runs])

    @property
    def steps(self) -> Any:
        """The steps at which every run was measured."""
        shared = self.runs[0].trace["step"]
        for run in self.runs[1:]:
            shared = np.intersect1d(shared, run.trace["step"])
        return shared

    def column(self, name: str) -> FloatArray:
        """One measurement of every run at the shared steps [seeds, measurements]."""
        if name not in self.runs[0].trace:
            raise InvalidArgument(f"there is no measurement {name!r}; there are {', '.join(self.runs[0].trace)}")
        shared = self.steps
        return np.array([run.trace[name][np.isin(run.trace["step"], shared)] for run in self.runs], dtype=np.float64)

    def to_dataframe(self) -> Any:
        """All traces, with the number of the run in column "run"."""
        frames = [run.to_dataframe().assign(run=i) for i, run in enumerate(self.runs)]
        return extras.pandas().concat(frames, ignore_index=True)

    def __repr__(self) -> str:
        low, middle, high = np.quantile(self.loss, (0.0, 0.5, 1.0))
        known = "" if np.isnan(middle) else f", loss {middle:.3g} ({low:.3g} to {high:.3g}) of {self.runs[0].scale:.3g}"
        return f"Runs({self.runs[0].learner}, {len(self)} seeds, {self.runs[0].steps:,} steps each{known})"


def trace_of(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Measurements, one mapping each, as one array per name."""
    whole = ("step", "min_visits")
    return {
        name: np.array([row[name] for row in rows], dtype=np.int64 if name in whole else np.float64)
        for name in ("step", *COLUMNS)
    }


def _learner(header: Mapping[str, Any]) -> Learner:
    """The learner a file describes."""
    held, fast = header["learner"], StepSchedule.from_json(header["fast"])
    if held["name"] == "OnlineKappaPI":
        slow = StepSchedule.from_json(header["slow"])
        return OnlineKappaPI(held["kappa"], fast, slow, held["explore"], held["cautious"])
    return (QLearning if held["name"] == "QLearning" else ExpectedSarsa)(fast, held["explore"])


def _jsonable(state: Any) -> Any:
    """The state of a NumPy generator with Python numbers only."""
    if isinstance(state, dict):
        return {key: _jsonable(value) for key, value in state.items()}
    return state if isinstance(state, str) else int(state)
