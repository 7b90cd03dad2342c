"""Small models made to show something: the paper's Tightrope, and the chain that punishes short sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tightrope.model import validate
from tightrope.model.mdp import MDP
from tightrope.model.policy import Policy
from tightrope.model.problems.decoration import start_at

if TYPE_CHECKING:
    from tightrope.model.validate import IntArray


def tightrope(c: float = 1.0, gamma: float = 0.9) -> MDP:
    """The paper's Tightrope Walking MDP: four states, reward 1 for ever beyond the rope, -c for ever below it.

    s0 -a0-> s0, s0 -a1-> s1 (step on the rope), s1 -a0-> s3 (fall), s1 -a1-> s2 (arrive); s2 and s3 have one action, a loop.

    v*(s0) = γ²/(1-γ), and the mixture (1-α)π0 + απ* of the hesitant and the optimal policy is worse than π0 at s0
    iff α < c/(1+c), while π* is κ-greedy for v^π0 iff c <= κ/(1-κ).

    Args:
        c: the cost per step of having fallen, >= 0.
        gamma: discount in [0, 1).

    Efroni, Dalal, Scherrer, Mannor (2018): the counterexample of Theorem 1 (Figure 1).
    """
    fall = validate.finite(c, "c", low=0.0)
    successors = [0, 1, 3, 2, 2, 3]
    return MDP(
        np.eye(4)[successors],
        [0.0, 0.0, 0.0, 0.0, 1.0, -fall],
        gamma,
        first=[0, 2, 4, 5, 6],
        start=start_at(4, 0),
        state_names=("s0", "s1", "s2", "s3"),
        action_names=("a0", "a1"),
    )


def hesitant(mdp: MDP) -> Policy:
    """The hesitant policy of Theorem 1's counterexample: π0(s) = a0 in every state; on the Tightrope v^π0(s0) = 0."""
    return Policy.deterministic(mdp, 0)


def chain(n_states: int = 5, *, slip: float = 0.2, small: float = 2.0, large: float = 10.0, gamma: float = 0.95) -> MDP:
    """The chain: advance to the far end for a large reward, or return to the beginning for a small one.

    With probability `slip` an action has the effect, and the reward, of the other one. Without slip, advancing for ever is
    worth γ^(n-1-s) large/(1-γ) from state s, returning for ever small/(1-γ).

    Args:
        n_states: length of the chain.
        slip: probability that the other action happens.
        small: reward of returning, from any state.
        large: reward of advancing at the far end, where one stays.
        gamma: discount in [0, 1).

    Dearden, Friedman, Russell (1998), Bayesian Q-learning; Strens (2000), A Bayesian framework for reinforcement learning.
    """
    S = validate.positive_integer(n_states, "n_states")
    p = validate.unit(slip, "slip")
    low, high = validate.finite(small, "small"), validate.finite(large, "large")

    def dynamics(states: IntArray, action: int) -> tuple[object, object, object]:
        ahead = 1.0 - p if action == 0 else p
        successors = np.stack([np.minimum(states + 1, S - 1), np.zeros_like(states)], axis=1)
        return successors, np.array([ahead, 1.0 - ahead]), ahead * high * (states == S - 1) + (1.0 - ahead) * low

    return MDP.from_function(dynamics, S, 2, gamma, start=start_at(S, 0), action_names=("advance", "return"))
