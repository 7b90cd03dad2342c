"""The cautious target b_s, case by case, and against the paper's own wording."""

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of, policy_of, pool


@pytest.fixture
def one_state():
    """One state that offers three actions."""
    return tr.MDP.from_dense(np.ones((1, 3, 1)), np.zeros((1, 3)), 0.5)


@pytest.mark.parametrize(
    ("q", "q_kappa", "weights", "chosen"),
    [
        pytest.param([3, 2, 1], [0, 9, 0], [0, 0, 1], 1, id="a_κ is better than π one step ahead: take it"),
        pytest.param(
            [3, 2, 1], [0, 0, 9], [0, 1, 0], 0, id="a_κ is worse than π one step ahead: take the one-step greedy action"
        ),
        pytest.param([3, 2, 1], [0, 9, 0], [0, 1, 0], 1, id="equality counts as better"),
        pytest.param([3, 2, 1], [0, 0, 9], [1, 0, 0], 0, id="π is one-step greedy already"),
        pytest.param([3, 2, 1], [7, 7, 7], [0, 0, 1], 0, id="ties of q_κ go to the lowest action"),
        pytest.param([3, 2, 1], [0, 7, 7], [0, 0, 1], 1, id="ties of q_κ among the last two"),
        pytest.param([2, 2, 1], [0, 0, 9], [0.5, 0.5, 0], 0, id="ties of q go to the lowest action"),
        pytest.param([1, 2, 2], [9, 0, 0], [0, 0.5, 0.5], 1, id="ties of q among the last two"),
        pytest.param([5, 5, 5], [0, 0, 1], [0.3, 0.3, 0.4], 2, id="all equal one step ahead: a_κ"),
        pytest.param([0.1 + 0.2, 0.3, 0.3], [0, 1, 0], [1, 0, 0], 1, id="a difference of rounding is no difference"),
        pytest.param([0.3 + 1e-9, 0.3, 0.3], [0, 1, 0], [1, 0, 0], 0, id="a difference of 1e-9 is one"),
        pytest.param([4, 1, 0], [0, 1, 0], [0.2, 0.3, 0.5], 0, id="v = 1.1 is a mean: a_κ with q = 1 is worse"),
        pytest.param([4, 1, 0], [0, 1, 0], [0.2, 0.2, 0.6], 1, id="v = 1 is a mean: a_κ with q = 1 is as good"),
        pytest.param([-4, -1, -2], [0, -1, -1], [1, 0, 0], 0, id="negative numbers: a_κ equals π"),
    ],
)
def test_the_cases_of_b_s(one_state, q, q_kappa, weights, chosen):
    found = tr.cautious(one_state, q, q_kappa, tr.Policy.stochastic(one_state, weights))
    assert found.is_deterministic
    assert found.actions.tolist() == [chosen]


def test_b_s_as_the_paper_writes_it():
    rng = np.random.default_rng(5)
    for case, mdp in pool():
        size = case.r.shape
        q = rng.integers(-2, 3, size).astype(float) if case.kind == "ties" else rng.normal(size=size)
        q_k = rng.integers(-2, 3, size).astype(float) if case.kind == "ties" else rng.normal(size=size)
        truth = reference.cautious(q, q_k, case.pi, case.ok, 1e-13)
        found = tr.cautious(mdp, q[case.ok], q_k[case.ok], policy_of(mdp, case.pi))
        np.testing.assert_array_equal(found.actions, truth)


def test_on_the_tightrope_b_s_climbs_only_when_it_is_safe():
    """c small: the confident action of s0 loses one step ahead, so b_s hesitates there and walks in s1."""
    mdp = mdp_of(reference.tightrope(2.0, 0.9))
    hesitant = tr.Policy.deterministic(mdp, 0)
    target = tr.cautious(mdp, tr.q_value(mdp, hesitant), tr.q_kappa(mdp, hesitant, 1.0), hesitant)
    assert target.actions.tolist() == [0, 1, 0, 0]
    after = tr.cautious(mdp, tr.q_value(mdp, target), tr.q_kappa(mdp, target, 1.0), target)
    assert after.actions.tolist() == [1, 1, 0, 0]
