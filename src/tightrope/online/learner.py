"""Algorithm 1, online κ-policy iteration with cautious soft updates, and the two baselines it contains."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tightrope import kernels
from tightrope.errors import InvalidArgument
from tightrope.kernels import unsigned
from tightrope.model import validate
from tightrope.model.sampler import pair_row
from tightrope.online.schedule import StepSchedule
from tightrope.online.state import OnlineState, first_pi, first_q, greedy_start, shape_of

if TYPE_CHECKING:
    from tightrope.model.validate import FloatArray

#: The table of a schedule that needs none.
NOTHING = np.empty(0)
#: Step sizes that meet every condition of convergence, and the one of a policy that is replaced at once.
FAST, SLOW, AT_ONCE = StepSchedule(0.6), StepSchedule.harmonic(1.0), StepSchedule.constant(1.0)


class Learner(Protocol):
    """What `learn` needs: the numbers of Algorithm 1, `init` and `step`; a frozen dataclass, say, that can be hashed."""

    def __hash__(self) -> int:
        """Learners are values: equal ones learn alike."""

    @property
    def kappa(self) -> float:
        """The weight of the optimal surrogate value in the second q-function."""

    @property
    def fast(self) -> StepSchedule:
        """Step sizes of q and q_κ, by visits of the pair."""

    @property
    def slow(self) -> StepSchedule:
        """Step sizes of π, by visits of the state."""

    @property
    def explore(self) -> float:
        """The chance that a sampled action is uniform instead of drawn from π."""

    @property
    def cautious(self) -> bool:
        """Whether b_s falls back on the one-step greedy action."""

    @property
    def soft(self) -> float:
        """The share of the uniform policy in the value of the next state."""

    def init(self, model: Any, *, gamma: float | None = None, pi0: Any = None, q0: Any = None) -> OnlineState:
        """Where learning begins."""

    def step(self, state: OnlineState, s: int, a: int, r: float, s_next: int) -> OnlineState:
        """Learn from one transition, in place."""


@dataclass(frozen=True, slots=True)
class OnlineKappaPI:
    """Two-timescale online κ-policy iteration (Algorithm 1), model-free.

    q tracks q^π and q_κ the optimal q-function of the surrogate MDP, with step μ_f(visits of the pair); π moves towards
    b_s(q, q_κ, π) with step μ_s(visits of the state). κ = 0 is asynchronous policy iteration; at κ = 1, q_κ is Q-learning.

    Args:
        kappa: in [0, 1].
        fast: step sizes of q and q_κ.
        slow: step sizes of π.
        explore: chance of a uniform action instead of one drawn from π; Algorithm 1 as printed has 0 and can get stuck.
        cautious: False always moves towards a_κ, which Theorem 1 does not cover.
    """

    kappa: float
    fast: StepSchedule = FAST
    slow: StepSchedule = SLOW
    explore: float = 0.1
    cautious: bool = True
    soft: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kappa", validate.kappa(self.kappa))
        _check(self, "fast", "slow")

    def init(
        self, model: Any, *, gamma: float | None = None, pi0: Any = None, q0: Any = None, q_kappa0: Any = None
    ) -> OnlineState:
        """Where learning begins: π_0 uniform and q_0 = q_κ,0 = 0 unless given.

        `model` is an MDP, a source, or sizes (S, A), which need `gamma`; `pi0` a Policy or weights [L], q0 and q_kappa0
        vectors [L] or one number.
        """
        pairs, discount = shape_of(model, gamma)
        q = first_q(q0, pairs, "q0")
        ahead = q.copy() if q_kappa0 is None else first_q(q_kappa0, pairs, "q_kappa0")
        return OnlineState.fresh(pairs, discount, q, ahead, first_pi(pi0, pairs))

    def step(self, state: OnlineState, s: int, a: int, r: float, s_next: int) -> OnlineState:
        """Lines 5 to 10 of Algorithm 1 after the transition (s, a, r, s'); changes `state` and returns it."""
        return _step(self, state, s, a, r, s_next)


@dataclass(frozen=True, slots=True)
class QLearning:
    """Q-learning: q(s,a) += μ (r + γ max_a' q(s',a') - q(s,a)), acting ε-greedily with ε = explore.

    It is Algorithm 1 with κ = 0 and slow step size 1: π is one-hot at argmax q, so that v^π(s') = max q(s',.).
    """

    fast: StepSchedule = FAST
    explore: float = 0.1
    kappa: float = field(default=0.0, init=False, repr=False)
    slow: StepSchedule = field(default=AT_ONCE, init=False, repr=False)
    cautious: bool = field(default=False, init=False, repr=False)
    soft: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self, "fast")

    def init(self, model: Any, *, gamma: float | None = None, pi0: Any = None, q0: Any = None) -> OnlineState:
        """Where learning begins: q_0 = 0 unless given, π greedy in it; there is no other π_0."""
        return greedy_start(model, gamma, pi0, q0)

    def step(self, state: OnlineState, s: int, a: int, r: float, s_next: int) -> OnlineState:
        """One update after the transition (s, a, r, s'); changes `state` and returns it."""
        return _step(self, state, s, a, r, s_next)


