"""soft_update_is_safe against the slow reference and against both thresholds of the Tightrope."""

import re

import numpy as np
import pytest

from bridge import mdp_of, policy_of
from reference import random_cases, tightrope, value
from tightrope import Policy, kappa_greedy, mix, xi
from tightrope.errors import InvalidArgument, UnsafeUpdate
from tightrope.theory import soft_rate, soft_update_is_safe


@pytest.mark.parametrize("kappa", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.9, 1.0])
def test_theorem_1_in_general(alpha, kappa):
    answer = soft_update_is_safe(alpha, kappa=kappa)
    assert bool(answer) == (alpha >= kappa)
    assert "Theorem 1" in str(answer)
    assert str(answer).startswith("Safe in every MDP" if alpha >= kappa else "Not safe in every MDP")


def test_h_greater_than_one_needs_a_full_step():
    assert soft_update_is_safe(1.0, h=3)
    assert not soft_update_is_safe(0.999, h=2)
    assert soft_update_is_safe(0.001, h=1)  # the one-step greedy policy


@pytest.mark.parametrize("c", [0.5, 2.0, 20.0])
@pytest.mark.parametrize("gamma", [0.5, 0.99])
def test_both_thresholds_of_the_tightrope(c, gamma):
    """π* is κ-greedy iff c <= κ/(1-κ), and mixing with it then fails iff α < c/(1+c) (note B14)."""
    case = tightrope(c, gamma)
    mdp = mdp_of(case)
    pi = policy_of(mdp, case.pi)
    edge = c / (1.0 + c)
    for kappa in (edge - 1e-6, edge + 1e-6, 1.0):
        for alpha in (0.5 * edge, edge - 1e-6, edge + 1e-6, 1.0):
            answer = soft_update_is_safe(alpha, kappa=kappa, mdp=mdp, pi=pi)
            assert bool(answer) == (kappa < edge or alpha > edge), (kappa, alpha, str(answer))


def test_the_case_agrees_with_the_reference():
    """v' - v, its sign and both criteria of note B13, over random MDPs; failures do occur when alpha < kappa."""
    failures = 0
    for case in (c for c in random_cases(200, seed=5) if c.gamma <= 0.99):
        mdp = mdp_of(case)
        pi = policy_of(mdp, case.pi_2)
        for alpha in (0.05, 0.5, 1.0):
            answer = soft_update_is_safe(alpha, kappa=case.kappa, mdp=mdp, pi=pi)
            v = value(case, case.pi_2)
            target = np.zeros_like(case.pi)
            target[case.ok] = kappa_greedy(mdp, v, case.kappa).weights
            new = value(case, (1 - alpha) * case.pi_2 + alpha * target)
            np.testing.assert_allclose(answer.case.change, new - v, atol=2e-9 * (1 + np.abs(v).max()))
            assert answer.case.improves == bool((new - v).min() >= -1e-9 * (1 + np.abs(v).max()))
            if answer.always or answer.case.improves_for_every_alpha:
                assert answer.case.improves
            slope = (value(case, (1 - 1e-6) * case.pi_2 + 1e-6 * target) - v) / 1e-6
            if abs(slope.min()) > 1e-3 * (1 + np.abs(v).max()):
                assert answer.case.improves_for_small_alpha == (slope.min() > 0)
            failures += not answer.case.improves
            assert bool(answer) == (answer.always or answer.case.improves)
    assert failures > 0


def test_a_safe_step_shrinks_the_loss_at_the_promised_rate():
    for case in random_cases(200, seed=6, kappa=0.5):
        mdp = mdp_of(case)
        pi = policy_of(mdp, case.pi)
        loss = (case.v_star - case.v_pi).max()
        for alpha in (0.5, 0.8, 1.0):
            target = kappa_greedy(mdp, case.v_pi, 0.5)
            new = np.zeros_like(case.pi)
            new[case.ok] = mix(pi, target, alpha).weights
            after = (case.v_star - value(case, new)).max()
            assert after <= soft_rate(case.gamma, 0.5, alpha) * loss + case.slack(case.v_star)
    assert soft_rate(0.9, 0.5, 1.0) == pytest.approx(xi(0.9, 0.5), rel=1e-15)


def test_sentences_can_be_read_aloud():
    case = tightrope(2.0, 0.9)
    mdp = mdp_of(case)
    pi = policy_of(mdp, case.pi)
    sentence = str(soft_update_is_safe(0.5, kappa=0.9, mdp=mdp, pi=pi))
    assert "Not safe in every MDP: alpha = 0.5, kappa = 0.9" in sentence
    assert re.search(r"state 0 loses \d", sentence)
    assert "No small step is monotone here" in sentence
    best = policy_of(mdp, case.pi_2)
    assert "the policy is optimal already" in str(soft_update_is_safe(0.5, kappa=0.9, mdp=mdp, pi=best))
    assert "No alpha in (0, 1] can do harm" in str(soft_update_is_safe(0.5, kappa=0.0, mdp=mdp, pi=pi))


def test_bad_input_is_refused():
    case = tightrope(2.0, 0.9)
    mdp = mdp_of(case)
    for alpha in (0.0, -0.1, 1.5, float("nan")):
        with pytest.raises(InvalidArgument, match="alpha must lie in"):
            soft_update_is_safe(alpha, kappa=0.5)
    with pytest.raises(InvalidArgument, match="either kappa"):
        soft_update_is_safe(0.5)
    with pytest.raises(InvalidArgument, match="either kappa"):
        soft_update_is_safe(0.5, kappa=0.5, h=2)
    with pytest.raises(InvalidArgument, match="kappa must lie"):
        soft_update_is_safe(0.5, kappa=1.5)
    with pytest.raises(InvalidArgument, match="h must be an integer"):
        soft_update_is_safe(0.5, h=0)
    with pytest.raises(InvalidArgument, match="both mdp"):
        soft_update_is_safe(0.5, kappa=0.5, mdp=mdp)
    with pytest.raises(InvalidArgument, match="both mdp"):
        soft_update_is_safe(0.5, kappa=0.5, pi=Policy.uniform(mdp))
    with pytest.raises(UnsafeUpdate, match="Theorem 1"):
        soft_rate(0.9, 0.5, 0.4)
