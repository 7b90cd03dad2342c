"""What a solve holds beside the model: little more than the chain of one policy and a few vectors."""

import tracemalloc

import pytest

import tightrope as tr
from tightrope import problems

#: The last but two leaves least to spare: of two queues in a row, with two actions, the chain of a policy is half the model, and
#: BiCGSTAB takes four vectors beside values, bounds and the best so far.
MODELS = {
    "garnet": lambda: problems.garnet(10_000, 4, 5, gamma=0.99),
    "slippery grid": lambda: problems.gridworld(100, 100, slip=0.1, gamma=0.999),
    "deterministic grid": lambda: problems.gridworld(100, 100, slip=0.0, gamma=0.9999),
    "queue": lambda: problems.queue(9_999, gamma=0.999),
    "inventory": lambda: problems.inventory(300, gamma=0.999),
    "tandem": lambda: problems.tandem(99, gamma=0.999),
    "large garnet": lambda: problems.garnet(50_000, 4, 5, gamma=0.99),
    "large grid": lambda: problems.gridworld(300, 300, slip=0.1, gamma=0.999),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_first_solve_stays_within_half_the_model_again_and_eight_vectors(name):
    mdp = MODELS[name]()
    assert tr.solve(mdp).converged  # loads what is loaded once
    twin = tr.MDP(mdp.P, mdp.r, mdp.gamma, mdp.first)
    tracemalloc.start()
    try:
        assert tr.solve(twin).converged
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert mdp.nbytes + peak <= 1.5 * mdp.nbytes + 8 * 8 * mdp.n_states
