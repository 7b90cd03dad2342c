"""An experiment as data: a question, a grid of settings, a function to one record, and an analysis of the records."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tightrope.experiments.figure import Figure

#: One cell of the grid: names to numbers, texts and truths, nothing that JSON does not know.
Setting: TypeAlias = "Mapping[str, Any]"


@dataclass(frozen=True)
class Outcome:
    """What one setting and seed gave.

    `result` is a function of setting, seed and code alone, so that any two runs agree on it; `measured` holds what the clock said
    and may differ. Both are names to numbers, texts, truths or lists of them.
    """

    result: Mapping[str, Any]
    measured: Mapping[str, float]


@dataclass(frozen=True)
class Record:
    """One line of the records: a setting, a seed and what came of them."""

    setting: Setting
    seed: int
    result: Mapping[str, Any]
    measured: Mapping[str, float]


class Answer(Enum):
    """What the records say about the claim."""

    YES = "it held"
    NO = "it did not hold"
    MIXED = "it depends"
    OPEN = "the records do not decide it"


@dataclass(frozen=True)
class Verdict:
    """The answer to the question, in one or two sentences, with the estimate it rests on and its interval."""

    answer: Answer
    sentence: str
    #: What was estimated, in words, and its value with the ends of its interval.
    quantity: str
    estimate: float
    low: float
    high: float
    #: Of the interval, such as 0.95.
    confidence: float = 0.95


@dataclass(frozen=True)
class Table:
    """Rows of text under a head; row `best` is set in bold."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: int | None = None


@dataclass(frozen=True)
class Analysis:
    """What an experiment found: the verdict first, then what to look at, then what a user should do about it."""

    verdict: Verdict
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    #: One sentence for someone who has to choose: when to use kappa > 0, which step size, how many samples.
    advice: str


@dataclass(frozen=True)
class Experiment:
    """A question put to the software; `run` and `analyse` are functions of modules, so that other processes find them."""

    #: Short, for the command line, such as "theorem-1".
    name: str
    #: A few words for a heading.
    title: str
    #: One sentence that ends in a question mark.
    question: str
    #: What the paper says, in one sentence, with the place.
    claim: str
    #: The settings in the order they are run, and the seeds of each; for the quick form and for the full one.
    settings: Callable[[bool], Sequence[Setting]]
    seeds: Callable[[bool], int]
    run: Callable[[Setting, int], Outcome]
    analyse: Callable[[Sequence[Record]], Analysis]


def generator(name: str, setting: Setting, seed: int) -> np.random.Generator:
    """Random numbers that depend on a name, a setting and a seed alone: the same in every process, order and release.

    Give only the part of a setting that the draws may depend on: `generator("garnet", {"states": 50}, seed)` draws the same
    model for every kappa, so that kappas are compared on the same models.
    """
    text = json.dumps([name, setting], sort_keys=True, separators=(",", ":"), allow_nan=False)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4")
    return np.random.default_rng([*words.tolist(), seed])


def short(x: float) -> float:
    """Four digits, which keep records small and are more than any interval needs."""
    return float(f"{x:.4g}")


def chosen(records: Iterable[Record], **wanted: Any) -> list[Record]:
    """The records whose setting has these entries."""
    return [record for record in records if wanted.items() <= record.setting.items()]


def commonest(records: Sequence[Record], entry: str) -> list[Record]:
    """The records that share the most frequent value of one entry of their settings."""
    counts = Counter(record.setting[entry] for record in records)
    return chosen(records, **{entry: counts.most_common(1)[0][0]}) if counts else []


def part(x: float) -> float:
    """A part of a whole in four digits; less than a millionth is nothing."""
    return round(short(x), 6)
