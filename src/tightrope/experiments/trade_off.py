"""E4: which κ is best for κ-API and κ-PSDP when every κ has the same budget, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.experiments.experiment import Analysis, Answer, Experiment, Table, Verdict, generator
from tightrope.experiments.figure import Figure, Lines, band
from tightrope.experiments.statistics import Estimate, best_of, mean_interval
from tightrope.experiments.trade_off_runs import (
    ALGORITHMS,
    CALL,
    EACH,
    FITTED,
    GRIDS,
    HURRIED,
    IN_ALL,
    PLACES,
    SAMPLED,
    TOTAL,
    arms,
    one,
    seeds,
    settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tightrope.experiments.experiment import Record, Setting
    from tightrope.experiments.statistics import Best
    from tightrope.model.validate import BoolArray, FloatArray

#: Fewer models than this are not judged.
ENOUGH = 6
#: Of each comparison; there are two dozen of them.
CONFIDENCE = 0.99
#: A κ that is behind the best by less is as good, in units of what acting at random loses; and so on a logarithmic axis, in %.
NOTHING, FLOOR = 1e-4, 0.01
MODELS = {"sparse": "Garnets", "maze": "mazes"}


class Cell(NamedTuple):
    """What is held fixed while κ varies."""

    budget: str
    algorithm: str
    oracle: str
    family: str
    noise: bool

    def __str__(self) -> str:
        learned = "v learned" if self.noise else "v exact"
        return f"κ-{self.algorithm}, {self.oracle}, {MODELS[self.family]}, {learned}"


@dataclass(frozen=True, eq=False)
class Judged:
    """One cell with its losses and δ [models, κ], in units of what acting at random loses."""

    cell: Cell
    kappas: tuple[float, ...]
    seeds: tuple[int, ...]
    losses: FloatArray
    deltas: FloatArray
    best: Best
    #: The columns that cannot be told from the best one, itself among them.
    rivals: set[int]

    @property
    def inside(self) -> bool:
        """Whether a κ strictly between 0 and 1 is better than both."""
        return not {0, len(self.kappas) - 1} & self.rivals

    @property
    def outside(self) -> bool:
        """Whether an end is better than every κ in between."""
        return self.rivals <= {0, len(self.kappas) - 1}

    def beaten(self, kappa: float) -> bool:
        """Whether some other κ is clearly better than this one."""
        return self.kappas.index(kappa) not in self.rivals

    @property
    def saved(self) -> dict[int, float]:
        """By model: what the best κ in between saves against the better end; both were chosen on the other half of the models."""
        found = {}
        for ours, mean in _halves(self.seeds, self.losses):
            end = (0, len(mean) - 1)[int(mean[-1] < mean[0])]
            middle = 1 + int(mean[1:-1].argmin())
            for i in np.flatnonzero(ours):
                found[self.seeds[i]] = float(self.losses[i, end] - self.losses[i, middle])
        return found


def analyse(records: Sequence[Record]) -> Analysis:
    """Where is the best κ, cell by cell, and does δ grow with κ?"""
    grid = "fine" if any(record.setting["grid"] == "fine" for record in records) else "coarse"
    used = [record for record in records if record.setting["grid"] == grid]
    judged = [found for cell in _cells(used) if (found := _judge(used, cell)) is not None]
    growth = [mean_interval(first[:, -1] - first[:, 0]) for first in _first(used).values()]
    figures = (_losses(judged, IN_ALL), _losses(judged, EACH), _errors(judged, _first(used), GRIDS[grid]))
    return Analysis(
        _verdict(judged, growth),
        tuple(figure for figure in figures if figure.panels),
        tuple(table for table in (_where(judged), _budgets(used)) if table.rows),
        _advice(judged),
    )


def _cells(records: Iterable[Record]) -> list[Cell]:
    """The cells that have records, in the order of the settings."""
    present = {_place(record.setting) for record in records}
    return [
        Cell(budget, algorithm, oracle, family, noise)
        for budget in (IN_ALL, EACH)
        for algorithm in (ALGORITHMS if budget == IN_ALL else ("API",))
        for oracle, family in PLACES
        for noise in (False, True)
        if (budget, oracle, family, noise) in present
    ]


def _place(setting: Setting) -> tuple[str, str, str, bool]:
    return setting["budget"], setting["oracle"], setting["family"], setting["noise"]


def _judge(records: Iterable[Record], cell: Cell) -> Judged | None:
    """Losses of every κ, each with its better number of iterations, chosen on the other half of the models."""
    here = sorted(
        (r for r in records if _place(r.setting) == (cell.budget, cell.oracle, cell.family, cell.noise)), key=lambda r: r.seed
    )
    if len(here) < ENOUGH:
        return None
    every, kappas = arms(here[0].setting), GRIDS[here[0].setting["grid"]]
    loss, delta = (np.array([record.result[name] for record in here]) for name in ("loss", "delta"))
    numbers = tuple(record.seed for record in here)
    chosen = np.empty((len(here), len(kappas)), dtype=np.intp)
    for ours, mean in _halves(numbers, loss):
        for j, kappa in enumerate(kappas):
            options = [i for i, arm in enumerate(every) if (arm.algorithm, arm.kappa) == (cell.algorithm, kappa)]
            chosen[ours, j] = min(options, key=lambda i: mean[i])
    losses, deltas = (np.take_along_axis(table, chosen, axis=1) for table in (loss, delta))
    best = best_of(losses, generator("trade-off", cell._asdict(), 0), CONFIDENCE)
    behind = losses - losses[:, [best.column]]
    # With few models a bootstrap is too sure of itself; whom Student's interval cannot tell apart stays a rival too.
    close = {j for j, column in enumerate(behind.T) if column.mean() < NOTHING or mean_interval(column, CONFIDENCE).low <= 0.0}
    return Judged(cell, kappas, numbers, losses, deltas, best, close.union(best.rivals))


def _halves(numbers: Sequence[int], losses: FloatArray) -> list[tuple[BoolArray, FloatArray]]:
    """Each half of the models (even numbers, odd numbers) with the mean losses of the other half, to choose by."""
    even = np.array([number % 2 == 0 for number in numbers])
    return [(ours, losses[~ours if (~ours).any() else ours].mean(axis=0)) for ours in (even, ~even) if ours.any()]


def _first(records: Iterable[Record]) -> dict[tuple[str, str], FloatArray]:
    """δ of the first call with the same budget for every κ and exact v [models, κ], by oracle and models."""
    found = {place: [r.result["first"] for r in records if _place(r.setting) == (EACH, *place, False)] for place in PLACES}
    return {place: np.array(rows) for place, rows in found.items() if len(rows) >= ENOUGH}


def _verdict(judged: Sequence[Judged], growth: Sequence[Estimate]) -> Verdict:
    """YES: in between wherever the records tell; NO: at an end wherever they tell; it depends: both; open: they tell of few."""
    quantity = "what the best κ in between saves against the better end, mean over comparisons (1 = loss of acting at random)"
    if not judged:
        sentence = f"Too few models: {ENOUGH} with the same oracle and budget are needed."
        return Verdict(Answer.OPEN, sentence, quantity, math.nan, -math.inf, math.inf)
    inside, outside = sum(found.inside for found in judged), sum(found.outside for found in judged)
    answer = Answer.OPEN
    if inside and outside:
        answer = Answer.MIXED
    elif 2 * (inside + outside) >= len(judged):
        answer = Answer.YES if inside else Answer.NO
    grew, fell = sum(estimate.low > 0.0 for estimate in growth), sum(estimate.high < 0.0 for estimate in growth)
    error = ""
    if growth:
        error = f"From κ = 0 to 1 the oracle's error δ clearly grew in {grew} of {len(growth)} cases and fell in {fell}. "
    by_end = {kappa: sum(found.outside and not found.beaten(kappa) for found in judged) for kappa in (0.0, 1.0)}
    sentence = (
        f"{error}At equal budget the best κ lay clearly between 0 and 1 in {inside} of {len(judged)} comparisons, clearly at "
        f"an end in {outside} (κ = 0: {by_end[0.0]}, κ = 1: {by_end[1.0]}), and could not be told in "
        f"{len(judged) - inside - outside}; κ = 0 was clearly beaten in {sum(found.beaten(0.0) for found in judged)}, κ = 1 in "
        f"{sum(found.beaten(1.0) for found in judged)} ({CONFIDENCE:.0%} each)."
    )
    return Verdict(answer, sentence, quantity, *_saved(judged))


def _saved(judged: Sequence[Judged]) -> Estimate:
    """The mean over cells, with its interval over models, for those that every cell has."""
    columns = [found.saved for found in judged]
    shared = set.intersection(*(set(column) for column in columns))
    return mean_interval([np.mean([column[seed] for column in columns]) for seed in sorted(shared)])


def _title(oracle: str, family: str) -> str:
    return f"{oracle}, {MODELS[family]}"


def _means(table: FloatArray) -> list[Estimate]:
    return [mean_interval(100.0 * column) for column in table.T]


def _panels(judged: Sequence[Judged], budget: str, label: Callable[[Cell], str]) -> list[Lines]:
    """Loss against κ, a panel for each oracle and class of models."""
    panels = []
    for place in PLACES:
        here = [found for found in judged if found.cell.budget == budget and (found.cell.oracle, found.cell.family) == place]
        lines = [
            band(label(found.cell), range(len(found.kappas)), _means(found.losses), floor=FLOOR, dashed=found.cell.noise)
            for found in here
        ]
        if lines:
            ticks = tuple(f"{kappa:g}" for kappa in here[0].kappas)
            panels.append(Lines(_title(*place), "κ", "loss, % of acting at random", tuple(lines), y_log=True, ticks=ticks))
    return panels


def _losses(judged: Sequence[Judged], budget: str) -> Figure:
    """The picture of one kind of budget."""
    here = [found for found in judged if found.cell.budget == budget]
    told = "; ".join(f"{found.cell}: {found.kappas[found.best.column]:g}" for found in here)
    seen = f"Loss against kappa. The kappa with the smallest mean loss: {told}."
    if budget == IN_ALL:
        caption = (
            f"Every κ may draw {TOTAL[SAMPLED]} samples of each pair in all (short of time: make {TOTAL[HURRIED]} backups), "
            "spread over the number of iterations that suits it best; where v is learned, half of the samples go there. Mean and "
            "95 % band over models."
        )
        return Figure("trade-off-in-all", caption, seen, tuple(_panels(judged, budget, _name)))
    caption = (
        f"κ-API when each call of the oracle may draw {CALL[SAMPLED]} samples of each pair (short of time: make {CALL[HURRIED]} "
        "backups), as the paper's Remark 3 has it: a larger κ asks a harder question of the same oracle. With κ = 1 one "
        "call is all there is, with the others there are six."
    )
    return Figure("trade-off-each-call", caption, seen, tuple(_panels(judged, budget, _value)))


def _value(cell: Cell) -> str:
    return "v learned" if cell.noise else "v exact"


def _name(cell: Cell) -> str:
    return f"κ-{cell.algorithm}, {_value(cell)}"


def _errors(judged: Sequence[Judged], first: dict[tuple[str, str], FloatArray], kappas: tuple[float, ...]) -> Figure:
    """δ(κ): what the paper assumes, and what is left of it when a larger κ makes fewer calls."""
    ticks, y = tuple(f"{kappa:g}" for kappa in kappas), "δ, % of the loss of acting at random"
    equal = [band(_title(*place), range(len(kappas)), _means(table), floor=FLOOR) for place, table in first.items()]
    spread = [
        band(_title(found.cell.oracle, found.cell.family), range(len(kappas)), _means(found.deltas), floor=FLOOR)
        for found in judged
        if (found.cell.budget, found.cell.algorithm, found.cell.noise) == (IN_ALL, "API", False)
    ]
    titles = ("One call, the same budget for every κ", "κ-API, the same budget in all")
    panels = [
        Lines(title, "κ", y, tuple(lines), y_log=True, ticks=ticks)
        for title, lines in zip(titles, (equal, spread), strict=True)
        if lines
    ]
    told = "; ".join(f"{_title(*place)}: {table[:, 0].mean():.2%} to {table[:, -1].mean():.2%}" for place, table in first.items())
    caption = "The realised error δ = ν(T_κ v - T_κ^π v) of the oracle, with v exact: mean and 95 % band over models."
    return Figure("trade-off-delta", caption, f"δ from kappa 0 to kappa 1 with the same budget a call: {told}.", tuple(panels))


def _rivals(found: Judged) -> str:
    return "κ = " + ", ".join(f"{found.kappas[j]:g}" for j in sorted(found.rivals))


def _where(judged: Sequence[Judged]) -> Table:
    """Where the best κ is, cell by cell."""
    rows = []
    for found in judged:
        best, mean = found.best, 100.0 * found.losses.mean(axis=0)
        said = "in between" if found.inside else "at an end" if found.outside else "not to be told"
        rows.append(
            (
                f"{found.cell}, {found.cell.budget}",
                f"{len(found.losses)}",
                f"{found.kappas[best.column]:g}",
                f"{best.share[best.column]:.0%}",
                _rivals(found).removeprefix("κ = "),
                f"{mean[best.column]:.3g} %",
                f"{mean[0]:.3g} %",
                f"{mean[-1]:.3g} %",
                said,
            )
        )
    head = ("budget and oracle", "models", "best κ", "of resamples", "rivals", "its loss", "κ = 0", "κ = 1", "the best κ is")
    caption = (
        "The best κ of each comparison: how often it is best when models are drawn again, and its rivals, which cannot be told "
        f"from it ({CONFIDENCE:.0%}, paired by model); losses in % of acting at random. Which oracles and models are "
        "compared was settled after pilot runs on other models: how many comparisons end one way or the other is no frequency"
    )
    return Table(caption, head, tuple(rows))


def _budgets(records: Sequence[Record]) -> Table:
    """What was really drawn."""
    rows = []
    for oracle in (SAMPLED, FITTED, HURRIED):
        for noise in (False, True):
            drawn = [
                r.result["drawn"] for r in records if _place(r.setting)[:2] == (IN_ALL, oracle) and r.setting["noise"] == noise
            ]
            if drawn:
                low, high = np.array(drawn).T
                ends = f"{low.min():.3g} to {high.max():.3g}"
                rows.append((f"{oracle}, {'v learned' if noise else 'v exact'}", f"{low.mean():.4g}", f"{high.mean():.4g}", ends))
    head = ("oracle", "fewest of any κ, mean", "most of any κ, mean", "ever")
    return Table("Samples drawn per pair, counted, where the budget is one in all", head, tuple(rows))


def _advice(judged: Sequence[Judged]) -> str:
    """The κ that loses least over everything tried, for each kind of budget."""
    parts = []
    for budget, words in ((IN_ALL, "only the total counts"), (EACH, "each call of the oracle is limited")):
        for algorithm in ALGORITHMS:
            here = [found for found in judged if (found.cell.budget, found.cell.algorithm) == (budget, algorithm)]
            if here:
                behind = np.mean([found.losses.mean(axis=0) - found.losses.mean(axis=0).min() for found in here], axis=0)
                kappa = here[0].kappas[int(behind.argmin())]
                other = 0 if kappa > 0.0 else -1
                parts.append(
                    f"for κ-{algorithm} where {words} κ = {kappa:g} (on average {100.0 * behind.min():.1f} points worse than the "
                    f"best κ of each oracle, where κ = {here[0].kappas[other]:g} is {100.0 * behind[other]:.1f} worse)"
                )
    if not parts:
        return "There are too few models to advise anything."
    return f"If you must choose without measuring, take what lost least over all oracles tried: {'; '.join(parts)}."


EXPERIMENT = Experiment(
    name="trade-off",
    title="The trade-off in κ",
    question="With the same budget for every κ, is the best κ of κ-API and κ-PSDP one between 0 and 1?",
    claim="Remark 3: the bounds shrink with κ while the error δ(κ) of a harder step is expected to grow; the best κ trades one "
    "for the other (section 6).",
    settings=settings,
    seeds=seeds,
    run=one,
    analyse=analyse,
)
