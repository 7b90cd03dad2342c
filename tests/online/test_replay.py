"""Replayed transitions give what a plain transcription of Algorithm 1 gives, step by step and in the compiled loop."""

from __future__ import annotations

import numpy as np
import pytest

from reference_online import Algorithm1, expected_sarsa, flat, power, q_learning
from tightrope import MDP
from tightrope.online import ExpectedSarsa, Log, OnlineKappaPI, QLearning, StepSchedule, learn

ACTIONS = [2, 3, 1, 4, 3]
GAMMA = 0.9


@pytest.fixture(scope="module")
def mdp():
    rng = np.random.default_rng(1)
    rows = sum(ACTIONS)
    P = np.zeros((rows, 5))
    P[np.arange(rows), rng.integers(0, 5, rows)] += 0.5
    P[np.arange(rows), rng.integers(0, 5, rows)] += 0.5
    return MDP(P, rng.integers(-1, 2, rows), GAMMA, first=np.concatenate(([0], np.cumsum(ACTIONS))))


def transitions(n, seed=0):
    """Rewards are small whole numbers, so that values tie."""
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 5, n)
    actions = (rng.random(n) * np.array(ACTIONS)[states]).astype(int)
    return list(
        zip(
            states.tolist(),
            actions.tolist(),
            rng.integers(-1, 2, n).astype(float).tolist(),
            rng.integers(0, 5, n).tolist(),
            strict=True,
        )
    )


def log_of(mdp, listed):
    s, a, r, following = zip(*listed, strict=True)
    return Log(mdp.pairs, mdp.gamma, s, a, r, following)


def same(state, truth):
    np.testing.assert_allclose(state.q, flat(truth.q), rtol=0, atol=1e-12)
    np.testing.assert_allclose(state.q_kappa, flat(truth.q_kappa), rtol=0, atol=1e-12)
    np.testing.assert_allclose(state.pi, flat(truth.pi), rtol=0, atol=1e-12)
    assert state.pair_visits.tolist() == flat(truth.pair_visits)
    assert state.state_visits.tolist() == truth.state_visits


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("cautious", [True, False])
@pytest.mark.parametrize(
    ("schedule", "plain"),
    [
        (StepSchedule(0.6), power(0.6)),
        (StepSchedule.harmonic(2.0, 0.5), power(1.0, 0.5, 2.0)),
        (StepSchedule.constant(0.25), power(0.0, 0.25)),
        (StepSchedule.custom(lambda n: 1.0 / (n + 1) ** 0.7), power(0.7, 1.0, 1.0)),
    ],
    ids=["power", "harmonic", "constant", "custom"],
)
def test_replay_is_algorithm_1(mdp, kappa, cautious, schedule, plain):
    listed = transitions(3000)
    learner = OnlineKappaPI(kappa, fast=schedule, slow=StepSchedule.harmonic(1.0), cautious=cautious)
    truth = Algorithm1(ACTIONS, GAMMA, kappa, plain, power(1.0, 1.0, 1.0), cautious=cautious)
    state = learner.init(mdp)
    for i, transition in enumerate(listed):
        truth.step(*transition)
        returned = learner.step(state, *transition)
        assert returned is state
        if i in {0, 10, 100, 1000}:
            same(state, truth)
    same(state, truth)
    run = learn(log_of(mdp, listed), learner, len(listed))
    assert run.state.table.tobytes() == state.table.tobytes()
    assert run.state.state_visits.tobytes() == state.state_visits.tobytes()


def test_replay_begins_where_it_is_told(mdp):
    listed = transitions(200, seed=4)
    pi0 = [[1.0 / n + (0.1 if i == 0 and n > 1 else -0.1 / max(n - 1, 1) if n > 1 else 0.0) for i in range(n)] for n in ACTIONS]
    learner = OnlineKappaPI(0.3)
    truth = Algorithm1(ACTIONS, GAMMA, 0.3, power(0.6), power(1.0, 1.0, 1.0), pi0=pi0, q0=0.5, q_kappa0=2.0)
    state = learner.init(mdp, pi0=flat(pi0), q0=0.5, q_kappa0=np.full(sum(ACTIONS), 2.0))
    for transition in listed:
        truth.step(*transition)
        learner.step(state, *transition)
    same(state, truth)


