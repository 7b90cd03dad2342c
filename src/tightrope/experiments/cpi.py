"""E8: κ-CPI, soft steps towards an approximate κ-greedy policy: do they always improve, and are they worth it against κ-API?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tightrope.approximate import ExactValue, LSTDValue, SampledModel, run
from tightrope.approximate.algorithms import Improved
from tightrope.approximate.experimental import cautious_target, kappa_cpi
from tightrope.approximate.walk import everywhere
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Outcome, Table, Verdict, chosen, generator, short
from tightrope.experiments.families import draw, uniform
from tightrope.experiments.figure import Figure, Heat, Lines, band, spaced
from tightrope.experiments.statistics import best_of, mean_interval, proportion_interval
from tightrope.model.mdp import MDP
from tightrope.model.policy import mix
from tightrope.operators import T_kappa, kappa_greedy, value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tightrope.approximate import Algorithm, Evaluator, Problem, Run
    from tightrope.experiments.experiment import Record, Setting
    from tightrope.experiments.statistics import Estimate
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray

#: A class of models and a seed.
Model: TypeAlias = "tuple[str, int]"
#: The steps tried; with no caution, α = 1 is κ-API itself, and α < κ is what Theorem 1 warns of.
ALPHAS = (0.25, 0.5, 0.75, 1.0)
KAPPAS = (0.0, 0.5, 0.9)
#: Where the target is the oracle's answer: everywhere; where the samples of this very step say that it does not lose in one step;
#: or where the model says so. The first two see samples only.
PLAIN, SAMPLES, MODEL = "plain", "samples", "model"
KINDS = {PLAIN: "no caution", SAMPLES: "cautious by samples", MODEL: "cautious by the model"}
#: Whether v is computed from the model, or learnt from samples.
EXACT, LEARNT = "known", "learnt"
FAMILIES = ("dense", "sparse", "maze", "queue")
#: Iterations of every run, and samples of every pair in each of them, for the oracle and for v.
ITERATIONS, ORACLE, VALUES = 12, 2, 10
#: A step is worse when some state loses more than this part of what the first policy loses.
ROUNDING = 1e-9
#: Fewer records than this leave the question open.
ENOUGH = 8


def settings(quick: bool) -> list[Setting]:
    """Every class of models and every κ, with v known and with v learnt."""
    families, kappas = (("sparse", "maze"), (0.0, 0.9)) if quick else (FAMILIES, KAPPAS)
    return [
        {"family": family, "values": values, "kappa": kappa}
        for values in (EXACT, LEARNT)
        for family in families
        for kappa in kappas
    ]


def seeds(quick: bool) -> int:
    """Models of each class."""
    return 2 if quick else 18


@dataclass(frozen=True, eq=False)
class SampledCPI:
    """κ-CPI from samples alone: the oracle is `SampledModel(n)`, and caution asks the model that its samples made.

    Without caution any α is allowed, α < κ too, which `kappa_cpi` refuses: the experiment wants to see what happens.
    """

    kappa: float
    alpha: float
    cautious: bool
    n: int
    iterations: int
    evaluate: Evaluator
    nu: Any = None

    #: The result is the last policy, which is on its way to the oracle's answers.
    switching = False
    soft = True

    def step(self, original: Problem, pi: Policy, v: FloatArray, nu: FloatArray, rng: np.random.Generator) -> Improved:
        """One iteration."""
        problem = original.surrogate(v, self.kappa)
        found = everywhere(problem, self.n, rng)
        learnt = MDP(found.P, found.r, problem.gamma, problem.pairs.first, actions=problem.pairs.ids)
        answer = kappa_greedy(learnt, v, 1.0)
        # The learnt surrogate's one-step lookahead is r + (1-κ)γPv + κγPv, that of the original.
        new = mix(pi, cautious_target(learnt, v, answer) if self.cautious else answer, self.alpha)
        return Improved(problem, answer, new, self.evaluate(original, new, nu, rng))

    def exact(self, mdp: MDP, pi: Policy, v: FloatArray) -> FloatArray:  # noqa: ARG002  (the protocol)
        """v^{π_k} [S]."""
        return value(mdp, pi)


def one(setting: Setting, seed: int) -> Outcome:
    """One model and one κ: for every kind of caution and step α, the loss at the end and the steps that made some state worse."""
    mdp, kappa = draw(setting["family"], seed), setting["kappa"]
    optimum = T_kappa(mdp, np.zeros(mdp.n_states), 1.0)
    evaluate: Evaluator = ExactValue() if setting["values"] == EXACT else LSTDValue(samples=VALUES * mdp.n_pairs)
    result: dict[str, object] = {}
    for kind in KINDS:
        followed = []
        for alpha in ALPHAS:
            algorithm: Algorithm = SampledCPI(kappa, alpha, kind == SAMPLES, ORACLE, ITERATIONS, evaluate)
            if kind == MODEL:
                algorithm = kappa_cpi(kappa, SampledModel(ORACLE), alpha, iterations=ITERATIONS, evaluate=evaluate)
            followed.append(_followed(mdp, run(mdp, algorithm, seed=seed, measure=False, show_progress=False), optimum))
        losses, worse, falls = zip(*followed, strict=True)
        result |= {f"{kind}_loss": list(losses), f"{kind}_worse": list(worse), f"{kind}_fall": max(falls)}
    return Outcome(result, {})


def _followed(mdp: MDP, done: Run, optimum: FloatArray) -> tuple[float, int, float]:
    """The loss at the end in % of that of acting at random, how many steps made a state worse, and the deepest such step in %."""
    mu = uniform(mdp)
    values = [value(mdp, pi) for pi in (done.pi0, *done.policies)]
    stake = optimum - values[0]
    falls = np.array([float((before - after).max()) for before, after in pairwise(values)]) / float(stake.max())
    loss = float(mu @ (optimum - values[-1])) / float(mu @ stake)
    loss = loss if loss > ROUNDING else 0.0
    deepest = float(falls.max())
    return short(100.0 * loss), int((falls > ROUNDING).sum()), short(100.0 * deepest) if deepest > ROUNDING else 0.0


def analyse(records: Sequence[Record]) -> Analysis:
    """Do cautious steps ever make a state worse, and what do soft steps gain against κ-API at the same samples?"""
    modes = [values for values in (EXACT, LEARNT) if chosen(records, values=values)]
    worse = {(kind, values): _worsened(chosen(records, values=values), kind) for kind in KINDS for values in modes}
    gains = {values: mean_interval(list(_gains(chosen(records, values=values)).values())) for values in modes}
    every = _gains(records)
    classes = _by_class(every)
    enough = modes and min(len(chosen(records, values=values)) for values in modes) >= ENOUGH
    answer = _answer(worse, gains) if enough else Answer.OPEN
    return Analysis(
        Verdict(
            answer,
            _sentence(worse, gains, classes) if enough else f"{len(records)} records are too few to say.",
            "loss of κ-CPI from samples with its best step minus loss of κ-API, in % of what acting at random loses",
            *mean_interval(list(every.values())),
        ),
        (_gain_map(records, modes), _monotone(records, modes)) if modes else (),
        (_table(records, modes), _class_table(records, classes)) if modes else (),
        _advice(records, gains, classes),
    )


def _column(records: Sequence[Record], name: str) -> FloatArray:
    """A list of the results of every record [models, α]."""
    return np.array([record.result[name] for record in records], dtype=np.float64)


def _api(records: Sequence[Record]) -> FloatArray:
    """The loss of κ-API, which is the plain step α = 1 [models, 1]."""
    return _column(records, f"{PLAIN}_loss")[:, -1:]


def _from_samples(records: Sequence[Record]) -> FloatArray:
    """The losses of every step that needs samples only, plain ones first [models, 2 α]."""
    return np.hstack([_column(records, f"{kind}_loss") for kind in (PLAIN, SAMPLES)])


def _named(column: int) -> str:
    """The step of a column of `_from_samples`."""
    kind, alpha = divmod(column, len(ALPHAS))
    return f"α = {ALPHAS[alpha]:g}, {KINDS[(PLAIN, SAMPLES)[kind]]}"


def _kappas(records: Sequence[Record]) -> list[float]:
    return sorted({record.setting["kappa"] for record in records})


def _worsened(records: Sequence[Record], kind: str) -> Estimate:
    """The part of the records in which a step of this kind, with any α, made a state worse."""
    return proportion_interval(sum(any(record.result[f"{kind}_worse"]) for record in records), len(records))


def _gains(records: Sequence[Record]) -> dict[Model, float]:
    """Loss with the best step minus loss of κ-API for each model, mean over its records.

    For each κ, with v known and learnt, half of the models have the step that is best on the other half: luck does not count.
    """
    found: dict[Model, list[float]] = defaultdict(list)
    for values, kappa in sorted({(record.setting["values"], record.setting["kappa"]) for record in records}):
        here = chosen(records, values=values, kappa=kappa)
        even, odd = ([record for record in here if record.seed % 2 == half] for half in (0, 1))
        for known, fresh in ((even, odd), (odd, even)) if even and odd else ():
            step = int(_from_samples(known).mean(axis=0).argmin())
            for record, gain in zip(fresh, (_from_samples(fresh)[:, [step]] - _api(fresh))[:, 0].tolist(), strict=True):
                found[record.setting["family"], record.seed].append(gain)
    return {model: float(np.mean(gains)) for model, gains in found.items()}


def _by_class(gains: Mapping[Model, float]) -> dict[str, Estimate]:
    """The mean gain on each class of models, with intervals that hold together."""
    families = sorted({family for family, _ in gains})
    confidence = 1.0 - 0.05 / max(len(families), 1)
    return {name: mean_interval([gain for (family, _), gain in gains.items() if family == name], confidence) for name in families}


def _answer(worse: Mapping[tuple[str, str], Estimate], gains: Mapping[str, Estimate]) -> Answer:
    """A state made worse although model and v are known, or a larger loss, refutes it; yes needs that no cautious step fails."""
    known = worse.get((MODEL, EXACT))
    if (known is not None and known.value > 0.0) or all(gain.low > 0.0 for gain in gains.values()):
        return Answer.NO
    safe = all(part.value == 0.0 for (kind, _), part in worse.items() if kind != PLAIN)
    return Answer.YES if safe and all(gain.high < 0.0 for gain in gains.values()) else Answer.MIXED


def _sentence(worse: Mapping[tuple[str, str], Estimate], gains: Mapping[str, Estimate], classes: Mapping[str, Estimate]) -> str:
    parts = []
    if (MODEL, EXACT) in worse:
        known = worse[MODEL, EXACT]
        never = f"no cautious step made any state worse (rate below {known.high:.2g})"
        ever = f"a cautious step made some state worse in {100.0 * known.value:.2g} % of the runs"
        parts.append(f"With the model and v known, {ever if known.value else never}.")
    others = [part.value for (kind, values), part in worse.items() if kind == SAMPLES or (kind, values) == (MODEL, LEARNT)]
    if any(others):
        span = sorted({f"{100.0 * part:.0f}" for part in (min(others), max(others))}, key=float)
        parts.append(f"Where either comes from samples some step did, in {' to '.join(span)} % of the runs.")
    for values, gain in gains.items():
        ends = f"[{gain.low:.2g}, {gain.high:.2g}]"
        if gain.low <= 0.0 <= gain.high:
            parts.append(f"With v {values} the best step from samples is not told from κ-API ({gain.value:+.2g} points {ends}).")
        else:
            word = "less" if gain.value < 0.0 else "more"
            parts.append(
                f"With v {values} the best step from samples loses {abs(gain.value):.2g} points {word} than κ-API {ends}."
            )
    less, more = _helped(classes)
    where = [f"{word} on {', '.join(names)}" for word, names in (("less", less), ("more", more)) if names]
    if where:
        parts.append(f"By class of models it loses {' and '.join(where)}.")
    return " ".join(parts)


def _helped(classes: Mapping[str, Estimate]) -> tuple[list[str], list[str]]:
    """The classes on which soft steps lose less than κ-API, and more."""
    less = [family for family, gain in classes.items() if gain.high < 0.0]
    return less, [family for family, gain in classes.items() if gain.low > 0.0]


def _gain_map(records: Sequence[Record], modes: Sequence[str]) -> Figure:
    """Loss minus that of κ-API over α and κ, plain and cautious by samples."""
    panels, seen = [], []
    for values in modes:
        kappas = _kappas(chosen(records, values=values))
        for kind in (PLAIN, SAMPLES):
            rows = []
            for kappa in kappas:
                here = chosen(records, values=values, kappa=kappa)
                rows.append(tuple((_api(here) - _column(here, f"{kind}_loss")).mean(axis=0).tolist()))
            panels.append(
                Heat(
                    f"v {values}, {KINDS[kind]}",
                    "step α",
                    "κ",
                    tuple(f"{alpha:g}" for alpha in ALPHAS),
                    tuple(f"{kappa:g}" for kappa in kappas),
                    tuple(rows),
                    "points lost less than κ-API (negative: more)",
                    diverging=True,
                )
            )
            top = max((row[i], k, ALPHAS[i]) for row, k in zip(rows, kappas, strict=True) for i in range(len(ALPHAS)))
            seen.append(
                f"With v {values} and {KINDS[kind]}, the best is {top[0]:+.2g} points at kappa = {top[1]:g}, alpha = {top[2]:g}."
            )
    caption = (
        f"What soft steps gain against κ-API with the same κ and the same samples: {ITERATIONS} iterations, {ORACLE} samples "
        "of every pair in each. The loss is in % of that of acting at random."
    )
    return Figure("cpi-gain", caption, f"Maps of the gain over alpha and kappa. {' '.join(seen)}", tuple(panels))


def _monotone(records: Sequence[Record], modes: Sequence[str]) -> Figure:
    """The part of the steps that made some state worse, against α."""
    at, ticks = spaced(ALPHAS)
    panels, seen = [], []
    for values in modes:
        here = chosen(records, values=values)
        parts = {kind: 100.0 / ITERATIONS * _column(here, f"{kind}_worse") for kind in KINDS}
        lines = tuple(
            band(KINDS[kind], at, [mean_interval(column) for column in part.T], floor=0.0) for kind, part in parts.items()
        )
        panels.append(Lines(f"v {values}", "step α", "steps that made a state worse, %", lines, ticks=ticks))
        seen.append(f"With v {values}: " + ", ".join(f"{KINDS[kind]} {part.mean():.2g} %" for kind, part in parts.items()) + ".")
    caption = (
        "How often a step made some state worse, mean over κ and models with its 95 % interval; without caution α = 1 is κ-API."
    )
    return Figure(
        "cpi-monotone",
        caption,
        f"The part of the steps that made some state worse, against alpha. {' '.join(seen)}",
        tuple(panels),
    )


def _table(records: Sequence[Record], modes: Sequence[str]) -> Table:
    """By κ: the best step from samples, what it gains, and the best that caution by the model would do."""
    rows = []
    for values in modes:
        for kappa in _kappas(chosen(records, values=values)):
            here = chosen(records, values=values, kappa=kappa)
            losses, known = _from_samples(here), _column(here, f"{MODEL}_loss").mean(axis=0)
            best = best_of(losses, generator("cpi", {"values": values, "kappa": kappa}, 0))
            rows.append(
                (
                    values,
                    f"{kappa:g}",
                    f"{_api(here).mean():.3g} %",
                    f"{losses[:, best.column].mean():.3g} %",
                    _named(best.column),
                    str(mean_interval((losses[:, [best.column]] - _api(here))[:, 0])),
                    "yes" if len(ALPHAS) - 1 not in best.rivals else "no",
                    f"{known.min():.3g} % (α = {ALPHAS[int(known.argmin())]:g})",
                )
            )
    head = ("v", "κ", "κ-API", "best from samples", "its step", "difference, points", "told from κ-API", "cautious by the model")
    return Table("Loss of κ-CPI with its best step against κ-API, in % of acting at random", head, tuple(rows))


def _class_table(records: Sequence[Record], classes: Mapping[str, Estimate]) -> Table:
    """The gain by class of models."""
    rows = [(family, f"{_api(chosen(records, family=family)).mean():.3g} %", str(gain)) for family, gain in classes.items()]
    head = ("models", "loss of κ-API", "κ-CPI from samples minus κ-API, points")
    return Table(
        "The same by class, mean over κ and both ways to v; each half has the step that suits the other", head, tuple(rows)
    )


def _advice(records: Sequence[Record], gains: Mapping[str, Estimate], classes: Mapping[str, Estimate]) -> str:
    """One sentence for who has to choose."""
    if not gains:
        return "No records yet."
    useful = [values for values, gain in gains.items() if gain.high < 0.0]
    if not useful:
        return "These records show no gain from soft steps: κ-API is simpler."
    steps = [f"{_named(int(_from_samples(chosen(records, values=v)).mean(axis=0).argmin()))} when v is {v}" for v in useful]
    less, _ = _helped(classes)
    where = f" It pays most on models such as {', '.join(less)}." if less else ""
    return f"When the oracle sees few samples take soft steps rather than κ-API: {'; '.join(steps)}.{where}"


EXPERIMENT = Experiment(
    name="cpi",
    title="Soft steps: κ-CPI",
    question="Do cautious soft steps towards an approximate κ-greedy policy improve every time, and lose less than κ-API?",
    claim="None is proved: the discussion leaves κ-CPI open, as the proof of conservative policy iteration does not carry over.",
    settings=settings,
    seeds=seeds,
    run=one,
    analyse=analyse,
)
