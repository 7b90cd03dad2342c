"""E1: Theorem 1 put to the test: which soft steps towards a κ- or h-greedy policy make some state worse, how often, how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.engine import optimal
from tightrope.experiments.experiment import Analysis, Answer, Experiment, Outcome, Table, Verdict, generator, short
from tightrope.experiments.families import FAMILIES, draw
from tightrope.experiments.figure import Figure, Heat, Lines, band
from tightrope.experiments.statistics import proportion_interval
from tightrope.experiments.tour import BELOW
from tightrope.kernels.bounds import EPS
from tightrope.model.policy import Policy
from tightrope.model.problems import hesitant, tightrope
from tightrope.operators import T_pi, h_greedy, kappa_greedy, value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tightrope.experiments.experiment import Record, Setting
    from tightrope.experiments.figure import Panel
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray

ROPE = "tightrope"
#: The step sizes of every record, in order; each κ below 1 is one of them, so that the boundary itself is tried.
ALPHAS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
KAPPAS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
HORIZONS = (2, 4, 8)
#: Policies tried in each random model, half of them deterministic.
POLICIES = 20
#: What falling off the rope costs at κ = 1, where every cost would do.
DEAREST = 100.0
#: Fewer random models than this leave the question open.
ENOUGH = 10


def settings(quick: bool) -> list[Setting]:
    """Every class of models with every lookahead."""
    families = (ROPE, "dense", "sparse", "deterministic") if quick else (ROPE, *FAMILIES)
    ahead = [{"kappa": k} for k in ((0.5, 0.9, 1.0) if quick else KAPPAS)] + [{"h": h} for h in ((4,) if quick else HORIZONS)]
    return [{"family": family, **each} for family in families for each in ahead]


def seeds(quick: bool) -> int:
    """Models of each class, the same for every lookahead."""
    return 8 if quick else 45


def one(setting: Setting, seed: int) -> Outcome:
    """One model: of `n` policies, how many steps of each size made some state worse, and the deepest loss of all.

    A loss is a part of max(v* - v^π), what there was to gain.
    """
    mdp, policies = _rope(setting, seed) if setting["family"] == ROPE else _random(setting["family"], seed)
    ahead: Callable[[FloatArray], Policy] = (
        (lambda v: kappa_greedy(mdp, v, setting["kappa"])) if "kappa" in setting else (lambda v: h_greedy(mdp, v, setting["h"]))
    )
    best = value(mdp, optimal(mdp, tol=0.0).policy)
    depth = np.stack([_depths(mdp, pi, ahead, best) for pi in policies])
    deepest = [short(x) for x in depth.max(axis=0)]
    return Outcome({"n": len(policies), "worse": np.count_nonzero(depth, axis=0).tolist(), "deepest": deepest}, {})


def _rope(setting: Setting, seed: int) -> tuple[MDP, list[Policy]]:
    """The hardest rope that the lookahead still walks (an h-greedy policy, and κ = 1, walk any), at a random discount."""
    gamma = float(generator(ROPE, {}, seed).uniform(0.3, 0.99))
    kappa = setting.get("kappa", 1.0)
    mdp = tightrope(DEAREST if kappa == 1.0 else kappa / (1.0 - kappa) * (1.0 - BELOW), gamma)
    return mdp, [hesitant(mdp)]


def _random(family: str, seed: int) -> tuple[MDP, list[Policy]]:
    mdp = draw(family, seed)
    rng = generator("theorem-1", {"family": family}, seed)
    first, counts = mdp.pairs.first, mdp.pairs.counts
    pure = [Policy.of_rows(mdp.pairs, first[:-1] + rng.integers(counts)) for _ in range(POLICIES // 2)]
    lots = rng.exponential(size=(POLICIES - len(pure), mdp.n_pairs))
    share = lots / np.repeat(np.add.reduceat(lots, first[:-1], axis=1), counts, axis=1)
    return mdp, pure + [Policy.stochastic(mdp, weights) for weights in share]


def _depths(mdp: MDP, pi: Policy, ahead: Callable[[FloatArray], Policy], best: FloatArray) -> FloatArray:
    """The largest loss of any state for every step size [len(ALPHAS)], as a part of what there was to gain; 0 for no loss.

    v' - v = α(I - γP')^-1 (T^{π'}v - v) with P' = (1-α)P^π + αP^{π'}.
    """
    v = value(mdp, pi)
    gain = float((best - v).max())
    target = ahead(v)
    reached = T_pi(mdp, target, v)
    alphas = np.array(ALPHAS)[:, None]
    old, new = (policy.induced(mdp)[0].toarray() for policy in (pi, target))
    mixed = (1.0 - alphas[..., None]) * old + alphas[..., None] * new
    change = alphas * np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * mixed, (reached - v)[:, None])[..., 0]
    # v is right to a few ulps of its size, which (I - γP)^-1 multiplies by at most 1/(1-γ).
    rounding = 64.0 * (mdp.width + 4) * EPS * max(float(np.abs(v).max()), mdp.reward_size) / (1.0 - mdp.gamma)
    loss = -change.min(axis=1)
    return np.where(loss > rounding, loss / max(gain, rounding), 0.0)


class Count(NamedTuple):
    """Steps of one kind: how many, how many of them made some state worse, and how deep the deepest loss was."""

    n: int = 0
    worse: int = 0
    deepest: float = 0.0

    @property
    def share(self) -> float:
        """The part of the steps that made some state worse."""
        return self.worse / self.n if self.n else float("nan")


def analyse(records: Sequence[Record]) -> Analysis:
    """Theorem 1 holds where no safe step made a state worse and every unsafe one on the Tightrope did."""
    rope = [record for record in records if record.setting["family"] == ROPE]
    others = [record for record in records if record.setting["family"] != ROPE]
    models = {(record.setting["family"], record.seed): False for record in others}
    for record in others:
        models[record.setting["family"], record.seed] |= count([record], safe=True).worse > 0
    broken = proportion_interval(sum(models.values()), len(models))
    safe, falls, unsafe = count(records, safe=True), count(rope, safe=False), count(others, safe=False)
    if safe.worse or falls.worse < falls.n:
        answer = Answer.NO
    elif len(models) < ENOUGH or not falls.n:
        answer = Answer.OPEN
    else:
        answer = Answer.YES
    sentence = (
        f"{_of(safe)} steps with α ≥ κ (α = 1 for h > 1) made a state worse; below that, {_of(falls)} did on the Tightrope "
        f"and {_of(unsafe)} in random models ({_percent(unsafe.share)}), where the deepest loss was "
        f"{_percent(unsafe.deepest)} of what there was to gain."
    )
    if answer is Answer.OPEN:
        sentence = f"Only {len(models)} random models and {falls.n} unsafe steps on the Tightrope so far. {sentence}"
    verdict = Verdict(answer, sentence, "part of random models in which a step with α ≥ κ made some state worse", *broken)
    advice = (
        "Keep α ≥ κ and every step improves every state; to take smaller steps use κ = 0 or the cautious target "
        "(`tr.cautious`), because a small step towards a far-sighted policy can pass through a worse one."
    )
    if answer is Answer.NO:
        advice = "The records contradict Theorem 1: look at the failing records before trusting a soft step of any size."
    return Analysis(verdict, (_maps(rope, others), _by_family(others)), (_table(rope, others),), advice)


def count(records: Sequence[Record], *, safe: bool | None = None, alpha: float | None = None) -> Count:
    """The steps of these records; only those that Theorem 1 calls safe, or not, if `safe` says so, or of one size."""
    n, worse, deepest = 0, 0, 0.0
    for record in records:
        least = record.setting.get("kappa", 1.0)
        for size, failed, depth in zip(ALPHAS, record.result["worse"], record.result["deepest"], strict=True):
            if safe in (None, size >= least) and alpha in (None, size):
                n, worse, deepest = n + record.result["n"], worse + failed, max(deepest, depth)
    return Count(n, worse, deepest)


def _maps(rope: list[Record], others: list[Record]) -> Figure:
    """Where steps fail, on the Tightrope and elsewhere."""
    panels: list[Panel] = []
    for title, group in (("On the Tightrope", rope), ("In random models", others)):
        for key, label in (("kappa", "lookahead κ"), ("h", "lookahead h")):
            rows = sorted({record.setting[key] for record in group if key in record.setting}, reverse=True)
            alike = [[record for record in group if record.setting.get(key) == row] for row in rows]
            z = tuple(tuple(count(each, alpha=alpha).share for alpha in ALPHAS) for each in alike)
            ticks, names = (tuple(f"{x:g}" for x in values) for values in (ALPHAS, rows))
            if rows:
                panels.append(Heat(title, "step size α", label, ticks, names, z, "part of steps that fail"))
    return Figure(
        "theorem-1-map",
        "Steps (1-α)π + απ' that made some state worse. Theorem 1 allows none at α ≥ κ, and for h > 1 none at α = 1.",
        f"Maps over step size and lookahead. Where Theorem 1 calls a step safe, {_of(count(rope + others, safe=True))} fail; "
        f"elsewhere {_of(count(rope, safe=False))} on the Tightrope and {_of(count(others, safe=False))} in random models.",
        tuple(panels),
    )


def _by_family(others: list[Record]) -> Figure:
    """How often and how deep the most far-sighted steps fail, class by class."""
    top = max((record.setting.get("kappa", 0.0) for record in others), default=1.0)
    often, deep = [], []
    for family in _families(others):
        group = [record for record in others if record.setting["family"] == family and record.setting.get("kappa") == top]
        counts = [count(group, alpha=alpha) for alpha in ALPHAS]
        if not group:
            continue
        # A model fails if one of its policies does: models are independent, policies of one model are not.
        hits = [sum(record.result["worse"][i] > 0 for record in group) for i in range(len(ALPHAS))]
        often.append(band(family, ALPHAS, [proportion_interval(hit, len(group)) for hit in hits]))
        deep.append(band(family, ALPHAS, [(each.deepest,) * 3 for each in counts]))
    return Figure(
        "theorem-1-random",
        f"Random models at κ = {top:g}: in how many of them one of {POLICIES} random policies led to a step that made a state "
        "worse (with 95 % intervals), and the deepest loss.",
        "Lines against the step size, one a class of models: "
        + "; ".join(f"{line.label} from {line.y[0]:.2g} to {line.y[-1]:.2g}" for line in often)
        + ".",
        (
            Lines("How often", "step size α", "part of models with a failing step", tuple(often)),
            Lines("How deep", "step size α", "deepest loss / possible gain", tuple(deep)),
        ),
    )


def _table(rope: list[Record], others: list[Record]) -> Table:
    rows = []
    for family in [ROPE] * bool(rope) + _families(others):
        group = [record for record in rope + others if record.setting["family"] == family]
        safe, unsafe = count(group, safe=True), count(group, safe=False)
        models = str(len({record.seed for record in group}))
        rows.append((family, models, _of(safe), _of(unsafe), _percent(unsafe.share), _percent(unsafe.deepest)))
    head = ("models", "number", "failed at α ≥ κ", "failed below", "that is", "deepest loss / possible gain")
    return Table("Steps that made some state worse, by class of models.", head, tuple(rows))


def _families(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(record.setting["family"] for record in records))


def _of(steps: Count) -> str:
    return f"{steps.worse:,} of {steps.n:,}"


def _percent(part: float) -> str:
    return f"{100.0 * part:.3g} %"


EXPERIMENT = Experiment(
    name="theorem-1",
    title="When is a soft step safe?",
    question="Does a step of size α towards a κ-greedy policy ever make a state worse when α ≥ κ, and does it when α < κ?",
    claim="Theorem 1: v' ≥ v in every MDP if and only if α ≥ κ; for the h-greedy policy with h > 1, if and only if α = 1.",
    settings=settings,
    seeds=seeds,
    run=one,
    analyse=analyse,
)