def test_ties_go_to_the_lowest_action():
    learner = OnlineKappaPI(0.5, slow=StepSchedule.constant(0.5))
    state = learner.init((1, 3), gamma=0.5)
    learner.step(state, 0, 2, 0.0, 0)
    assert state.pi.tolist() == [1 / 3 + 0.5 * (1 - 1 / 3), 1 / 3 - 0.5 / 3, 1 / 3 - 0.5 / 3]


def test_a_tie_that_rounding_breaks_still_counts_as_a_tie():
    """All q equal: v = Σ π q exceeds q by rounding when π sums to more than one, and b_s must not see a difference."""
    pi0, q0 = np.array([0.1, 0.1, 0.8]), np.full(3, 3.3)
    assert 0.1 * 3.3 + 0.1 * 3.3 + 0.8 * 3.3 > 3.3
    learner = OnlineKappaPI(1.0, fast=StepSchedule.constant(1e-300), slow=StepSchedule.constant(1.0))
    state = learner.init((1, 3), gamma=0.0, pi0=pi0, q0=q0, q_kappa0=[0.0, 0.0, 1.0])
    learner.step(state, 0, 0, 3.3, 0)
    assert state.pi.tolist() == [0.0, 0.0, 1.0]


def test_caution_refuses_what_lowers_the_value():
    """q says action 0, q_κ says action 1: only the incautious learner moves towards 1."""
    for cautious, expected in ((True, [1.0, 0.0]), (False, [0.0, 1.0])):
        learner = OnlineKappaPI(1.0, fast=StepSchedule.constant(1e-300), slow=StepSchedule.constant(1.0), cautious=cautious)
        state = learner.init((1, 2), gamma=0.5, q0=[1.0, 0.0], q_kappa0=[0.0, 1.0])
        learner.step(state, 0, 0, 0.0, 0)
        assert state.pi.tolist() == expected


@pytest.mark.parametrize("cautious", [True, False])
def test_kappa_zero_is_asynchronous_policy_iteration(mdp, cautious):
    """At κ = 0 both q-functions are one and caution changes nothing."""
    run = learn(mdp, OnlineKappaPI(0.0, cautious=cautious), 5000, 2)
    other = learn(mdp, OnlineKappaPI(0.0, cautious=not cautious), 5000, 2)
    assert (run.state.q == run.state.q_kappa).all()
    assert run.state.table.tobytes() == other.state.table.tobytes()


@pytest.mark.parametrize("cautious", [True, False])
def test_kappa_one_tracks_q_learning(mdp, cautious):
    listed = transitions(4000, seed=7)
    run = learn(log_of(mdp, listed), OnlineKappaPI(1.0, cautious=cautious), len(listed))
    truth = q_learning(ACTIONS, GAMMA, power(0.6), listed)
    np.testing.assert_allclose(run.state.q_kappa, flat(truth), rtol=0, atol=1e-12)
    assert np.abs(run.state.q - run.state.q_kappa).max() > 1e-3


def test_q_learning_baseline(mdp):
    listed = transitions(4000, seed=8)
    run = learn(log_of(mdp, listed), QLearning(), len(listed))
    truth = q_learning(ACTIONS, GAMMA, power(0.6), listed)
    np.testing.assert_allclose(run.state.q, flat(truth), rtol=0, atol=1e-12)
    first = mdp.first
    for s, row in enumerate(truth):
        expected = np.zeros(len(row))
        expected[row.index(max(row))] = 1.0
        assert (run.state.pi[first[s] : first[s + 1]] == expected).all()


def test_expected_sarsa_baseline(mdp):
    listed = transitions(4000, seed=9)
    run = learn(log_of(mdp, listed), ExpectedSarsa(explore=0.3), len(listed))
    truth = expected_sarsa(ACTIONS, GAMMA, power(0.6), 0.3, listed)
    np.testing.assert_allclose(run.state.q, flat(truth), rtol=0, atol=1e-12)
    assert np.abs(np.array(flat(truth)) - flat(q_learning(ACTIONS, GAMMA, power(0.6), listed))).max() > 1e-3


def test_a_log_goes_round_again(mdp):
    listed = transitions(50, seed=3)
    twice = learn(log_of(mdp, listed + listed), OnlineKappaPI(0.3), 100)
    round_again = learn(log_of(mdp, listed), OnlineKappaPI(0.3), 100)
    assert twice.state.table.tobytes() == round_again.state.table.tobytes()
