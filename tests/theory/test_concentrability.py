"""Every coefficient against enumeration and dense series, with its limits, infinities, widths and errors."""

import itertools
import math

import numpy as np
import pytest

import reference_theory as ref
from tightrope import MDP, Policy
from tightrope.errors import InvalidArgument, InvalidPolicy
from tightrope.theory import all_policies, concentrability, g, iterations_needed, one_policy
from tightrope.theory.interval import Interval

KAPPAS = (0.0, 0.25, 0.9, 1.0)


def coefficients_of(d, **options):
    mdp = MDP.from_dense(d.P, d.r, d.gamma)
    star = Policy.deterministic(mdp, np.unravel_index(d.star, (d.P.shape[1],) * len(d.mu)))
    return concentrability(mdp, d.mu, d.nu, star, **options)


def cases(n, seed, **fixed):
    rng = np.random.default_rng(seed)
    return [ref.random_dense(rng, **fixed) for _ in range(n)]


def close(interval, exact, rtol=1e-12):
    return interval.lower <= exact * (1 + rtol) and interval.upper >= exact * (1 - rtol) and interval.width <= 4 * rtol * exact


def test_c_equals_the_enumeration_of_all_policy_sequences():
    for d in cases(25, seed=1, S=3):
        c = coefficients_of(d)
        for i in range(5):
            assert close(c.c(i), ref.enumerated_c(d, i)), (i, c.c(i), ref.enumerated_c(d, i))
            assert close(c.c_star(i), ref.c_star_terms(d, i + 1)[i])


@pytest.mark.parametrize("rtol", [1e-1, 1e-3, 1e-8])
def test_every_interval_contains_the_brute_force_sum_and_is_as_narrow_as_asked(rtol):
    for d in cases(20, seed=2):
        n = 1_500  # 0.95^1500 is 4e-34
        c, terms, star, gam = coefficients_of(d, rtol=rtol), ref.c_terms(d, n + 60), ref.c_star_terms(d, n), d.gamma
        i = np.arange(n)
        S1, S1_star = gam**i @ terms[:n], gam**i @ star
        exact = {"C1": (1 - gam) * S1, "C_star_1": (1 - gam) * S1_star}
        for k in (0, 1, 7, 50):
            exact[f"C2_k {k}"] = (1 - gam) ** 2 * (((i + 1) * gam**i) @ terms[k : n + k])
        assert c.C2_k(0) == c.C2
        for kappa in KAPPAS:
            xi = gam * (1 - kappa) / (1 - gam * kappa)
            exact[f"C_star_kappa {kappa}"] = ref.ratio(ref.d_kappa(d, kappa), d.nu)
            C_star_1_kappa = xi / gam * exact["C_star_1"] + (1 - xi) * kappa * terms[0]
            exact[f"C_star_1_kappa {kappa}"] = C_star_1_kappa
            exact[f"C_kappa_api {kappa}"] = (1 - kappa) ** 2 * exact["C2_k 0"] + (1 - gam) * kappa * (
                (1 - kappa) * exact["C1"] + (1 - gam * kappa) * C_star_1_kappa
            )
            exact[f"C_kappa_api_k1 {kappa}"] = (1 - kappa * gam) * (
                kappa * (1 - kappa * gam) * exact[f"C_star_kappa {kappa}"] + (1 - kappa) ** 2 * exact["C1"]
            )
            exact[f"C_kappa_api_k2 {kappa} 7"] = (
                (1 - kappa) * kappa * ((1 - gam) * exact["C1"] + g(kappa, 7) * (1 - kappa) * gam**7 * exact["C2_k 7"])
            )
        for name, number in exact.items():
            method, *args = name.split()
            found = getattr(c, method)
            if args:
                found = found(*(int(a) if a.isdigit() else float(a) for a in args))
            assert found.lower <= number * (1 + 1e-12), (name, found, number)
            assert found.upper >= number * (1 - 1e-12), (name, found, number)
            assert found.relative_width <= rtol * 1.001 + 1e-11, (name, found)
        assert c.complete


