"""Policies: one integer a state when deterministic, a weight per pair when stochastic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidPolicy
from tightrope.model import validate
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.pairs import Pairs
    from tightrope.model.validate import FloatArray, IntArray


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Policy:
    """A stationary policy π over the feasible pairs of a model.

    Make one with `Policy.deterministic`, `Policy.stochastic` or `Policy.uniform`; this constructor trusts its arguments.
    Exactly one of `rows` [S] (the pair chosen in each state) and `mass` [L] (π(a|s) of each pair) is not None.
    """

    pairs: Pairs
    rows: IntArray | None
    mass: FloatArray | None

    def __init__(self, pairs: Pairs, rows: IntArray | None, mass: FloatArray | None) -> None:
        known = self.__dict__  # a frozen class sets one attribute at a time, which takes longer
        known["pairs"], known["rows"], known["mass"] = pairs, rows, mass

    @classmethod
    def of_rows(cls, pairs: Pairs, rows: IntArray) -> Policy:
        """The deterministic policy that takes pair rows[s] in state s; trusted, for algorithms."""
        return cls(pairs, frozen(rows), None)

    @classmethod
    def deterministic(cls, mdp: MDP, actions: Any) -> Policy:
        """The policy that takes action number actions[s] in state s; a single number stands for every state."""
        array = np.asarray(actions)
        if array.dtype.kind not in "iu":
            raise InvalidPolicy(f"actions must be integers, one per state; found an array of {array.dtype}")
        if array.shape not in ((), (mdp.n_states,)):
            raise InvalidPolicy(f"actions must have shape ({mdp.n_states},), one per state; found {array.shape}")
        return cls.of_rows(mdp.pairs, mdp.pairs.rows(np.broadcast_to(array, (mdp.n_states,)).astype(np.int64)))

    @classmethod
    def stochastic(cls, mdp: MDP, weights: Any) -> Policy:
        """The policy with π(a|s) = weights, one per pair [L], or [S, A] with zeros where an action is not offered."""
        pairs = mdp.pairs
        try:
            array = validate.floats(weights)
        except (TypeError, ValueError):
            raise InvalidPolicy("weights must be an array of numbers, one per pair [L] or [S, A]") from None
        if array.ndim == 2:
            array = _from_table(array, pairs)
        if array.shape != (pairs.n_pairs,):
            raise InvalidPolicy(f"weights must have shape ({pairs.n_pairs},), one per pair; found {array.shape}")
        if not (array >= 0).all():
            row = int(np.flatnonzero(~(array >= 0))[0])
            raise InvalidPolicy(f"the weight of {pairs.describe(row)} is {array[row]:.12g}; weights are probabilities")
        sums = np.add.reduceat(array, pairs.first[:-1])
        off = np.abs(sums - 1.0)
        if not off.max() <= validate.PRINTED:
            s = int(np.flatnonzero(~(off <= validate.PRINTED))[0])
            raise InvalidPolicy(f"the weights of {pairs.state(s)} sum to {sums[s]:.12g}; they must sum to 1")
        if off.max() > validate.ROUNDING:
            array = array / np.repeat(sums, pairs.counts)
        return cls(pairs, None, frozen(np.array(array)))  # a copy: the user's array may change

    @classmethod
    def uniform(cls, mdp: MDP) -> Policy:
        """Every action a state offers, with equal probability."""
        counts = mdp.pairs.counts
        return cls(mdp.pairs, None, frozen(np.repeat(1.0 / counts, counts)))

    @property
    def is_deterministic(self) -> bool:
        """Whether the policy is stored as one pair a state."""
        return self.rows is not None

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return self.pairs.n_states

    @property
    def actions(self) -> IntArray:
        """The action number taken in each state [S]; a stochastic policy has no such thing."""
        if self.rows is None:
            raise InvalidPolicy("this policy is stochastic: it has .weights, and .actions only when one action has weight 1")
        ids = self.pairs.ids
        return self.rows - self.pairs.first[:-1] if ids is None else ids[self.rows]

    @property
    def weights(self) -> FloatArray:
        """π(a|s) of each pair [L]."""
        if self.mass is not None:
            return self.mass
        weights = np.zeros(self.pairs.n_pairs)
        weights[self.rows] = 1.0
        return weights

    def distance(self, other: Policy) -> float:
        """The policy norm of the paper: max_s Σ_a |π(a|s) - π'(a|s)|."""
        self._compare(other)
        if self.rows is not None and other.rows is not None:
            return 2.0 * bool((self.rows != other.rows).any())
        return float(np.add.reduceat(np.abs(self.weights - other.weights), self.pairs.first[:-1]).max())

    def sample(self, states: Any, rng: np.random.Generator) -> IntArray:
        """An action number for each of the given states (a number or an array), drawn from π(.|s)."""
        s = validate.integers(states, "states")
        if s.size and (s.min() < 0 or s.max() >= self.n_states):
            raise InvalidPolicy(f"states are numbered 0 to {self.n_states - 1}; found {s.min()} to {s.max()}")
        if self.mass is None:
            return self.actions[s]
        first, ids = self.pairs.first, self.pairs.actions
        ends = np.cumsum(self.mass)
        before = np.concatenate(([0.0], ends))[first[s]]
        below = before + rng.random(s.shape) * (ends[first[s + 1] - 1] - before)
        rows = np.minimum(np.searchsorted(ends, below, side="right"), first[s + 1] - 1)
        return ids[rows]

    def predict(
        self,
        observation: Any,
        state: None = None,  # noqa: ARG002  (recurrent policies carry one; the signature is Stable-Baselines3's)
        episode_start: Any = None,  # noqa: ARG002  (as above)
        deterministic: bool = True,
        *,
        rng: np.random.Generator | None = None,
    ) -> tuple[Any, None]:
        """(action, None) for a state number or an array of them: the likeliest action, or one drawn when not `deterministic`."""
        s = validate.integers(observation, "observation")
        if s.size and not 0 <= s.min() <= s.max() < self.n_states:
            raise InvalidPolicy(f"observations are state numbers 0 to {self.n_states - 1}; found {s.min()} to {s.max()}")
        if self.rows is None and not deterministic:
            actions = self.sample(s, np.random.default_rng() if rng is None else rng)
        else:
            rows = self._likeliest(s) if self.rows is None else self.rows[s]
            actions = rows - self.pairs.first[s] if self.pairs.ids is None else self.pairs.ids[rows]
        return (actions if s.ndim else int(actions)), None

    def _likeliest(self, s: IntArray) -> IntArray:
        """The pair of largest weight in each of the given states, the first of them in a tie."""
        first, mass = self.pairs.first, self.weights
        best = [first[i] + mass[first[i] : first[i + 1]].argmax() for i in np.ravel(s).tolist()]
        return np.array(best, dtype=first.dtype).reshape(s.shape)

    def induced(self, mdp: MDP) -> tuple[sp.csr_array, FloatArray]:
        """The Markov chain this policy makes of a model: P^π [S, S] and r^π [S]."""
        self.check(mdp)
        if self.rows is not None:
            return mdp.P[self.rows], mdp.r[self.rows]
        average = self.averaging()
        P = average @ mdp.P
        if sp.issparse(P):  # and not spread over ranks, where columns are in order
            P.sort_indices()  # a sparse product leaves columns in any order; the band solver reads each row's ends
        return P, average @ mdp.r

    def averaging(self) -> sp.csr_array:
        """The matrix [S, L] that averages a vector over pairs with weights π(a|s)."""
        first = self.pairs.first
        shape = (self.pairs.n_states, self.pairs.n_pairs)
        if self.rows is not None:
            index = np.arange(self.n_states + 1, dtype=first.dtype)
            return sp.csr_array((np.ones(self.n_states), self.rows, index), shape=shape)
        return sp.csr_array((self.mass, np.arange(self.pairs.n_pairs, dtype=first.dtype), first), shape=shape)

    def check(self, mdp: MDP) -> None:
        """Refuse a model with other states or actions than the one this policy was made for."""
        if not self.pairs.same(mdp.pairs):
            raise InvalidPolicy(
                f"this policy is for another model: it covers {self.pairs.n_states} states and {self.pairs.n_pairs} pairs, "
                f"the model has {mdp.n_states} states and {mdp.n_pairs} pairs"
            )

    def _compare(self, other: Policy) -> None:
        if not self.pairs.same(other.pairs):
            raise InvalidPolicy("the two policies are for models with different states or actions")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self.pairs.same(other.pairs) and self.distance(other) == 0.0

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "deterministic" if self.is_deterministic else "stochastic"
        shown = self.actions if self.is_deterministic else self.weights
        return f"Policy({kind}, {self.n_states:,} states, {np.array2string(shown, threshold=8, precision=3)})"


