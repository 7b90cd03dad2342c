"""E6: does the scheme without caution, which always moves towards the κ-greedy action, converge? A hunt for counterexamples."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.experiments import hunt
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Outcome, Table, Verdict, generator, short
from tightrope.experiments.figure import Figure, Lines, Series, band
from tightrope.experiments.hunt import SCHEMES
from tightrope.experiments.statistics import Estimate, proportion_interval
from tightrope.experiments.tiny import fair_cycles, follow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.experiments.experiment import Record, Setting
    from tightrope.model.validate import FloatArray

RANDOM, ADVERSARIAL, KNOWN = "random", "adversarial", "known"
FREE, CAUTIOUS = "kappa-greedy", "cautious"
KINDS = ("deterministic", "sparse", "dense")
#: States and actions; a record takes one of them by its seed.
SIZES = ((3, 2), (4, 2), (3, 3))
#: A run that still loses more than this part of what is at stake after all its steps has not converged.
LOST = 1e-3
#: Fewer random runs of a kind than this leave the question open.
ENOUGH = 300


ONE = "one state at a time"


def settings(quick: bool) -> list[Setting]:
    """The known counterexample, then every scheme hunted at random and by an adversary; the cautious target as a control."""
    found: list[Setting] = [{"search": KNOWN, "scheme": "unequal", "target": each} for each in (FREE, CAUTIOUS)]
    for kind in ("deterministic",) if quick else KINDS:
        plain: Setting = {"search": RANDOM, "kind": kind, "n": 250 if quick else 500}
        found += [{**plain, "scheme": scheme, "target": FREE} for scheme in (*SCHEMES, ONE)]
        found += [{**plain, "scheme": scheme, "target": CAUTIOUS} for scheme in ("unequal", ONE)]
    schemes = ("equal", "vanishing") if quick else tuple(SCHEMES)
    return found + [{"search": ADVERSARIAL, "scheme": scheme, "target": FREE} for scheme in schemes]


def seeds(quick: bool) -> int:
    """Batches of each kind."""
    return 2 if quick else 21


def one(setting: Setting, seed: int) -> Outcome:
    """One batch of models: how many runs there were, in how many some state fell or the optimum was never reached, how badly.

    A fall is of any state below a value it had before; falls and losses are parts of max_s v*(s) - min_π v^π(s).
    """
    cautious = setting["target"] == CAUTIOUS
    part = {name: setting[name] for name in ("search", "kind", "scheme") if name in setting}
    rng = generator("non-cautious", part, seed)
    S, A = SIZES[seed % len(SIZES)]
    if setting["scheme"] == ONE:
        loss = fair_cycles(hunt.drawn(rng, setting["n"], S, A, setting["kind"], "equal"), cautious=cautious)
        return Outcome(_result(loss, np.zeros(0)), {})
    scheme = SCHEMES[setting["scheme"]]
    if setting["search"] == ADVERSARIAL:
        batch = hunt.hunted(rng, S, A, setting["scheme"])
    elif setting["search"] == KNOWN:
        batch = hunt.known(rng, 20)
    else:
        batch = hunt.drawn(rng, setting["n"], S, A, setting["kind"], setting["scheme"])
    end = follow(batch, scheme.steps, 0, cautious=cautious, vanishing=scheme.vanishing)
    return Outcome(_result(end.loss, end.fall), {})


def _result(loss: FloatArray, fall: FloatArray) -> dict[str, object]:
    lost = loss > LOST
    fell = fall > 1e-9
    return {
        "runs": len(loss),
        "lost": int(lost.sum()),
        "loss": short(float(loss.max())),
        "fell": int(fell.sum()),
        "deepest": short(float(fall.max(initial=0.0))),
    }


class Tally(NamedTuple):
    """Runs of one kind, those that never converged, and those in which some state fell."""

    runs: int
    lost: int
    loss: float
    fell: int
    deepest: float

    @property
    def rate(self) -> Estimate:
        """The part that never converged."""
        return proportion_interval(self.lost, self.runs)


def tally(records: Sequence[Record], **wanted: str) -> Tally:
    """All runs of the records whose setting is as wanted."""
    found = [record.result for record in records if all(record.setting.get(name) == x for name, x in wanted.items())]
    worst = [max((result[name] for result in found), default=0.0) for name in ("loss", "deepest")]
    runs, lost, fell = (sum(result[name] for result in found) for name in ("runs", "lost", "fell"))
    return Tally(runs, lost, worst[0], fell, worst[1])


def analyse(records: Sequence[Record]) -> Analysis:
    """It converges in the paper's regime unless a run with equal or vanishing steps did not; elsewhere one failure decides."""
    free = [record for record in records if record.setting["target"] == FREE]
    regular = [record for record in free if record.setting["scheme"] != ONE and SCHEMES[record.setting["scheme"]].regular]
    other = [record for record in free if record not in regular]
    drawn, hunted = tally(regular, search=RANDOM), tally(regular, search=ADVERSARIAL)
    planted, found = tally(other, search=KNOWN), tally([record for record in other if record.setting["search"] != KNOWN])
    cautious = tally([record for record in records if record.setting["target"] == CAUTIOUS])
    lost = drawn.lost + hunted.lost
    if lost:
        answer = Answer.NO
    elif drawn.runs < ENOUGH:
        answer = Answer.OPEN
    else:
        answer = Answer.MIXED if found.lost + planted.lost else Answer.OPEN
    sentence = (
        f"With steps that are small, vanish or are the same in every state, {_of(drawn)} random runs and {_of(hunted)} set by an "
        f"adversary did not converge, though some state fell in {_percent(drawn.fell, drawn.runs)} of the random ones, by up to "
        f"{100.0 * max(drawn.deepest, hunted.deepest):.3g} % of what was at stake. With large steps of different size in "
        f"different states, or whole updates of one state at a time in the worst order, {_of(found)} did not, and {_of(planted)} "
        f"on the known counterexample of three states. With the cautious target {_of(cautious)} did not."
    )
    if answer is Answer.OPEN:
        sentence += (
            " No counterexample is no proof: the question stays open." if drawn.runs >= ENOUGH else " Too few runs so far."
        )
    quantity = "part of random runs with equal, small or vanishing steps that did not converge"
    if lost:
        advice = "Keep the cautious target: without it even equal or vanishing steps can fail to converge."
    else:
        advice = (
            "Keep the cautious target, which converged whatever the steps; without it take the same, slowly vanishing steps in "
            "every state, and expect values to fall on the way."
        )
    if cautious.lost:
        advice = "The records contradict the theory: with the cautious target, too, runs did not converge. Look at those first."
    return Analysis(Verdict(answer, sentence, quantity, *drawn.rate), (_lost(records), _fell(free)), (_table(records),), advice)


