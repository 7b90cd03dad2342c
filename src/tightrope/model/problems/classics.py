"""Textbook problems on a line: the gambler, the forest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from tightrope.model import validate
from tightrope.model.mdp import MDP
from tightrope.model.problems.decoration import start_at

if TYPE_CHECKING:
    from tightrope.model.validate import IntArray


def gambler(goal: int = 100, *, p: float = 0.4, gamma: float = 0.9999) -> MDP:
    """The gambler: stake part of the capital on each toss of a coin, until it is gone or has reached the goal.

    State s is the capital, action a the stake, 1 <= a <= min(s, goal - s): s + a with probability p, else s - a.
    Reaching the goal pays 1; 0 and the goal are terminal (their one action is 0). For p <= 1/2 bold play, staking all one
    can use, is optimal: v*(goal/2) = p.

    Args:
        goal: the capital to reach, >= 2.
        p: probability of winning a toss.
        gamma: discount in [0, 1); the original is undiscounted.

    Sutton, Barto (2018), Reinforcement Learning, Example 4.3; Dubins, Savage (1965), How to Gamble if You Must.
    """
    S = validate.positive_integer(goal, "goal", low=2) + 1
    win = validate.unit(p, "p")
    capital = np.arange(S)
    stakes = np.minimum(capital, S - 1 - capital)
    counts = np.maximum(stakes, 1)
    first = np.concatenate(([0], np.cumsum(counts)))
    state = np.repeat(capital, counts)
    stake = np.minimum(np.arange(first[-1]) - first[state] + 1, stakes[state])
    # A stake of 0, at the two terminal states, lists the same successor twice; the duplicates are summed.
    successors = np.stack([state - stake, state + stake], axis=1).ravel()
    chances = np.tile([1.0 - win, win], len(state))
    P = sp.csr_array((chances, successors, np.arange(0, 2 * len(state) + 1, 2)), shape=(len(state), S))
    r = np.where((state + stake == S - 1) & (stake > 0), win, 0.0)
    return MDP(P, r, gamma, first, actions=stake)


def forest(n_states: int = 3, *, r1: float = 4.0, r2: float = 2.0, p: float = 0.1, gamma: float = 0.96) -> MDP:
    """Forest management: wait for the stand to grow old, or cut it now; a fire may burn it down.

    State s is the age class. Waiting leads to min(s + 1, n - 1), or to 0 with probability p; cutting leads to 0. Waiting in
    the oldest class pays r1; cutting pays r2 there, 0 in the youngest and 1 in between.

    Args:
        n_states: number of age classes, >= 2.
        r1: reward of waiting in the oldest class.
        r2: reward of cutting in the oldest class.
        p: probability of a fire in a period.
        gamma: discount in [0, 1).

    Chadès, Chapron, Cros, Garcia, Sabbadin (2014), MDPtoolbox, Ecography 37: the example `forest`.
    """
    S = validate.positive_integer(n_states, "n_states", low=2)
    fire = validate.unit(p, "p")
    wait, cut = validate.finite(r1, "r1"), validate.finite(r2, "r2")

    def dynamics(states: IntArray, action: int) -> tuple[object, object, object]:
        oldest, burnt = states == S - 1, np.zeros_like(states)
        if action == 0:
            return np.stack([np.minimum(states + 1, S - 1), burnt], axis=1), [1.0 - fire, fire], wait * oldest
        return burnt, 1.0, np.where(oldest, cut, (states > 0).astype(float))

    return MDP.from_function(dynamics, S, 2, gamma, start=start_at(S, 0), action_names=("wait", "cut"))
