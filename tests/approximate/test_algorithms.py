"""Algorithms 2 and 3: what they reduce to, and what the performance theorem says about them."""

import numpy as np
import pytest

import reference
import reference_approximate as slow
import tightrope as tr
from bridge import mdp_of, policy_of, pool
from tightrope.approximate import Exact, KappaAPI, KappaPSDP, SampledModel, SwitchingPolicy, WorstCase, run
from tightrope.errors import InvalidArgument

KAPPAS = (0.0, 0.3, 0.9)


def dense_cases(n, seed):
    """Cases whose κ-greedy policies are unique, so that iterates are too."""
    return [(c, m) for c, m in pool(4 * n, seed, gamma=0.9) if c.kind == "dense" and len(c.v) > 1][:n]


@pytest.mark.parametrize("kappa", KAPPAS)
def test_with_the_exact_oracle_kappa_api_is_kappa_pi(kappa):
    for case, mdp in dense_cases(30, 41):
        seen = []

        def keep(row, seen=seen):
            seen.append(row)

        found = run(mdp, KappaAPI(kappa, Exact(), iterations=5), pi0=policy_of(mdp, case.pi), on_iteration=keep)
        expected = slow.kappa_pi(case, case.pi, kappa, 5)
        for pi, v in zip(found.policies, expected, strict=True):
            np.testing.assert_allclose(tr.value(mdp, pi), v, rtol=1e-10, atol=1e-10 * np.abs(case.v_star).max())
        np.testing.assert_allclose(found.value, expected[-1], rtol=1e-10, atol=1e-10 * np.abs(case.v_star).max())
        assert [row.iteration for row in seen] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("kappa", KAPPAS)
def test_with_the_exact_oracle_kappa_psdp_is_kappa_vi(kappa):
    for case, mdp in pool(30, 42, gamma=0.9):
        found = run(mdp, KappaPSDP(kappa, Exact(), iterations=5), pi0=policy_of(mdp, case.pi))
        expected = slow.kappa_vi(case, case.v_pi, kappa, 5)[-1]
        np.testing.assert_allclose(found.value, expected, rtol=1e-10, atol=1e-10 * np.abs(case.v_star).max())
        np.testing.assert_allclose(found.policy.value(mdp), expected, rtol=1e-10, atol=1e-10 * np.abs(case.v_star).max())


def test_kappa_zero_asks_for_one_step_greedy_policies():
    """API and PSDP as they were known: the surrogate has discount zero."""
    for case, mdp in dense_cases(10, 43):
        asked = []

        def oracle(problem, nu, rng, asked=asked):
            asked.append(problem.gamma)
            return Exact()(problem, nu, rng)

        found = run(mdp, KappaAPI(0.0, oracle, iterations=2), pi0=policy_of(mdp, case.pi))
        assert asked == [0.0, 0.0]
        assert tr.T_pi(mdp, found.policies[0], case.v_pi) == pytest.approx(reference.T(case, case.v_pi))


@pytest.mark.parametrize("kind", [KappaAPI, KappaPSDP])
def test_kappa_one_calls_the_oracle_once_on_the_original_problem(kind):
    for case, mdp in dense_cases(10, 44):
        asked = []

        def oracle(problem, nu, rng, asked=asked):
            asked.append((problem.gamma, problem.model.r))
            return Exact()(problem, nu, rng)

        found = run(mdp, kind(1.0, oracle, iterations=20))
        assert len(asked) == 1
        assert asked[0][0] == mdp.gamma
        assert np.shares_memory(asked[0][1], mdp.r)
        assert "one call" in str(found.status)
        np.testing.assert_allclose(found.value, case.v_star, rtol=1e-9)


def test_the_trace_measures_what_the_paper_defines():
    rng = np.random.default_rng(1)
    for case, mdp in pool(20, 45, gamma=0.9):
        nu, mu = rng.dirichlet(np.ones(len(case.v)), size=2)
        for kind in (KappaAPI, KappaPSDP):
            found = run(mdp, kind(0.5, SampledModel(2), nu, 3), pi0=policy_of(mdp, case.pi), mu=mu, seed=3)
            v, sequence = case.v_pi, []
            for k, pi in enumerate(found.policies):
                weights = np.zeros(case.r.shape)
                weights[case.ok] = pi.weights
                sequence.append(weights)
                rounding = 50 * case.slack(case.v_star)
                assert found["delta"][k + 1] == pytest.approx(slow.delta(case, v, weights, nu, 0.5), abs=rounding)
                psdp = slow.sigma_value(case, sequence, case.pi, 0.5)
                v = psdp if kind is KappaPSDP else reference.value(case, weights)
                assert found["loss"][k + 1] == pytest.approx(max(0.0, mu @ (case.v_star - v)), abs=rounding)
            assert found["value_error"].max() <= 50 * case.slack(case.v_star)
            assert (np.diff(found["samples"]) == 2 * (~mdp.terminal[mdp.pairs.states]).sum()).all()


