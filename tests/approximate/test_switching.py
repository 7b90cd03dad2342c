"""σ_{κ,k}: its value, its simulation, its conventions."""

import numpy as np
import pytest

import reference
import reference_approximate as slow
import tightrope as tr
from bridge import mdp_of, policy_of, pool
from tightrope.approximate import SwitchingPolicy
from tightrope.errors import InvalidArgument, InvalidFile, InvalidPolicy

KAPPAS = (0.0, 0.3, 0.9, 1.0)


def some_policies(case, rng, k):
    """k random deterministic policies [S, A]."""
    return [case.policies[int(rng.integers(len(case.policies)))] for _ in range(k)]


def sigma_of(mdp, policies, pi0, kappa):
    return SwitchingPolicy(kappa, [policy_of(mdp, pi) for pi in policies], policy_of(mdp, pi0))


def test_value_is_that_of_the_chain_on_stages():
    rng = np.random.default_rng(1)
    for case, mdp in pool(200, 5):
        policies = some_policies(case, rng, int(rng.integers(0, 5)))
        sigma = sigma_of(mdp, policies, case.pi, case.kappa)
        expected = slow.sigma_value(case, policies, case.pi, case.kappa)
        np.testing.assert_allclose(sigma.value(mdp), expected, rtol=0, atol=20 * case.slack(expected))


def monte_carlo_cases():
    rng = np.random.default_rng(2)
    for seed in range(50):
        case = reference.random_case(rng, gamma=0.8)
        policies = some_policies(case, rng, 3)
        yield seed, case, policies


def errors_in_standard_errors(value_of):
    """How many standard errors the simulation is from what `value_of` claims, for 50 MDPs and four κ."""
    scores = []
    for seed, case, policies in monte_carlo_cases():
        mdp = mdp_of(case)
        for kappa in KAPPAS:
            found = sigma_of(mdp, policies, case.pi, kappa).monte_carlo(mdp, 4_000, seed=seed)
            claimed = float(mdp.start @ value_of(case, policies, case.pi, kappa))
            off = abs(found.mean - claimed)
            scores.append((off / found.standard_error if found.standard_error > 1e-12 * abs(claimed) else off > 1e-6, kappa))
    return scores


def test_simulation_agrees_with_the_operator_product():
    def product(case, policies, pi0, kappa):
        mdp = mdp_of(case)
        return sigma_of(mdp, policies, pi0, kappa).value(mdp)

    scores = errors_in_standard_errors(product)
    assert len(scores) == 200
    assert max(z for z, _ in scores) < 4.0


@pytest.mark.parametrize(
    ("wrong", "kappas"),
    [
        (slow.sigma_value_from_zero, (0.0, 0.3, 0.9)),
        (lambda case, policies, pi0, kappa: slow.sigma_value(case, policies[::-1], pi0, kappa), KAPPAS),
    ],
    ids=["N from 0", "order reversed"],
)
def test_wrong_conventions_are_found_out(wrong, kappas):
    scores = errors_in_standard_errors(wrong)
    for kappa in kappas:
        assert sum(z > 4.0 for z, k in scores if k == kappa) >= 10


def test_stochastic_policies_are_simulated_too():
    for seed, case, policies in list(monte_carlo_cases())[:10]:
        mdp = mdp_of(case)
        sigma = sigma_of(mdp, [*policies, case.pi], policies[0], 0.5)
        found = sigma.monte_carlo(mdp, 4_000, seed=seed)
        assert abs(found.mean - mdp.start @ sigma.value(mdp)) <= 4.0 * found.standard_error + 1e-6


def test_acting_switches_after_each_step_with_probability_one_minus_kappa():
    case, mdp = pool(1, 9, gamma=0.9)[0]
    rng = np.random.default_rng(0)
    sigma = SwitchingPolicy(0.7, [policy_of(mdp, case.pi_2)] * 3, policy_of(mdp, case.pi))
    stage = sigma.reset(20_000)
    assert (stage == 3).all()
    states = np.zeros(20_000, dtype=int)
    steps = np.zeros(20_000)
    while (stage > 0).any():
        steps += stage > 0
        _, stage = sigma.act(states, stage, rng)
    assert steps.min() >= 3  # N_i >= 1
    assert abs(steps.mean() - 3 / 0.3) < 4 * steps.std() / np.sqrt(len(steps))


def test_acting_in_an_environment_earns_the_value():
    """Walk the model by hand with reset and act; the mean return is v^σ."""
    case = reference.random_case(np.random.default_rng(12), gamma=0.6)
    mdp = mdp_of(case)
    rng = np.random.default_rng(3)
    sigma = sigma_of(mdp, some_policies(case, rng, 3), case.pi, 0.5)
    n = 20_000
    states, stage, total = np.zeros(n, dtype=int), sigma.reset(n), np.zeros(n)
    for t in range(45):
        actions, stage = sigma.act(states, stage, rng)
        total += case.gamma**t * case.r[states, actions]
        ends = np.cumsum(case.P[states, actions], axis=1)
        states = (ends < rng.random((n, 1)) * ends[:, -1:]).sum(axis=1)
    assert abs(total.mean() - sigma.value(mdp)[0]) < 4 * total.std() / np.sqrt(n) + 1e-6


