"""G, G_h and G_κ are exactly the policies that enumeration finds; h=1 = κ=0 = one step, κ=1 is optimal whatever v."""

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import pool, value_of
from reference import EPS


def made_of(case, pairs):
    """Which deterministic policies use only the given pairs [N]."""
    table = np.zeros(case.r.shape, dtype=bool)
    table[case.ok] = pairs
    return (table | (case.policies == 0)).all(axis=(1, 2))


def same_as_enumeration(found_in, distances_in, size_in, discount_in):
    """Policies that enumeration finds greedy are in the set, and those with a pair that loses more than rounding are not."""
    tried = decided = several = 0
    for case, mdp in pool():
        found, distance = made_of(case, found_in(case, mdp)), distances_in(case)
        discount = discount_in(case)
        rounding = EPS * size_in(case) / (1.0 - discount)
        # one pair that loses x loses at most x/(1-κγ) when it is taken for ever
        inside, outside = distance <= 10 * rounding, distance > 1e3 * rounding / (1.0 - discount)
        assert found[inside].all(), case
        assert not found[outside].any(), case
        assert found.any()
        tried += found.size
        decided += int(inside.sum() + outside.sum())
        several += found.sum() > 1
    assert decided >= 0.95 * tried  # few policies fall in between, all of them where κγ is close to one
    assert several > 100  # ties were there to be found


def test_G_is_what_enumeration_finds():
    same_as_enumeration(
        lambda c, m: tr.greedy_set(m, c.v),
        lambda c: reference.distances(c, c.v, 0.0),
        lambda c: max(np.abs(c.v).max(), np.abs(c.r).max()),
        lambda _: 0.0,
    )


@pytest.mark.parametrize("h", [2, 3])
def test_G_h_is_what_enumeration_finds(h):
    same_as_enumeration(
        lambda c, m: tr.h_greedy_set(m, c.v, h),
        lambda c: reference.h_distances(c, c.v, h),
        lambda c: np.abs(c.v).max() + h * np.abs(c.r).max(),
        lambda _: 0.0,
    )


def test_G_kappa_is_what_enumeration_finds():
    same_as_enumeration(
        lambda c, m: tr.kappa_greedy_set(m, c.v, c.kappa),
        lambda c: reference.distances(c, c.v, c.kappa),
        lambda c: max(np.abs(reference.T_kappa(c, c.v, c.kappa)).max(), np.abs(c.v).max(), np.abs(c.r).max()),
        lambda c: c.kappa * c.gamma,
    )


def test_exact_ties_are_all_in_the_set():
    """Where one action appears twice, it is in the set with its twin or not at all."""
    pairs = 0
    for case, mdp in pool():
        if case.kind != "ties" or case.r.shape[1] == 1:
            continue
        for found in (
            tr.greedy_set(mdp, case.v),
            tr.h_greedy_set(mdp, case.v, 2),
            tr.kappa_greedy_set(mdp, case.v, case.kappa),
        ):
            table = np.zeros(case.r.shape, dtype=bool)
            table[case.ok] = found
            both = case.ok[:, 0] & case.ok[:, 1]
            np.testing.assert_array_equal(table[both, 0], table[both, 1])
            pairs += both.sum()
    assert pairs > 500


def test_every_state_has_a_greedy_pair_and_the_policy_uses_one():
    for case, mdp in pool()[:300]:
        for found, pi in (
            (tr.greedy_set(mdp, case.v), tr.greedy(mdp, case.v)),
            (tr.h_greedy_set(mdp, case.v, 2), tr.h_greedy(mdp, case.v, 2)),
            (tr.kappa_greedy_set(mdp, case.v, case.kappa), tr.kappa_greedy(mdp, case.v, case.kappa)),
        ):
            assert found[pi.rows].all()


def test_h_1_is_kappa_0_is_one_step():
    for case, mdp in pool():
        v = case.v
        np.testing.assert_array_equal(tr.h_greedy_set(mdp, v, 1), tr.greedy_set(mdp, v))
        np.testing.assert_array_equal(tr.kappa_greedy_set(mdp, v, 0.0), tr.greedy_set(mdp, v))
        assert tr.h_greedy(mdp, v, 1) == tr.greedy(mdp, v) == tr.kappa_greedy(mdp, v, 0.0)
        np.testing.assert_array_equal(tr.T_h(mdp, v, 1), tr.T(mdp, v))
        np.testing.assert_allclose(tr.T_kappa(mdp, v, 0.0), tr.T(mdp, v), rtol=0, atol=case.slack(v))


def test_kappa_1_is_optimal_whatever_v():
    for case, mdp in pool():
        slack = case.slack(case.v_star)
        np.testing.assert_allclose(tr.T_kappa(mdp, case.v, 1.0), case.v_star, rtol=0, atol=slack)
        greedy = tr.kappa_greedy(mdp, 1e3 * case.w, 1.0)
        np.testing.assert_allclose(value_of(case, greedy), case.v_star, rtol=0, atol=slack)


def test_below_1_the_set_depends_on_v_and_looking_further_changes_it():
    """The negative twins of the three identities."""
    by_v = by_kappa = by_h = 0
    for case, mdp in pool()[:500]:
        half = tr.kappa_greedy_set(mdp, case.v, 0.5)
        by_v += not np.array_equal(half, tr.kappa_greedy_set(mdp, case.w, 0.5))
        one = tr.greedy_set(mdp, case.v)
        by_kappa += not np.array_equal(half, one)
        by_h += not np.array_equal(tr.h_greedy_set(mdp, case.v, 2), one)
    assert min(by_v, by_kappa, by_h) > 20


def test_at_the_optimum_every_lookahead_finds_the_same_policies():
    """G(v*) = G_h(v*) = G_κ(v*): the optimal policies."""
    compared = 0
    for case, mdp in pool():
        distance = reference.distances(case, case.v_star, 0.0)
        near = case.slack(case.v_star)
        if ((distance > EPS) & (distance < 1e3 * near)).any():
            continue
        optimal = distance <= EPS
        for found in (tr.greedy_set(mdp, case.v_star), tr.kappa_greedy_set(mdp, case.v_star, case.kappa)):
            np.testing.assert_array_equal(made_of(case, found), optimal)
        compared += 1
    assert compared > 500


@pytest.mark.parametrize("gamma", [0.9, 0.999, 0.999999])
def test_ties_between_different_routes_are_found_although_rounding_tells_them_apart(gamma):
    """Earning c for ever is worth c/(1-γ) in a loop and in any chain; solved for, the two differ by about ε/(1-γ) times that."""
    rng = np.random.default_rng(20)
    apart = 0
    for _ in range(100):
        S = 2 + int(rng.integers(2, 7))
        P = np.zeros((S, 2, S))
        P[0, 0, 1] = P[0, 1, 2] = P[1, 0, 1] = 1.0  # s0 chooses between the loop s1 and the chain s2, s3, ...
        P[2:, 0, 2:] = rng.dirichlet(np.ones(S - 2), size=S - 2)
        mdp = tr.MDP.from_dense(P, np.full(S, rng.uniform(0.1, 3.0)), gamma, feasible=P.any(axis=2))
        assert tr.kappa_greedy_set(mdp, np.zeros(S), 1.0).all()
        w = np.linalg.solve(np.eye(S) - gamma * P[:, 0], mdp.r[mdp.first[:-1]])
        apart += abs(w[1] - w[2]) > 100 * EPS * abs(w[1])
    assert apart > 10 or gamma == 0.9  # the negative twin: a tolerance that does not know 1-κγ would miss these
