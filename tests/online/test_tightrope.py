"""The Tightrope: who gets stuck (note B11), what exploration mends, and what caution is for (note B12)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tightrope import MDP, Policy, cautious, mix, q_kappa, q_value, value
from tightrope.model import problems
from tightrope.online import OnlineKappaPI, StepSchedule, learn, learn_seeds, resume

KAPPAS = (0.0, 0.5, 0.9, 1.0)
MDP_2 = problems.tightrope(2, 0.9)


def stuck(slow, *, explore=0.0, pi0=None, kappa=0.5, steps=60_000, seeds=12):
    """How many of the seeds end with the hesitant policy, whose loss is 8.1."""
    learner = OnlineKappaPI(kappa, slow=slow, explore=explore)
    runs = learn_seeds(MDP_2, learner, steps, 1, seeds=seeds, state=learner.init(MDP_2, pi0=pi0))
    return int((runs.loss > 8.0).sum())


@pytest.mark.filterwarnings("ignore::tightrope.online.MayGetStuck")
def test_who_gets_stuck():
    """The order of note B11; over 100 seeds the shares are .90 (1/n), .15 (.5 n^-.7), .02 (1/(n+1)) and 0 (.5/(n+1))."""
    hesitant = Policy.deterministic(MDP_2, 0)
    assert stuck(StepSchedule.harmonic(0.0)) >= 8
    assert stuck(StepSchedule.harmonic(1.0), pi0=hesitant) == 12
    assert 1 <= stuck(StepSchedule(0.7, 0.5), seeds=24) <= 16
    assert stuck(StepSchedule.harmonic(1.0)) <= 3
    assert stuck(StepSchedule.harmonic(1.0, 0.5)) == 0
    assert stuck(StepSchedule.harmonic(0.0), explore=0.2) == 0
    assert stuck(StepSchedule.harmonic(1.0), explore=0.2, pi0=hesitant) == 0


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("hesitant", [False, True])
def test_exploring_finds_the_optimum_for_every_kappa(kappa, hesitant):
    learner = OnlineKappaPI(kappa, explore=0.2)
    start = learner.init(MDP_2, pi0=Policy.deterministic(MDP_2, 0) if hesitant else None)
    runs = learn_seeds(MDP_2, learner, 100_000, 2, seeds=6, state=start)
    assert runs.loss.max() < 0.01


def garnet(rng, n_states, n_actions):
    P = rng.dirichlet(np.full(n_states, 0.3), size=(n_states, n_actions))
    return MDP.from_dense(P, rng.normal(size=(n_states, n_actions)), 0.9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kappa=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    alpha=st.sampled_from([0.01, 0.1, 0.5, 1.0]),
    n_actions=st.integers(2, 4),
)
def test_cautious_mean_field_updates_never_decrease_the_value(seed, kappa, alpha, n_actions):
    rng = np.random.default_rng(seed)
    mdp = garnet(rng, 5, n_actions)
    pi = Policy.stochastic(mdp, rng.dirichlet(np.ones(n_actions), size=5).ravel())
    for _ in range(3):
        before = value(mdp, pi)
        pi = mix(pi, cautious(mdp, q_value(mdp, pi), q_kappa(mdp, pi, kappa), pi), alpha)
        assert (value(mdp, pi) >= before - 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), ties=st.booleans())
def test_the_learner_moves_towards_the_operator_b_s(seed, ties):
    """One step that leaves q and q_κ as they are moves π to `cautious(mdp, q, q_κ, π)` in the visited state."""
    rng = np.random.default_rng(seed)
    mdp = garnet(rng, 4, 4)
    draw = (lambda: rng.integers(-2, 3, 16) + 0.5) if ties else (lambda: rng.normal(size=16))  # 0.0 would move by 1e-300
    q, ahead, weights = draw(), draw(), rng.dirichlet(np.ones(4), size=4).ravel()
    expected = cautious(mdp, q, ahead, Policy.stochastic(mdp, weights)).weights
    learner = OnlineKappaPI(0.5, fast=StepSchedule.constant(1e-300), slow=StepSchedule.constant(1.0))
    state = learner.init(mdp, pi0=weights, q0=q, q_kappa0=ahead)
    for s in range(4):
        learner.step(state, s, 0, 0.0, 0)
    np.testing.assert_array_equal(state.pi, expected)


def mean_field(mdp, kappa, alpha, *, careful, iterations=200):
    """v^π(s0) along π <- (1-α)π + α b from the hesitant policy, with exact q-functions."""
    pi, values = Policy.deterministic(mdp, 0), []
    for _ in range(iterations):
        values.append(value(mdp, pi)[0])
        q, ahead = q_value(mdp, pi), q_kappa(mdp, pi, kappa)
        if careful:
            target = cautious(mdp, q, ahead, pi)
        else:
            first = mdp.first
            target = Policy.of_rows(mdp.pairs, np.array([b + ahead[b:e].argmax() for b, e in itertools.pairwise(first)]))
        pi = mix(pi, target, alpha)
    return np.array(values)


def test_without_caution_the_value_dips():
    """The negative twin: with c = 20 the incautious walk falls far below where it began, the cautious one never."""
    mdp = problems.tightrope(20, 0.9)
    bold, careful = (mean_field(mdp, 1.0, 0.05, careful=careful) for careful in (False, True))
    assert bold.min() < -50
    assert careful.min() >= -1e-9
    assert (np.diff(careful) >= -1e-9).all()
    assert bold[-1] == pytest.approx(8.1, abs=0.01)
    assert careful[-1] == pytest.approx(8.1, abs=0.01)


def test_without_caution_the_learner_dips_too():
    """The same with samples: v^π(s0) of the policy that Algorithm 1 holds, from the hesitant policy on."""
    mdp = problems.tightrope(20, 0.9)
    hesitant = Policy.deterministic(mdp, 0)
    lowest = {}
    for careful in (True, False):
        learner = OnlineKappaPI(1.0, explore=0.2, cautious=careful, slow=StepSchedule.harmonic(20.0))
        run = learn(mdp, learner, 1, 3, state=learner.init(mdp, pi0=hesitant, q0=q_value(mdp, hesitant)))
        values = []
        for steps in range(100, 8000, 200):
            run = resume(run, mdp, steps)
            values.append(value(mdp, run.policy)[0])
        lowest[careful] = min(values)
        assert values[-1] > 5.0
    assert lowest[True] >= -1e-9
    assert lowest[False] < -20.0


def test_with_two_actions_a_cautious_step_is_a_one_step_greedy_step():
    """q(a_κ) >= v = π q(a_κ) + (1-π) q(b) with π < 1 says q(a_κ) >= q(b): κ matters from three actions on."""
    rng = np.random.default_rng(5)
    kappa_matters = {2: 0, 4: 0}
    for n_actions in kappa_matters:
        for _ in range(40):
            mdp = garnet(rng, 6, n_actions)
            pi = Policy.uniform(mdp)
            q = q_value(mdp, pi)
            chosen = cautious(mdp, q, q_kappa(mdp, pi, 1.0), pi)
            one = cautious(mdp, q, q, pi)
            kappa_matters[n_actions] += int(chosen != one)
    assert kappa_matters[2] == 0
    assert kappa_matters[4] > 5
