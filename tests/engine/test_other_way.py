"""Bellman sweeps that gain little turn round, and what they find then is the optimum; nobody turns against time."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

import tightrope as tr
from tightrope import kernels
from tightrope.engine import methods
from tightrope.engine.monitor import Aim
from tightrope.engine.workspace import Workspace


def slides(size=60, lanes=8, gamma=0.95):
    """A corridor, with little to be had at one end and a lot at the other, and slides that lead down to the former."""

    def dynamics(states, action):
        lane, place = np.divmod(states, size)
        here = np.clip(place[:, None] + np.where(action == 0, [-1, 1], [1, -1]), 0, size - 1)
        down = np.where(place > 0, states - 1, 0)[:, None]
        to = np.where(lane[:, None] == 0, here, down)
        return to, [0.95, 0.05], 0.01 * (states == 0) + 1.0 * (states == size - 1)

    return tr.MDP.from_function(dynamics, lanes * size, 2, gamma)


@pytest.mark.parametrize("to_and_fro", [True, False])
def test_what_is_known_behind_travels_when_a_sweep_goes_the_other_way(monkeypatch, to_and_fro):
    """From the value of going for the little: against its drift, what is better comes nearer by a state a sweep."""
    if not to_and_fro:
        monkeypatch.setattr(kernels.rounds, "STUCK", np.inf)
    mdp = slides()
    S = mdp.n_states
    down = mdp.P[::2]
    work = Workspace(mdp, spsolve((sp.eye_array(S) - mdp.gamma * down).tocsc(), mdp.r[::2]), Aim(1e-6, -1.0, 0.0))
    work.backwards = False  # from the little, which is where everybody goes
    cycles, _, change, goal, _ = methods._cycles(work, np.inf, 20)
    assert (change <= goal) == to_and_fro
    assert (cycles < 20) == to_and_fro
    exact = tr.solve(mdp, tr.policy_iteration(), tol=1e-9)
    assert np.allclose(work.v, exact.value, atol=1e-5) == to_and_fro