def test_kappa_psdp_with_the_worst_oracle_stays_within_its_bound():
    """Statement 1 of the κ-PSDP theorem, with the V of notes B1, for the worst policies that δ allows."""
    rng = np.random.default_rng(2)
    worst = 0.0
    for case, mdp in pool(20, 46, gamma=0.9):
        S = len(case.v)
        nu, mu = 0.9 * rng.dirichlet(np.ones(S), size=2) + 0.1 / S
        V = np.ptp(case.r[case.ok]) / (1 - case.gamma)
        for kappa in (0.0, 0.5, 0.9):
            found = run(mdp, KappaPSDP(kappa, WorstCase(0.05 * V), nu, 4), pi0=policy_of(mdp, case.pi), mu=mu)
            bound = slow.psdp_bound(case, mu, nu, kappa, found.delta, 4, V)
            assert found.loss <= bound + 50 * case.slack(case.v_star)
            worst = max(worst, found.loss / bound if bound > 0 else 0.0)
    assert worst > 0.3  # the bound is worth having: the worst case comes near it


def test_the_printed_constant_is_too_small_for_signed_rewards():
    """The negative twin (notes B1): R_max/(1-γ) in place of span(r)/(1-γ) is exceeded."""
    P = np.zeros((3, 2, 3))
    P[[0, 1, 2, 2], [0, 0, 0, 1], [0, 0, 2, 2]] = 1.0
    P[[0, 1], 1, [1, 2]] = 1.0
    r = np.array([[-1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    mdp = tr.MDP.from_dense(P, r, 0.9)
    mu = np.array([1.0, 0.0, 0.0])
    found = run(mdp, KappaPSDP(0.0, Exact(), iterations=1), pi0=tr.Policy.deterministic(mdp, 0), mu=mu)
    printed, corrected = 0.9 * 1.0 / 0.1, 0.9 * 2.0 / 0.1
    assert found.delta == 0.0
    assert found.loss == pytest.approx(16.2)
    assert found.loss > printed
    assert found.loss <= corrected


def test_kappa_api_returns_a_policy_and_kappa_psdp_a_switching_one():
    mdp = mdp_of(reference.tightrope(1.0, 0.9))
    assert isinstance(run(mdp, KappaAPI(0.5, Exact(), iterations=2)).policy, tr.Policy)
    sigma = run(mdp, KappaPSDP(0.5, Exact(), iterations=3)).policy
    assert isinstance(sigma, SwitchingPolicy)
    assert sigma.k == 3


@pytest.mark.parametrize("kind", [KappaAPI, KappaPSDP])
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"kappa": 1.1}, r"kappa must lie in \[0, 1\]; found 1.1"),
        ({"iterations": 0}, "iterations must be an integer >= 1; found 0"),
        ({"nu": [0.5, 0.6, 0.0, 0.0]}, "nu sums to 1.1; a distribution over states sums to 1"),
        ({"nu": [1.5, -0.5, 0.0, 0.0]}, r"nu\[1\] is -0.5"),
        ({"nu": 0.5}, "nu must have shape"),
        ({"oracle": Exact}, r"oracle must be a function.*did you mean Exact\(\.\.\.\)"),
        ({"oracle": "exact"}, "oracle must be a function or one of the ready-made ones; found 'exact'"),
        ({"evaluate": None}, "evaluate must be a function"),
    ],
)
def test_bad_settings_are_refused(kind, settings, complaint):
    with pytest.raises(InvalidArgument, match=complaint):
        kind(**{"kappa": 0.5, "oracle": Exact()} | settings)


def test_functions_print_by_name():
    def mine(problem, nu, rng):
        return Exact()(problem, nu, rng)

    assert repr(KappaAPI(0.5, mine, iterations=3)) == "KappaAPI(kappa=0.5, oracle=mine, iterations=3, evaluate=ExactValue())"


def test_nu_of_another_model_is_refused_before_anything_is_run():
    mdp = mdp_of(reference.tightrope(1.0, 0.9))
    with pytest.raises(InvalidArgument, match=r"nu must have shape \(4,\)"):
        run(mdp, KappaAPI(0.5, Exact(), nu=[0.5, 0.5]))
    with pytest.raises(InvalidArgument, match="mu sums to 2"):
        run(mdp, KappaAPI(0.5, Exact()), mu=[0.5, 0.5, 0.5, 0.5])
