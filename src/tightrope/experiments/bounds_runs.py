"""The runs of E5: κ-API and κ-PSDP with oracles that err in four ways, each held against its theorem after every iteration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tightrope import theory
from tightrope.approximate import ApproximateVI, KappaAPI, KappaPSDP, SampledModel, WorstCase, run
from tightrope.experiments.experiment import Outcome, generator, short
from tightrope.experiments.families import FAMILIES, GAMMA, draw, uniform
from tightrope.model.policy import Policy
from tightrope.operators import kappa_greedy, value

if TYPE_CHECKING:
    from tightrope.approximate import Oracle, Run
    from tightrope.experiments.experiment import Setting
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray

GRIDS = {"coarse": (0.0, 0.8, 1.0), "fine": (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)}
ALGORITHMS: dict[str, type[KappaAPI | KappaPSDP]] = {"kappa-API": KappaAPI, "kappa-PSDP": KappaPSDP}
BOUNDS = {"kappa-API": theory.kappa_api_bound, "kappa-PSDP": theory.kappa_psdp_bound}
SHOWN = {"kappa-API": "κ-API", "kappa-PSDP": "κ-PSDP"}
#: How an oracle errs: as badly as δ allows; because it sees few samples, as many for every κ in all, or at every step; or
#: because it has no time, and stops value iteration after a sweep.
WORST, IN_ALL, EACH, HURRIED = "worst case", "samples in all", "samples a step", "a sweep a step"
#: Those on which advice is sought, with the headings of their pictures.
ADVISED = {
    IN_ALL: "The same samples in all",
    EACH: "The same samples at every step",
    HURRIED: "One sweep at every step",
}
#: Samples of every pair, in all and at every step.
TOTAL, STEP = 60, 4
#: A run ends when the start counts for no more than this.
FORGOTTEN = 0.05
#: Families whose models are not learnt exactly from one sample of every pair.
RANDOM = ("dense", "sparse", "maze", "queue")
#: Rounding, relative to what the initial policy loses.
ROUNDING = 1e-9


def settings(quick: bool) -> list[Setting]:
    """Every class of models with every kind of error."""
    kinds = {WORST: tuple(FAMILIES), IN_ALL: RANDOM, EACH: RANDOM, HURRIED: ("deterministic", *RANDOM)}
    if quick:
        kinds = {WORST: ("sparse", "maze", "corridor")} | dict.fromkeys(ADVISED, ("sparse", "maze"))
    grid = "coarse" if quick else "fine"
    return [
        {"oracle": oracle, "family": family, "algorithm": algorithm, "grid": grid}
        for oracle, families in kinds.items()
        for family in families
        for algorithm in ALGORITHMS
    ]


def seeds(quick: bool) -> int:
    """Models of each class."""
    return 3 if quick else 25


def iterations(kappa: float) -> int:
    """How many iterations the rate ξ asks for until the start counts for 5 %."""
    return int(theory.iterations_needed(GAMMA, kappa, FORGOTTEN, 1.0))


def one(setting: Setting, seed: int) -> Outcome:
    """One model: loss and bound at every κ, as parts of what the initial policy loses, and the closest that they came."""
    mdp = draw(setting["family"], seed)
    return Outcome(_worst(mdp, setting, seed) if setting["oracle"] == WORST else _practical(mdp, setting, seed), {})


def _worst(mdp: MDP, setting: Setting, seed: int) -> dict[str, object]:
    """From the worst policy of all, with an oracle that loses δ wherever ν looks least, for a δ of any size."""
    rng = generator("bounds", {"family": setting["family"]}, seed)
    mu = mdp.start
    nu = 0.9 * rng.dirichlet(np.ones(mdp.n_states)) + 0.1 * uniform(mdp)
    pi0 = kappa_greedy(mdp.reshaped(-mdp.r, mdp.gamma), np.zeros(mdp.n_states), 1.0)
    coefficients = theory.concentrability(mdp, mu, nu, threads=1)
    lost = value(mdp, coefficients.pi_star) - value(mdp, pi0)
    start = float(mu @ lost)
    delta = start * 10.0 ** rng.uniform(-4.0, -1.0)
    judge = _Judge(setting["algorithm"], coefficients, float(lost.max()), start)
    for kappa in GRIDS[setting["grid"]]:
        algorithm = ALGORITHMS[setting["algorithm"]](kappa, WorstCase(delta), nu=nu, iterations=iterations(kappa))
        judge.add(run(mdp, algorithm, pi0=pi0, mu=mu, show_progress=False), shown=True)
    return judge.result() | {"delta": short(delta / start)}


def _practical(mdp: MDP, setting: Setting, seed: int) -> dict[str, object]:
    """An oracle short of samples or of time; δ(κ) for the advice comes from runs of their own where there is chance in it."""
    mu, kappas, name = uniform(mdp), GRIDS[setting["grid"]], setting["algorithm"]
    coefficients = theory.concentrability(mdp, mu, mu, threads=1)
    lost = value(mdp, coefficients.pi_star) - value(mdp, Policy.uniform(mdp))
    judge = _Judge(name, coefficients, float(lost.max()), float(mu @ lost))
    deltas = {}
    for kappa in kappas:
        algorithm = ALGORITHMS[name](kappa, _oracle(setting["oracle"], kappa), iterations=iterations(kappa))
        real = run(mdp, algorithm, mu=mu, seed=2 * seed + 1, show_progress=False)
        judge.add(real, shown=True)
        deltas[kappa] = real.delta
        if setting["oracle"] != HURRIED:
            pilot = run(mdp, algorithm, mu=mu, seed=2 * seed, show_progress=False)
            judge.add(pilot, shown=False)
            deltas[kappa] = pilot.delta
    advice = theory.best_kappa(coefficients, deltas, bound=BOUNDS[name], V=judge.V, cost=_cost, budget=1.0)
    return judge.result() | {"advice": advice.kappa, "delta": [short(delta / judge.start) for delta in deltas.values()]}


def _oracle(kind: str, kappa: float) -> Oracle:
    if kind == HURRIED:
        return ApproximateVI(1)
    return SampledModel(max(1, round(TOTAL / iterations(kappa))) if kind == IN_ALL else STEP)


def _cost(kappa: float) -> float:
    """The part of a budget of one that an iteration takes."""
    return 1.0 / iterations(kappa)


class _Judge:
    """Holds the runs of one algorithm on one model against its theorem, after every iteration."""

    def __init__(self, algorithm: str, coefficients: theory.Concentrability, V: float, start: float) -> None:
        self.bound, self.coefficients, self.V, self.start = BOUNDS[algorithm], coefficients, V, start
        #: Loss over bound at the worst of all moments, with the library's bound and with the paper's as it is printed.
        self.closest = self.printed = 0.0
        self.losses: list[float] = []
        self.bounds: list[float] = []

    def add(self, found: Run, *, shown: bool) -> None:
        """One run; those shown leave their last loss and bound."""
        losses = found["loss"][1:]
        guarantee = partial(self.bound, self.coefficients, found.kappa, found.delta)
        safe = np.array([guarantee(k, V=self.V).value for k in range(1, len(losses) + 1)])
        literal = np.array([guarantee(k, printed=True).statements[0].total.upper for k in range(1, len(losses) + 1)])
        self.closest = max(self.closest, self._ratio(losses, safe))
        self.printed = max(self.printed, self._ratio(losses, literal))
        if shown:
            self.losses.append(short(self._real(losses)[-1] / self.start))
            self.bounds.append(short(safe[-1] / self.start))

    def _real(self, losses: FloatArray) -> FloatArray:
        """The losses, those of rounding only as none."""
        return np.where(losses > ROUNDING * self.start, losses, 0.0)

    def _ratio(self, losses: FloatArray, bounds: FloatArray) -> float:
        """The largest loss over bound; a loss over a bound of zero counts as a million."""
        real = self._real(losses)
        return float(np.divide(real, bounds, out=np.where(real > 0.0, 1e6, 0.0), where=bounds > 0.0).max())

    def result(self) -> dict[str, object]:
        # Eight digits tell a bound that is met from one that is exceeded, and hide the last bits, which nobody promises.
        closest, printed = (float(f"{ratio:.8g}") for ratio in (self.closest, self.printed))
        return {"loss": self.losses, "bound": self.bounds, "closest": closest, "printed": printed}
