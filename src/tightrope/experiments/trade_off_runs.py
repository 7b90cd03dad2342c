"""What E4 runs: κ-API and κ-PSDP with three kinds of oracles, every κ with the same budget, on one random model."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tightrope import theory
from tightrope.approximate import LSPI, ApproximateVI, ExactValue, KappaAPI, KappaPSDP, LSTDValue, SampledModel, run
from tightrope.approximate.features import aggregated
from tightrope.experiments.experiment import Outcome, part, short
from tightrope.experiments.families import GAMMA, draw, uniform
from tightrope.model.policy import Policy
from tightrope.operators import value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.approximate import Algorithm, Run
    from tightrope.approximate.problem import Evaluator, Oracle, Problem
    from tightrope.experiments.experiment import Setting
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray

GRIDS = {"coarse": (0.0, 0.5, 0.9, 1.0), "fine": (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)}
ALGORITHMS: dict[str, Callable[..., Algorithm]] = {"API": KappaAPI, "PSDP": KappaPSDP}
#: Few samples of every pair; few samples and features; few backups of a model that is known.
SAMPLED, FITTED, HURRIED = "sampled model", "fitted", "short of time"
#: The oracles with the models they are tried on: Garnets with two successors a pair, and slippery mazes. These, the budgets and
#: the numbers of iterations were settled after pilot runs: on Garnets, tried first, an oracle short of time had no error to speak
#: of and no κ in between was seen to be best; mazes came in then. So a count of comparisons is no frequency of anything.
PLACES = ((SAMPLED, "sparse"), (SAMPLED, "maze"), (FITTED, "maze"), (HURRIED, "maze"))
IN_ALL, EACH = "in all", "each call"
#: Samples of every pair, or backups of every state, that a whole run may use, and that each call of the oracle may use.
#: Totals have many divisors, so that they can be spread over calls without a remainder.
TOTAL, CALL = {SAMPLED: 60, FITTED: 60, HURRIED: 12}, {SAMPLED: 5, FITTED: 5, HURRIED: 3}
#: Models with smaller numbers were looked at in the pilot runs; none of them is used again.
FRESH = 1_000
#: Iterations when every call has the same budget.
CALLS = 6
#: What may be left of the start of κ-PSDP, whose result ends with it; each is a number of iterations to choose from.
LEFT = {"coarse": (0.1,), "fine": (0.2, 0.02)}
#: κ-API forgets its start sooner than the rate says: these parts of the iterations that leave 2 %.
PARTS = (1 / 8, 0.4)


class Arm(NamedTuple):
    """One way to spend the budget: an algorithm, a κ and a number of iterations."""

    algorithm: str
    kappa: float
    iterations: int


def settings(quick: bool) -> list[Setting]:
    """Every oracle with and without errors in v, with the budget in all and at each call."""
    return [
        {"budget": budget, "oracle": oracle, "family": family, "noise": noise, "grid": "coarse" if quick else "fine"}
        for budget in (IN_ALL, EACH)
        for oracle, family in PLACES
        for noise in (False, True)
    ]


def seeds(quick: bool) -> int:
    """Models of each setting."""
    return 6 if quick else 200


def arms(setting: Setting) -> list[Arm]:
    """What is compared, in the order of the lists of a record.

    Each κ < 1 may spread a budget in all over one of a few numbers of iterations; with κ = 1 the first call solves the problem.
    """
    grid = setting["grid"]
    if setting["budget"] == EACH:
        return [Arm("API", kappa, 1 if kappa == 1.0 else CALLS) for kappa in GRIDS[grid]]
    found = []
    for algorithm in ALGORITHMS:
        for kappa in GRIDS[grid]:
            if algorithm == "API":
                wanted = [part * theory.iterations_needed(GAMMA, kappa, 0.02, 1.0) for part in PARTS]
            else:
                wanted = [theory.iterations_needed(GAMMA, kappa, left, 1.0) for left in LEFT[grid]]
            counts = {1 if kappa == 1.0 else _divisor(_for_oracle(setting, kappa), count) for count in wanted}
            found += [Arm(algorithm, kappa, count) for count in sorted(counts)]
    return found


def _divisor(total: int, wanted: float) -> int:
    """The divisor of a total that is nearest to what is wanted, by its logarithm."""
    divisors = [n for n in range(1, total + 1) if total % n == 0]
    return min(divisors, key=lambda n: (abs(math.log(n / wanted)), n))


def _shares(setting: Setting, kappa: float) -> bool:
    """Whether learning v takes half of the samples in all: not with κ = 1, which uses no v, and not from backups."""
    return bool(setting["noise"]) and kappa < 1.0 and setting["oracle"] != HURRIED


def _for_oracle(setting: Setting, kappa: float) -> int:
    """The part of the budget in all that the oracle gets."""
    return TOTAL[setting["oracle"]] // (2 if _shares(setting, kappa) else 1)


def one(setting: Setting, seed: int) -> Outcome:
    """One model: the loss and the realised δ of every arm, and the fewest and most samples that any arm drew of a pair.

    Losses and δ are in units of what acting at random loses; ν and μ are uniform. δ is the mean over iterations, and beside it,
    where each call has the same budget, that of the first call, at the value of acting at random.
    """
    begin = time.perf_counter()
    mdp = draw(setting["family"], FRESH + seed)
    found = [spend(mdp, setting, arm, seed) for arm in arms(setting)]
    start = found[0].rows[0].loss
    drawn = [each.samples / _live(mdp) for each in found]
    result: dict[str, Any] = {
        "loss": [part(each.loss / start) for each in found],
        "delta": [part(float(np.mean(each["delta"][1:])) / start) for each in found],
        "drawn": [short(min(drawn)), short(max(drawn))],
    }
    if setting["budget"] == EACH:
        result["first"] = [part(each.rows[1].delta / start) for each in found]
    return Outcome(result, {"seconds": time.perf_counter() - begin})


def spend(mdp: MDP, setting: Setting, arm: Arm, seed: int) -> Run:
    """The run of one arm, its budget spread evenly over its iterations."""
    oracle, evaluate = _parts(mdp, setting, arm)
    algorithm = ALGORITHMS[arm.algorithm](arm.kappa, oracle, iterations=arm.iterations, evaluate=evaluate)
    return run(mdp, algorithm, seed=seed, mu=uniform(mdp), show_progress=False)


def _live(mdp: MDP) -> int:
    """The pairs that can be learned about: nothing happens after the end of an episode."""
    return int(np.count_nonzero(~mdp.terminal[mdp.pairs.states]))


def _parts(mdp: MDP, setting: Setting, arm: Arm) -> tuple[Oracle, Evaluator]:
    """The oracle and the evaluation with their shares of the budget."""
    kind, L, in_all = setting["oracle"], _live(mdp), setting["budget"] == IN_ALL
    each = _for_oracle(setting, arm.kappa) // arm.iterations if in_all else CALL[kind]
    oracle: Oracle = SampledModel(each)
    if kind == HURRIED:
        oracle = ApproximateVI(each - 1)  # the last backup finds the greedy policy
    elif kind == FITTED:
        # LSPI keeps a fifth of its samples to choose among its iterates; with κ = 0 there is one only, and nothing to choose.
        samples = each * L * 5 // 4 if arm.kappa == 0.0 else each * L
        oracle = LSPI(features=aggregated(_groups(mdp)), samples=samples, rounds=6)
    if not setting["noise"]:
        return oracle, ExactValue()
    if arm.kappa == 1.0 and kind != HURRIED:
        return oracle, _not_needed
    # The value of the first policy is learned too, so that there is one evaluation more than there are calls.
    return oracle, LSTDValue(samples=TOTAL[SAMPLED] // 2 * L // (arm.iterations + 1) if in_all else CALL[SAMPLED] * L)


def _groups(mdp: MDP) -> Any:
    """States in pairs that are worth about the same to who acts at random: half as many features as states, not bad ones."""
    v = value(mdp, Policy.uniform(mdp))
    return np.argsort(np.argsort(v, kind="stable"), kind="stable") // 2


def _not_needed(problem: Problem, pi: Policy, nu: FloatArray, rng: np.random.Generator) -> FloatArray:  # noqa: ARG001  (the protocol)
    """With κ = 1 no value is ever used, and none is paid for."""
    return np.zeros(problem.n_states)
