"""What an iteration leaves inexact is what it says: a policy κ-greedy, and a value exact, to within the stated accuracy."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import reference as ref
import tightrope as tr
from bridge import mdp_of
from tightrope.engine import Limits, Monitor, chain
from tightrope.engine.backend import HERE, Here
from tightrope.engine.outline import outline
from tightrope.model import problems
from tightrope.planning.evaluate import FINE, PRESENT, SHARE
from tightrope.planning.improve import FORCING

LARGE = {
    "values spread from sinks": lambda: problems.gridworld(60, 60, slip=0.1, gamma=0.999),
    "a band": lambda: problems.queue(2500, gamma=0.999),
    "neither": lambda: problems.garnet(2100, 3, 2, gamma=0.99, seed=3),
}


def stated(mdp, now, kappa, goal):
    """forcing (1-ξ) max(ξ gap, goal)."""
    xi = tr.xi(mdp.gamma, kappa)
    return FORCING * (1 - xi) * max(xi * now.certificate.gap, goal)


@pytest.mark.parametrize("kappa", [0.3, 0.9])
@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_policy_is_kappa_greedy_to_the_stated_accuracy(make, kappa):
    mdp = make()
    algorithm = tr.kappa_pi(kappa)
    now = algorithm.init(mdp)
    for _ in range(3):
        goal = 1e-6 * now.certificate.scale
        after = algorithm.step(mdp, now, goal=goal)
        best = tr.T_kappa(mdp, now.v, kappa)
        loss = best - tr.T_kappa_pi(mdp, after.policy, now.v, kappa)
        assert loss.max() <= stated(mdp, now, kappa, goal) + 1e-9 * np.abs(best).max()
        now = after


def test_policy_is_kappa_greedy_to_the_stated_accuracy_in_random_models():
    for case in ref.random_cases(150, seed=21):
        if case.kappa == 0.0 or case.gamma > 0.999:
            continue
        mdp, algorithm = mdp_of(case), tr.kappa_pi(case.kappa)
        now = algorithm.init(mdp, case.v)
        for goal in (1e-6 * now.certificate.scale, 1e-3 * now.certificate.gap):
            pi = algorithm.improve.improve(mdp, now, Monitor(Limits()), goal).policy
            loss = (tr.T_kappa(mdp, case.v, case.kappa) - tr.T_kappa_pi(mdp, pi, case.v, case.kappa)).max()
            assert loss <= stated(mdp, now, case.kappa, goal) + 100 * case.slack(case.v, case.v_star)


def test_no_forcing_is_as_exact_as_floats_allow_and_some_is_not():
    mdp, kappa = problems.garnet(400, 4, 5, gamma=0.99, seed=5), 0.9
    losses = []
    for forcing in (0.0, 1.0):
        algorithm = tr.PolicyIteration(tr.Kappa(kappa, forcing), tr.Exact())
        now = algorithm.init(mdp)
        pi = algorithm.improve.improve(mdp, now, Monitor(Limits()), 1e-6).policy
        losses.append((tr.T_kappa(mdp, now.v, kappa) - tr.T_kappa_pi(mdp, pi, now.v, kappa)).max())
    assert losses[0] <= 1e-9
    assert losses[1] > 1e-3


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_value_is_exact_to_the_stated_accuracy(make):
    mdp = make()
    for algorithm in (tr.kappa_pi(0.9), tr.policy_iteration(), tr.h_pi(5)):
        now = algorithm.init(mdp)
        for _ in range(3):
            goal = 1e-6 * now.certificate.scale
            after = algorithm.step(mdp, now, goal=goal)
            truth = dense_value(mdp, after.policy)
            accuracy = max(SHARE * goal, PRESENT * now.certificate.gap)
            assert np.abs(after.v - truth).max() <= accuracy + 1e-10 * np.abs(truth).max()
            now = after


@pytest.mark.parametrize("lam", [0.0, 0.05, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_lambda_evaluation_is_exact_to_the_stated_accuracy(make, lam):
    mdp = make()
    now = tr.kappa_pi(0.9).init(mdp, np.random.default_rng(4).normal(size=mdp.n_states))
    found = tr.OneStep().improve(mdp, now, Monitor(Limits()), 1e-6)
    truth = tr.T_kappa_pi(mdp, found.policy, now.v, lam)
    for goal in (0.0, 1e-6):
        v = tr.Lambda(lam).evaluate(mdp, found, Monitor(Limits()), goal)
        assert np.abs(v - truth).max() <= FINE * goal + 1e-9 * np.abs(truth).max()


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_without_a_goal_the_value_is_as_exact_as_floats_allow(make):
    mdp = make()
    algorithm = tr.kappa_pi(0.9)
    after = algorithm.step(mdp, algorithm.init(mdp))
    truth = dense_value(mdp, after.policy)
    assert np.abs(after.v - truth).max() <= 1e-9 * max(np.abs(truth).max(), 1.0)


def dense_value(mdp, pi):
    P, r = pi.induced(mdp)
    return sp.linalg.spsolve(sp.csc_array(sp.identity(len(r)) - mdp.gamma * P), r)


@pytest.mark.parametrize("goal", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("guess", [None, 0.0, 5.0], ids=["no guess", "zero", "off"])
@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_value_of_any_policy_from_any_guess(make, guess, goal):
    """Also of policies that never reach a sink, along whose paths no value runs."""
    mdp = make()
    rng = np.random.default_rng(7)
    start = None if guess is None else np.full(mdp.n_states, guess)
    rows = mdp.first[:-1] + rng.integers(0, mdp.pairs.counts)
    for pi in (tr.Policy.of_rows(mdp.pairs, rows.astype(mdp.first.dtype)), tr.Policy.uniform(mdp)):
        v, truth = HERE.policy_value(mdp, pi, start, goal, Monitor(Limits())), dense_value(mdp, pi)
        assert np.abs(v - truth).max() <= goal + 1e-9 * max(np.abs(truth).max(), 1.0)
    assert guess is None or (start == guess).all()  # the guess is the caller's


def test_over_relaxation_against_the_drift_saves_sweeps(monkeypatch):
    mdp = problems.gridworld(60, 60, slip=0.3, gamma=0.999)
    pi, sweeps = tr.solve(mdp).policy, []
    for beyond in (0.0, chain.BEYOND):
        monkeypatch.setattr(chain, "BEYOND", beyond)
        watch = Monitor(Limits())
        v = HERE.policy_value(mdp, pi, np.zeros(mdp.n_states), 1e-6, watch)
        assert np.abs(v - dense_value(mdp, pi)).max() <= 1e-6
        sweeps.append(watch.backups / mdp.n_states)
    assert sweeps[1] < 0.75 * sweeps[0]


def test_over_relaxation_does_no_harm_where_moves_against_the_drift_go_far():
    """Round and round a ring, with a sink beside it that is rarely fallen into: the move back to the start is no short one."""
    S, leak = 400, 1e-4
    ring = np.arange(S - 1)
    rows = np.repeat(ring, 2), np.column_stack((np.roll(ring, -1), np.full(S - 1, S - 1))).ravel()
    P = sp.csr_array((np.tile([1.0 - leak, leak], S - 1), rows), shape=(S, S)) + sp.csr_array(
        ([1.0], ([S - 1], [S - 1])), shape=(S, S)
    )
    mdp = tr.MDP(P, np.append(np.cos(ring), 0.0), 0.999)
    assert mdp.has_sinks
    pi = tr.Policy.deterministic(mdp, 0)
    for goal in (1e-3, 1e-9):
        v = HERE.policy_value(mdp, pi, np.ones(S), goal, Monitor(Limits()))
        assert np.abs(v - dense_value(mdp, pi)).max() <= goal + 1e-10


def test_policies_are_evaluated_in_the_same_room_one_after_the_other():
    mdp = problems.gridworld(30, 30, slip=0.1, gamma=0.99)
    watch = Monitor(Limits())
    assert watch.inner(1.0).room is watch.room
    best, first = tr.solve(mdp).policy, tr.Policy.of_rows(mdp.pairs, mdp.first[:-1])
    one, other, again = (HERE.policy_value(mdp, pi, np.zeros(mdp.n_states), 1e-9, watch) for pi in (best, first, best))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.1


def test_a_monitor_handed_on_to_a_larger_model_makes_room_for_it():
    watch, algorithm = Monitor(Limits()), tr.kappa_pi(0.9)
    for mdp in (problems.gridworld(5, 5), problems.gridworld(40, 40, slip=0.1), problems.garnet(3000, 3, 4, seed=1)):
        twin = mdp.reshaped(2.0 * mdp.r, 0.5)
        assert watch.room.chain(mdp) is watch.room.chain(twin)
        now = algorithm.step(mdp, algorithm.init(mdp), watch, goal=1e-6)
        np.testing.assert_array_equal(now.v, algorithm.step(mdp, algorithm.init(mdp), goal=1e-6).v)


def test_a_backup_that_proves_the_greedy_policy_good_enough_is_all_there_is():
    """Where κ is below the forcing; and not where it is above."""

    class Unasked(Here):
        def optimise(self, *_):
            raise AssertionError

    mdp = problems.garnet(200, 3, 4, gamma=0.99, seed=8)
    now = tr.kappa_pi(0.2).init(mdp)
    watch = Monitor(Limits(), backend=Unasked())
    found = tr.Kappa(0.2).improve(mdp, now, watch, 1e-6)
    assert found.policy == now.greedy
    loss = (tr.T_kappa(mdp, now.v, 0.2) - tr.T_kappa_pi(mdp, found.policy, now.v, 0.2)).max()
    assert 0.0 < loss <= stated(mdp, now, 0.2, 1e-6)
    with pytest.raises(AssertionError):
        tr.Kappa(0.4).improve(mdp, now, watch, 1e-6)


def test_where_nothing_is_known_values_spread_from_the_sinks_whatever_kappa_is():
    """The one-step greedy policy is no start there: it knows of a goal only what has come to it step by step."""
    mdp = problems.gridworld(40, 40, slip=0.1, gamma=0.99)
    assert tr.solve(mdp, tr.kappa_pi(0.2)).iterations <= 10
    assert tr.solve(mdp, tr.policy_iteration()).iterations > 30


def test_long_evaluation_ends_with_the_time_there_is():
    mdp = problems.gridworld(60, 60, slip=0.1, gamma=0.9999)
    watch = Monitor(Limits(max_seconds=0.0))
    tr.Exact().evaluate(mdp, tr.OneStep().improve(mdp, tr.policy_iteration().init(mdp), watch, 1e-12), watch, 1e-12)
    assert watch.backups <= 2 * mdp.n_pairs + 30 * mdp.n_states


@pytest.mark.parametrize("algorithm", [tr.kappa_pi(0.9), tr.kappa_pi(1.0), tr.policy_iteration()], ids=repr)
def test_a_discount_that_rounding_takes_for_one_ends_with_a_status(algorithm):
    """Nothing is proved there, and no accuracy follows from a gap that is infinite."""
    sol = tr.solve(problems.garnet(30, gamma=1 - 1e-15), algorithm, max_iterations=50)
    assert not sol.converged
    assert sol.gap == np.inf


def test_what_depends_on_P_alone_is_found_once(monkeypatch):
    mdp = problems.queue(300, gamma=0.99)
    band = outline(mdp).band
    assert band is not None
    monkeypatch.setattr("tightrope.engine.direct.narrow_band", None)
    assert outline(tr.surrogate(mdp, np.zeros(301), 0.5)).band is band
    with pytest.raises(TypeError):
        outline(problems.queue(300, gamma=0.99))


def test_in_a_band_the_best_rewards_make_the_first_policy():
    """Its value is exact, whatever the improvement; κ-steps come after it."""
    mdp = problems.queue(300, gamma=0.99)
    rewards = np.array([mdp.r[lo:hi].argmax() + lo for lo, hi in itertools.pairwise(mdp.first)])
    for algorithm in (tr.policy_iteration(), tr.h_pi(3), tr.kappa_pi(0.9)):
        now = algorithm.init(mdp)
        np.testing.assert_array_equal(now.policy.rows, rewards)
        P, r = mdp.P[rewards].toarray(), mdp.r[rewards]
        np.testing.assert_allclose(now.v, np.linalg.solve(np.eye(301) - 0.99 * P, r), rtol=1e-11)


@pytest.mark.parametrize(
    ("mdp", "algorithm", "v0"),
    [
        (problems.queue(300, gamma=0.99), tr.kappa_pi(0.9), np.zeros(301)),  # somebody has said where to start
        (problems.queue(300, gamma=0.99), tr.value_iteration(), None),  # no policy is evaluated
        (problems.garnet(300, gamma=0.99), tr.kappa_pi(0.9), None),  # moves lead anywhere
        (problems.forest(300, gamma=0.99), tr.kappa_pi(0.9), None),  # everybody jumps to one state
        (problems.gridworld(20, 20), tr.kappa_pi(0.9), None),  # the policy of the best rewards may never get to the goal
    ],
    ids=["v0", "value iteration", "no band", "a hub", "sinks"],
)
def test_otherwise_an_algorithm_starts_at_zero(mdp, algorithm, v0):
    now = algorithm.init(mdp, v0)
    assert now.policy is None
    assert not now.v.any()


def test_iterate_knows_the_range_of_its_backup():
    for case in ref.random_cases(50, seed=22):
        mdp = mdp_of(case)
        now = tr.kappa_pi(0.5).init(mdp, case.v)
        change = ref.T(case, case.v) - case.v
        slack = case.slack(case.v)
        assert abs(now.change[0] - change.min()) <= slack
        assert abs(now.change[1] - change.max()) <= slack
        assert now.residual == max(abs(x) for x in now.change)
        low, high = now.extent
        assert low - slack <= case.v.min() <= case.v.max() <= high + slack
