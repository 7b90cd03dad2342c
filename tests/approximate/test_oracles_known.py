"""Oracles that look at the model: exact, worst, noisy, short of time."""

import numpy as np
import pytest

import reference
import reference_approximate as slow
import tightrope as tr
from bridge import mdp_of, policy_of, pool, weights_of
from tightrope.approximate import ApproximateVI, ConservativePI, Exact, Noisy, Problem, WorstCase, realised_delta
from tightrope.approximate.oracles.conservative import exact_step, step_size
from tightrope.errors import InvalidArgument
from tightrope.operators import value

RNG = np.random.default_rng


def ask_about(case, mdp):
    """The surrogate of a case and a measure with mass everywhere."""
    nu = RNG(len(case.v)).dirichlet(np.ones(len(case.v)))
    return Problem.original(mdp).surrogate(case.v, case.kappa), nu


def test_exact_has_no_error():
    for case, mdp in pool(200, 31):
        problem, nu = ask_about(case, mdp)
        pi = Exact()(problem, nu, RNG(0))
        assert slow.delta(case, case.v, weights_of(case, pi), nu, case.kappa) <= 20 * case.slack(case.v, case.v_star)


@pytest.mark.parametrize("deterministic", [False, True])
def test_worst_case_stays_within_delta(deterministic):
    for case, mdp in pool(80, 32):
        problem, nu = ask_about(case, mdp)
        returns = reference.kappa_returns(case, case.v, case.kappa) @ nu
        most = returns.max() - returns.min()
        rounding = 50 * case.slack(case.v, case.v_star)
        for share in (0.02, 0.5, 2.0):
            delta = share * most
            pi = WorstCase(delta, deterministic)(problem, nu, RNG(0))
            loss = slow.delta(case, case.v, weights_of(case, pi), nu, case.kappa)
            assert loss <= delta + rounding
            assert pi.is_deterministic or not deterministic
            if share > 1.0:  # more is allowed than can be lost: the worst policy of all
                assert loss >= most - rounding
            elif not deterministic:  # stochastic policies can lose anything: the class allows delta itself
                assert loss >= 0.95 * delta - rounding


def test_worst_case_comes_close_with_whole_states_where_there_are_many():
    mdp = tr.MDP.from_dense(RNG(1).dirichlet(np.ones(60) * 0.1, size=(60, 3)), RNG(2).normal(size=(60, 3)), 0.9)
    problem = Problem.original(mdp).surrogate(RNG(3).normal(size=60), 0.7)
    for delta in (0.01, 0.1, 1.0):
        pi = WorstCase(delta, deterministic=True)(problem, mdp.start, RNG(0))
        assert 0.95 * delta <= realised_delta(problem, pi, mdp.start) <= delta


def test_worst_case_hurts_more_than_noise_of_the_same_delta():
    """What makes it a worst case: with mass of ν on few states, the loss elsewhere is larger than noise would make it."""
    rng = RNG(4)
    mdp = tr.MDP.from_dense(rng.dirichlet(np.ones(40) * 0.1, size=(40, 3)), rng.normal(size=(40, 3)), 0.9)
    nu = np.full(40, 0.1 / 35)
    nu[:5] = 0.9 / 5
    nu /= nu.sum()
    problem = Problem.original(mdp).surrogate(np.zeros(40), 0.5)
    mu = np.full(40, 1 / 40)
    noisy = Noisy(0.3)(problem, nu, RNG(0))
    delta = realised_delta(problem, noisy, nu)
    worst = WorstCase(delta)(problem, nu, RNG(0))
    assert realised_delta(problem, worst, nu) == pytest.approx(delta)
    assert realised_delta(problem, worst, mu) > realised_delta(problem, noisy, mu)


def test_zero_delta_and_zero_noise_are_exact():
    for case, mdp in pool(60, 33):
        problem, nu = ask_about(case, mdp)
        for oracle in (WorstCase(0.0), Noisy(0.0)):
            pi = oracle(problem, nu, RNG(0))
            assert slow.delta(case, case.v, weights_of(case, pi), nu, case.kappa) <= 50 * case.slack(case.v, case.v_star)


def test_noise_costs_more_the_louder_it_is():
    mdp = tr.MDP.from_dense(RNG(1).dirichlet(np.ones(60), size=(60, 3)), RNG(2).normal(size=(60, 3)), 0.9)
    problem = Problem.original(mdp).surrogate(np.zeros(60), 0.7)
    loss = [
        np.mean([realised_delta(problem, Noisy(s)(problem, mdp.start, RNG(i)), mdp.start) for i in range(5)])
        for s in (0.1, 1, 10)
    ]
    assert loss[0] < loss[1] < loss[2]


