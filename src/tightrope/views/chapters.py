"""What the records of a folder say about every experiment, and how to put it in words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope import experiments
from tightrope.experiments import records, runner
from tightrope.experiments.experiment import Answer

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from tightrope.experiments.experiment import Analysis, Experiment, Verdict
    from tightrope.experiments.records import Stored

#: How the score counts an answer, given once and given several times.
_SHORT = {
    Answer.YES: ("held", "held"),
    Answer.NO: ("did not hold", "did not hold"),
    Answer.MIXED: ("depends", "depend"),
    Answer.OPEN: ("is undecided", "are undecided"),
}
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class Chapter:
    """One experiment, with what its records say if there are enough of them."""

    experiment: Experiment
    stored: Stored
    quick: bool
    #: None until every record of the full or of the quick form is there.
    analysis: Analysis | None

    @property
    def command(self) -> str:
        """What makes these records anew, or for the first time."""
        return runner.command(self.experiment.name, quick=self.quick)


def chapters(folder: str | os.PathLike[str], chosen: Sequence[Experiment] | None = None) -> tuple[Chapter, ...]:
    """All experiments, or the chosen ones, from the records in a folder: the full ones if complete, else the quick ones."""
    known = [experiments.find(name) for name in experiments.NAMES] if chosen is None else chosen
    return tuple(_chapter(experiment, folder) for experiment in known)


def _chapter(experiment: Experiment, folder: str | os.PathLike[str]) -> Chapter:
    full = records.load(experiment, folder)
    if full.complete:
        return Chapter(experiment, full, quick=False, analysis=experiment.analyse(full.records))
    quick = records.load(experiment, folder, quick=True)
    if quick.complete:
        return Chapter(experiment, quick, quick=True, analysis=experiment.analyse(quick.records))
    return Chapter(experiment, full, quick=False, analysis=None)


def estimate(verdict: Verdict) -> str:
    """The number that a verdict rests on, with its interval."""
    if math.isnan(verdict.estimate):
        return f"{_capital(verdict.quantity)}: no estimate."
    ends = f"{_number(verdict.low)} to {_number(verdict.high)}"
    return f"{_capital(verdict.quantity)}: {_number(verdict.estimate)} ({100 * verdict.confidence:g} % interval: {ends})."


def score(found: Sequence[Chapter]) -> str:
    """How many claims held, in a sentence."""
    answers = Counter(chapter.analysis.verdict.answer for chapter in found if chapter.analysis)
    parts = [f"{_word(n)} {_SHORT[answer][n > 1]}" for answer in Answer if (n := answers[answer])]
    waiting = sum(chapter.analysis is None for chapter in found)
    parts += [f"{_word(waiting)} {'are' if waiting > 1 else 'is'} not yet run"] if waiting else []
    if not parts:
        return "No claim was put to the test."
    claims = "claim" if len(found) == 1 else "claims"
    return f"{_capital(_word(len(found)))} {claims} put to the test: {', '.join(parts)}."


def origin(stored: Stored) -> str:
    """How many records there are, when they were made and by which versions."""
    makers = [
        f"tightrope {v.get('tightrope', '?')} (code {v.get('code', '?')}), Python {v.get('python', '?')}, "
        f"NumPy {v.get('numpy', '?')}, SciPy {v.get('scipy', '?')}, Numba {v.get('numba', '?')}"
        for v in stored.versions
    ]
    by = makers[0] if len(makers) == 1 else f"{_word(len(makers))} versions: {'; '.join(makers)}"
    return f"{len(stored.entries):,} records{_when([stored])}, made by {by}."


def machines(found: Sequence[Chapter]) -> str:
    """When and on which machines the records that are shown were made, in a sentence."""
    shown = [chapter.stored for chapter in found if chapter.analysis]
    names = dict.fromkeys(o["machine"] for stored in shown for o in stored.origins if "machine" in o)
    count = sum(len(stored.entries) for stored in shown)
    return f"{count:,} records{_when(shown)}; machine: {'; '.join(names) or 'not recorded'}."


def _when(shown: Sequence[Stored]) -> str:
    days = sorted({o["date"] for stored in shown for o in stored.origins if "date" in o})
    if not days:
        return ", of an unknown date"
    return f" of {days[0]}" if len(days) == 1 else f", from {days[0]} to {days[-1]}"


def _word(n: int) -> str:
    return _WORDS[n] if n < len(_WORDS) else f"{n:,}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _number(x: float) -> str:
    """Three digits, as one writes them: 0.0123, 12,300, 1.2e-09."""
    if x == 0.0 or 1e-4 <= abs(x) < 1e6:
        return f"{float(f'{x:.3g}'):,.10g}"
    return f"{x:.2g}"
