"""Models drawn at random, the same for the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.model.mdp import MDP

if TYPE_CHECKING:
    from tightrope.model.validate import IntArray


def garnet(
    n_states: int = 100,
    n_actions: int = 4,
    branching: int = 5,
    *,
    gamma: float = 0.95,
    seed: int | np.random.Generator = 0,
) -> MDP:
    """A Garnet: every pair has `branching` random successors with random probabilities and a normal reward.

    The successors are a uniformly random subset of the states; their probabilities are the lengths into which
    branching - 1 uniform points cut [0, 1]; r(s, a) ~ N(0, 1).

    Args:
        n_states: number of states.
        n_actions: actions of every state.
        branching: successors of every pair, at most n_states.
        gamma: discount in [0, 1).
        seed: an integer, or a NumPy Generator.

    Archibald, McKinnon, Thomas (1995), On the generation of Markov decision processes; in the form of
    Bhatnagar, Sutton, Ghavamzadeh, Lee (2009), Natural actor-critic algorithms.
    """
    S, A = validate.positive_integer(n_states, "n_states"), validate.positive_integer(n_actions, "n_actions")
    b = validate.positive_integer(branching, "branching")
    if b > S:
        raise InvalidArgument(f"branching is {b}, but there are only {S} states to branch to; it must be at most n_states")
    validate.gamma(gamma)
    rng = validate.generator(seed)
    # Normalised exponentials are distributed as the spacings of uniform points, without sorting them.
    p = rng.standard_exponential((S * A, b))
    p /= p.sum(axis=1, keepdims=True)
    P = _rows(_subsets(rng, S * A, S, b), p, S)
    return MDP(P, rng.standard_normal(S * A), gamma)


def random_sparse_deterministic(
    n_states: int = 50,
    n_actions: int = 2,
    *,
    density: float = 0.1,
    gamma: float = 0.95,
    seed: int | np.random.Generator = 0,
) -> MDP:
    """Deterministic moves to random states, with few rewards: where soft multi-step updates go wrong most often.

    Every pair leads to one uniformly random state; its reward is N(0, 1) with probability `density`, otherwise 0.

    Args:
        n_states: number of states.
        n_actions: actions of every state.
        density: probability that a pair has a reward.
        gamma: discount in [0, 1).
        seed: an integer, or a NumPy Generator.

    A Garnet with one successor (Archibald, McKinnon, Thomas 1995) and sparse rewards; like the Tightrope of
    Efroni, Dalal, Scherrer, Mannor (2018), it makes updates with α < κ worse than no update in many draws.
    """
    S, A = validate.positive_integer(n_states, "n_states"), validate.positive_integer(n_actions, "n_actions")
    share = validate.unit(density, "density")
    validate.gamma(gamma)
    rng = validate.generator(seed)
    successors = rng.integers(S, size=(S * A, 1), dtype=np.int32 if S < 2**31 else np.int64)
    r = np.where(rng.random(S * A) < share, rng.standard_normal(S * A), 0.0)
    return MDP(_rows(successors, np.ones((S * A, 1)), S), r, gamma)


def _rows(successors: IntArray, p: np.ndarray, S: int) -> sp.csr_array:
    """The matrix [L, S] with probabilities p [L, k] at sorted, distinct successors [L, k]."""
    L, k = successors.shape
    index = np.int32 if max(L * k, S) < 2**31 else np.int64
    indptr = np.arange(0, L * k + 1, k, dtype=index)
    return sp.csr_array((p.ravel(), successors.ravel().astype(index, copy=False), indptr), shape=(L, S))


def _subsets(rng: np.random.Generator, n: int, S: int, k: int) -> IntArray:
    """n uniformly random subsets of k of the states 0..S-1, each sorted [n, k]."""
    chosen = np.empty((n, k), dtype=np.int32 if S < 2**31 else np.int64)
    block = max(1, 2**22 // S) if 4 * k > S else n
    for begin in range(0, n, block):
        part = chosen[begin : begin + block]
        if 4 * k > S:
            part[:] = rng.random((len(part), S)).argpartition(k - 1, axis=1)[:, :k]
        else:  # Floyd's sampling, all rows at once: take t <= j, or j itself when t is taken
            for i in range(k):
                j = S - k + i
                t = rng.integers(j + 1, size=len(part), dtype=chosen.dtype)
                part[:, i] = np.where((part[:, :i] == t[:, None]).any(axis=1), j, t)
        part.sort(axis=1)
    return chosen