def test_visits_are_the_distribution_of_definition_4():
    for d in cases(30, seed=3):
        c = coefficients_of(d, rtol=1e-9)
        for kappa in KAPPAS:
            np.testing.assert_allclose(c.d(kappa), ref.d_kappa(d, kappa), rtol=1e-8, atol=1e-9)
            assert c.d(kappa).sum() == pytest.approx(1.0, abs=1e-12)


def test_limits_in_kappa():
    """κ = 0 gives the classical coefficients, κ = 1 leaves c(0) alone."""
    for d in cases(20, seed=4):
        c = coefficients_of(d, rtol=1e-9)
        assert c.C_star_kappa(0.0) == c.C_star
        assert c.C_star_1_kappa(0.0).lower == pytest.approx(c.C_star_1.lower, rel=1e-12)
        assert c.C_kappa_api(0.0).lower == pytest.approx(c.C2.lower, rel=1e-12)
        for at_one in (c.C_star_kappa(1.0), c.C_star_1_kappa(1.0), c.api_coefficient(1.0), c.psdp_coefficient(1.0)):
            assert close(at_one, ref.ratio(d.mu, d.nu))


def test_equal_distributions_have_a_closed_form():
    """C_κ(ν,ν) = 1 + (1-κ)/(1-γκ) (C_0(ν,ν) - 1), decreasing in κ (note B6, the last claim of Lemma 4)."""
    for d in cases(60, seed=5):
        c = coefficients_of(ref.Dense(d.P, d.r, d.gamma, d.nu, d.nu), rtol=1e-10)
        C_0 = c.C_star.lower
        curve = [c.C_star_kappa(k).lower for k in KAPPAS]
        for kappa, found in zip(KAPPAS, curve, strict=True):
            assert found == pytest.approx(1 + (1 - kappa) / (1 - d.gamma * kappa) * (C_0 - 1), rel=1e-8)
        assert all(a >= b * (1 - 1e-9) for a, b in itertools.pairwise(curve))


def test_what_the_error_is_multiplied_by_falls_with_kappa_but_C_star_kappa_need_not():
    """Notes C1 and C2, and B7 as the negative twin."""
    grid, rises = np.linspace(0, 1, 11), 0
    for d in cases(60, seed=6):
        c = coefficients_of(d, rtol=1e-9)
        for curve in ([c.api_coefficient(k).upper for k in grid], [c.psdp_coefficient(k).upper for k in grid]):
            assert all(a > b for a, b in itertools.pairwise(curve))
        stars = [c.C_star_kappa(k).lower for k in grid]
        rises += any(a < b * (1 - 1e-6) for a, b in itertools.pairwise(stars))
    assert rises > 20


def test_both_bernstein_forms():
    """The factors of δ are Bernstein polynomials in κ with decreasing coefficients: degree 2 for κ-API, 1 for κ-PSDP (C1, C2)."""
    for d in cases(20, seed=10):
        c, terms, star, i = coefficients_of(d, rtol=1e-9), ref.c_terms(d, 1_500), ref.c_star_terms(d, 1_500), np.arange(1_500)
        S1, S1_star, S2 = d.gamma**i @ terms, d.gamma**i @ star, ((i + 1) * d.gamma**i) @ terms
        assert S2 > 0.5 * (S1 + S1_star) > terms[0]
        for k in KAPPAS:
            api = (1 - k) ** 2 * S2 + 2 * k * (1 - k) * 0.5 * (S1 + S1_star) + k**2 * terms[0]
            assert c.api_coefficient(k).lower == pytest.approx(api, rel=1e-8)
            assert c.psdp_coefficient(k).lower == pytest.approx((1 - k) * S1_star + k * terms[0], rel=1e-8)
            xi = d.gamma * (1 - k) / (1 - d.gamma * k)
            assert c.C_kappa_api(k).lower == pytest.approx((1 - d.gamma) ** 2 * api, rel=1e-8)
            assert c.C_star_1_kappa(k).lower == pytest.approx((1 - xi) * ((1 - k) * S1_star + k * terms[0]), rel=1e-8)


