"""E7: κ-API against κ-PSDP at equal samples: what each loses, and how many policies κ-PSDP has to store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope import theory
from tightrope.approximate import ExactValue, KappaAPI, KappaPSDP, LSTDValue, SampledModel, SwitchingPolicy, run
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Outcome, Table, Verdict, chosen, commonest, short
from tightrope.experiments.families import GAMMA, draw, uniform
from tightrope.experiments.figure import Figure, Heat, Lines, band, spaced
from tightrope.experiments.statistics import mean_interval
from tightrope.operators import T_kappa, value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tightrope.experiments.experiment import Record, Setting
    from tightrope.experiments.statistics import Estimate
    from tightrope.model.validate import FloatArray

GRIDS = {"coarse": (0.0, 0.8, 1.0), "fine": (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)}
#: Whether v is computed from the model, or learnt from half of the samples.
EXACT, LEARNT = "known", "learnt"
FAMILIES = ("dense", "sparse", "maze", "queue")
#: Samples of every pair in all, whatever κ.
TOTAL = 100
#: A run ends when the start counts for no more than this: few iterations with many samples in each, or many with few.
FORGOTTEN = {"few": 0.05, "many": 0.001}
#: Fewer models than this leave the question open.
ENOUGH = 8


def settings(quick: bool) -> list[Setting]:
    """Every class of models, with v known and with v learnt, in few steps and in many."""
    grid = "coarse" if quick else "fine"
    return [
        {"family": family, "values": values, "steps": steps, "grid": grid}
        for values in (EXACT, LEARNT)
        for family in FAMILIES
        for steps in FORGOTTEN
    ]


def seeds(quick: bool) -> int:
    """Models of each class."""
    return 2 if quick else 28


def iterations(kappa: float, steps: str) -> int:
    """How many iterations the rate ξ asks for until the start is forgotten: the number of policies that κ-PSDP makes."""
    return int(theory.iterations_needed(GAMMA, kappa, FORGOTTEN[steps], 1.0))


def one(setting: Setting, seed: int) -> Outcome:
    """One model: the loss of both algorithms at every κ, in % of acting at random, and the policies that κ-PSDP keeps."""
    mdp = draw(setting["family"], seed)
    mu = uniform(mdp)
    optimum = T_kappa(mdp, np.zeros(mdp.n_states), 1.0)
    api, psdp, kept, samples = [], [], [], []
    spent = {"api": 0.0, "psdp": 0.0}
    start = None
    for kappa in GRIDS[setting["grid"]]:
        k = iterations(kappa, setting["steps"])
        # With κ = 1 nobody asks for v, and the oracle has all samples.
        learns = setting["values"] == LEARNT and kappa < 1.0
        each = TOTAL / k * (0.5 if learns else 1.0)
        oracle = SampledModel(max(1, round(each)))
        evaluate = LSTDValue(samples=max(1, round(each * mdp.n_pairs))) if learns else ExactValue()
        hard, soft = (
            run(mdp, kind(kappa, oracle, iterations=k, evaluate=evaluate), mu=mu, seed=seed, measure=False, show_progress=False)
            for kind in (KappaAPI, KappaPSDP)
        )
        start = float(mu @ (optimum - value(mdp, hard.pi0))) if start is None else start
        api.append(short(100.0 * max(0.0, float(mu @ (optimum - value(mdp, hard.policies[-1])))) / start))
        sigma = SwitchingPolicy(kappa, soft.policies, soft.pi0)
        psdp.append(short(100.0 * max(0.0, float(mu @ (optimum - sigma.value(mdp)))) / start))
        kept.append(len(sigma.prune().policies))
        samples.append(round(soft.samples / mdp.n_pairs))
        spent["api"] += hard.seconds
        spent["psdp"] += soft.seconds
    return Outcome({"api": api, "psdp": psdp, "kept": kept, "samples": samples}, spent)


@dataclass(frozen=True)
class _Mode:
    """What was found with v known, or learnt: for both algorithms the better number of steps at each κ."""

    kappas: tuple[float, ...]
    #: The class and the seed of each model.
    models: tuple[tuple[str, int], ...]
    #: Losses [models, κ], and which number of steps they were reached with [κ].
    api: FloatArray
    psdp: FloatArray
    api_steps: tuple[str, ...]
    psdp_steps: tuple[str, ...]
    #: Policies that κ-PSDP has to store after pruning [models, κ].
    kept: FloatArray

    @property
    def differences(self) -> FloatArray:
        """κ-PSDP minus κ-API [models, κ < 1]; with κ = 1 both are the same algorithm."""
        return (self.psdp - self.api)[:, :-1]

    @property
    def families(self) -> list[str]:
        """The classes of models."""
        return sorted({family for family, _ in self.models})

    def of(self, family: str) -> FloatArray:
        """The differences on one class of models."""
        return self.differences[[name == family for name, _ in self.models]]

    @property
    def gap(self) -> Estimate:
        """The mean difference over κ < 1."""
        return mean_interval(self.differences.mean(axis=1))


def analyse(records: Sequence[Record]) -> Analysis:
    """Which loses less, κ by κ, each with the number of steps that suits it, and what κ-PSDP pays in space."""
    alike = commonest(records, "grid")
    found = {values: _mode(chosen(alike, values=values)) for values in (EXACT, LEARNT)}
    modes = {values: mode for values, mode in found.items() if mode is not None}
    enough = bool(modes) and min(len(mode.api) for mode in modes.values()) >= ENOUGH
    overall = _overall(modes.values())
    classes = _classes(modes)
    return Analysis(
        Verdict(
            _answer(classes, overall) if enough else Answer.OPEN,
            _sentence(modes, classes) if enough else f"{len(records)} records are too few to tell κ-PSDP from κ-API.",
            "loss of κ-PSDP minus loss of κ-API, in % of what acting at random loses, mean over κ < 1",
            *overall,
        ),
        (_losses(modes), _space(modes)) if modes else (),
        (_table(modes),) if modes else (),
        _advice(modes),
    )


def _mode(records: Sequence[Record]) -> _Mode | None:
    """The models that were run with every number of steps, each algorithm with the one that does better on average."""
    present = [steps for steps in FORGOTTEN if chosen(records, steps=steps)]
    by = {steps: {(r.setting["family"], r.seed): r for r in chosen(records, steps=steps)} for steps in present}
    models = sorted(set.intersection(*(set(of) for of in by.values()))) if by else []
    if not models:
        return None
    kappas = GRIDS[records[0].setting["grid"]]
    tables = {
        (name, steps): np.array([by[steps][model].result[name] for model in models], dtype=np.float64)
        for name in ("api", "psdp", "kept")
        for steps in present
    }
    api, psdp = (
        tuple(min(present, key=lambda steps: float(tables[name, steps][:, i].mean())) for i in range(len(kappas)))
        for name in ("api", "psdp")
    )

    def columns(name: str, choice: tuple[str, ...]) -> FloatArray:
        return np.stack([tables[name, steps][:, i] for i, steps in enumerate(choice)], axis=1)

    return _Mode(kappas, tuple(models), columns("api", api), columns("psdp", psdp), api, psdp, columns("kept", psdp))


def _overall(modes: Iterable[_Mode]) -> Estimate:
    """The mean difference over κ < 1 and both ways to v; a model counts once."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for mode in modes:
        for model, difference in zip(mode.models, mode.differences.mean(axis=1).tolist(), strict=True):
            found[model].append(difference)
    return mean_interval([float(np.mean(differences)) for differences in found.values()])