def test_no_sweeps_is_the_one_step_greedy_policy_and_many_are_exact():
    for case, mdp in pool(100, 34):
        problem, nu = ask_about(case, mdp)
        assert tr.T_pi(mdp, ApproximateVI(0)(problem, nu, RNG(0)), case.v) == pytest.approx(
            reference.T(case, case.v), abs=20 * case.slack(case.v, case.v_star)
        )
        if case.kappa * case.gamma < 0.95:
            pi = ApproximateVI(600)(problem, nu, RNG(0))
            assert slow.delta(case, case.v, weights_of(case, pi), nu, case.kappa) <= 100 * case.slack(case.v, case.v_star)


def test_tolerance_is_kept_at_every_state():
    for case, mdp in pool(100, 35):
        if case.kappa * case.gamma > 0.99:
            continue  # value iteration is not made for it
        problem, nu = ask_about(case, mdp)
        size = float(np.abs(case.v_star).max()) + 1e-9
        pi = ApproximateVI(tolerance=0.01 * size)(problem, nu, RNG(0))
        best = reference.T_kappa(case, case.v, case.kappa)
        mine = reference.T_kappa_pi(case, weights_of(case, pi), case.v, case.kappa)
        assert (best - mine).max() <= 0.01 * size + 50 * case.slack(case.v)


def test_conservative_steps_improve_by_what_the_corollary_promises():
    """Kakade and Langford, Corollary 4.2, in the surrogate: ν(v^new - v) >= α𝔸/(2(1-g))."""
    for case, mdp in pool(150, 36):
        problem, nu = ask_about(case, mdp)
        if problem.gamma > 0.99:
            continue
        pi = policy_of(mdp, case.pi)
        step = exact_step(problem, pi, nu)
        rounding = 50 * case.slack(case.v, case.v_star)
        if step.largest <= 1e4 * rounding:
            continue  # already optimal
        alpha = step_size(step, problem.gamma)
        before, after = (nu @ value(problem.model, x) for x in (pi, tr.mix(pi, step.target, alpha)))
        assert after - before >= alpha * step.advantage / (2 * (1 - problem.gamma)) - rounding


def test_larger_steps_than_the_rule_allows_may_promise_too_much():
    """The negative twin: the promised gain α𝔸/(2(1-g)) fails for some α = 1."""
    broken = 0
    for case, mdp in pool(150, 36):
        problem, nu = ask_about(case, mdp)
        if problem.gamma > 0.99:
            continue
        pi = policy_of(mdp, case.pi)
        step = exact_step(problem, pi, nu)
        if step.largest <= 0:
            continue
        before, after = (nu @ value(problem.model, x) for x in (pi, step.target))
        broken += after - before < 0.5 * step.advantage / (1 - problem.gamma) - 1e-6 * abs(before)
    assert broken > 0


def test_conservative_policy_iteration_from_the_model_gets_there():
    case = reference.random_case(RNG(5), gamma=0.5, kappa=0.5)
    mdp = mdp_of(case)
    problem, nu = ask_about(case, mdp)
    losses = [realised_delta(problem, ConservativePI(rounds=n)(problem, nu, RNG(0)), nu) for n in (1, 30, 900)]
    assert losses[0] > losses[1] > losses[2]
    assert losses[2] < 0.01 * losses[0]


def test_conservative_policy_iteration_stops_at_its_tolerance():
    case = reference.random_case(RNG(5), gamma=0.5, kappa=0.5)
    problem, nu = ask_about(case, mdp_of(case))
    lazy = ConservativePI(rounds=10_000, tolerance=0.1)(problem, nu, RNG(0))
    assert exact_step(problem, lazy, nu).advantage <= 0.1 * 2 / 3


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: WorstCase(-0.1), "delta must be a finite number >= 0; found -0.1"),
        (lambda: WorstCase(float("nan")), "delta must be"),
        (lambda: Noisy(-1), "sigma must be"),
        (lambda: Noisy("loud"), "sigma must be a number; found 'loud'"),
        (ApproximateVI, "either sweeps or tolerance"),
        (lambda: ApproximateVI(3, 0.1), "either sweeps or tolerance"),
        (lambda: ApproximateVI(-1), "sweeps must be an integer"),
        (lambda: ApproximateVI(tolerance=0.0), "use Exact"),
        (lambda: ConservativePI(rounds=0), "rounds must be"),
        (lambda: ConservativePI(samples=0), "samples must be"),
        (lambda: ConservativePI(tolerance=-1), "tolerance must be"),
    ],
)
def test_bad_settings_are_refused(make, complaint):
    with pytest.raises(InvalidArgument, match=complaint):
        make()
