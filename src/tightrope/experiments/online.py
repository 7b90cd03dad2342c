"""E3: Algorithm 1 against Q-learning and κ = 0 from the same number of samples, and what caution, steps and exploration do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tightrope.experiments.experiment import Analysis, Answer, Experiment, Table, Verdict
from tightrope.experiments.figure import Figure, Lines, band
from tightrope.experiments.online_runs import (
    BOLD,
    CAREFUL,
    EARLY,
    EVERY,
    EXPLORES,
    KAPPA,
    PROBLEMS,
    RACE,
    ROPES,
    SLOW,
    SMALL,
    Choice,
    one,
    points,
    seeds,
    settings,
)
from tightrope.experiments.statistics import Estimate, mean_interval, proportion_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tightrope.experiments.experiment import Record, Setting
    from tightrope.experiments.figure import Series
    from tightrope.model.validate import FloatArray

OURS, ZERO, BASELINE, BLIND = Choice(KAPPA), Choice(0.0), Choice(None), Choice(KAPPA, explore=0.0)
#: A run has arrived when this part of the first policy's loss is left; if fewer than `OFTEN` do, the theorem is in doubt.
GOAL, OFTEN = 0.05, 0.9
#: Fewer pairs than this are not compared; what stands for nothing on a logarithmic axis.
ENOUGH, FLOOR = 5, 1e-4


class _Runs:
    """The records by problem and learner."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.found: dict[tuple[object, ...], dict[int, Record]] = {}
        for record in records:
            self.found.setdefault(_key(record.setting), {})[record.seed] = record
        self.problems = [name for name in PROBLEMS if any(name in key for key in self.found)]

    def of(self, problem: str, choice: Choice) -> dict[int, Record]:
        """The runs of a learner on a problem, by seed."""
        return self.found.get(_key(choice.on(problem)), {})

    def all(self, *choices: Choice, problems: Iterable[str] | None = None) -> list[Record]:
        """The runs of these learners on all problems."""
        names = self.problems if problems is None else problems
        return [record for problem in names for choice in choices for record in self.of(problem, choice).values()]

    def behind(self, problem: str, choice: Choice, other: Choice) -> FloatArray:
        """How much more a learner loses on the way than another one, seed by seed."""
        ours, theirs = self.of(problem, choice), self.of(problem, other)
        return np.array([_on_the_way(ours[seed]) - _on_the_way(theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())])

    def pooled(self, choice: Choice, measure: Callable[[Record], float]) -> Estimate | None:
        """The mean over problems of a measure, with its interval over seeds; None unless every problem has runs."""
        rows = [self.of(problem, choice) for problem in self.problems]
        shared = set.intersection(*(set(row) for row in rows)) if rows else set()
        return mean_interval([np.mean([measure(row[seed]) for row in rows]) for seed in sorted(shared)]) if shared else None


def _key(setting: Setting) -> tuple[object, ...]:
    return tuple(setting.get(name) for name in ("problem", "learner", "kappa", "cautious", "fast", "slow", "explore"))


def _on_the_way(record: Record) -> float:
    """The ν-weighted loss, averaged over the log-spaced points: small for who learns early and well."""
    return float(np.mean(record.result["nu"]))


def _left(record: Record) -> float:
    """The ν-weighted loss that is left at the end."""
    return float(record.result["nu"][-1])


def _arrived(records: Sequence[Record]) -> int:
    return sum(_left(record) <= GOAL for record in records)


class _Contest:
    """κ = 0.9 against κ = 0 and against Q-learning on one problem: the loss on the way, pair by pair; negative is sooner."""

    def __init__(self, runs: _Runs, problem: str, confidence: float) -> None:
        self.problem = problem
        pairs = {other: runs.behind(problem, OURS, other) for other in (ZERO, BASELINE)}
        self.enough = min(len(x) for x in pairs.values()) >= ENOUGH
        self.behind = {other: mean_interval(x, confidence) for other, x in pairs.items()}
        self.won = all(e.high < 0.0 for e in self.behind.values())


