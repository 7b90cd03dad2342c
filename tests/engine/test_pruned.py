"""Backups that leave out what cannot be best: the same bits as those that do not, for less."""

import numpy as np
import pytest

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine import alike, outline
from tightrope.engine.sweep import runs
from tightrope.kernels import team

MODELS = {
    "inventory": lambda: problems.inventory(60, gamma=0.99),
    "wide garnet": lambda: problems.garnet(80, 6, 20, gamma=0.95, seed=2),
    "ragged": lambda: problems.gambler(40),
    "ties": lambda: tr.MDP(np.full((120, 30), 1 / 30), np.zeros(120), 0.9),
    "no discount": lambda: problems.garnet(30, 5, 8, gamma=0.0, seed=4),
}


def journey(mdp, seed):
    """Value functions that come nearer to each other, as those of a run do, with a leap now and then."""
    rng = np.random.default_rng(seed)
    v = 10.0 * rng.normal(size=mdp.n_states)
    for size in (0.0, 1.0, 0.1, 30.0, 0.01, 0.0, 1e-6):
        v = v + rng.normal() + size * rng.normal(size=mdp.n_states)
        yield v


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_result_is_that_of_a_full_backup_to_the_last_bit(make, seed):
    mdp = make()
    S, kind = mdp.n_states, mdp.first.dtype
    ceilings, before, rows = np.full(mdp.n_pairs, np.inf), np.zeros(S), np.array(mdp.first[:-1])
    least = mdp.n_pairs
    for v in journey(mdp, seed):
        risen, size = kernels.pruned.rise(v, before)
        np.testing.assert_array_equal(before, v)
        u, full, expected = np.empty(S), np.empty(S), np.empty(S, kind)
        chain, whole = ([np.empty_like(a) for a in mdp.arrays[:4]] for _ in range(2))
        how = (ceilings, mdp.gamma * risen, 1e-9 * size, runs(mdp))
        *found, computed = kernels.pruned.backup(*mdp.arrays, v, u, rows, *how, *chain, 0, S)
        assert tuple(found) == kernels.backup(*mdp.arrays, v, full, expected, None, runs(mdp), *whole, 0, S)
        np.testing.assert_array_equal(u, full)
        np.testing.assert_array_equal(rows, expected)
        n = int(chain[0][S])
        for mine, plain, end in zip(chain, whole, (S + 1, n, n, S), strict=True):
            np.testing.assert_array_equal(mine[:end], plain[:end])
        # A ceiling is one.
        q = mdp.r + mdp.gamma * (mdp.P @ v)
        assert (ceilings >= q - 1e-9 * max(size, 1.0)).all()
        least = min(least, computed)
    assert S <= least < mdp.n_pairs or mdp.r.min() == mdp.r.max()


def test_ceilings_that_are_not_lifted_leave_out_the_best():
    """What makes it right: values rose by more than the ceilings did, and the better action is missed."""
    mdp = tr.MDP(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]), [0.0, 0.0, 0.0, 0.0], 0.9)
    for lift, expected in ((0.9 * 5.0, 4.5), (0.0, 0.9)):
        ceilings, rows, u = np.full(4, np.inf), np.array([0, 2], np.int32), np.empty(2)
        for v, rise in (([1.0, 0.0], 0.0), ([1.0, 5.0], lift)):
            kernels.pruned.backup(*mdp.arrays, np.array(v), u, rows, ceilings, rise, 1e-9, None, None, None, None, None, 0, 2)
        assert u[0] == pytest.approx(expected)


@pytest.mark.parametrize("large", [None, "model", "model and chain"])
@pytest.mark.parametrize("make", [lambda: problems.inventory(300, gamma=0.999), lambda: problems.garnet(200, 8, 20, gamma=0.99)])
def test_a_solve_takes_the_same_steps_and_computes_less(monkeypatch, make, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
        monkeypatch.setattr(outline, "CHAIN", 0 if large == "model and chain" else 1e9)
    monkeypatch.setattr(alike, "FEWEST", np.inf)  # rows that are alike are multiplied once each instead
    pruned = tr.solve(make(), tol=1e-9, threads=2)
    assert outline.outline(make()).wide
    assert "cannot be best" in pruned.explain()
    monkeypatch.setattr(outline, "WIDE", 1000)
    full = tr.solve(make(), tol=1e-9, threads=1)
    np.testing.assert_array_equal(pruned.value, full.value)
    np.testing.assert_array_equal(pruned.policy.rows, full.policy.rows)
    assert [row[:5] for row in pruned.trace.rows] == [row[:5] for row in full.trace.rows]
    assert pruned.backups < 0.8 * full.backups
    assert "cannot be best" not in full.explain()


def test_a_small_band_is_eliminated_without():
    """Elimination takes whole rounds in one call, which looks at every pair: nothing is said of leaving out."""
    S, half = 300, 10
    near = np.abs(np.arange(S)[:, None] - np.arange(S)) <= half
    P = np.where(near, np.random.default_rng(3).random((3, S, S)) ** 4, 0.0)
    P /= P.sum(axis=2, keepdims=True)
    mdp = tr.MDP(P.transpose(1, 0, 2).reshape(3 * S, S), np.random.default_rng(4).normal(size=3 * S), 0.9999)
    look = outline.outline(mdp)
    assert look.band is not None
    assert mdp.n_transitions >= outline.WIDE * mdp.n_pairs
    assert not look.wide
    solution = tr.solve(mdp)
    assert "factorisation" in solution.explain()
    assert "cannot be best" not in solution.explain()