def _classes(modes: Mapping[str, _Mode]) -> dict[tuple[str, str], Estimate]:
    """The mean difference over κ < 1 for each class of models, with intervals that hold together."""
    keys = [(values, family) for values, mode in modes.items() for family in mode.families]
    confidence = 1.0 - 0.05 / max(len(keys), 1)
    return {(values, family): mean_interval(modes[values].of(family).mean(axis=1), confidence) for values, family in keys}


def _answer(classes: Mapping[tuple[str, str], Estimate], overall: Estimate) -> Answer:
    """Whether κ-PSDP loses less: it depends if it does on some classes and loses more on others; else the mean decides."""
    if any(gap.high < 0.0 for gap in classes.values()) and any(gap.low > 0.0 for gap in classes.values()):
        return Answer.MIXED
    if overall.high < 0.0:
        return Answer.YES
    return Answer.NO if overall.low > 0.0 else Answer.OPEN


def _sentence(modes: Mapping[str, _Mode], classes: Mapping[tuple[str, str], Estimate]) -> str:
    parts = [f"with v {values} κ-PSDP loses {_points(mode.gap)}" for values, mode in modes.items()]
    less = ", ".join(f"{family} (v {values})" for (values, family), gap in classes.items() if gap.high < 0.0)
    more = ", ".join(f"{family} (v {values})" for (values, family), gap in classes.items() if gap.low > 0.0)
    where = [f"{word} on {names}" for word, names in (("less", less), ("more", more)) if names]
    by_class = f" By class it loses {', and '.join(where)}." if where else ""
    mode = list(modes.values())[-1]
    stored = mode.kept.mean(axis=0)
    return (
        f"At equal samples and the same κ < 1, {'; '.join(parts)} (points are % of what acting at random loses).{by_class} "
        f"κ-PSDP stores {stored[0]:.0f} policies at κ = {mode.kappas[0]:g} and {stored[-2]:.0f} at κ = {mode.kappas[-2]:g}, "
        "κ-API one; with κ = 1 both are the same algorithm."
    )


def _points(gap: Estimate) -> str:
    """A difference in words."""
    ends = f"[{gap.low:.2g}, {gap.high:.2g}]"
    if gap.low <= 0.0 <= gap.high:
        return f"as much as κ-API within the noise ({gap.value:+.2g} points {ends})"
    return f"{abs(gap.value):.2g} points {ends} {'less' if gap.value < 0.0 else 'more'} than κ-API"


