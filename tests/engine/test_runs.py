"""Rows of neighbours: found out, and summed four numbers at a time by whoever sweeps them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine import Limits, Monitor, sweep, sweep_chain
from tightrope.engine.monitor import Aim
from tightrope.engine.sweep import Sweeper
from tightrope.engine.workspace import Workspace
from tightrope.kernels import team


def T(mdp, v):
    """T v, in plain NumPy."""
    return np.maximum.reduceat(mdp.r + mdp.gamma * (mdp.P.toarray() @ v), mdp.first[:-1])


def neighbourhoods(size, widths, gamma=0.95, seed=0):
    """Three pairs a state, each of which leads to as many neighbours as it is its turn to."""
    rng = np.random.default_rng(seed)
    widths = np.resize(widths, 3 * size)
    first = np.array([rng.integers(size - width + 1) for width in widths.tolist()])
    columns = np.concatenate([start + np.arange(width) for start, width in zip(first.tolist(), widths.tolist(), strict=True)])
    chances = np.concatenate([rng.dirichlet(np.ones(width)) for width in widths.tolist()])
    P = sp.csr_array((chances, columns, np.append(0, np.cumsum(widths))), shape=(3 * size, size))
    return tr.MDP(P, rng.normal(size=3 * size), gamma)


def by_fours(products):
    """Their sum: every fourth together, the four so that halves are added up first, and then what was left over."""
    whole = len(products) // 4 * 4
    first, second, third, fourth = (sum(products[i:whole:4]) for i in range(4))
    return sum(products[whole:], (first + third) + (second + fourth))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("widths", [8, 9, 10, 11, 40, (40, 1, 2, 3, 4, 5, 6, 7)])
def test_rows_of_neighbours_are_summed_by_fours(widths, compiled):
    """Bit for bit, whole models and chains, pruned or not; in two halves there would be other bits."""
    if compiled:
        kernels.tiers.compile_loops()
    S = 60
    mdp = neighbourhoods(S, widths)
    assert sweep.runs(mdp) == ()
    v = np.random.default_rng(7).normal(size=S)
    ends = zip(mdp.P.indptr[:-1], mdp.P.indptr[1:], strict=True)
    products = [(mdp.P.data[lo:hi] * v[mdp.P.indices[lo:hi]]).tolist() for lo, hi in ends]
    q, halves = (
        (mdp.r + mdp.gamma * np.array([added(row) for row in products])).reshape(S, 3)
        for added in (by_fours, lambda row: sum(row[::2]) + sum(row[1::2]))
    )
    assert (q != halves).any()
    rows = 3 * np.arange(S) + q.argmax(axis=1)
    found = Sweeper(mdp).backup(v)
    np.testing.assert_array_equal(found.u, q.max(axis=1))
    np.testing.assert_array_equal(found.rows, rows)
    assert (found.low, found.high) == ((found.u - v).min(), (found.u - v).max())
    work = Workspace(mdp, v, Aim(1e-6, -1.0))
    work.look()
    np.testing.assert_array_equal(work.u, found.u)
    work.take_chain()
    work.policy_sweeps(1, 0.0)
    np.testing.assert_array_equal(work.v, found.u)
    sol = tr.solve(mdp, tol=1e-9)
    exact = tr.solve(mdp, tr.policy_iteration(), tol=1e-9).value
    assert sol.converged
    np.testing.assert_allclose(sol.value, exact, atol=1e-6)


def test_chains_of_neighbours_are_summed_by_fours_whoever_made_them():
    """Of a policy, deterministic or not; a chain of any other kind is not."""
    mdp = neighbourhoods(60, 12)
    v = np.random.default_rng(3).normal(size=60)
    rows = mdp.first[:-1]
    for P, r in ((mdp.P[rows], mdp.r[rows]), tr.Policy.uniform(problems.garnet(60, 1, 60)).induced(problems.garnet(60, 1, 60))):
        ends = zip(P.indptr[:-1], P.indptr[1:], strict=True)
        sums = [by_fours((P.data[lo:hi] * v[P.indices[lo:hi]]).tolist()) for lo, hi in ends]
        found = sweep_chain(P, r, 0.9, v, 1, Monitor(Limits()))
        np.testing.assert_array_equal(found, r + 0.9 * np.array(sums))
    leaves = sp.csr_array(P.toarray() * (np.arange(60) > 0)[:, None])  # for good, from its first state
    found = sweep_chain(leaves, r, 0.9, v, 1, Monitor(Limits()))
    assert sweep.runs_of(leaves.indptr, leaves.indices) is None
    np.testing.assert_allclose(found, r + 0.9 * (leaves @ v), rtol=1e-13)
    mixed, r = tr.Policy.uniform(mdp).induced(mdp)
    assert sweep.runs_of(mixed.indptr, mixed.indices) is None
    np.testing.assert_allclose(sweep_chain(mixed, r, 0.9, v, 1, Monitor(Limits())), r + 0.9 * (mixed @ v), rtol=1e-13)


@pytest.mark.parametrize("threads", [1, 2])
def test_large_models_of_neighbours_are_read_without_asking(monkeypatch, threads):
    """On any number of threads, with the same bits; a model with a gap is asked for, and so read in two halves."""
    monkeypatch.setattr(sweep, "LONG", 2_000)
    monkeypatch.setattr(team, "WORTH_IT", 500)
    mdp = neighbourhoods(200, 12)
    v = np.random.default_rng(1).normal(size=200)
    assert sweep.asked_for(mdp, mdp.n_transitions, v) is None
    usual = Sweeper(mdp, 1).backup(v)
    found = Sweeper(mdp, threads).backup(v)
    np.testing.assert_array_equal(found.u, usual.u)
    np.testing.assert_allclose(found.u, T(mdp, v), rtol=1e-13)
    P = mdp.P.toarray()
    last = np.flatnonzero(P[-1])
    P[-1, last[:3]] = P[-1, last[0]] + P[-1, last[1]], 0.0, P[-1, last[2]]  # the second neighbour of the very last pair
    gap = tr.MDP(P, mdp.r, mdp.gamma)
    assert sweep.runs(gap) is None
    assert sweep.asked_for(gap, gap.n_transitions, v) == ()
    np.testing.assert_allclose(Sweeper(gap, threads).backup(v).u, T(gap, v), rtol=1e-13)


def test_what_runs_are_is_seen_once_for_a_model_and_its_twins(monkeypatch):
    mdp = neighbourhoods(30, 9)
    assert sweep.runs(mdp) == ()
    assert sweep.runs(neighbourhoods(30, 7)) is None  # neighbours, but few
    assert sweep.runs(problems.garnet(50, 3, 10)) is None
    monkeypatch.setattr(kernels.graph, "runs", None)
    assert sweep.runs(tr.surrogate(mdp, np.zeros(30), 0.5)) == ()
