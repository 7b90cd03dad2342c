"""BiCGSTAB on chains: against dense algebra, and against itself in other places and at other scales."""

import numpy as np
import pytest
import scipy.sparse as sp

from tightrope import kernels


def split_chain(seed, S=60, gamma=0.99, width=4):
    """A random chain solved for the chance of staying put, and its value."""
    rng = np.random.default_rng(seed)
    P = np.zeros((S, S))
    for row in P:
        successors = rng.choice(S, rng.integers(1, width + 1), replace=False)
        row[successors] = rng.dirichlet(np.ones(len(successors)))
    r = rng.normal(size=S)
    stay = 1.0 - gamma * np.diag(P)
    A = sp.csr_array(gamma * (P - np.diag(np.diag(P))) / stay[:, None])
    arrays = (A.indptr.astype(np.uint32), A.indices.astype(np.uint32), A.data, r / stay)
    return arrays, A.toarray(), np.linalg.solve(np.eye(S) - gamma * P, r)


def bicgstab(chain, v, share=0.0, goal=0.0, most=400, probe=None):
    vectors = np.empty_like(v), *kernels.krylov.room(len(v)), np.empty_like(v) if probe is None else probe
    return kernels.krylov.bicgstab(*chain, v, *vectors, share, goal, most, len(v))


def residual(chain, v):
    """By how much a sweep forth and one back changes v, entry by entry."""
    swept = v.copy()
    P = sp.csr_array((chain[2], chain[1].astype(int), chain[0].astype(int)), shape=(len(v), len(v))).toarray()
    for s in [*range(len(v)), *reversed(range(len(v)))]:
        swept[s] = chain[3][s] + P[s] @ swept
    return np.abs(swept - v).max()


@pytest.mark.parametrize("seed", range(12))
def test_bicgstab_finds_the_value_of_a_chain(seed):
    chain, _, exact = split_chain(seed, gamma=(0.9, 0.99, 0.9999)[seed % 3])
    v = np.zeros(len(exact))
    scale = np.abs(exact).max()
    steps = bicgstab(chain, v, goal=1e-14 * scale)
    assert 0 < steps < 400
    np.testing.assert_allclose(v, exact, atol=1e-8 * scale)


def test_bicgstab_may_work_where_the_rewards_were():
    chain, _, exact = split_chain(1, gamma=0.99)
    apart, over = np.zeros(len(exact)), np.zeros(len(exact))
    rewards = chain[3].copy()
    assert bicgstab(chain, apart) == bicgstab((*chain[:3], rewards), over, probe=rewards)
    np.testing.assert_array_equal(apart, over)
    assert not np.array_equal(rewards, chain[3])


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_bicgstab_does_not_care_how_large_values_are(size):
    """The shadow has an exponent of eight bits only, so it is one of what residuals are relative to the largest."""
    chain, _, exact = split_chain(4, gamma=0.99)
    v = np.zeros(len(exact))
    bicgstab((*chain[:3], size * chain[3]), v)
    np.testing.assert_allclose(v / size, exact, atol=1e-8 * np.abs(exact).max())


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("most", [1, 2, 3, 7, 30])
def test_bicgstab_never_leaves_a_worse_residual_behind(seed, most):
    """On cycles of a random length, where the method is known to go astray."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(3, 80))
    P = sp.csr_array((np.full(S, 0.9999), (np.arange(S), rng.permutation(S))), shape=(S, S))
    P.setdiag(0.0)
    P.eliminate_zeros()
    chain = (P.indptr.astype(np.uint32), P.indices.astype(np.uint32), P.data, rng.normal(size=S))
    v = rng.normal(size=S)
    before = residual(chain, v)
    bicgstab(chain, v, most=most)
    assert residual(chain, v) <= before * (1.0 + 1e-9)


@pytest.mark.parametrize("scale", [1e-163, 1e160])
@pytest.mark.parametrize("seed", range(6))
def test_bicgstab_survives_products_that_floats_cannot_hold(scale, seed):
    """Quotients of such products are no numbers; the values that are left behind are."""
    chain, _, exact = split_chain(seed)
    scaled = (*chain[:3], scale * chain[3])
    v = scale * np.random.default_rng(seed).normal(size=len(exact))
    before = residual(scaled, v)
    with np.errstate(all="ignore"):
        bicgstab(scaled, v)
    assert np.isfinite(v).all()
    assert residual(scaled, v) <= before * (1.0 + 1e-9)


def test_bicgstab_stops_where_it_is_told_to():
    chain, _, exact = split_chain(1)
    v = np.zeros(len(exact))
    before = residual(chain, v)
    few = bicgstab(chain, v, share=0.1)
    assert residual(chain, v) <= 0.1 * before
    many = bicgstab(chain, np.zeros(len(exact)), share=1e-6)
    assert 0 < few < many
    assert bicgstab(chain, np.zeros(len(exact)), goal=2.0 * before) == 0
    assert bicgstab(chain, np.zeros(len(exact)), most=2) == 2


def test_at_the_value_itself_there_is_nothing_to_do():
    chain = (np.zeros(4, np.uint32), np.zeros(0, np.uint32), np.zeros(0), np.array([1.0, -2.0, 0.5]))
    v = np.array([1.0, -2.0, 0.5])
    assert bicgstab(chain, v) == 0
    np.testing.assert_array_equal(v, [1.0, -2.0, 0.5])


def test_what_leads_out_of_a_part_becomes_reward():
    chain, P, _ = split_chain(3, S=20)
    rng = np.random.default_rng(0)
    v, order = rng.normal(size=20), rng.permutation(20).astype(np.uint32)
    place = np.empty_like(order)
    place[order] = np.arange(20)
    lo, n = 6, 9
    part = order[lo : lo + n]
    rows = [np.flatnonzero(P[s]) for s in order]
    indptr = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.uint32)
    indices, data = place[np.concatenate(rows)], P[order][P[order] > 0.0]
    r = chain[3][order]
    kernels.krylov.inside(indptr, indices, data, r, v, order, lo, n)
    found = np.zeros((n, n))
    for i in range(n):
        row = slice(indptr[lo + i], indptr[lo + i + 1])
        np.add.at(found[i], indices[row], data[row])
    np.testing.assert_array_equal(found, P[np.ix_(part, part)])
    outside = np.setdiff1d(np.arange(20), part)
    np.testing.assert_allclose(r[lo : lo + n], chain[3][part] + P[np.ix_(part, outside)] @ v[outside])
    elsewhere = np.r_[:lo, lo + n : 20]
    np.testing.assert_array_equal(r[elsewhere], chain[3][order[elsewhere]])
    for i in elsewhere:
        np.testing.assert_array_equal(indices[indptr[i] : indptr[i + 1]], place[rows[i]])
