"""E2: what looking further ahead costs and saves: iterations, backups and seconds of the exact algorithms against h and κ."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope import kernels
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Outcome, Table, Verdict, generator
from tightrope.experiments.figure import Figure, Lines, band
from tightrope.experiments.statistics import Estimate, best_of, mean_interval
from tightrope.experiments.tour import rooms
from tightrope.model.problems import garnet, gridworld, queue, random_sparse_deterministic
from tightrope.planning import h_pi, kappa_lambda_pi, kappa_pi, kappa_vi, solve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tightrope.experiments.experiment import Record, Setting
    from tightrope.model.mdp import MDP
    from tightrope.planning import PolicyIteration

FAMILIES = ("gridworld", "maze", "garnet", "deterministic", "queue")
H_PI, KAPPA_PI, KAPPA_VI, KAPPA_LAMBDA_PI, ENGINE = "h-PI", "kappa-PI", "kappa-VI", "kappa-lambda-PI", "engine"
SHOWN = {H_PI: "h-PI", KAPPA_PI: "κ-PI", KAPPA_VI: "κ-VI", KAPPA_LAMBDA_PI: "κ-λ-PI, λ = (1+κ)/2"}
HORIZONS = (2, 4, 8, 16, 32, 64)
KAPPAS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)
#: The lookahead of the verdict: one for all classes, not the best of each, which would flatter it.
JUDGED = 0.9
#: The certified gap every run has to reach, relative to the value scale.
TOL = 1e-6
#: Solved this often; the fastest counts, because whatever else the machine does only adds.
TIMES = 2
#: Fewer instances of a class than this leave the question open.
ENOUGH = 3
ITERATIONS, BACKUPS, SECONDS = MEASURES = ("iterations", "backups", "seconds")


def settings(quick: bool) -> list[Setting]:
    """Every class of models, with a short and a long horizon, and every algorithm with every lookahead."""
    families, gammas, side = (("maze", "garnet", "queue"), (0.98,), 20) if quick else (FAMILIES, (0.95, 0.995), 40)
    kappas = (0.0, 0.5, 0.9, 0.99) if quick else KAPPAS
    runs: list[dict[str, object]] = [{"algorithm": H_PI, "h": h} for h in ((4, 16) if quick else HORIZONS)]
    runs += [{"algorithm": KAPPA_PI, "kappa": kappa} for kappa in (*kappas, 1.0)]
    runs += [
        {"algorithm": each, "kappa": kappa}
        for each in (KAPPA_VI, KAPPA_LAMBDA_PI)
        for kappa in kappas
        if not quick or kappa != 0.5
    ]
    runs += [{"algorithm": ENGINE}]
    return [{"family": family, "side": side, "gamma": gamma, **run} for family in families for gamma in gammas for run in runs]


def seeds(quick: bool) -> int:
    """Instances of each class, the same for every algorithm."""
    return 5 if quick else 11


def one(setting: Setting, seed: int) -> Outcome:
    """One instance solved by one algorithm on one core: iterations, backups (rows of P times a vector) and CPU seconds."""
    mdp, algorithm = instance(setting, seed), _algorithm(setting)
    kernels.tiers.compile_loops()  # or the first models would be timed in plain Python
    v0 = None if algorithm is None else np.zeros(mdp.n_states)  # where iterations are compared, all are counted from there
    taken = []
    for _ in range(TIMES):
        begun = time.process_time()
        found = solve(mdp, algorithm, tol=TOL, v0=v0, threads=1)
        taken.append(time.process_time() - begun)
    result = {ITERATIONS: found.iterations, BACKUPS: found.backups, "states": mdp.n_states, "converged": found.converged}
    return Outcome(result, {"solve": min(taken)})


def instance(setting: Setting, seed: int) -> MDP:
    """The model of this number in its class; about side² states."""
    family, side, gamma = setting["family"], setting["side"], setting["gamma"]
    rng = generator("lookahead", {"family": family, "side": side}, seed)
    slip = float(rng.uniform(0.0, 0.3))
    if family == "gridworld":
        goal, trap = rng.choice(side * side - 1, size=2, replace=False) + 1
        return gridworld(side, side, slip=slip, gamma=gamma, goals={divmod(int(goal), side): 1.0, divmod(int(trap), side): -1.0})
    if family == "maze":
        return rooms(side, 10, seed=int(rng.integers(2**31)), pools=side // 10).mdp(slip=slip, gamma=gamma)
    if family == "garnet":
        return garnet(side * side, 4, 5, gamma=gamma, seed=rng)
    if family == "deterministic":
        return random_sparse_deterministic(side * side, 3, density=0.1, gamma=gamma, seed=rng)
    slow, fast = np.sort(rng.uniform(0.1, 0.5, 2)).tolist()
    costs, holding = (0.0, float(rng.uniform(0.2, 2.0))), float(rng.uniform(0.1, 1.0))
    arrival = float(rng.uniform(0.2, 0.5))
    return queue(side * side, arrival=arrival, services=(slow, fast), service_costs=costs, holding=holding, gamma=gamma)


def _algorithm(setting: Setting) -> PolicyIteration | None:
    if setting["algorithm"] == ENGINE:
        return None
    if setting["algorithm"] == H_PI:
        return h_pi(setting["h"])
    kappa = setting["kappa"]
    if setting["algorithm"] == KAPPA_LAMBDA_PI:
        return kappa_lambda_pi(kappa, 0.5 * (1.0 + kappa))
    return kappa_pi(kappa) if setting["algorithm"] == KAPPA_PI else kappa_vi(kappa)


class Group(NamedTuple):
    """A class of models at one discount."""

    family: str
    gamma: float

    def __str__(self) -> str:
        return f"{self.family}, γ = {self.gamma:g}"


class Costs:
    """What every run cost, to be compared instance by instance."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._of: dict[tuple[Group, str, float | None], dict[int, dict[str, float]]] = {}
        for record in records:
            if record.result["converged"]:
                setting = record.setting
                key = (Group(setting["family"], setting["gamma"]), setting["algorithm"], setting.get("h", setting.get("kappa")))
                cost = {name: float(record.result[name]) for name in (ITERATIONS, BACKUPS)} | {SECONDS: record.measured["solve"]}
                self._of.setdefault(key, {})[record.seed] = cost

    @property
    def groups(self) -> list[Group]:
        """The classes in order of appearance."""
        return list(dict.fromkeys(group for group, _, _ in self._of))

    def ahead(self, algorithm: str) -> list[float]:
        """The lookaheads tried with an algorithm, rising."""
        return sorted({ahead for _, name, ahead in self._of if name == algorithm and ahead is not None})

    def ratios(self, group: Group, run: tuple[str, float | None], measure: str, plain: str | None = None) -> dict[int, float]:
        """log(cost of `run`/cost without lookahead) of the instances that have both.

        Without lookahead is κ = 0 of `plain`, by default of the same algorithm; for h-PI and the engine that is policy iteration.
        """
        base = plain or (KAPPA_PI if run[0] in (H_PI, ENGINE) else run[0])
        without = self._of.get((group, base, 0.0), {})
        costs = self._of.get((group, *run), {})
        both = [seed for seed in costs if seed in without]
        least = 1e-6  # for a clock that did not move, and for zero iterations
        return {seed: math.log(max(costs[seed][measure], least) / max(without[seed][measure], least)) for seed in both}

    def factor(self, group: Group, run: tuple[str, float | None], measure: str) -> Estimate:
        """Cost relative to no lookahead, geometric mean with its interval."""
        return factor(self.ratios(group, run, measure).values())

    def fastest(self, group: Group, runs: Iterable[tuple[str, float | None]], plain: str) -> tuple[str, float | None] | None:
        """Of these runs the one with the least seconds on average; None without data."""
        found = {run: list(self.ratios(group, run, SECONDS, plain).values()) for run in runs}
        return min((run for run, x in found.items() if x), key=lambda run: float(np.mean(found[run])), default=None)

    def runs(self, *algorithms: str) -> list[tuple[str, float | None]]:
        """All runs of these algorithms."""
        return [(name, ahead) for name in algorithms for ahead in ([None] if name == ENGINE else self.ahead(name))]


