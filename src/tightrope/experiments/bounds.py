"""E5: loss against bound for κ-API and κ-PSDP, how loose the bounds are by model class, and whether their advice on κ is good."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.experiments.bounds_runs import ADVISED, ALGORITHMS, GRIDS, ROUNDING, SHOWN, WORST, one, seeds, settings
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Table, Verdict, chosen, commonest, generator
from tightrope.experiments.families import FAMILIES
from tightrope.experiments.figure import Figure, Lines, Series, band, spaced
from tightrope.experiments.statistics import best_of, mean_interval, proportion_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tightrope.experiments.experiment import Record
    from tightrope.experiments.statistics import Estimate
    from tightrope.model.validate import FloatArray

#: Fewer runs than this leave the question open.
ENOUGH = 20
#: Points of one colour in a picture.
POINTS = 300


@dataclass(frozen=True)
class _Followed:
    """What following best_kappa was worth to one algorithm with one kind of oracle."""

    oracle: str
    algorithm: str
    kappas: tuple[float, ...]
    #: In % of what acting at random loses [models, κ], and with the κ that was advised for each model [models].
    losses: FloatArray
    advised: FloatArray
    #: The κ advised most often.
    advice: float

    @property
    def best(self) -> int:
        """The κ with the smallest mean loss, found afterwards."""
        return int(self.losses.mean(axis=0).argmin())

    @property
    def gap(self) -> Estimate:
        """How much more the advised κ loses than the best single one."""
        return mean_interval(self.advised - self.losses[:, self.best])

    @property
    def good(self) -> bool:
        """Whether no single κ can be told to be better than the advice, all of them compared at once."""
        columns = np.column_stack([self.losses, self.advised])
        key = {"oracle": self.oracle, "algorithm": self.algorithm}
        return len(self.kappas) in best_of(columns, generator("bounds", key, 0)).rivals

    def __str__(self) -> str:
        return f"{SHOWN[self.algorithm]}, {self.oracle}"


def analyse(records: Sequence[Record]) -> Analysis:
    """Was a bound exceeded, how loose are they, and is κ well advised by them?"""
    exceeded = sum(_exceeds(record) for record in records)
    rate = proportion_interval(exceeded, len(records))
    alike = commonest(records, "grid")
    worst = chosen(alike, oracle=WORST)
    followed = [
        _followed(here) for oracle in ADVISED for name in ALGORITHMS if (here := chosen(alike, oracle=oracle, algorithm=name))
    ]
    slack = {name: _slack(chosen(worst, algorithm=name)) for name in ALGORITHMS}
    return Analysis(
        Verdict(
            Answer.NO if exceeded else Answer.OPEN if len(records) < ENOUGH else Answer.YES,
            _sentence(records, exceeded, rate.high, slack),
            "part of the runs in which the loss was above its bound, at any κ after any iteration",
            *rate,
        ),
        ((_tightness(worst),) if worst else ()) + ((_choice(followed),) if followed else ()),
        ((_loose(worst),) if worst else ()) + ((_following(followed),) if followed else ()),
        _advice(followed, slack),
    )


def _exceeds(record: Record) -> bool:
    """Whether the loss was ever above the bound; 1e-9 is the rounding of their quotient."""
    return bool(record.result["closest"] > 1.0 + ROUNDING)


def _followed(records: Sequence[Record]) -> _Followed:
    setting = records[0].setting
    kappas = GRIDS[setting["grid"]]
    losses = 100.0 * np.array([record.result["loss"] for record in records])
    advice = [record.result["advice"] for record in records]
    advised = losses[np.arange(len(records)), [kappas.index(kappa) for kappa in advice]]
    return _Followed(setting["oracle"], setting["algorithm"], kappas, losses, advised, Counter(advice).most_common(1)[0][0])


def _slack(records: Sequence[Record], column: int | None = None) -> float:
    """The median of bound/loss after the last iteration, over models and κ (or at one κ); nan without records."""
    used = [
        loss / bound
        for record in records
        for i, (loss, bound) in enumerate(zip(record.result["loss"], record.result["bound"], strict=True))
        if bound > 0.0 and column in (None, i)
    ]
    middle = float(np.median(used)) if used else math.nan
    return math.inf if middle == 0.0 else 1.0 / middle


def _sentence(records: Sequence[Record], exceeded: int, high: float, slack: Mapping[str, float]) -> str:
    runs = f"{len(records):,} runs"
    if exceeded:
        held = f"In {exceeded} of {runs} the loss was above the bound, which the theorems exclude."
    else:
        held = f"The loss was never above its bound in {runs} (rate below {high:.2g} with 97.5 % confidence)."
    said = [f"{times:.2g} times the loss for {SHOWN[name]}" for name, times in slack.items() if math.isfinite(times)]
    loose = f" They are loose: typically {' and '.join(said)}, against the worst oracle we could build." if said else ""
    literal = sum(record.result["printed"] > 1.0 + ROUNDING for record in records)
    paper = f" As the paper prints it, with R_max/(1-γ), the first statement failed in {literal} of them." if literal else ""
    return held + loose + paper


def _tightness(worst: Sequence[Record]) -> Figure:
    """Loss against bound, and their quotient against κ by class."""
    kappas = GRIDS[worst[0].setting["grid"]]
    at, ticks = spaced(kappas)
    held = not any(map(_exceeds, worst))
    clouds = [_cloud(name, chosen(worst, algorithm=name)) for name in ALGORITHMS]
    ends = [x for cloud in clouds for x in cloud.x]
    if ends:
        diagonal = (min(ends), max(ends))
        clouds.append(Series("loss = bound", diagonal, diagonal, dashed=True))
    title = "Every loss lies below its bound" if held else "Some loss lies above its bound"
    panels = [Lines(title, "bound (1 = what the initial policy loses)", "loss", tuple(clouds), x_log=True, y_log=True)]
    for name in ALGORITHMS:
        lines = []
        for family in FAMILIES:
            ratios = [_slack(chosen(worst, algorithm=name, family=family), i) for i in range(len(kappas))]
            known = [i for i, ratio in enumerate(ratios) if math.isfinite(ratio)]
            if known:
                lines.append(Series(family, tuple(at[i] for i in known), tuple(ratios[i] for i in known)))
        title = f"How loose: {SHOWN[name]}"
        tight = ((1.0, "tight"),)
        panels.append(Lines(title, "κ", "bound / loss, median", tuple(lines), y_log=True, ticks=ticks, across=tight))
    where = "all on or below" if held else "some above"
    return Figure(
        "bounds-tightness",
        "Loss and bound with an oracle that errs as badly as its δ allows, from the worst initial policy; "
        "δ between 0.01 % and 10 % of what that policy loses.",
        f"First, points of loss against bound, {where} the line where both are equal. Then the median of bound over loss against "
        "kappa, a line per class of models, for each algorithm.",
        tuple(panels),
    )


def _cloud(name: str, records: Sequence[Record]) -> Series:
    """Loss against bound after the last iteration, no more points than an eye can use."""
    pairs = [pair for record in records for pair in zip(record.result["bound"], record.result["loss"], strict=True)]
    points = [(bound, loss) for bound, loss in pairs if min(bound, loss) > 0.0]
    points = points[:: max(1, len(points) // POINTS)]
    return Series(SHOWN[name], tuple(x for x, _ in points), tuple(y for _, y in points), points=True)


def _choice(followed: Sequence[_Followed]) -> Figure:
    """Loss against κ at equal samples, and the loss of following the advice."""
    panels = []
    for oracle, title in ADVISED.items():
        here = [each for each in followed if each.oracle == oracle]
        if here:
            at, ticks = spaced(here[0].kappas)
            lines = [band(SHOWN[e.algorithm], at, [mean_interval(c) for c in e.losses.T], floor=0.0) for e in here]
            across = [(float(each.advised.mean()), f"{SHOWN[each.algorithm]}, κ as advised") for each in here]
            panels.append(Lines(title, "κ", "loss, % of acting at random", tuple(lines), ticks=ticks, across=tuple(across)))
    told = " ".join(
        f"{each}: the best single kappa was {each.kappas[each.best]:g}, the advice mostly {each.advice:g}; following it lost "
        f"{each.gap} points more."
        for each in followed
    )
    return Figure(
        "bounds-advice",
        "What best_kappa's advice is worth, given δ(κ) as measured in runs of their own: mean loss with its 95 % interval.",
        f"Mean loss against kappa, with a horizontal line for each algorithm where best_kappa chose kappa. {told}",
        tuple(panels),
    )


def _loose(worst: Sequence[Record]) -> Table:
    """Tightness by class of models."""
    rows = []
    for family in dict.fromkeys(record.setting["family"] for record in worst):
        cells = [family]
        for name in ALGORITHMS:
            here = chosen(worst, algorithm=name, family=family)
            closest = max((record.result["closest"] for record in here), default=0.0)
            cells += [f"{_slack(here):.3g}", f"{1.0 / closest:.4g}" if closest > 0.0 else "-"]
        rows.append(tuple(cells))
    head = ("models", *(f"{shown}, {what}" for shown in SHOWN.values() for what in ("typical", "closest")))
    caption = "Bound divided by loss with the worst oracle: the median over models and κ at the end, and the smallest at any time"
    return Table(caption, head, tuple(rows))


def _following(followed: Sequence[_Followed]) -> Table:
    """What following the advice costs."""
    rows = [
        (
            str(each),
            f"{each.advice:g}",
            f"{each.advised.mean():.3g} %",
            f"{each.kappas[each.best]:g}",
            f"{each.losses[:, each.best].mean():.3g} %",
            str(each.gap),
            "yes" if each.good else "no",
        )
        for each in followed
    ]
    head = ("runs", "κ advised most", "loss as advised", "best single κ", "its loss", "difference, points", "advice as good")
    return Table(
        "Following best_kappa against the best single κ found afterwards (loss in % of acting at random)", head, tuple(rows)
    )


def _advice(followed: Sequence[_Followed], slack: Mapping[str, float]) -> str:
    """One sentence for who has to choose."""
    if not followed:
        return "Too few records to say whether best_kappa's advice is good."
    good = [each for each in followed if each.good]
    bad = "; ".join(
        f"{each}: {each.gap.value:.2g} points worse than κ = {each.kappas[each.best]:g}" for each in followed if not each.good
    )
    but = f" ({bad})" if bad else ""
    number = max((times for times in slack.values() if math.isfinite(times)), default=math.nan)
    scale = f" Do not read a bound as a forecast: the loss may be {number:.2g} times smaller." if math.isfinite(number) else ""
    return (
        f"Measure δ(κ) and ask `theory.best_kappa`, but check its choice: in {len(good)} of {len(followed)} comparisons at equal "
        f"effort no single κ was shown to be better{but}.{scale}"
    )


EXPERIMENT = Experiment(
    name="bounds",
    title="Bounds against losses",
    question="Do the bounds on the loss hold, how loose are they, and is the κ they recommend the best one?",
    claim="Theorems 5 and 6 bound the loss of κ-API and κ-PSDP by concentrability times the oracle's error δ (section 6).",
    settings=settings,
    seeds=seeds,
    run=one,
    analyse=analyse,
)