def mix(pi: Policy, target: Policy, alpha: float) -> Policy:
    """The soft update (1-α)π + α target, for α in (0, 1]; deterministic when both agree or α = 1."""
    step = validate.alpha(alpha)
    pi._compare(target)  # noqa: SLF001  (same concept, same file)
    if step == 1.0 or (pi.rows is not None and target.rows is not None and (pi.rows == target.rows).all()):
        return target
    return Policy(pi.pairs, None, frozen((1.0 - step) * pi.weights + step * target.weights))


def _from_table(weights: FloatArray, pairs: Pairs) -> FloatArray:
    """Weights [S, A] read off at the feasible pairs; mass on an action that is not offered is refused."""
    if weights.shape[0] != pairs.n_states or weights.shape[1] < pairs.n_actions:
        raise InvalidPolicy(f"weights [S, A] must have shape ({pairs.n_states}, {pairs.n_actions}); found {weights.shape}")
    flat = weights[pairs.states, pairs.actions]
    missing = np.abs(weights).sum(axis=1) - np.add.reduceat(np.abs(flat), pairs.first[:-1])
    if missing.max() > validate.PRINTED:
        s = int(missing.argmax())
        raise InvalidPolicy(f"the weights of {pairs.state(s)} put {missing[s]:.3g} on actions it does not offer")
    return flat