def factor(logs: Iterable[float], confidence: float = 0.95) -> Estimate:
    """The geometric mean of ratios given as logarithms, with its interval."""
    return Estimate(*(math.inf if x > 700.0 else math.exp(x) for x in mean_interval(list(logs), confidence)))


def analyse(records: Sequence[Record]) -> Analysis:
    """Looking ahead pays in a class where κ-PI at κ = 0.9 is faster than policy iteration, beyond doubt."""
    costs, judged = Costs(records), (KAPPA_PI, JUDGED)
    groups = costs.groups
    seconds = {group: costs.ratios(group, judged, SECONDS).values() for group in groups}
    # Together, all classes are judged with 95 % confidence.
    each = {group: factor(x, 1.0 - 0.05 / len(groups)) for group, x in seconds.items()}
    pays, costly = [g for g in groups if each[g].high < 1.0], [g for g in groups if each[g].low > 1.0]
    overall = {measure: factor([x for g in groups for x in costs.ratios(g, judged, measure).values()]) for measure in MEASURES}
    answer = _answer(overall[SECONDS], each.values())
    dearer = [g for g in groups if each[g].value > 1.0]
    failed = sum(not record.result["converged"] for record in records)
    sentence = (
        f"κ-PI at κ = {JUDGED:g} needs {overall[ITERATIONS]} times the iterations of policy iteration, {overall[BACKUPS]} times "
        f"its backups and {overall[SECONDS]} times its seconds. Of {len(groups)} classes of models it is faster beyond doubt in "
        f"{_list(pays)}, slower beyond doubt in {_list(costly)}, and slower on average in {_list(dearer)}. {_outright(costs)}"
        + (f" {failed} runs did not converge." if failed else "")
    )
    if not groups or min(len(x) for x in seconds.values()) < ENOUGH:
        answer = Answer.OPEN
        sentence = f"Too few instances to compare so far. {sentence}"
    quantity = f"seconds of κ-PI at κ = {JUDGED:g} relative to policy iteration, geometric mean over all instances"
    figures = (_against(costs, KAPPA_PI, "lookahead-kappa"), _against(costs, H_PI, "lookahead-h"), _others(costs))
    tables = (_table(costs), _fastest(costs))
    return Analysis(Verdict(answer, sentence, quantity, *overall[SECONDS]), figures, tables, _advice(costs))


