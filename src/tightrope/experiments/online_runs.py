"""What E3 runs: the problems, the learners that are compared, and one run of one of them."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.experiments.experiment import Outcome, part
from tightrope.experiments.families import draw
from tightrope.model.policy import Policy
from tightrope.model.problems import garnet, gridworld, hesitant, tightrope
from tightrope.online import MayGetStuck, OnlineKappaPI, QLearning, StepSchedule, learn, resume
from tightrope.operators import T_kappa, q_value, value

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.experiments.experiment import Setting
    from tightrope.model.mdp import MDP
    from tightrope.online import OnlineState

LAKE = """
S...
.X.X
...X
X..G
"""
#: What is learned, by number: Garnets and mazes are other ones for every number.
PROBLEMS: dict[str, Callable[[int], MDP]] = {
    "tightrope": lambda _: tightrope(2.0, 0.9),
    "steep tightrope": lambda _: tightrope(20.0, 0.9),
    "garnet": lambda seed: garnet(30, 4, 4, gamma=0.95, seed=seed),
    "lake": lambda _: gridworld(text=LAKE, slip=2 / 3, gamma=0.95, trap_reward=0.0),
    "maze": lambda seed: draw("maze", seed),
}
#: Those that begin with the hesitant policy, of which everything is known.
ROPES = ("tightrope", "steep tightrope")
#: Up to here the loss where one begins is kept as well, for the ropes: what happens to it happens early.
EARLY = 10_000
SLOW = {
    "1/(n+1)": StepSchedule.harmonic(1.0),
    "1/(n+20)": StepSchedule.harmonic(20.0),
    "n^-0.85": StepSchedule(0.85),
    "n^-0.7": StepSchedule(0.7),
}
FAST = {"n^-0.6": StepSchedule(0.6), "n^-0.8": StepSchedule(0.8)}
#: Of every comparison but those that vary them; and small steps, which Theorem 1 is about.
USUAL, SMALL = "n^-0.85", "1/(n+20)"
KAPPAS = (0.0, 0.5, 0.9, 1.0)
#: The κ that the verdict is about and the exploration of all comparisons. Problems and step sizes were settled after pilot runs
#: (with small steps on the tightropes Algorithm 1 looked far worse there than it is), which used seeds below `FRESH`.
KAPPA, EXPLORE = 0.9, 0.2
FRESH = 1_000
EXPLORES = (0.0, 0.05, EXPLORE, 0.5)


@dataclass(frozen=True)
class Choice:
    """A learner: Algorithm 1 with its κ, or Q-learning, which has none."""

    kappa: float | None
    cautious: bool = True
    fast: str = "n^-0.6"
    slow: str = USUAL
    explore: float = EXPLORE

    def on(self, problem: str) -> dict[str, Any]:
        """The setting of this learner on a problem, without the number of samples."""
        shared = {"problem": problem, "fast": self.fast, "explore": self.explore}
        if self.kappa is None:
            return {**shared, "learner": "Q-learning"}
        return {**shared, "learner": "Algorithm 1", "kappa": self.kappa, "cautious": self.cautious, "slow": self.slow}

    def __str__(self) -> str:
        parts = ["Q-learning" if self.kappa is None else f"κ = {self.kappa:g}"]
        parts += [] if self.cautious else ["not cautious"]
        parts += [] if self.explore == EXPLORE else [f"{self.explore:.0%} exploration"]
        parts += [] if self.slow == USUAL else [f"policy steps {self.slow}"]
        parts += [] if self.fast == "n^-0.6" else [f"value steps {self.fast}"]
        return ", ".join(parts)


#: The race, and what is varied beside it.
RACE = (*(Choice(kappa) for kappa in KAPPAS), Choice(None))
CAREFUL = Choice(KAPPA, slow=SMALL)
BOLD = tuple(Choice(kappa, cautious=False, slow=SMALL) for kappa in KAPPAS[1:])
EXPLORING = tuple(Choice(kappa, explore=e) for e in EXPLORES if e != EXPLORE for kappa in (KAPPA, None))
STEPPING = tuple(Choice(KAPPA, slow=name) for name in SLOW if name != USUAL)
TRACKING = (Choice(KAPPA, fast="n^-0.8"), Choice(None, fast="n^-0.8"))
EVERY = (*RACE, *BOLD, *EXPLORING, *STEPPING, *TRACKING)
#: The learners of the quick form.
FEW = (*RACE, BOLD[1], *EXPLORING[:2], *EXPLORING[4:], CAREFUL)


def points(samples: int) -> list[int]:
    """The numbers of samples at which losses are kept: 100, and every time about twice as many."""
    ends = np.round(10.0 ** np.arange(2.0, np.log10(samples) + 1e-3, 0.3)).astype(int)
    return [int(n) for n in ends if n <= samples]


def settings(quick: bool) -> list[Setting]:
    """Every problem with every learner; the quick form leaves out the mazes and most of what is varied."""
    problems = [name for name in PROBLEMS if not (quick and name == "maze")]
    samples, choices = (10**5, FEW) if quick else (round(10**5.6), EVERY)
    return [{**choice.on(problem), "samples": samples} for problem in problems for choice in choices]


def seeds(quick: bool) -> int:
    """Runs of each learner on each problem."""
    return 6 if quick else 40


def one(setting: Setting, seed: int) -> Outcome:
    """The loss of the learner's policy, max and ν-weighted, at `points`, in units of what the first policy loses.

    Learners with the same seed see the same model and the same random numbers, so that they can be compared pair by pair.
    """
    begin = time.perf_counter()
    number = FRESH + seed
    mdp = PROBLEMS[setting["problem"]](number)
    pi0 = hesitant(mdp) if setting["problem"] in ROPES else Policy.uniform(mdp)
    v_star = T_kappa(mdp, np.zeros(mdp.n_states), 1.0)
    lost = v_star - value(mdp, pi0)
    learner = _learner(setting)
    state = _start(setting, learner, mdp, pi0)
    at = points(setting["samples"])
    result: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MayGetStuck)  # that runs without exploration get stuck is part of what is shown
        if setting["problem"] in ROPES:
            early = [n for n in at if n <= EARLY]
            run = learn(mdp, learner, early[0], np.random.SeedSequence(number), state=state, show=False)
            begun = [(run := resume(run, mdp, n, show=False)).policy for n in early]
            shares = [mdp.start @ (v_star - value(mdp, pi)) / (mdp.start @ lost) for pi in begun]
            result["start"] = [part(float(x)) for x in shares]
            run = resume(run, mdp, setting["samples"], show=False)
        else:
            run = learn(mdp, learner, setting["samples"], np.random.SeedSequence(number), state=state, show=False)
    kept = np.isin(run.trace["step"], at)
    largest, mean = run.trace["loss"] / lost.max(), run.trace["loss_nu"] / (run.nu @ lost)
    result |= {"max": [part(float(x)) for x in largest[kept]], "nu": [part(float(x)) for x in mean[kept]], "used": run.steps}
    return Outcome(result, {"seconds": time.perf_counter() - begin})


def _learner(setting: Setting) -> Any:
    fast, explore = FAST[setting["fast"]], setting["explore"]
    if setting["learner"] == "Q-learning":
        return QLearning(fast, explore)
    return OnlineKappaPI(setting["kappa"], fast, SLOW[setting["slow"]], explore, setting["cautious"])


def _start(setting: Setting, learner: Any, mdp: MDP, pi0: Policy) -> OnlineState:
    """On the ropes everybody knows what hesitating is worth; Q-learning has no first policy but the greedy one."""
    known = {"q0": q_value(mdp, pi0)} if setting["problem"] in ROPES else {}
    first: OnlineState = learner.init(mdp, **known) if setting["learner"] == "Q-learning" else learner.init(mdp, pi0=pi0, **known)
    return first