def test_starred_coefficients_are_finite_together():
    """Note B8: in finite MDPs C^{π*}, C^{π*(1)} and C_κ^{π*} (κ < 1) are all finite or all infinite."""
    rng, seen = np.random.default_rng(7), set()
    for d in cases(80, seed=7, kind="deterministic", S=4):
        nu = np.where(rng.random(4) < 0.4, 0.0, d.nu)
        if nu.sum() == 0:
            continue
        mu = np.eye(4)[int(rng.integers(4))]
        c = coefficients_of(ref.Dense(d.P, d.r, d.gamma, mu, nu / nu.sum()))
        finite = {c.C_star.finite, c.C_star_1.finite, c.C_star_kappa(0.5).finite}
        assert len(finite) == 1
        seen |= finite
    assert seen == {True, False}


def chain(length, gamma=0.9):
    """0 -> 1 -> ... -> last, which absorbs; or stay."""
    P = np.zeros((length, 2, length))
    for s in range(length):
        P[s, 0, s] = P[s, 1, min(s + 1, length - 1)] = 1.0
    r = np.zeros((length, 2))
    r[length - 2, 1] = 1.0
    return P, r, gamma


def test_infinities_are_decided_on_the_support_graph():
    P, r, gamma = chain(6)
    mdp, mu = MDP.from_dense(P, r, gamma), np.eye(6)[0]
    c = concentrability(mdp, mu, np.array([0.3, 0.3, 0.2, 0.2, 0.0, 0.0]))
    assert [c.c(i).finite for i in range(6)] == [True] * 4 + [False] * 2
    assert c.c(4) == Interval(math.inf, math.inf)
    assert c.C1.lower == c.C2.lower == c.C2_k(3).lower == math.inf
    assert not c.C_star_1.finite  # the optimal policy walks on
    assert c.api_coefficient(0.5).lower == math.inf
    assert c.api_coefficient(1.0).finite  # 0·∞ = 0: only c(0) counts at κ = 1 (note B9)
    assert c.C_star_kappa(1.0).finite
    assert c.uncovered == 4
    assert "state 4 can be reached" in repr(c)


def test_an_infinite_term_need_not_last():
    """ν = 0 only where walks of exactly two steps end: c(2) is infinite, C^(2,k) is finite for k >= 3 (and only then)."""
    P = np.zeros((4, 1, 4))
    for s in range(4):
        P[s, 0, min(s + 1, 3)] = 1.0
    c = concentrability(MDP.from_dense(P, np.zeros((4, 1)), 0.9), np.eye(4)[0], [0.5, 0.2, 0.0, 0.3])
    assert [c.c(i).finite for i in range(5)] == [True, True, False, True, True]
    assert [c.C2_k(k).finite for k in range(5)] == [False, False, False, True, True]
    assert close(c.C2_k(3), 1 / 0.3)
    assert c.c(1000).upper == pytest.approx(1 / 0.3)


def test_a_tiny_probability_is_not_zero():
    P = np.array([[[1 - 1e-300, 1e-300]], [[0.0, 1.0]]])
    c = concentrability(MDP.from_dense(P, np.zeros((2, 1)), 0.5), [1.0, 0.0], [1.0, 0.0])
    assert c.c(0).upper == 1.0
    assert c.c(1).lower == math.inf


def test_gamma_zero_counts_the_first_term_only():
    P, r, _ = chain(4)
    c = concentrability(MDP.from_dense(P, r, 0.0), np.eye(4)[0], [0.5, 0.5, 0.0, 0.0])
    assert close(c.C1, 2.0)
    assert close(c.C2, 2.0)
    assert close(c.C_star_1, 2.0)
    assert close(c.C_star_kappa(0.3), 2.0)
    assert c.C2_k(2).lower == math.inf


def test_periodic_and_slow_models_get_their_width_too():
    d = cycle()
    c = coefficients_of(d, rtol=1e-6)
    terms = ref.c_terms(d, 6_000)
    i = np.arange(len(terms))
    exact = 0.01**2 * (((i + 1) * 0.99**i) @ terms)
    assert c.C2.relative_width <= 1e-6
    assert exact in c.C2
    k = 4_000
    exact = 0.01**2 * (((i[:-k] + 1) * 0.99 ** i[:-k]) @ terms[k:])
    assert c.C2_k(k).lower <= exact * 1.001
    assert c.C2_k(k).upper >= exact * 0.999