def _losses(modes: Mapping[str, _Mode]) -> Figure:
    """Loss against κ for both, and who wins where."""
    panels: list[Lines | Heat] = []
    names, means, seen = [], [], []
    for values, mode in modes.items():
        at, ticks = spaced(mode.kappas)
        lines = tuple(
            band(label, at, [mean_interval(column) for column in table.T], floor=0.0)
            for label, table in (("κ-API", mode.api), ("κ-PSDP", mode.psdp))
        )
        panels.append(Lines(f"v {values}", "κ", "loss, % of acting at random", lines, ticks=ticks))
        for family in mode.families:
            names.append(f"{family}, v {values}")
            means.append(tuple((-mode.of(family).mean(axis=0)).tolist()))
        differences = zip(mode.kappas, mode.differences.mean(axis=0), strict=False)
        seen.append(f"With v {values}: {', '.join(f'{d:+.2g} points at kappa = {k:g}' for k, d in differences)}.")
    label = "points that κ-PSDP loses less (negative: more)"
    panels.append(Heat("What κ-PSDP gains", "κ", "", ticks[:-1], tuple(names), tuple(means), label, diverging=True))
    caption = f"Loss after {TOTAL} samples of every pair in all, whatever κ: mean over models with its 95 % interval."
    says = "Mean loss of both algorithms against kappa; then a map of their difference by class of models and kappa."
    return Figure("api-psdp-loss", caption, f"{says} {' '.join(seen)}", tuple(panels))


def _space(modes: Mapping[str, _Mode]) -> Figure:
    """Policies stored against κ."""
    kappas = next(iter(modes.values())).kappas
    at, ticks = spaced(kappas)
    made = [
        band(f"κ-PSDP, {steps} steps", at, [(float(iterations(k, steps)),) * 3 for k in kappas], dashed=True)
        for steps in FORGOTTEN
    ]
    best = [band(f"κ-PSDP, v {values}", at, [mean_interval(c) for c in mode.kept.T], floor=0.5) for values, mode in modes.items()]
    lines = (band("κ-API", at, [(1.0, 1.0, 1.0)] * len(kappas)), *best, *made)
    panel = Lines("What has to be stored", "κ", "policies", lines, y_log=True, ticks=ticks)
    counts = ", ".join(f"{iterations(k, 'few')} to {iterations(k, 'many')} at kappa = {k:g}" for k in kappas)
    return Figure(
        "api-psdp-space",
        "A larger κ makes κ-PSDP's policy smaller: fewer steps, fewer policies. Full lines: the steps that did better, pruned.",
        f"The number of stored policies against kappa: one for kappa-API; for kappa-PSDP {counts}.",
        (panel,),
    )


def _table(modes: Mapping[str, _Mode]) -> Table:
    """All numbers by κ."""
    rows = []
    for values, mode in modes.items():
        for i, kappa in enumerate(mode.kappas):
            api, psdp = mode.api[:, i], mode.psdp[:, i]
            counts = [iterations(kappa, steps[i]) for steps in (mode.api_steps, mode.psdp_steps)]
            gap = str(mean_interval(psdp - api)) if kappa < 1.0 else "the same"
            losses = (f"{api.mean():.3g} % ({counts[0]})", f"{psdp.mean():.3g} % ({counts[1]})")
            rows.append((values, f"{kappa:g}", *losses, gap, f"{mode.kept[:, i].mean():.3g}"))
    head = ("v", "κ", "loss of κ-API (steps)", "loss of κ-PSDP (steps)", "difference, points", "κ-PSDP stores")
    n = max(len(mode.api) for mode in modes.values())
    return Table(
        f"Equal samples ({TOTAL} of every pair in all), each with the number of steps that did better; {n} models",
        head,
        tuple(rows),
    )


def _advice(modes: Mapping[str, _Mode]) -> str:
    """One sentence for who has to choose."""
    if not modes:
        return "No records yet."
    mode = next(iter(modes.values()))
    losses = sum(np.minimum(mode.api, mode.psdp).mean(axis=0) for mode in modes.values())
    best = mode.kappas[int(np.argmin(losses))]
    prefer = "κ = 1, where the two are one algorithm" if best == 1.0 else f"κ = {best:g}"
    better = [f"{family} with v {values}" for (values, family), gap in _classes(modes).items() if gap.high < 0.0]
    pick = f"; κ-PSDP did better on {', '.join(better)}" if better else ""
    return f"With a fixed number of samples in all take {prefer}; at a smaller κ κ-API is simpler and stores one policy{pick}."


EXPERIMENT = Experiment(
    name="api-psdp",
    title="κ-API against κ-PSDP",
    question="At equal samples, does κ-PSDP lose less than κ-API, and how many policies must it store for that?",
    claim="κ-PSDP has the better bound, and storing fewer policies as κ grows is its advantage over PSDP (Theorem 6 and after).",
    settings=settings,
    seeds=seeds,
    run=one,
    analyse=analyse,
)
