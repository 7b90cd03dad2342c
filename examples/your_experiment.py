"""An experiment of your own: a question, a grid, a record, and a verdict that follows from the records.

    python examples/your_experiment.py [FOLDER]

Does looking further ahead save iterations on random models, and does it save work? Tasks run on all cores; records are kept in
FOLDER (or ./records). Stop it and run it again: what is there is not made twice.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tightrope as tr
from tightrope.experiments import runner
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Outcome, Record, Setting, Table, Verdict, chosen
from tightrope.experiments.figure import Figure, Lines, Series
from tightrope.experiments.statistics import mean_interval
from tightrope.views import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

KAPPAS = (0.0, 0.5, 0.9, 0.99)


def settings(quick: bool) -> Sequence[Setting]:
    """The grid; the quick form is a part of it."""
    return [{"kappa": kappa, "states": 100 if quick else 1000} for kappa in KAPPAS]


def seeds(quick: bool) -> int:
    """How many models in each cell."""
    return 8 if quick else 50


def run(setting: Setting, seed: int) -> Outcome:
    """One record: a function of setting and seed alone. What the clock says goes into `measured`."""
    sol = tr.solve(tr.problems.garnet(setting["states"], gamma=0.99, seed=seed), tr.kappa_pi(setting["kappa"]))
    return Outcome({"iterations": sol.iterations, "backups": sol.backups}, {"solve_seconds": sol.seconds})


def analyse(records: Sequence[Record]) -> Analysis:
    """The mean saving of κ = 0.9 over κ = 0 on the same models, with its interval, and a picture of both costs."""
    costs = {
        name: {kappa: [r.result[name] for r in chosen(records, kappa=kappa)] for kappa in KAPPAS}
        for name in ("iterations", "backups")
    }
    saved = mean_interval([a - b for a, b in zip(costs["iterations"][0.0], costs["iterations"][0.9], strict=True)])
    answer = Answer.YES if saved.low > 0 else Answer.NO if saved.high < 0 else Answer.OPEN
    sentence = f"κ = 0.9 takes {saved.value:.1f} iterations less than policy iteration, on average."
    verdict = Verdict(answer, sentence, "iterations saved by κ = 0.9", saved.value, saved.low, saved.high)
    panels = []
    for name, by_kappa in costs.items():
        means = [mean_interval(numbers) for numbers in by_kappa.values()]
        low, middle, high = (tuple(getattr(m, end) for m in means) for end in ("low", "value", "high"))
        panels.append(
            Lines("", "κ", name, (Series(name, tuple(range(len(KAPPAS))), middle, low, high),), ticks=tuple(map(str, KAPPAS)))
        )
    figure = Figure("costs", "What κ-PI costs on Garnets", "Iterations fall as κ grows; the work need not.", tuple(panels))
    rows = tuple((f"{k:g}", *(f"{mean_interval(c[k]).value:,.1f}" for c in costs.values())) for k in KAPPAS)
    return Analysis(verdict, (figure,), (Table("Means", ("κ", "iterations", "backups"), rows),), "Let tr.solve choose.")


EXPERIMENT = Experiment(
    name="garnet-iterations",
    title="Iterations on Garnets",
    question="Does κ-PI take fewer iterations than policy iteration on random models?",
    claim="κ-PI contracts by ξ = γ(1-κ)/(1-γκ), policy iteration by γ (section 3).",
    settings=settings,
    seeds=seeds,
    run=run,
    analyse=analyse,
)

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "records")
    (done,) = runner.run(EXPERIMENT, quick=True, folder=folder)
    found = analyse(done.stored.records)
    print(f"{len(done.stored.records)} records, {done.made} of them made now, in {done.stored.path.name}")
    print(f"{EXPERIMENT.question} {found.verdict.answer.value}: {found.verdict.sentence}")
    low, high = found.verdict.low, found.verdict.high
    print(f"{found.verdict.quantity}: {found.verdict.estimate:.2f}, 95 % interval [{low:.2f}, {high:.2f}]")
    for row in (found.tables[0].head, *found.tables[0].rows):
        print("".join(f"{cell:>14}" for cell in row))
    figures.draw(found.figures[0]).savefig(folder / "costs.png", dpi=110)
