"""T^h, T_h^π and the h-greedy policies against plain recursion and sequences of policies."""

import itertools

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of, policy_of, pool
from tightrope.errors import InvalidArgument


@pytest.mark.parametrize("h", [1, 2, 3])
def test_T_h_is_the_best_return_of_h_steps(h):
    for case, mdp in pool():
        truth = reference.T_h(case, case.v, h)
        np.testing.assert_allclose(tr.T_h(mdp, case.v, h), truth, rtol=0, atol=case.slack(case.v))


def test_T_h_is_the_best_over_all_sequences_of_policies():
    tried = 0
    for case, mdp in pool():
        if len(case.policies) > 27:
            continue
        tried += 1
        best = np.full(mdp.n_states, -np.inf)
        for first, second in itertools.product(case.policies, repeat=2):
            best = np.maximum(best, reference.T_pi(case, first, reference.T_pi(case, second, case.v)))
        np.testing.assert_allclose(tr.T_h(mdp, case.v, 2), best, rtol=0, atol=case.slack(case.v))
        if tried == 100:
            break
    assert tried == 100


@pytest.mark.parametrize("h", [1, 2, 4])
def test_T_h_pi_takes_pi_once_and_then_the_best(h):
    for case, mdp in pool()[:300]:
        ahead = case.v if h == 1 else reference.T_h(case, case.v, h - 1)
        found = tr.T_h_pi(mdp, policy_of(mdp, case.pi), case.v, h)
        np.testing.assert_allclose(found, reference.T_pi(case, case.pi, ahead), rtol=0, atol=case.slack(case.v))


def test_h_greedy_attains_T_h():
    for case, mdp in pool()[:300]:
        pi = tr.h_greedy(mdp, case.v, 3)
        np.testing.assert_array_equal(tr.T_h_pi(mdp, pi, case.v, 3), tr.T_h(mdp, case.v, 3))


@pytest.mark.parametrize("h", [0, -1, 1.5, 2.0, "2", None, True])
def test_h_must_be_a_positive_integer(h):
    mdp = mdp_of(reference.tightrope(1.0, 0.9))
    pi = tr.Policy.uniform(mdp)
    for operator in (
        lambda: tr.T_h(mdp, np.zeros(4), h),
        lambda: tr.T_h_pi(mdp, pi, np.zeros(4), h),
        lambda: tr.h_greedy(mdp, np.zeros(4), h),
        lambda: tr.h_greedy_set(mdp, np.zeros(4), h),
    ):
        with pytest.raises(InvalidArgument, match="h must be an integer >= 1; found"):
            operator()