def test_batches_threads_and_reductions_do_not_change_the_answer():
    rng = np.random.default_rng(8)
    S = 150
    P = rng.dirichlet(np.ones(3), size=(S, 2))
    to = np.stack([rng.choice(S - 20, 3, replace=False) for _ in range(2 * S)]).reshape(S, 2, 3)
    full = np.zeros((S, 2, S))
    np.put_along_axis(full, to, P, axis=2)  # the last 20 states are never reached
    mdp = MDP.from_dense(full, rng.normal(size=(S, 2)), 0.9)
    mu, nu = np.eye(S)[0], rng.dirichlet(np.ones(S))
    one = concentrability(mdp, mu, nu, threads=1)
    two = concentrability(mdp, mu, nu, threads=2)
    small = concentrability(mdp, mu, nu, threads=2, memory=1)  # 32 targets at a time
    d = ref.Dense(full, mdp.r.reshape(S, 2), 0.9, mu, nu)
    terms, i = ref.c_terms(d, 400), np.arange(400)
    for found, exact in ((lambda c: c.C1, 0.1 * (0.9**i @ terms)), (lambda c: c.C2, 0.01 * (((i + 1) * 0.9**i) @ terms))):
        assert found(one) == found(two)
        assert exact in found(one)
        assert exact in found(small)
        assert found(small).relative_width <= 1e-3
    assert one.C_star_1 == two.C_star_1


def test_running_out_of_time_widens_and_says_so():
    rng = np.random.default_rng(9)
    d = ref.random_dense(rng, S=4, kind="dense", gamma=0.95)
    c = coefficients_of(d, max_seconds=0.0)
    terms, i = ref.c_terms(d, 1_000), np.arange(1_000)
    exact = 0.05 * (0.95**i @ terms)
    assert exact in c.C1
    assert c.C1.relative_width > 1e-3
    assert not c.complete
    assert "stopped early" in repr(c)


def cycle(S=5, gamma=0.99):
    """A cycle never mixes: the tail brackets stay apart, and only the discount ends a sum."""
    P = np.zeros((S, 1, S))
    P[np.arange(S), 0, (np.arange(S) + 1) % S] = 1.0
    return ref.Dense(P, np.zeros((S, 1)), gamma, np.eye(S)[0], np.array([0.1, 0.2, 0.3, 0.3, 0.1]))


@pytest.mark.parametrize(("module", "name", "after"), [(all_policies, "_advance", 4), (one_policy, "_step", 40)])
def test_ctrl_c_keeps_what_was_done(monkeypatch, module, name, after):
    original, calls = getattr(module, name), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) > after:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(module, name, interrupted)
    c, i = coefficients_of(cycle()), np.arange(4_000)
    exact = 0.01 * (0.99**i @ ref.c_terms(cycle(), 4_000))  # one policy, so c and c_star are the same
    found = c.C1 if module is all_policies else c.C_star_1
    assert exact in found
    assert found.relative_width > 1e-3
    assert not c.complete


def test_a_width_below_rounding_ends_and_says_so():
    d = ref.random_dense(np.random.default_rng(9), S=4, kind="dense", gamma=0.95)
    c = coefficients_of(d, rtol=1e-15)
    terms, i = ref.c_terms(d, 1_000), np.arange(1_000)
    assert c.C1.lower <= 0.05 * (0.95**i @ terms) * (1 + 1e-13)
    assert c.C1.relative_width < 1e-11
    assert c.C_star_1.relative_width < 1e-11
    assert not c.complete
    nearly = coefficients_of(ref.Dense(d.P, d.r, 1 - 2**-52, d.mu, d.nu))  # 1-γ is below the rounding of a row's sum
    assert nearly.C1.upper == math.inf
    assert not nearly.complete


def test_later_terms_are_exact_too():
    """Terms asked for one after the other, in batches of targets, on chains that never mix and on dense ones."""
    rng = np.random.default_rng(17)
    for kind in ("dense", "deterministic", "sparse"):
        d = ref.random_dense(rng, S=70, kind=kind, gamma=0.9)
        mdp = MDP.from_dense(d.P, d.r, d.gamma)
        c = concentrability(mdp, d.mu, d.nu, rtol=0.1, memory=1)
        terms = ref.c_terms(d, 70)
        for i in (1, 2, 9, 33, 69):
            assert close(c.c(i), terms[i], rtol=1e-11), (kind, i)


