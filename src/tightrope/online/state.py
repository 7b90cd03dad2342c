"""What a learner knows, and where it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import kernels
from tightrope.errors import InvalidArgument
from tightrope.kernels import unsigned
from tightrope.model import validate
from tightrope.model.pairs import Pairs
from tightrope.model.policy import Policy
from tightrope.model.sampler import sizes
from tightrope.model.validate import frozen
from tightrope.operators.bellman import best

if TYPE_CHECKING:
    import numpy.typing as npt

    from tightrope.model.validate import FloatArray

#: What is known of one pair; one record so that a state lies in one or two lines of memory.
RECORD = np.dtype([("q", np.float64), ("q_kappa", np.float64), ("pi", np.float64), ("visits", np.int64)])
#: Bytes of a line of memory.
LINE = 64


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
        table = _records(pairs.n_pairs)
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
        table = _records(self.pairs.n_pairs)
        table[:] = self.table
        return OnlineState(self.pairs, self.gamma, table, self.state_visits.copy())

    def __repr__(self) -> str:
        return f"OnlineState({self.pairs.n_states:,} states, {self.pairs.n_pairs:,} pairs, {self.steps:,} steps)"


def _records(n: int) -> npt.NDArray[Any]:
    """Empty records that begin at a line of memory: a state with two or four actions then straddles no further one."""
    room = np.zeros(n * RECORD.itemsize + LINE, dtype=np.uint8)
    skip = -room.ctypes.data % LINE
    return room[skip : skip + n * RECORD.itemsize].view(RECORD)


def shape_of(model: Any, gamma: float | None) -> tuple[Pairs, float]:
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


def first_q(q0: Any, pairs: Pairs, name: str) -> FloatArray:
    """The first q [L]."""
    if np.ndim(0.0 if q0 is None else q0) == 0:
        q0 = np.full(pairs.n_pairs, 0.0 if q0 is None else validate.real(q0, name))
    return validate.vector(q0, pairs.n_pairs, name, "(state, action) pair").copy()


def first_pi(pi0: Any, pairs: Pairs) -> FloatArray:
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


def greedy_start(model: Any, gamma: float | None, pi0: Any, q0: Any) -> OnlineState:
    """The first state of the baselines, whose policy is the greedy one."""
    if pi0 is not None:
        raise InvalidArgument("this learner acts greedily in q and has no other first policy; give q0 instead of pi0")
    pairs, discount = shape_of(model, gamma)
    q = first_q(q0, pairs, "q0")
    return OnlineState.fresh(pairs, discount, q, q.copy(), Policy.of_rows(pairs, best(q, pairs)[1]).weights)
