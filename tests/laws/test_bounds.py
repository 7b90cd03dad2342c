"""Theorems 5 and 6 against worst-case oracles: enumeration finds the admissible policy that hurts most, every iteration."""

import numpy as np
import pytest

import reference_theory as ref
from tightrope import MDP, Policy
from tightrope.theory import concentrability, iterations_needed, kappa_api_bound, kappa_psdp_bound, value_span

KAPPAS = (0.0, 0.2, 0.5, 0.8, 0.95, 1.0)
DELTAS = (0.0, 0.01, 0.1, 1.0)
ITERATIONS = 6


def coefficients_of(d):
    return concentrability(MDP.from_dense(d.P, d.r, d.gamma), d.mu, d.nu)


def losses(seed, n):
    """n random MDPs with signed rewards, each with one δ and all κ: what κ-API and κ-PSDP lose in the worst case."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        d = ref.random_dense(rng)
        c = coefficients_of(d)
        delta = DELTAS[i % len(DELTAS)] * float(np.abs(d.r).max())
        start = int(d.values.sum(axis=1).argmin())
        for kappa in KAPPAS:
            api = ref.worst_api(d, kappa, delta, ITERATIONS, start)
            yield d, c, kappa, delta, start, api, ref.worst_psdp(d, kappa, delta, ITERATIONS, start)


def test_statement_1_and_every_other_statement_hold_with_worst_case_oracles():
    """100 MDPs x 6 κ x 6 k x 2 algorithms = 7,200 bounds, every statement of each checked on its own; none is violated."""
    checked, tight = 0, 0.0
    for d, c, kappa, delta, start, api, psdp in losses(seed=11, n=100):
        sharp = float((d.v_star - d.values[start]).max())
        room = 1e-10 * (1 + d.V) + ref.SLACK * (1 + d.V) * c.api_coefficient(kappa).upper
        for bound, loss in ((kappa_api_bound, api), (kappa_psdp_bound, psdp)):
            for k in range(1, ITERATIONS + 1):
                general, known = bound(c, kappa, delta, k), bound(c, kappa, delta, k, V=sharp)
                for statement in general.statements + known.statements:
                    assert loss[k - 1] <= statement.total.upper + room, (bound.__name__, statement.name, kappa, delta, k)
                checked += 1
                tight = max(tight, loss[k - 1] / max(known.value, 1e-9))
    assert checked >= 5_000
    assert tight > 0.5  # the bounds are loose on average, but not empty


def test_statement_1_holds_with_stochastic_oracles_that_use_the_whole_error():
    """The oracle mixes its greedy policy with any other one as far as δ allows; two iterations are searched exhaustively."""
    rng = np.random.default_rng(16)
    for _ in range(20):
        d = ref.random_dense(rng)
        c, delta = coefficients_of(d), float(rng.choice([0.01, 0.1])) * float(np.abs(d.r).max())
        for kappa in KAPPAS:
            first = ref.saturating_values(d, d.values[0], kappa, delta)
            room = 1e-9 * (1 + d.V) + ref.SLACK * (1 + d.V) * c.api_coefficient(kappa).upper
            second = min((ref.saturating_values(d, v, kappa, delta) @ d.mu).min() for v in first)
            one, two = (kappa_api_bound(c, kappa, delta, k).statements[0].total.upper for k in (1, 2))
            assert d.mu @ d.v_star - (first @ d.mu).min() <= one + room
            assert d.mu @ d.v_star - second <= two + room


def test_the_limit_of_many_iterations_holds():
    rng = np.random.default_rng(12)
    for _ in range(10):
        d = ref.random_dense(rng)
        c = coefficients_of(d)
        for kappa in KAPPAS:
            for bound, worst in ((kappa_api_bound, ref.worst_api), (kappa_psdp_bound, ref.worst_psdp)):
                late = worst(d, kappa, 0.1, 400 if kappa < 0.5 else 60, 0)[-1]
                assert late <= bound(c, kappa, 0.1).value + 1e-7 * (1 + d.V)


def chain_of_the_notes(gamma=0.9):
    """Three states, r = -1 except +1 at the goal, which absorbs (note B1)."""
    P = np.zeros((3, 2, 3))
    for s, t in ((0, 1), (1, 2), (2, 2)):
        P[s, 0, s] = P[s, 1, t] = 1.0
    r = np.full((3, 2), -1.0)
    r[2] = 1.0
    return ref.Dense(P, r, gamma, np.array([0.0, 1.0, 0.0]), np.ones(3) / 3)


def test_the_printed_constant_is_violated_by_the_chain_of_the_notes():
    """Negative twin: R_max/(1-γ) is too small for signed rewards, in both theorems, with an exact oracle."""
    d = chain_of_the_notes()
    c = coefficients_of(d)
    stay = int(np.argmin(d.values.sum(axis=1)))
    for bound, worst in ((kappa_api_bound, ref.worst_api), (kappa_psdp_bound, ref.worst_psdp)):
        lost = {}
        for mu in np.eye(3):
            case = ref.Dense(d.P, d.r, d.gamma, mu, d.nu)
            lost[int(mu.argmax())] = worst(case, 0.0, 0.0, 1, stay)[0]
        state = max(lost, key=lost.get)
        c = coefficients_of(ref.Dense(d.P, d.r, d.gamma, np.eye(3)[state], d.nu))
        assert lost[state] == pytest.approx(16.2)
        assert bound(c, 0.0, 0.0, 1, printed=True).value == pytest.approx(9.0)
        assert bound(c, 0.0, 0.0, 1).value >= 16.2
    assert value_span(c.mdp) == pytest.approx(20.0)


def test_printed_statement_1_holds_for_rewards_in_0_1():
    rng = np.random.default_rng(13)
    for _ in range(25):
        d = ref.random_dense(rng)
        d = ref.Dense(d.P, rng.random(d.r.shape), d.gamma, d.mu, d.nu)
        c = coefficients_of(d)
        for kappa in (0.0, 0.5, 1.0):
            for bound, worst in ((kappa_api_bound, ref.worst_api), (kappa_psdp_bound, ref.worst_psdp)):
                lost = worst(d, kappa, 0.05, 4, 0)
                for k in range(1, 5):
                    assert lost[k - 1] <= bound(c, kappa, 0.05, k, printed=True).statements[0].total.upper + 1e-10


def test_printed_statement_2_of_kappa_psdp_holds_at_its_own_number_of_iterations():
    """Note B2: without the ceil, and for 0 < δ < V and rewards in [0, R_max], the printed form is still true for κ-PSDP."""
    rng = np.random.default_rng(18)
    for _ in range(15):
        d = ref.random_dense(rng, gamma=0.8)
        d = ref.Dense(d.P, rng.random(d.r.shape), d.gamma, d.mu, d.nu)
        c = coefficients_of(d)
        for kappa in (0.0, 0.3, 0.9):
            for delta in (1e-3, 0.1, 1.0):
                V = d.r.max() / (1 - d.gamma)
                k = int(iterations_needed(d.gamma, kappa, delta, V, printed=True))
                printed = kappa_psdp_bound(c, kappa, delta, k, printed=True).statements[1]
                assert f"(k = {k})" in printed.name
                assert ref.worst_psdp(d, kappa, delta, k, 0)[-1] <= printed.total.upper + 1e-9


def test_an_uncovered_state_makes_the_theorem_silent_even_without_error():
    """ν(s) = 0 leaves the policy at s free, so δ = 0 promises nothing: 0·∞ = ∞ here (note B3), unlike in the weights (B9)."""
    d = chain_of_the_notes()
    c = coefficients_of(ref.Dense(d.P, d.r, d.gamma, np.eye(3)[0], np.array([0.5, 0.0, 0.5])))
    bound = kappa_psdp_bound(c, 0.0, 0.0, 100)
    assert bound.statements[0].total.upper == np.inf
    assert bound.best.name == "any policy"
    assert "nu = 0 at a state that is reached" in str(bound)
    # and the free policy does lose: the worst admissible one never moves on from the uncovered state
    worst = ref.worst_psdp(ref.Dense(d.P, d.r, d.gamma, np.eye(3)[0], np.array([0.5, 0.0, 0.5])), 0.0, 0.0, 100, 0)
    assert worst[-1] > 1.0
    assert kappa_psdp_bound(c, 1.0, 0.0, 1).value == 0.0  # κ = 1: c(0) alone, and it is finite


def test_large_errors_promise_what_any_policy_does():
    d = chain_of_the_notes()
    c = coefficients_of(d)
    for delta in (20.0, 1e6):  # δ >= V: k* = 0 and the bound is V (note B3)
        for bound in (kappa_api_bound, kappa_psdp_bound):
            assert bound(c, 0.3, delta, 5).value == pytest.approx(20.0)
            assert bound(c, 0.3, delta, 5).best.name == "any policy"
            assert "delta is too large" in str(bound(c, 0.3, delta, 5))


def test_statement_2_can_be_the_smaller_one_and_says_so():
    rng, names = np.random.default_rng(14), set()
    for _ in range(40):
        d = ref.random_dense(rng, gamma=0.95)
        c = coefficients_of(d)
        for kappa in KAPPAS:
            for bound in (kappa_api_bound, kappa_psdp_bound):
                found = bound(c, kappa, 0.01, 30)
                assert found.value <= min(s.total.upper for s in found.statements) * (1 + 1e-11)
                names.add(found.best.name)
    assert any("Theorem 5, statement 2" in name for name in names)
    assert any("Theorem 5, statement 1" in name for name in names)
    assert any("Theorem 6, statement 1" in name for name in names)


def test_statement_2_is_the_formula_of_the_notes():
    """δ[n(κC_κ/(1-ξ) + (1-κ)²S1) + κ(1-κ)S1 + (1-κ)²(1-(1-κ)^{n-1})γ^n S2^(n)] + ξ^n V, from dense series."""
    rng = np.random.default_rng(15)
    for _ in range(20):
        d = ref.random_dense(rng)
        c, gam, i = coefficients_of(d), d.gamma, np.arange(1_500)
        terms = ref.c_terms(d, 1_510)
        S1 = gam**i @ terms[:1_500]
        for kappa in (0.0, 0.4, 1.0):
            xi = gam * (1 - kappa) / (1 - gam * kappa)
            C = ref.ratio(ref.d_kappa(d, kappa), d.nu)
            n = 3
            S2_n = ((i + 1) * gam**i) @ terms[n : n + 1_500]
            api = n * (kappa * C / (1 - xi) + (1 - kappa) ** 2 * S1) + kappa * (1 - kappa) * S1
            api += (1 - kappa) ** 2 * (1 - (1 - kappa) ** (n - 1)) * gam**n * S2_n
            delta = 1e-9  # so small that using fewer iterations than n never pays
            for bound, coefficient in ((kappa_api_bound, api), (kappa_psdp_bound, n * C / (1 - xi))):
                second = bound(c, kappa, delta, n).statements[1]
                if second.name.endswith("statement 2"):
                    assert second.error.upper == pytest.approx(delta * coefficient, rel=3e-3)
                    assert second.start == pytest.approx(xi**n * d.V)
                else:  # κ = 1 needs one iteration only
                    assert xi == 0.0


def test_printed_statement_2_is_the_papers_expression():
    d = chain_of_the_notes()
    d = ref.Dense(d.P, d.r, d.gamma, np.ones(3) / 3, d.nu)
    c = coefficients_of(d)
    for kappa in (0.0, 0.5):
        delta, gam = 0.01, d.gamma
        xi, log = gam * (1 - kappa) / (1 - gam * kappa), np.log(1.0 / (1 - gam) / delta)
        k = int(np.ceil(log / (1 - xi)))
        api = kappa_api_bound(c, kappa, delta, k, printed=True).statements[1]
        exact = (c.C_kappa_api_k1(kappa).upper * log + c.C_kappa_api_k2(kappa, k).upper) * delta / (1 - gam) ** 2 + delta
        assert api.total.upper == pytest.approx(exact, rel=1e-9)
        psdp = kappa_psdp_bound(c, kappa, delta, k, printed=True).statements[1]
        assert psdp.total.upper == pytest.approx(c.C_star_kappa(kappa).upper / (1 - xi) ** 2 * log * delta + delta, rel=1e-9)
    assert len(kappa_api_bound(c, 0.5, 0.0, 3, printed=True).statements) == 1  # log(V/0): statement 2 says nothing


def test_a_known_start_sharpens_the_bound():
    d = chain_of_the_notes()
    c = coefficients_of(d)
    walk = Policy.deterministic(c.mdp, 1)
    assert kappa_api_bound(c, 0.2, 0.0, 1, pi0=walk).value == pytest.approx(0.0, abs=1e-12)
    assert kappa_api_bound(c, 0.2, 0.0, 1, V=3.0).value < kappa_api_bound(c, 0.2, 0.0, 1).value