def test_the_default_optimal_policy_and_distributions():
    P, r, gamma = chain(5)
    c = concentrability(MDP.from_dense(P, r, gamma))
    assert c.pi_star.actions[3] == 1
    assert close(c.c(0), 1.0)  # start and ν both uniform
    assert "Concentrability(5 states" in repr(c)


def test_bad_input_is_refused():
    P, r, gamma = chain(4)
    mdp = MDP.from_dense(P, r, gamma)
    with pytest.raises(InvalidArgument, match="mu sums to 2"):
        concentrability(mdp, np.ones(4) / 2)
    with pytest.raises(InvalidArgument, match=r"nu\[1\] is -0.5"):
        concentrability(mdp, None, [1.0, -0.5, 0.5, 0.0])
    with pytest.raises(InvalidArgument, match="nu must have shape"):
        concentrability(mdp, None, [1.0])
    with pytest.raises(InvalidArgument, match="rtol must be positive"):
        concentrability(mdp, rtol=0.0)
    with pytest.raises(InvalidArgument, match="threads must be an integer"):
        concentrability(mdp, threads=0)
    with pytest.raises(InvalidPolicy, match="pi_star is not optimal: in state 2"):
        concentrability(mdp, pi_star=Policy.deterministic(mdp, 0))
    c = concentrability(mdp)
    with pytest.raises(InvalidArgument, match="i must be an integer"):
        c.c(-1)
    with pytest.raises(InvalidArgument, match="kappa must lie in"):
        c.C_star_kappa(1.5)


def test_g_has_its_closed_form():
    """g of the binomial lemma: Σ_{t} over the range i < n of the binomial weights peaks at t = n-1 (note B4)."""
    for n in (1, 2, 3, 10):
        assert g(0.0, n) == n - 1
        assert g(1.0, n) == (0.0 if n == 1 else 1.0)
        for kappa in (1e-9, 0.1, 0.5, 0.999):
            direct = sum((1 - kappa) ** j for j in range(n - 1))
            assert g(kappa, n) == pytest.approx(direct, rel=1e-12)
    # κ g(κ) is the largest value of the tail P(Binomial(t, 1-κ) <= n-2) over t >= n-1.
    for kappa in (0.1, 0.5, 0.9):
        for n in (2, 5):
            tails = [sum(math.comb(t, i) * kappa ** (t - i) * (1 - kappa) ** i for i in range(n - 1)) for t in range(n - 1, 60)]
            assert max(tails) == pytest.approx(1 - (1 - kappa) ** (n - 1), rel=1e-12)
            assert max(tails) == pytest.approx(kappa * g(kappa, n), rel=1e-12)


def test_iterations_needed():
    for gamma, kappa, delta, V in ((0.9, 0.0, 0.01, 10.0), (0.99, 0.7, 1e-6, 3.0), (0.5, 0.99, 0.1, 1.0)):
        k, xi = iterations_needed(gamma, kappa, delta, V), gamma * (1 - kappa) / (1 - gamma * kappa)
        assert xi**k * V <= delta < xi ** (k - 1) * V
        assert k <= iterations_needed(gamma, kappa, delta, V, printed=True)
        assert iterations_needed(gamma, kappa, delta, V, printed=True) == math.ceil(math.log(V / delta) / (1 - xi))
    assert iterations_needed(0.9, 0.5, 2.0, 1.0) == 0  # δ >= V
    assert iterations_needed(0.9, 0.5, 0.0, 1.0) == math.inf
    assert iterations_needed(0.9, 1.0, 0.0, 1.0) == 1
    assert iterations_needed(0.0, 0.0, 0.5, 1.0) == 1
    with pytest.raises(InvalidArgument, match="delta must be a finite number >= 0; found -1"):
        iterations_needed(0.9, 0.5, -1.0, 1.0)
    with pytest.raises(InvalidArgument, match="V must be"):
        iterations_needed(0.9, 0.5, 1.0, -1.0)
