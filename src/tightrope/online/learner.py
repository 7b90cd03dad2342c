"""Algorithm 1, online κ-policy iteration with cautious soft updates, and the two baselines it contains."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tightrope import kernels
from tightrope.errors import InvalidArgument
from tightrope.kernels import unsigned
from tightrope.model import validate
from tightrope.model.pairs import Pairs
from tightrope.model.policy import Policy
from tightrope.model.sampler import pair_row, sizes
from tightrope.model.validate import frozen
from tightrope.online.schedule import StepSchedule
from tightrope.operators.bellman import best

if TYPE_CHECKING:
    import numpy.typing as npt

    from tightrope.model.validate import FloatArray

#: Step sizes that meet every condition of convergence, and the one of a policy that is replaced at once.
FAST, SLOW, AT_ONCE = StepSchedule(0.6), StepSchedule.harmonic(1.0), StepSchedule.constant(1.0)
#: What is known of one pair; one record so that a state lies in one or two lines of memory.
RECORD = np.dtype([("q", np.float64), ("q_kappa", np.float64), ("pi", np.float64), ("visits", np.int64)])


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class OnlineState:
    """What a learner knows: it changes in place, step by step; `copy` keeps a moment.

    `q`, `q_kappa`, `pi` [L] by pair; `pair_visits` φ [L] and `state_visits` ν [S] count the visits. The arrays by pair are
    views of one table of records, which is how the compiled loops read them.
    """

    pairs: Pairs
    gamma: float
    table: npt.NDArray[Any]
    state_visits: npt.NDArray[np.int64]

    @classmethod
    def fresh(cls, pairs: Pairs, gamma: float, q: FloatArray, q_kappa: FloatArray, pi: FloatArray) -> OnlineState:
        """Nothing visited yet; trusted, for learners."""
        table = np.zeros(pairs.n_pairs, dtype=RECORD)
        table["q"], table["q_kappa"], table["pi"] = q, q_kappa, pi
        return cls(pairs, gamma, table, np.zeros(pairs.n_states, dtype=np.int64))

    @property
    def q(self) -> FloatArray:
        """q_n(s,a) [L], which tracks q^π."""
        return self.table["q"]

    @property
    def q_kappa(self) -> FloatArray:
        """q_κ,n(s,a) [L], which tracks the optimal q-function of the surrogate MDP at v^π."""
        return self.table["q_kappa"]

    @property
    def pi(self) -> FloatArray:
        """π_n(a|s) [L]."""
        return self.table["pi"]

    @property
    def pair_visits(self) -> npt.NDArray[np.int64]:
        """φ_n(s,a) [L]: how often each pair was visited."""
        return self.table["visits"]

    @property
    def steps(self) -> int:
        """The number of transitions learned from."""
        return int(self.state_visits.sum())

    @property
    def policy(self) -> Policy:
        """π_n as a policy of the model."""
        return Policy(self.pairs, None, frozen(self.pi.copy()))

    @property
    def v(self) -> FloatArray:
        """Σ_a π_n(a|s) q_n(s,a) [S], the learner's estimate of v^π."""
        return np.add.reduceat(self.pi * self.q, self.pairs.first[:-1])

    @property
    def took_kappa(self) -> float:
        """The fraction of states in which the cautious choice b_s is the κ-greedy action."""
        return float(kernels.online.took_kappa(unsigned(self.pairs.first), self.table) / self.pairs.n_states)

    def copy(self) -> OnlineState:
        """The same knowledge in memory of its own."""
        return OnlineState(self.pairs, self.gamma, self.table.copy(), self.state_visits.copy())

    def __repr__(self) -> str:
        return f"OnlineState({self.pairs.n_states:,} states, {self.pairs.n_pairs:,} pairs, {self.steps:,} steps)"


class Learner(Protocol):
    """What `learn` needs: the numbers of Algorithm 1, `init` and `step`."""

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
        pairs, discount = _shape(model, gamma)
        q = _start(q0, pairs, "q0")
        ahead = q.copy() if q_kappa0 is None else _start(q_kappa0, pairs, "q_kappa0")
        return OnlineState.fresh(pairs, discount, q, ahead, _weights(pi0, pairs))

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
        return _greedy_start(model, gamma, pi0, q0)

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
        return _greedy_start(model, gamma, pi0, q0)

    def step(self, state: OnlineState, s: int, a: int, r: float, s_next: int) -> OnlineState:
        """One update after the transition (s, a, r, s'); changes `state` and returns it."""
        return _step(self, state, s, a, r, s_next)


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
        return np.empty(0)
    return np.asarray(schedule(np.arange(begin, end)))


def _step(learner: Learner, state: OnlineState, s: int, a: int, r: float, s_next: int) -> OnlineState:
    pairs = state.pairs
    row = pair_row(pairs, s, a)
    if not math.isfinite(r):
        raise InvalidArgument(f"the reward after {pairs.describe(row)} is {r}; rewards must be finite")
    if not 0 <= s_next < pairs.n_states:
        raise InvalidArgument(f"the state after {pairs.describe(row)} is {s_next}; states are numbered 0 to {pairs.n_states - 1}")
    n_pair, n_state = int(state.pair_visits[row]) + 1, int(state.state_visits[s]) + 1
    kernels.online.update(
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


def _shape(model: Any, gamma: float | None) -> tuple[Pairs, float]:
    """The pairs and the discount of an MDP, a source, Pairs or sizes (S, A)."""
    pairs = model if isinstance(model, Pairs) else getattr(model, "pairs", None)
    if pairs is None:
        try:
            n_states, n_actions = model
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"init needs an MDP, a source of samples or sizes (n_states, n_actions); found {type(model).__name__}"
            ) from None
        pairs = sizes(n_states, n_actions)
    discount = getattr(model, "gamma", None) if gamma is None else gamma
    if discount is None:
        raise InvalidArgument("sizes do not say how to discount: give gamma=...")
    return pairs, validate.gamma(discount)


def _start(q0: Any, pairs: Pairs, name: str) -> FloatArray:
    """The first q [L]."""
    if np.ndim(0.0 if q0 is None else q0) == 0:
        q0 = np.full(pairs.n_pairs, 0.0 if q0 is None else validate.real(q0, name))
    return validate.vector(q0, pairs.n_pairs, name, "(state, action) pair").copy()


def _weights(pi0: Any, pairs: Pairs) -> FloatArray:
    """The weights of the first policy [L]; uniform by default."""
    if pi0 is None:
        return np.repeat(1.0 / pairs.counts, pairs.counts)
    policy = pi0 if isinstance(pi0, Policy) else Policy.stochastic(_Shaped(pairs), pi0)  # type: ignore[arg-type]
    policy.check(_Shaped(pairs))  # type: ignore[arg-type]
    return policy.weights.copy()


@dataclass(frozen=True, slots=True)
class _Shaped:
    """As much of a model as a policy looks at."""

    pairs: Pairs

    @property
    def n_states(self) -> int:
        return self.pairs.n_states

    @property
    def n_pairs(self) -> int:
        return self.pairs.n_pairs


def _greedy_start(model: Any, gamma: float | None, pi0: Any, q0: Any) -> OnlineState:
    """The first state of the baselines, whose policy is the greedy one."""
    if pi0 is not None:
        raise InvalidArgument("this learner acts greedily in q and has no other first policy; give q0 instead of pi0")
    pairs, discount = _shape(model, gamma)
    q = _start(q0, pairs, "q0")
    return OnlineState.fresh(pairs, discount, q, q.copy(), Policy.of_rows(pairs, best(q, pairs)[1]).weights)
