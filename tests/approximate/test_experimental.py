"""κ-CPI: soft updates that cannot make things worse, and those that can."""

from itertools import pairwise

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of, policy_of, pool
from tightrope.approximate import Exact, MonteCarloValue, Noisy, SampledModel, WorstCase, run
from tightrope.approximate.experimental import ExperimentalKappaCPI, cautious_target, kappa_cpi
from tightrope.errors import OracleFailed, UnsafeUpdate
from tightrope.model.sampler import ModelSource


@pytest.mark.parametrize("oracle", [Exact(), Noisy(1.0), SampledModel(1), WorstCase(1.0)])
def test_cautious_steps_improve_everywhere_whatever_the_oracle_says(oracle):
    for case, mdp in pool(30, 51, gamma=0.9):
        alpha = 0.05 + 0.9 * (len(case.v) % 3) / 3
        found = run(mdp, kappa_cpi(0.9, oracle, alpha, iterations=4), pi0=policy_of(mdp, case.pi), seed=1)
        v = case.v_pi
        for pi in found.policies:
            new = tr.value(mdp, pi)
            assert (new >= v - 50 * case.slack(case.v_star)).all()
            v = new


def test_bold_steps_with_alpha_at_least_kappa_improve_with_an_exact_oracle():
    for case, mdp in pool(30, 52, gamma=0.9):
        found = run(mdp, kappa_cpi(0.5, Exact(), 0.5, cautious=False, iterations=4), pi0=policy_of(mdp, case.pi))
        values = [case.v_pi, *(tr.value(mdp, pi) for pi in found.policies)]
        for before, after in pairwise(values):
            assert (after >= before - 50 * case.slack(case.v_star)).all()


def test_a_soft_step_is_repeated_even_with_kappa_one():
    """One call solves the problem, but a step of a half goes only half of the way there."""
    mdp = tr.problems.garnet(20, 3, 2, seed=4)
    soft = run(mdp, kappa_cpi(1.0, Exact(), 0.5, iterations=12))
    assert soft.iterations == 12
    losses = [row.loss for row in soft.rows]
    assert losses[-1] < 1e-2 * losses[0]
    assert run(mdp, tr.approximate.KappaAPI(1.0, Exact(), iterations=12)).iterations == 1


def test_bold_steps_can_make_things_worse():
    """The negative twin: on the Tightrope, alpha < kappa without caution loses."""
    case = reference.tightrope(3.0, 0.9)
    mdp = mdp_of(case)
    bold = object.__new__(ExperimentalKappaCPI)
    fine = kappa_cpi(1.0, Exact(), 0.2)
    for name in ("kappa", "oracle", "alpha", "nu", "iterations", "evaluate"):
        object.__setattr__(bold, name, getattr(fine, name))
    object.__setattr__(bold, "cautious", False)
    after = tr.value(mdp, run(mdp, bold, pi0=policy_of(mdp, case.pi)).policies[0])
    assert (after < tr.value(mdp, policy_of(mdp, case.pi)) - 0.1).any()


def test_an_unsafe_step_is_refused_with_the_remedy():
    with pytest.raises(UnsafeUpdate, match=r"alpha=0.3 is below kappa=0.5.*alpha >= kappa, or cautious=True"):
        kappa_cpi(0.5, Exact(), 0.3, cautious=False)


def test_a_cautious_target_keeps_stochastic_answers_where_they_do_not_lose():
    for case, mdp in pool(60, 53):
        answer = policy_of(mdp, case.pi)
        target = cautious_target(mdp, case.v, answer)
        backed = tr.T_pi(mdp, target, case.v)
        best, kept = reference.T(case, case.v), tr.T_pi(mdp, answer, case.v)
        rounding = 50 * case.slack(case.v)
        expected = np.where(kept >= case.v - rounding, kept, best)
        assert (np.abs(backed - expected) <= 2 * rounding).all()


def test_experimental_stands_in_its_name():
    algorithm = kappa_cpi(0.5, Exact(), 0.7, iterations=3)
    assert repr(algorithm).startswith("ExperimentalKappaCPI(kappa=0.5, oracle=Exact(), alpha=0.7, cautious=True")


def test_caution_needs_the_model():
    source = ModelSource(mdp_of(reference.tightrope(1.0, 0.9)))
    with pytest.raises(OracleFailed, match="ExperimentalKappaCPI needs the model"):
        run(source, kappa_cpi(0.5, SampledModel(2), 0.7, evaluate=MonteCarloValue(2)))