def analyse(records: Sequence[Record]) -> Analysis:
    """Does it converge for every κ, and does κ > 0 get there sooner?"""
    runs = _Runs(records)
    # The intervals of all contests, two a problem, hold together with 95 %.
    confidence = 1.0 - 0.05 / max(1, 2 * len(runs.problems))
    contests = [contest for problem in runs.problems if (contest := _Contest(runs, problem, confidence)).enough]
    return Analysis(
        _verdict(runs, contests),
        tuple(figure for figure in (_race(runs), _caution(runs), _choices(runs)) if figure.panels),
        tuple(table for table in (_by_problem(runs, contests), _by_learner(runs)) if table.rows),
        _advice(runs),
    )


def _verdict(runs: _Runs, contests: Sequence[_Contest]) -> Verdict:
    """YES: it converges and wins everywhere; NO: it does neither anywhere; else it depends, or the records do not tell."""
    quantity = f"loss on the way, mean over problems: {OURS} minus Q-learning (1 = what the first policy loses)"
    if not contests:
        sentence = f"Too few runs: {ENOUGH} pairs of κ = {KAPPA:g} with κ = 0 and with Q-learning on one problem are needed."
        return Verdict(Answer.OPEN, sentence, quantity, math.nan, -math.inf, math.inf)
    every = runs.all(*RACE[:-1])
    arrived = proportion_interval(_arrived(every), len(every))
    won = sum(contest.won for contest in contests)
    answer = Answer.MIXED
    if arrived.low <= OFTEN <= arrived.high:
        answer = Answer.OPEN
    elif arrived.low > OFTEN and won == len(contests):
        answer = Answer.YES
    elif arrived.high < OFTEN and won == 0:
        answer = Answer.NO
    scores = [_score([contest.behind[other] for contest in contests]) for other in (ZERO, BASELINE)]
    sentence = (
        f"With exploration, Algorithm 1 came within {GOAL:.0%} of the optimum in {_arrived(every):,} of {len(every):,} "
        f"runs over all κ ({arrived.low:.0%} to {arrived.high:.0%}). κ = {KAPPA:g} learned sooner than both κ = 0 and Q-learning "
        f"on {won} of {len(contests)} problems: against κ = 0 {scores[0]}; against Q-learning {scores[1]}."
    )
    return Verdict(answer, sentence, quantity, *_overall(runs, contests))


def _overall(runs: _Runs, contests: Sequence[_Contest]) -> Estimate:
    """κ = 0.9 behind Q-learning, mean over the problems that were compared, with its interval over seeds."""
    table = [runs.behind(contest.problem, OURS, BASELINE) for contest in contests]
    n = min(len(row) for row in table)
    return mean_interval(np.mean([row[:n] for row in table], axis=0))


def _score(found: Sequence[Estimate]) -> str:
    """In words: how often sooner, later, alike."""
    words = [_said(e) for e in found]
    return ", ".join(f"{word} on {words.count(word)}" for word in ("sooner", "later", "not to be told apart") if word in words)


def _said(e: Estimate) -> str:
    return "sooner" if e.high < 0.0 else "later" if e.low > 0.0 else "not to be told apart"


def _curve(
    label: str, records: Iterable[Record], name: str = "nu", *, kappa: float | None = None, dashed: bool = False
) -> Series:
    """Mean loss against samples with its 95 % band; empty without records."""
    rows = [record.result[name] for record in records]
    columns = [mean_interval(column) for column in zip(*rows, strict=True)]
    at = points(EARLY if name == "start" else 10**9)[: len(columns)]
    return band(label, at, columns, floor=FLOOR if name == "nu" else -math.inf, kappa=kappa, dashed=dashed)


def _panel(title: str, y: str, lines: Iterable[Series], *, y_log: bool) -> list[Lines]:
    """A panel of curves against samples, or none when nothing has been run."""
    kept = tuple(line for line in lines if line.x)
    return [Lines(title, "samples", y, kept, x_log=True, y_log=y_log, across=((1.0, "first policy"),))] if kept else []


