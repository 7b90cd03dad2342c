"""Rows that many pairs have are found to the last bit, and backups that multiply each once are those of `kernels.backup`."""

import numpy as np
import pytest
import scipy.sparse as sp

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine import alike, outline
from tightrope.engine.sweep import Sweeper, runs
from tightrope.kernels import team


def rental(size, gamma=0.9, seed=0):
    """Two places with up to size - 1 cars each, dense rows: cars are moved overnight, and come and go by day."""
    rng = np.random.default_rng(seed)
    day = np.kron(rng.dirichlet(np.ones(size), size), rng.dirichlet(np.ones(size), size))
    here, there = np.divmod(np.arange(size * size), size)
    pairs = [(s, a, (here[s] - a) * size + there[s] + a) for s in range(size * size) for a in range(-2, 3)]
    pairs = [(s, a + 2, to) for s, a, to in pairs if 0 <= here[s] - a < size and 0 <= there[s] + a < size]
    states, actions, to = (np.array(column) for column in zip(*pairs, strict=True))
    return tr.MDP.from_pairs(states, actions, sp.csr_array(day[to]), rng.random(len(to)), gamma)


def repeated(S=150, A=6, distinct=40, width=20, gamma=0.95, seed=0, digits=9):
    """Any pair may lead as any other does, rows have different lengths, and so do action sets."""
    rng = np.random.default_rng(seed)
    kinds = np.where(rng.random((distinct, S)) < width / S, rng.random((distinct, S)), 0.0)
    kinds[:, 0] += 0.01
    kinds /= kinds.sum(axis=1, keepdims=True)
    first = np.append(0, np.cumsum(rng.integers(A, 4 * A, S)))
    P = sp.csr_array(kinds[rng.integers(distinct, size=first[-1])])
    return tr.MDP(P, rng.normal(size=first[-1]).round(digits), gamma, first)