def _answer(overall: Estimate, each: Iterable[Estimate]) -> Answer:
    """Yes or no where all instances together decide it and no class points the other way."""
    classes = list(each)
    if overall.low <= 1.0 <= overall.high and all(found.low <= 1.0 <= found.high for found in classes):
        return Answer.OPEN
    if overall.high < 1.0 and all(found.value < 1.0 for found in classes):
        return Answer.YES
    return Answer.NO if overall.low > 1.0 and all(found.value > 1.0 for found in classes) else Answer.MIXED


def _outright(costs: Costs) -> str:
    """How κ = 1, which solves the model outright, compares with every κ in between."""
    best = [costs.fastest(group, [run for run in costs.runs(KAPPA_PI) if run[1]], KAPPA_PI) for group in costs.groups]
    outright = sum(run == (KAPPA_PI, 1.0) for run in best)
    return f"Solving outright (κ = 1) was faster on average than every 0 < κ < 1 in {outright} of them."


def _advice(costs: Costs) -> str:
    """What to use, from the fastest of each kind."""
    won = [costs.fastest(group, costs.runs(*SHOWN, ENGINE), KAPPA_PI) for group in costs.groups]
    further = [run[1] for group in costs.groups if (run := costs.fastest(group, costs.runs(H_PI), KAPPA_PI)) and run[1]]
    typical = f" Among h-PI the fastest h was {np.median(further):g} in the median class." if further else ""
    return (
        "When the model is known and fits in memory, call `tr.solve(mdp)` and leave the choice to the engine: it was the fastest "
        f"of all that was tried in {won.count((ENGINE, None))} of {len(won)} classes.{typical}"
    )


def _against(costs: Costs, algorithm: str, name: str) -> Figure:
    """Costs against the lookahead, relative to policy iteration, one line a class."""
    letter, none = ("h", "h = 1") if algorithm == H_PI else ("κ", "κ = 0")
    panels = tuple(_panel(costs, algorithm, measure, measure.capitalize()) for measure in MEASURES)
    return Figure(
        name,
        f"{SHOWN[algorithm]}: cost relative to policy iteration ({none}), geometric mean over instances with 95 % intervals. "
        "Below the line looking ahead pays. A factorisation counts as one sweep of backups, so look at the (CPU) seconds too.",
        f"Cost against {letter}, a line a class of models. " + " ".join(_ends(panel) for panel in panels),
        panels,
    )