def _lost(records: Sequence[Record]) -> Figure:
    """How many runs of each scheme never converge."""
    names = [*SCHEMES, ONE]
    series = []
    for search, target, label in (
        (RANDOM, FREE, "always κ-greedy, random models"),
        (ADVERSARIAL, FREE, "always κ-greedy, adversary's models"),
        (RANDOM, CAUTIOUS, "cautious, random models"),
    ):
        found = [(i, tally(records, search=search, target=target, scheme=name)) for i, name in enumerate(names)]
        seen = [(i, each.rate) for i, each in found if each.runs]
        line = band(label, [i for i, _ in seen], [each for _, each in seen]) if seen else Series(label, (), ())
        # What an adversary chose is no sample of anything, so it has no interval.
        ends = (line.low, line.high) if search == RANDOM else ((), ())
        series.append(Series(label, line.x, line.y, *ends, points=True))
    drawn = [tally(records, search=RANDOM, target=FREE, scheme=name) for name in names]
    return Figure(
        "non-cautious-lost",
        "Part of runs that never converge, with 95 % intervals for random models, by scheme of steps: "
        + "; ".join(f"{name}: {each.shown}" for name, each in SCHEMES.items())
        + f"; {ONE}: whole updates in the worst fair order.",
        "Random models: "
        + ", ".join(f"{name} {each.lost} of {each.runs}" for name, each in zip(names, drawn, strict=True))
        + ".",
        (Lines("Runs that never converge", "scheme", "part of runs", tuple(series), ticks=tuple(names)),),
    )


def _fell(free: Sequence[Record]) -> Figure:
    """How often and how deep values fall on the way."""
    names = list(SCHEMES)
    often, deep = [], []
    for search in (RANDOM, ADVERSARIAL):
        found = [(i, tally(free, search=search, scheme=name)) for i, name in enumerate(names)]
        seen = [(i, each) for i, each in found if each.runs]
        if seen:
            x = tuple(float(i) for i, _ in seen)
            line = band(search, x, [proportion_interval(each.fell, each.runs) for _, each in seen])
            ends = (line.low, line.high) if search == RANDOM else ((), ())
            often.append(Series(search, line.x, line.y, *ends, points=True))
            deep.append(Series(search, x, tuple(each.deepest for _, each in seen), points=True))
    return Figure(
        "non-cautious-fell",
        "Runs towards the κ-greedy action in which some state fell below a value it had before, and the deepest fall.",
        "; ".join(f"{line.label} models: between {min(line.y):.2g} and {max(line.y):.2g} of the runs fall" for line in often)
        + ".",
        (
            Lines("How often values fall", "scheme", "part of runs", tuple(often), ticks=tuple(names)),
            Lines("How deep", "scheme", "deepest fall / stake", tuple(deep), ticks=tuple(names)),
        ),
    )


def _table(records: Sequence[Record]) -> Table:
    kinds = dict.fromkeys((record.setting["search"], record.setting["scheme"], record.setting["target"]) for record in records)
    rows = []
    for search, scheme, target in kinds:
        each = tally(records, search=search, scheme=scheme, target=target)
        fell = "-" if scheme == ONE else _percent(each.fell, each.runs)
        rows.append(
            (
                search,
                scheme,
                target.replace("kappa", "κ"),
                _of(each),
                f"≤ {each.rate.high:.2g}" if search == RANDOM else "-",
                f"{each.loss:.2g}",
                fell,
            )
        )
    head = ("models", "steps", "target", "never converged", "95 % limit", "worst loss / stake", "runs with a fall")
    return Table("Runs that never converged, and runs in which some state fell.", head, tuple(rows))


def _of(each: Tally) -> str:
    return f"{each.lost:,} of {each.runs:,}"


def _percent(part: int, whole: int) -> str:
    return f"{100.0 * part / whole:.3g} %" if whole else "-"


EXPERIMENT = Experiment(
    name="non-cautious",
    title="Does it converge without caution?",
    question="Does a scheme that always moves towards the κ-greedy action, without caution, still converge to the optimum?",
    claim="Section 7 leaves open whether a scheme that does not improve monotonically can converge; Algorithm 1 is cautious.",
    settings=settings,
    seeds=seeds,
    run=one,
    analyse=analyse,
)