def test_acting_one_state_at_a_time_gives_plain_numbers():
    case, mdp = pool(1, 9)[0]
    sigma = SwitchingPolicy(0.0, [policy_of(mdp, case.pi_2)], policy_of(mdp, case.pi_2))
    action, stage = sigma.act(0, sigma.reset(), np.random.default_rng(0))
    assert (type(action), type(stage), stage) == (int, int, 0)
    assert action == case.pi_2[0].argmax()
    with pytest.raises(InvalidArgument, match="stages run from 1"):
        sigma.act(0, 2, np.random.default_rng(0))


def test_prune_keeps_the_value_and_stores_less():
    for case, mdp in pool(60, 11):
        a, b = policy_of(mdp, case.pi_2), policy_of(mdp, case.policies[-1])
        pi0 = policy_of(mdp, case.pi_2)
        sigma = SwitchingPolicy(case.kappa, [a, a, b, b, b, a], pi0)
        small = sigma.prune()
        assert len(small.policies) <= 2
        np.testing.assert_allclose(small.value(mdp), sigma.value(mdp), rtol=0, atol=20 * case.slack(case.v_star))
    case = reference.tightrope(2.0, 0.9)
    a, b = policy_of(mdp_of(case), case.pi_2), policy_of(mdp_of(case), case.pi)
    assert SwitchingPolicy(0.5, [a, a, a], b).prune().repeats == (3,)
    assert SwitchingPolicy(0.5, [b, b, a], b).prune().k == 1  # what equals pi_0 comes to an end at once


def test_pruning_to_one_geometric_stage_would_be_wrong():
    """The negative twin: three equal stages are not one stage, their length is negative binomial."""
    case = reference.tightrope(2.0, 0.9)
    mdp = mdp_of(case)
    a, b = policy_of(mdp, case.pi_2), policy_of(mdp, case.pi)
    three, one = SwitchingPolicy(0.5, [a, a, a], b), SwitchingPolicy(0.5, [a], b)
    assert np.abs(three.value(mdp) - one.value(mdp)).max() > 0.1


def test_the_seed_alone_decides(monkeypatch):
    case, mdp = pool(1, 13, gamma=0.9)[0]
    sigma = SwitchingPolicy(0.5, [policy_of(mdp, case.pi)], policy_of(mdp, case.pi_2))
    two = sigma.monte_carlo(mdp, 10_000, seed=3)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert sigma.monte_carlo(mdp, 10_000, seed=3) == two
    assert sigma.monte_carlo(mdp, 10_000, seed=4) != two


@pytest.mark.parametrize("stochastic", [False, True])
def test_saved_and_loaded(tmp_path, stochastic):
    for case, mdp in pool(20, 14):
        pi = policy_of(mdp, case.pi if stochastic else case.pi_2)
        sigma = SwitchingPolicy(case.kappa, [pi, policy_of(mdp, case.pi_2)], pi, (2, 1))
        sigma.save(tmp_path / "sigma.npz")
        back = SwitchingPolicy.load(tmp_path / "sigma.npz")
        assert (back.kappa, back.repeats, back.k) == (case.kappa, (2, 1), 3)
        assert np.array_equal(back.value(mdp), sigma.value(mdp))
    (tmp_path / "broken.npz").write_bytes(b"no")
    with pytest.raises(InvalidFile, match="broken"):
        SwitchingPolicy.load(tmp_path / "broken.npz")


def test_what_does_not_fit_is_refused():
    (_, mdp), (_, other) = pool(2, 15)
    pi0 = tr.Policy.uniform(mdp)
    with pytest.raises(InvalidPolicy, match="policy 2 of the sequence"):
        SwitchingPolicy(0.5, [pi0, tr.Policy.uniform(other)], pi0)
    with pytest.raises(InvalidArgument, match="kappa must lie in"):
        SwitchingPolicy(1.5, [pi0], pi0)
    with pytest.raises(InvalidPolicy, match="policy 1 of the sequence is 3, not a Policy"):
        SwitchingPolicy(0.5, [3], pi0)
    with pytest.raises(InvalidArgument, match="repeats has 2 entries for 1"):
        SwitchingPolicy(0.5, [pi0], pi0, (1, 2))
    with pytest.raises(InvalidArgument, match="walks must be an integer"):
        SwitchingPolicy(0.5, [pi0], pi0).monte_carlo(mdp, 0)


def test_prints_what_it_is():
    mdp = tr.MDP.from_dense(np.full((2, 1, 2), 0.5), np.ones((2, 1)), 0.9)
    pi = tr.Policy.uniform(mdp)
    assert repr(SwitchingPolicy(0.5, [pi, pi], pi)) == "SwitchingPolicy(kappa=0.5, k=2, 2 states)"
    other = tr.Policy.deterministic(mdp, 0)
    assert repr(SwitchingPolicy(0.5, [other], tr.Policy.uniform(mdp), (3,))).startswith(
        "SwitchingPolicy(kappa=0.5, k=3, 1 stored"
    )
