"""A tiny experiment for the tests of the runner; as a script, it runs itself: toy_experiment.py FOLDER WORKERS."""

import math
import os
import sys
import time

from tightrope.executors import LocalProcesses
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Outcome, Table, Verdict, generator
from tightrope.experiments.figure import Figure, Lines, Series
from tightrope.experiments.runner import run

KAPPAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def settings(quick):
    return [{"kappa": kappa, "family": "coin"} for kappa in (KAPPAS[:2] if quick else KAPPAS)]


def seeds(quick):
    return 2 if quick else 6


def toss(setting, seed):
    """Numbers that JSON knows and those it does not; slow, or wrong, when the environment says so."""
    if "TOY_LOG" in os.environ:
        with open(os.environ["TOY_LOG"], "a") as log:  # noqa: PTH123
            log.write(f"{os.getpid()} {setting['kappa']} {seed}\n")
    time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
    if os.environ.get("TOY_FAILS") == f"{setting['kappa']} {seed}":
        raise ArithmeticError("the coin stands on its edge")
    rng = generator("toy", setting, seed)
    draws = rng.random(3)
    odd = {0: math.nan, 1: math.inf, 2: -math.inf}.get(seed, 0.1 + 0.2)
    return Outcome({"heads": draws[0] < 0.5, "draws": draws, "odd": odd, "n": rng.integers(9)}, {"clock": time.perf_counter()})


def analyse(found):
    heads = [record.result["heads"] for record in found]
    share = sum(heads) / len(heads)
    line = Lines("draws", "kappa", "u", (Series("u", tuple(r.setting["kappa"] for r in found), tuple(map(float, heads))),))
    return Analysis(
        Verdict(Answer.YES if share > 0.4 else Answer.NO, "The coin is fair enough.", "share of heads", share, 0.2, 0.8),
        (Figure("heads", "Heads.", "Points at zero and one.", (line,)),),
        (Table("Heads", ("kappa", "heads"), (("0", f"{share:.2f}"),), best=0),),
        "Toss it again.",
    )


EXPERIMENT = Experiment("toy", "A toy", "Is the coin fair?", "It is (nowhere).", settings, seeds, toss, analyse)

if __name__ == "__main__":
    run(EXPERIMENT, folder=sys.argv[1], executor=LocalProcesses(int(sys.argv[2])))