def _race(runs: _Runs) -> Figure:
    """One panel a problem, a curve for every learner of the race."""
    panels: list[Lines] = []
    for problem in runs.problems:
        lines = [
            _curve(str(choice), runs.of(problem, choice).values(), kappa=choice.kappa, dashed=choice.kappa is None)
            for choice in RACE
        ]
        panels += _panel(problem, "loss (1 = first policy)", lines, y_log=True)
    ends = {choice: runs.pooled(choice, _left) for choice in RACE}
    told = "; ".join(f"{choice}: {end.value:.2%}" for choice, end in ends.items() if end is not None)
    caption = (
        "The loss of the policy learned so far against samples: mean and 95 % band over seeds. All learners explore "
        f"in 20 % of their steps; {FLOOR:g} stands for less. On the tightropes, which have two actions, every cautious κ is the "
        "same learner."
    )
    seen = f"Falling curves of the loss, one for each kappa and one for Q-learning. Left at the end, mean over problems: {told}."
    return Figure("online-race", caption, seen, tuple(panels))


def _caution(runs: _Runs) -> Figure:
    """What caution is for: the ropes from the hesitant policy."""
    panels: list[Lines] = []
    for problem in ROPES:
        lines = [_curve("cautious, every κ", runs.of(problem, CAREFUL).values(), "start")]
        lines += [
            _curve(
                f"not cautious, κ = {choice.kappa:g}", runs.of(problem, choice).values(), "start", kappa=choice.kappa, dashed=True
            )
            for choice in BOLD
        ]
        panels += _panel(problem, "loss at the start", lines, y_log=False)
    worst = [
        max((max(record.result["start"]) for record in runs.all(*choices, problems=ROPES)), default=math.nan)
        for choices in ((CAREFUL,), BOLD)
    ]
    caption = (
        f"The loss where one begins, from the hesitant policy with small steps {SMALL}; above one is worse than never to step on "
        "the rope. Always moving towards the κ-greedy action means stepping on the rope before one can walk on it; the cautious "
        "target waits until it is safe."
    )
    seen = (
        f"The worst moment of any cautious run was {worst[0]:.3g} times the loss of the hesitant policy, of any run without "
        f"caution {worst[1]:.3g} times."
    )
    return Figure("online-caution", caption, seen, tuple(panels))


def _choices(runs: _Runs) -> Figure:
    """Exploration and step sizes, which may matter more than κ."""
    y = "loss on the way (1 = first policy)"
    lines = []
    for kappa, label in ((KAPPA, f"Algorithm 1, κ = {KAPPA:g}"), (None, "Q-learning")):
        found = {e: runs.pooled(Choice(kappa, explore=e), _on_the_way) for e in EXPLORES}
        known = {e: estimate for e, estimate in found.items() if estimate is not None}
        lines += [band(label, tuple(known), tuple(known.values()), kappa=kappa)] if known else []
    panels = [Lines("Exploration, mean over problems", "share of uniform actions", y, tuple(lines))] if lines else []
    lines = []
    tried = [name for name in SLOW if runs.all(Choice(KAPPA, slow=name))]
    for problem in runs.problems:
        here = {i: list(runs.of(problem, Choice(KAPPA, slow=name)).values()) for i, name in enumerate(tried)}
        steps = {i: mean_interval([_on_the_way(record) for record in records]) for i, records in here.items() if records}
        lines += [band(problem, tuple(steps), tuple(steps.values()))] if len(steps) > 1 else []
    if lines:
        panels.append(Lines(f"Step sizes of the policy, κ = {KAPPA:g}", "", y, tuple(lines), ticks=tuple(tried)))
    stuck = runs.all(BLIND)
    caption = "The loss averaged over the way, with 95 % intervals, against what else one has to choose."
    seen = (
        f"The loss on the way against the share of uniform actions, mean over problems; without any, "
        f"{len(stuck) - _arrived(stuck)} of {len(stuck)} runs of Algorithm 1 did not come within {GOAL:.0%} of the optimum. "
        "Then the loss for each step size of the policy."
    )
    return Figure("online-choices", caption, seen, tuple(panels))