MODELS = {
    "inventory": lambda: problems.inventory(80, [0.1] * 10, gamma=0.99),
    "rental": lambda: rental(12),
    "repeated": repeated,
    "ties": lambda: repeated(seed=3, gamma=0.999, digits=0),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_distinct_rows_are_those_that_numpy_finds(make):
    mdp = make()
    found = alike.alike(mdp)
    rows, at = np.unique(mdp.P.toarray(), axis=0, return_inverse=True)
    assert len(found.indptr) - 1 == len(rows)
    distinct = sp.csr_array((found.data, found.indices, found.indptr), shape=rows.shape).toarray()
    np.testing.assert_array_equal(distinct[found.at], mdp.P.toarray())
    assert len({*zip(found.at.tolist(), at.tolist(), strict=True)}) == len(rows)
    assert found.effort == np.count_nonzero(rows) + mdp.n_pairs <= mdp.n_transitions / alike.GAIN


def test_rows_that_differ_in_one_bit_where_nobody_looked_first_are_not_taken_for_each_other():
    """Signatures are of three entries; rows are then compared throughout. Nothing less will do: these have the same signature."""
    S, L = 60, 600
    P = np.zeros((L, S))
    P[:, ::2] = 1 / 30
    kinds = np.random.default_rng(1).integers(3, size=L)
    P[kinds == 1, 2], P[kinds == 1, 4] = np.nextafter(1 / 30, 1), np.nextafter(1 / 30, 0)
    P[kinds == 2, 2], P[kinds == 2, 3] = 0.0, 1 / 30
    mdp = tr.MDP(P, np.zeros(L), 0.9)
    bits = mdp.P.data.view(np.uint64)
    assert len({int(kernels.alike.signature(*mdp.arrays[:2], bits, l)) for l in range(L)}) == 1
    table, at, owners = np.zeros(512, np.uint32), np.empty(L, np.uint32), np.empty(200, np.uint32)
    assert kernels.alike.find(*mdp.arrays[:2], bits, 10**6, table, at, owners) == (3, 90)
    order = {kind: n for n, kind in enumerate(dict.fromkeys(kinds.tolist()))}
    np.testing.assert_array_equal(at, [order[kind] for kind in kinds.tolist()])


def test_it_is_given_up_where_there_are_too_many_rows_or_too_many_that_look_the_same():
    S, L = 40, 400
    P = np.random.default_rng(0).random((L, S))
    P[:, [0, 20, 39]] = 0.5  # the same signature, and no two alike
    P /= P.sum(axis=1, keepdims=True)
    same = P.copy()
    same[:, [0, 20, 39]] = 0.5
    for rows, most, room in ((P, 10**6, 100), (P, 1000, L), (same, 10**6, L)):
        A = sp.csr_array(rows)
        arrays = A.indptr.astype(np.uint32), A.indices.astype(np.uint32), A.data.view(np.uint64)
        table, at = np.zeros(1024, np.uint32), np.empty(L, np.uint32)
        assert kernels.alike.find(*arrays, most, table, at, np.empty(room, np.uint32)) == (0, 0)
    A = sp.csr_array(P)
    arrays = A.indptr.astype(np.uint32), A.indices.astype(np.uint32), A.data.view(np.uint64)
    assert kernels.alike.find(*arrays, 10**6, np.zeros(1024, np.uint32), at, np.empty(L, np.uint32)) == (L, L * S)


@pytest.mark.parametrize(
    "make",
    [
        lambda: problems.garnet(2_000, 4, 5),
        lambda: problems.garnet(300, 5, 40),
        lambda: problems.gridworld(50, 50, slip=0.0),
        lambda: problems.queue(3_000),
        lambda: problems.inventory(20),  # solved before anybody has looked
    ],
)
def test_models_whose_pairs_lead_elsewhere_are_left_alone(make):
    assert alike.alike(make()) is None


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_backup_is_that_of_every_row_to_the_last_bit(monkeypatch, make, compiled):
    if compiled:
        kernels.tiers.compile_loops()
    monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = make()
    v, S = np.random.default_rng(5).normal(size=mdp.n_states), mdp.n_states
    u, rows = np.empty(S), np.empty(S, mdp.first.dtype)
    chain = [np.empty_like(a) for a in mdp.arrays[:4]]
    extremes = kernels.backup(*mdp.arrays, v, u, rows, None, runs(mdp), *chain, 0, S)
    for threads in (1, 2):
        sweeper = Sweeper(mdp, threads)
        assert sweeper.threads == threads
        found = sweeper.backup(v)
        assert found[2:] == extremes
        np.testing.assert_array_equal(found.u, u)
        np.testing.assert_array_equal(found.rows, rows)
    mine, again = [np.empty_like(a) for a in chain], np.empty_like(u)
    assert Sweeper(mdp, 1).backup_into(v, again, rows, [(*mine, 0, S)]) == extremes
    end = int(chain[0][S])
    for one, other, n in zip(mine, chain, (S + 1, end, end, S), strict=True):
        np.testing.assert_array_equal(one[:n], other[:n])
    q = mdp.r + mdp.gamma * (mdp.P @ v)
    np.testing.assert_allclose(u, np.maximum.reduceat(q, mdp.first[:-1]), rtol=1e-13)


@pytest.mark.parametrize("large", [None, "model", "model and chain"])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_solves_are_certified_and_the_same_on_one_thread_and_two(monkeypatch, make, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
        monkeypatch.setattr(outline, "CHAIN", 0 if large == "model and chain" else 1e9)
    one, two, again = (tr.solve(mdp, tol=1e-9, threads=n) for mdp in (make(),) for n in (1, 2, 1))
    for other in (two, again):
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_array_equal(one.policy.rows, other.policy.rows)
    assert one.converged
    assert "lead alike" in one.explain()
    monkeypatch.setattr(alike, "FEWEST", np.inf)
    plain = tr.solve(make(), tol=1e-9)
    assert "lead alike" not in plain.explain()
    scale = np.abs(plain.value).max()
    np.testing.assert_allclose(one.value, plain.value, atol=2e-9 * scale, rtol=0)
    assert (one.lower <= plain.upper).all()
    assert (plain.lower <= one.upper).all()


def test_it_is_found_once_for_a_model_and_its_twins(monkeypatch):
    mdp = rental(12)
    found = alike.alike(mdp)
    monkeypatch.setattr(kernels.alike, "find", None)
    assert alike.alike(tr.surrogate(mdp, np.zeros(mdp.n_states), 0.5)) is found
    assert alike.alike(mdp.reshaped(2.0 * mdp.r, 0.5)) is found


@pytest.mark.parametrize("algorithm", [tr.value_iteration(), tr.kappa_pi(0.9), tr.h_pi(3), tr.modified_policy_iteration(5)])
def test_named_algorithms_take_the_same_steps(monkeypatch, algorithm):
    """All but the engine that solves κ-PI's surrogates, which may go another way to the same end."""
    mine = tr.solve(rental(12), algorithm)
    monkeypatch.setattr(alike, "FEWEST", np.inf)
    plain = tr.solve(rental(12), algorithm)
    if algorithm != tr.kappa_pi(0.9):
        np.testing.assert_array_equal(mine.value, plain.value)
        assert [row[:5] for row in mine.trace.rows] == [row[:5] for row in plain.trace.rows]
    assert mine.converged
    assert len(mine.trace) == len(plain.trace)
