"""A tiny experiment for the tests of the report: does a coin that lands on heads with probability kappa favour heads?"""

from __future__ import annotations

from tightrope.experiments import records
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Outcome, Record, Table, Verdict
from tightrope.experiments.figure import Figure, Heat, Lines, Series
from tightrope.experiments.statistics import proportion_interval

KAPPAS = (0.0, 0.5, 0.9, 1.0)
ORIGIN = {"date": "2026-11-16", "machine": "an abacus, 2 cores"}
VERSIONS = {
    "code": "0123456789ab",
    "python": "3.11.7",
    "tightrope": "0.1.0",
    "numpy": "2.0.0",
    "scipy": "1.14.0",
    "numba": "0.60.0",
}


def settings(quick):
    return [{"kappa": kappa} for kappa in (KAPPAS[1:3] if quick else KAPPAS)]


def seeds(quick):
    return 5 if quick else 20


def run(setting, seed):
    return Outcome({"heads": seed % 10 < 10 * setting["kappa"]}, {})


def analyse(found):
    def share(kappa):
        hits = [record.result["heads"] for record in found if record.setting["kappa"] == kappa]
        return proportion_interval(sum(hits), len(hits))

    every = sorted({record.setting["kappa"] for record in found})
    whole = proportion_interval(sum(record.result["heads"] for record in found), len(found))
    answer = Answer.YES if whole.low > 0.5 else Answer.NO if whole.high < 0.5 else Answer.OPEN
    line = Series(
        "share of heads", tuple(every), *(tuple(getattr(share(k), end) for k in every) for end in ("value", "low", "high"))
    )
    lines = tuple(Series(f"κ = {k:g}", (1.0, 2.0, 3.0), (k, k + 1.0, k + 3.0), kappa=k) for k in every)
    return Analysis(
        Verdict(
            answer,
            f"The coin landed on heads in {whole.value:.0%} of the throws, with `kappa` < 1 & more.",
            "share of heads",
            whole.value,
            whole.low,
            whole.high,
        ),
        (
            Figure(
                "share",
                "The share of heads rises with κ.",
                "A line that rises.",
                (Lines("heads", "κ", "share of heads", (line,)),),
            ),
            Figure(
                "pair",
                "Two panels.",
                "Lines and a map.",
                (
                    Lines("lines with a long title that has to be wrapped", "throw, in thousands", "sum of heads", lines),
                    Heat(
                        "map",
                        "κ",
                        "coin",
                        tuple(f"{k:g}" for k in every),
                        ("fair", "bent"),
                        tuple(tuple(every) for _ in range(2)),
                        "share",
                    ),
                ),
            ),
        ),
        (
            Table(
                "Heads by κ, with everything else that could be said about the coin",
                ("κ", "heads", "what it means for a coin", "verdict of the jury"),
                tuple(
                    (f"{k:g}", f"{share(k).value:.2f}", "it depends on how it was thrown", "as was to be expected") for k in every
                ),
                1,
            ),
        ),
        f"Use a bent coin if you want {answer.value}.",
    )


EXPERIMENT = Experiment(
    "tiny", "A bent coin", "Does a bent coin favour heads?", "Coins are fair (Theorem 0).", settings, seeds, run, analyse
)


def write(folder, *, quick=False, heads=None, versions=VERSIONS):
    """All records of a form; `heads` doctors every result."""
    path = records.location(folder, EXPERIMENT.name, quick=quick)
    path.unlink(missing_ok=True)
    with records.appending(path, EXPERIMENT.name, versions, ORIGIN) as append:
        for setting, seed in records.grid(EXPERIMENT, quick=quick):
            result = run(setting, seed).result if heads is None else {"heads": heads}
            append(Record(setting, seed, result, {"seconds": 0.01}))