@dataclass(frozen=True, slots=True)
class ExpectedSarsa:
    """Expected Sarsa: q(s,a) += μ (r + γ Σ_a' π_ε(a'|s') q(s',a') - q(s,a)), with π_ε the ε-greedy policy it follows.

    Its q tends to that of the best ε-soft policy, ε = explore; `.policy` is the greedy one.
    """

    fast: StepSchedule = FAST
    explore: float = 0.1
    kappa: float = field(default=0.0, init=False, repr=False)
    slow: StepSchedule = field(default=AT_ONCE, init=False, repr=False)
    cautious: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self, "fast")

    @property
    def soft(self) -> float:
        """The share of the uniform policy in the value of the next state."""
        return self.explore

    def init(self, model: Any, *, gamma: float | None = None, pi0: Any = None, q0: Any = None) -> OnlineState:
        """Where learning begins: q_0 = 0 unless given, π greedy in it; there is no other π_0."""
        return greedy_start(model, gamma, pi0, q0)

    def step(self, state: OnlineState, s: int, a: int, r: float, s_next: int) -> OnlineState:
        """One update after the transition (s, a, r, s'); changes `state` and returns it."""
        return _step(self, state, s, a, r, s_next)


@lru_cache(maxsize=64)
def rule(learner: Learner, gamma: float, restart: float = 1.0, origin: tuple[int, int] = (1, 1)) -> Any:
    """The learner as numbers, for the compiled loops; `origin` is where tables of custom step sizes begin."""
    rates = (
        kernels.online.Rate(mu.c, mu.n0, mu.p, mu.log, begin)
        for mu, begin in zip((learner.fast, learner.slow), origin, strict=True)
    )
    numbers = (learner.kappa, learner.soft, learner.cautious, learner.explore, restart)
    return kernels.online.Rule(float(gamma), *numbers, *rates)


def tabulated(schedule: StepSchedule, begin: int, end: int) -> FloatArray:
    """The values of a custom schedule for begin <= n < end; empty for the others, which the loops compute themselves."""
    if schedule.function is None:
        return NOTHING
    return np.asarray(schedule(np.arange(begin, end)))


def _step(learner: Learner, state: OnlineState, s: int, a: int, r: float, s_next: int) -> OnlineState:
    pairs = state.pairs
    row = pair_row(pairs, s, a)
    if not math.isfinite(r):
        raise InvalidArgument(f"the reward after {pairs.describe(row)} is {r}; rewards must be finite")
    if not 0 <= s_next < pairs.n_states:
        raise InvalidArgument(f"the state after {pairs.describe(row)} is {s_next}; states are numbered 0 to {pairs.n_states - 1}")
    custom = learner.fast.function is not None or learner.slow.function is not None
    n_pair, n_state = (int(state.pair_visits[row]) + 1, int(state.state_visits[s]) + 1) if custom else (1, 1)
    kernels.online.step(
        unsigned(pairs.first),
        np.uint64(s),
        np.uint64(row),
        float(r),
        np.uint64(s_next),
        rule(learner, state.gamma, origin=(n_pair, n_state)),
        tabulated(learner.fast, n_pair, n_pair + 1),
        tabulated(learner.slow, n_state, n_state + 1),
        state.table,
        state.state_visits,
    )
    return state


def _check(learner: Any, *schedules: str) -> None:
    """Validate what both families of learners share; a bare function becomes a custom schedule."""
    for name in schedules:
        given = getattr(learner, name)
        if not isinstance(given, StepSchedule):
            if not callable(given):
                raise InvalidArgument(
                    f"{name} must be a StepSchedule or a function of the visit count; found {given!r}. "
                    "For a constant step size use StepSchedule.constant(c)."
                )
            object.__setattr__(learner, name, StepSchedule.custom(given))
    object.__setattr__(learner, "explore", validate.unit(learner.explore, "explore"))
    object.__setattr__(learner, "cautious", bool(learner.cautious))
