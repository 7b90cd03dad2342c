"""Every algorithm reaches v*, certifies it, and says honestly when it could not."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import reference as ref
import tightrope as tr
from bridge import mdp_of
from tightrope.engine.backend import Here
from tightrope.errors import InvalidArgument, InvalidPolicy, UnsafeUpdate
from tightrope.model import problems

ALGORITHMS = [
    None,
    tr.policy_iteration(),
    tr.policy_iteration(alpha=0.5),
    tr.value_iteration(),
    tr.modified_policy_iteration(7),
    tr.h_pi(1),
    tr.h_pi(4),
    tr.h_vi(3),
    tr.kappa_pi(0.0),
    tr.kappa_pi(0.7),
    tr.kappa_pi(1.0),
    tr.kappa_pi(0.3, alpha=0.6),
    tr.kappa_vi(0.6),
    tr.kappa_lambda_pi(0.4, 0.8),
    tr.PolicyIteration(tr.Kappa(0.5), tr.Sweeps(3)),
    tr.PolicyIteration(tr.Lookahead(3), tr.Lambda(0.5)),
    tr.PolicyIteration(tr.Kappa(0.5, forcing=0.0), tr.Exact()),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_certified_bounds_contain_an_independent_optimum(algorithm):
    for case in ref.random_cases(60, seed=1):
        if case.gamma > 0.99:
            continue  # a million sweeps for the slow recipes; the engine's own test goes there
        mdp = mdp_of(case)
        sol = tr.solve(mdp, algorithm)
        assert sol.converged
        slack = case.slack(case.v_star)
        assert (sol.lower <= case.v_star + slack).all()
        assert (case.v_star <= sol.upper + slack).all()
        assert (case.v_star - tr.value(mdp, sol.policy)).max() <= sol.gap + slack
        scale = max(np.abs(sol.lower).max(), np.abs(sol.upper).max(), 1e-280)  # a smaller scale is zero
        assert sol.gap <= 1e-6 * scale * (1 + 1e-9)


def test_engine_at_a_discount_of_one_in_a_million():
    for case in ref.random_cases(200, seed=2, gamma=0.999999):
        sol = tr.solve(mdp_of(case))
        assert sol.converged
        assert np.abs(sol.value - case.v_star).max() <= sol.gap + case.slack(case.v_star)


def test_table_of_recipes_prints_the_theory():
    assert repr(tr.kappa_pi(0.9)) == "PolicyIteration(improve=Kappa(0.9), evaluate=Exact())"
    assert repr(tr.h_vi(3)) == "PolicyIteration(improve=Lookahead(h=3), evaluate=Sweeps(m=1))"
    assert repr(tr.kappa_vi(0.5)) == "PolicyIteration(improve=Kappa(0.5), evaluate=Lambda(lam=0.5))"
    assert repr(tr.policy_iteration(alpha=0.5)) == "PolicyIteration(improve=OneStep(), evaluate=Exact(), alpha=0.5)"
    assert tr.kappa_pi(0.5) == tr.kappa_pi(0.5)
    assert tr.kappa_pi(0.5) != tr.kappa_pi(0.6)


@pytest.mark.parametrize(
    ("model", "algorithm", "words"),
    [
        (np.eye(3), None, "solve needs a model: .* found ndarray"),
        (tr.problems.tightrope(2, 0.9), "pi", "algorithm must be one such as .* found 'pi'"),
    ],
)
def test_what_is_no_model_or_no_algorithm_is_said_to_be_none(model, algorithm, words):
    with pytest.raises(tr.errors.InvalidArgument, match=words):
        tr.solve(model, algorithm)


def test_ctrl_c_within_an_improvement_ends_the_run():
    """The engine keeps its best and returns; the loop around it must not go on as if nothing had been pressed."""

    class Pressed(Here):
        def optimise(self, mdp, monitor, v0, look=None):
            super().optimise(mdp, monitor, v0, look)
            return tr.Status.INTERRUPTED

    mdp = problems.gridworld(20, 20, gamma=0.99)
    sol = tr.solve(mdp, tr.kappa_pi(0.5), backend=Pressed())
    assert sol.status is tr.Status.INTERRUPTED
    assert sol.iterations == 0
    best = tr.solve(mdp, tol=1e-9).value
    assert (sol.lower <= best).all()
    assert (best <= sol.upper).all()


def iterates(mdp, algorithm, v0, n):
    now = algorithm.init(mdp, v0)
    out = [now]
    for _ in range(n):
        now = algorithm.step(mdp, now)
        out.append(now)
    return out


def test_limits_pin_the_names():
    """h = 1 and κ = 0 are policy iteration; κ = 1 is optimal after one improvement, whatever v was."""
    for case in ref.random_cases(300, seed=3):
        mdp = mdp_of(case)
        plain = iterates(mdp, tr.policy_iteration(), case.v, 3)
        for same in (tr.h_pi(1), tr.kappa_pi(0.0)):
            for a, b in zip(plain, iterates(mdp, same, case.v, 3), strict=True):
                np.testing.assert_array_equal(a.v, b.v)
        after = iterates(mdp, tr.kappa_pi(1.0), case.v, 1)[-1]
        assert np.abs(after.v - case.v_star).max() <= 100 * case.slack(case.v_star)


def test_kappa_pi_and_h_pi_contract_and_improve():
    """max(v* - v^{k+1}) <= ξ max(v* - v^k), respectively γ^h, and v^{k+1} >= v^k."""
    for case in ref.random_cases(400, seed=4):
        mdp = mdp_of(case)
        slack = 100 * case.slack(case.v_star, case.v_pi)
        for algorithm, modulus in (
            (tr.PolicyIteration(tr.Kappa(case.kappa, forcing=0.0), tr.Exact()), ref.xi(case.gamma, case.kappa)),
            (tr.h_pi(3), case.gamma**3),
        ):
            seen = iterates(mdp, algorithm, case.v_pi, 2)
            for a, b in itertools.pairwise(seen):
                assert (b.v >= a.v - slack).all()
                assert (case.v_star - b.v).max() <= modulus * (case.v_star - a.v).max() + slack


def test_value_iteration_is_T_and_kappa_vi_is_T_kappa():
    for case in ref.random_cases(200, seed=5):
        mdp = mdp_of(case)
        slack = 100 * case.slack(case.v, case.v_star)
        assert np.abs(iterates(mdp, tr.value_iteration(), case.v, 1)[-1].v - ref.T(case, case.v)).max() <= slack
        assert np.abs(iterates(mdp, tr.h_vi(2), case.v, 1)[-1].v - ref.T_h(case, case.v, 2)).max() <= slack
        exact = tr.PolicyIteration(tr.Kappa(case.kappa, forcing=0.0), tr.Lambda(case.kappa))
        assert np.abs(iterates(mdp, exact, case.v, 1)[-1].v - ref.T_kappa(case, case.v, case.kappa)).max() <= slack


def test_soft_update_that_theorem_1_does_not_cover_is_refused_and_cites_it():
    for make in (
        lambda: tr.kappa_pi(0.9, alpha=0.5),
        lambda: tr.h_pi(2, alpha=0.99),
    ):
        with pytest.raises(UnsafeUpdate, match="Theorem 1"):
            make()
    tr.kappa_pi(0.5, alpha=0.5)
    tr.h_pi(1, alpha=0.1)


def test_soft_update_asked_for_explicitly_gets_worse_on_the_tightrope_and_no_smaller_alpha_does():
    mdp = problems.tightrope(c=2.0, gamma=0.9)
    hesitant = problems.hesitant(mdp)
    v0 = tr.value(mdp, hesitant)
    for alpha, worse in ((0.6, True), (0.7, False)):  # c/(1+c) = 2/3
        algorithm = tr.kappa_pi(1.0, alpha=alpha, non_monotone=True)
        after = algorithm.step(mdp, algorithm.init(mdp, pi0=hesitant))
        assert bool(after.v[0] < v0[0]) is worse


def test_bad_parameters_are_refused():
    for make in (
        lambda: tr.kappa_pi(-0.1),
        lambda: tr.kappa_pi(1.1),
        lambda: tr.kappa_pi(math.nan),
        lambda: tr.h_pi(0),
        lambda: tr.h_pi(1.5),
        lambda: tr.policy_iteration(alpha=0.0),
        lambda: tr.policy_iteration(alpha=1.1),
        lambda: tr.modified_policy_iteration(0),
        lambda: tr.kappa_lambda_pi(0.5, 0.4),
        lambda: tr.kappa_lambda_pi(0.5, 1.4),
        lambda: tr.PolicyIteration(tr.OneStep(), tr.Sweeps(2), alpha=0.5),
    ):
        with pytest.raises(InvalidArgument):
            make()
    mdp = problems.forest()
    for bad in (
        {"tol": -1.0},
        {"tol": math.nan},
        {"max_seconds": -1},
        {"max_iterations": 0},
        {"v0": [1.0]},
        {"v0": [0, 0, math.inf]},
    ):
        with pytest.raises(InvalidArgument):
            tr.solve(mdp, **bad)
    with pytest.raises(InvalidPolicy, match="another model"):
        tr.solve(mdp, pi0=tr.Policy.uniform(problems.chain()))


def test_limits_are_a_status_and_the_certificate_still_holds():
    mdp = problems.garnet(80, gamma=0.99)
    best = tr.solve(mdp, tol=1e-12).value
    for algorithm in (None, tr.value_iteration(), tr.kappa_pi(0.5)):
        short = tr.solve(mdp, algorithm, max_iterations=1)
        assert short.status is tr.Status.MAX_ITERATIONS
        assert not short.converged
        assert "max_iterations" in str(short.status)
        assert (short.lower <= best).all()
        assert (best <= short.upper).all()
    late = tr.solve(mdp, tr.value_iteration(), max_seconds=0.0)
    assert late.status is tr.Status.MAX_SECONDS


def test_ctrl_c_returns_the_best_so_far():
    mdp = problems.gridworld(12, 12, gamma=0.99)

    def stop(row):
        if row.iteration == 3:
            raise KeyboardInterrupt

    for algorithm in (tr.value_iteration(), tr.kappa_pi(0.3)):
        sol = tr.solve(mdp, algorithm, tol=1e-9, on_iteration=stop)
        assert sol.status is tr.Status.INTERRUPTED
        assert len(sol.trace) == 4
        assert (sol.lower <= tr.solve(mdp).upper).all()


@pytest.mark.parametrize("algorithm", [None, tr.value_iteration(), tr.kappa_pi(0.3)])
@pytest.mark.parametrize("tol", [1e-9, 1e3])
def test_ctrl_c_in_the_first_row_returns_what_it_says(algorithm, tol):
    """While somebody draws it, say; whether the run would have gone on or not."""
    mdp, seen = problems.gridworld(12, 12, gamma=0.99), []

    def stop(row):
        seen.append(row)
        raise KeyboardInterrupt

    sol = tr.solve(mdp, algorithm, tol=tol, on_iteration=stop)
    assert sol.status is tr.Status.INTERRUPTED
    assert sol.trace.rows == tuple(seen)
    assert sol.gap == seen[0].gap
    assert (sol.lower <= tr.solve(mdp).upper).all()


def test_impossible_precision_ends_with_a_status_not_a_loop():
    for gamma in (0.9, 0.999999):
        mdp = problems.garnet(30, gamma=gamma)
        for algorithm in (None, tr.policy_iteration(), tr.kappa_pi(0.9)):
            sol = tr.solve(mdp, algorithm, tol=0.0, max_iterations=2000)
            assert sol.status is tr.Status.PRECISION, algorithm
            assert sol.relative_gap < 1e-7


def test_atol_is_the_absolute_form():
    mdp = problems.forest()
    sol = tr.solve(mdp, atol=1e-3)
    assert sol.converged
    assert sol.gap <= 1e-3


def test_ties_do_not_make_policy_iteration_cycle():
    """All actions alike: every policy is optimal, and one iteration is enough to prove it."""
    S, A = 20, 4
    P = np.repeat(np.random.default_rng(0).dirichlet(np.ones(S), size=(S, 1)), A, axis=1)
    mdp = tr.MDP.from_dense(P, np.ones((S, A)), 0.95)
    for algorithm in (None, tr.policy_iteration(), tr.h_pi(3), tr.kappa_pi(0.9)):
        assert tr.solve(mdp, algorithm, tol=1e-10).iterations <= 2


def test_all_rewards_zero_converges_at_once():
    mdp = tr.MDP.from_dense(np.full((3, 2, 3), 1 / 3), np.zeros((3, 2)), 0.9)
    sol = tr.solve(mdp)
    assert sol.converged
    assert sol.gap == 0.0
    np.testing.assert_array_equal(sol.value, 0.0)


def test_warm_starts():
    mdp = problems.gridworld(20, 20, gamma=0.99)
    cold = tr.solve(mdp, tr.value_iteration())
    warm = tr.solve(mdp, tr.value_iteration(), v0=cold.value)
    assert warm.iterations < 0.2 * cold.iterations
    assert tr.solve(mdp, tr.policy_iteration(), pi0=cold.policy).iterations <= 1
    assert tr.solve(mdp, v0=cold.value).iterations <= 1
    assert tr.solve(mdp, pi0=cold.policy).iterations <= 1


def test_state_is_a_value_so_a_run_can_be_resumed_exactly():
    mdp = problems.garnet(40, gamma=0.9)
    algorithm = tr.kappa_pi(0.5)
    whole = iterates(mdp, algorithm, np.zeros(40), 4)
    middle = dataclasses.replace(whole[2])
    again = algorithm.step(mdp, algorithm.step(mdp, middle))
    np.testing.assert_array_equal(again.v, whole[4].v)
    assert again.policy == whole[4].policy


def test_solving_twice_gives_the_same_bits():
    mdp = problems.gridworld(30, 30, gamma=0.999)
    a, b = tr.solve(mdp), tr.solve(mdp)
    np.testing.assert_array_equal(a.value, b.value)
    assert [row[:-1] for row in a.trace.rows] == [row[:-1] for row in b.trace.rows]