def _others(costs: Costs) -> Figure:
    panels = tuple(_panel(costs, algorithm, SECONDS, SHOWN[algorithm]) for algorithm in (KAPPA_VI, KAPPA_LAMBDA_PI))
    return Figure(
        "lookahead-others",
        "Seconds relative to κ = 0 of the same algorithm: for κ-VI that is value iteration. Below the line looking ahead pays.",
        "Seconds against kappa, a line a class of models. " + " ".join(_ends(panel) for panel in panels),
        panels,
    )


def _panel(costs: Costs, algorithm: str, measure: str, title: str) -> Lines:
    """One line a family, its discounts taken together."""
    ahead = costs.ahead(algorithm)
    lines = []
    for family in dict.fromkeys(group.family for group in costs.groups):
        alike = [group for group in costs.groups if group.family == family]
        logs = [[x for group in alike for x in costs.ratios(group, (algorithm, each), measure).values()] for each in ahead]
        seen = [i for i, x in enumerate(logs) if x]
        if seen:
            lines.append(band(family, seen, [factor(logs[i]) for i in seen], floor=1e-4))
    label, ticks = f"{measure} / without lookahead", tuple(f"{each:g}" for each in ahead)
    x_label = "lookahead h" if algorithm == H_PI else "lookahead κ"
    return Lines(title, x_label, label, tuple(lines), y_log=True, ticks=ticks, across=((1.0, "no lookahead"),))


def _ends(panel: Lines) -> str:
    """Where the lines of a panel end, in words."""
    last = [line.y[-1] for line in panel.series]
    return f"{panel.title}: at the far end {min(last):.2g} to {max(last):.2g} of the cost without lookahead." if last else ""


def _table(costs: Costs) -> Table:
    rows = []
    for group in costs.groups:
        cells = [str(costs.factor(group, (KAPPA_PI, JUDGED), measure)) for measure in MEASURES]
        rows.append((str(group), str(len(costs.ratios(group, (KAPPA_PI, JUDGED), SECONDS))), *cells))
    head = ("models", "instances", *(f"{measure} / those of PI" for measure in MEASURES))
    return Table(f"κ-PI at κ = {JUDGED:g} against policy iteration: geometric means with 95 % intervals.", head, tuple(rows))


def _fastest(costs: Costs) -> Table:
    rows = []
    for group in costs.groups:
        best = [(name, costs.fastest(group, costs.runs(name), KAPPA_PI)) for name in (*SHOWN, ENGINE)]
        cells = [
            f"{_name(run)}{costs.factor(group, run, SECONDS).value:.2g}{_doubt(costs, group, name)}" if run else "-"
            for name, run in best
        ]
        winner = costs.fastest(group, costs.runs(*SHOWN, ENGINE), KAPPA_PI)
        rows.append((str(group), *cells, winner[0].replace("kappa", "κ").replace("lambda", "λ") if winner else "-"))
    caption = (
        "The fastest lookahead of each algorithm and its seconds relative to none (to policy iteration for h-PI and the engine). "
        "A ~ means that another lookahead cannot be told from it."
    )
    return Table(caption, ("models", *SHOWN.values(), "engine", "fastest of all"), tuple(rows))


def _name(run: tuple[str, float | None]) -> str:
    return "" if run[1] is None else f"{'h' if run[0] == H_PI else 'κ'} = {run[1]:g}: "


def _doubt(costs: Costs, group: Group, algorithm: str) -> str:
    """A mark where the fastest lookahead is not clearly the fastest."""
    columns = [costs.ratios(group, run, SECONDS) for run in costs.runs(algorithm)]
    shared = sorted(set.intersection(*(set(column) for column in columns)))
    if len(columns) < 2:
        return ""
    table = [[column[seed] for column in columns] for seed in shared]
    clear = len(shared) >= ENOUGH and best_of(table, generator("lookahead", {"algorithm": algorithm}, 0)).clear
    return "" if clear else " ~"


def _list(groups: Sequence[Group]) -> str:
    return f"{len(groups)} ({'; '.join(str(group) for group in groups)})" if groups else "none"


EXPERIMENT = Experiment(
    name="lookahead",
    title="Does looking further ahead pay when planning?",
    question="Do exact algorithms that look further ahead, by h or κ, need fewer iterations, fewer backups and less time?",
    claim="Section 3: an iteration of h-PI contracts by γ^h and one of κ-PI by ξ = γ(1-κ)/(1-γκ) ≤ γ; each of them is harder.",
    settings=settings,
    seeds=seeds,
    run=one,
    analyse=analyse,
)