def _by_problem(runs: _Runs, contests: Sequence[_Contest]) -> Table:
    """The contest, problem by problem."""
    rows = []
    for contest in contests:
        ways = [
            np.mean([_on_the_way(record) for record in runs.of(contest.problem, choice).values()])
            for choice in (ZERO, OURS, BASELINE)
        ]
        gaps = [Estimate(*(100.0 * x for x in contest.behind[other])) for other in (ZERO, BASELINE)]
        rows.append((contest.problem, *(f"{way:.1%}" for way in ways), *(f"{gap}, {_said(gap)}" for gap in gaps)))
    head = ("problem", str(ZERO), str(OURS), str(BASELINE), f"{OURS} minus {ZERO}, points", f"{OURS} minus Q-learning, points")
    caption = (
        "Loss on the way in % of the first policy's, and paired differences with intervals that hold together with 95 %; "
        "negative is sooner"
    )
    return Table(caption, head, tuple(rows))


def _by_learner(runs: _Runs) -> Table:
    """Everything that was tried, mean over problems."""
    rows, ways = [], []
    for choice in EVERY:
        way, left, every = runs.pooled(choice, _on_the_way), runs.pooled(choice, _left), runs.all(choice)
        if way is None or left is None:
            continue
        largest = np.mean([record.result["max"][-1] for record in every])
        rows.append((str(choice), _percent(way), _percent(left), f"{largest:.2%}", f"{_arrived(every)} of {len(every)}"))
        ways.append(way.value)
    head = ("learner", "on the way", "left at the end", "left in the worst state", f"runs within {GOAL:.0%}")
    caption = "Every learner, mean over problems with 95 % intervals: the ν-weighted loss in % of the first policy's"
    return Table(caption, head, tuple(rows), int(np.argmin(ways)) if ways else None)


def _percent(e: Estimate) -> str:
    return f"{e.value:.2%} [{max(e.low, 0.0):.2%}, {e.high:.2%}]"


def _advice(runs: _Runs) -> str:
    """What someone with a simulator should do."""
    found = {choice: runs.pooled(choice, _on_the_way) for choice in RACE}
    known = {choice: estimate.value for choice, estimate in found.items() if estimate is not None}
    if BASELINE not in known or len(known) == 1:
        return "There are too few runs to advise anything."
    algorithm = {choice: way for choice, way in known.items() if choice != BASELINE}
    best = min(algorithm, key=lambda choice: algorithm[choice])
    spread = 100.0 * (max(algorithm.values()) - min(algorithm.values()))
    ahead = known[BASELINE] < known[best]
    first = "Q-learning" if ahead else f"Algorithm 1 with {best}"
    stuck = runs.all(BLIND)
    explore = f"Always explore: without, {len(stuck) - _arrived(stuck)} of {len(stuck)} runs never arrived. " if stuck else ""
    return (
        f"{explore}Begin with {first}: on the way Q-learning lost {known[BASELINE]:.1%} of what the first policy loses, "
        f"Algorithm 1 with its best κ ({best.kappa:g}) {known[best]:.1%}; the choice of κ changes that by {spread:.1f} points."
    )


EXPERIMENT = Experiment(
    name="online",
    title="Learning online",
    question="From samples, does Algorithm 1 reach the optimum for every κ, and with κ > 0 sooner than κ = 0 or Q-learning?",
    claim="Theorem 3: with step sizes on two timescales Algorithm 1 converges to an optimal policy for every κ (section 5); "
    "how fast, the paper leaves open.",
    settings=settings,
    seeds=seeds,
    run=one,
    analyse=analyse,
)
