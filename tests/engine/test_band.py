"""Elimination from both ends of a band against dense algebra, by one thread and by two."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine import direct
from tightrope.kernels import team, unsigned

pytestmark = pytest.mark.usefixtures("compiled")


def banded(rng, S, below, above, hubs):
    """A stochastic matrix within a band, but for a column of some hub in every row; and the number of each hub."""
    P, number = np.zeros((S, S)), np.full(S, -1, dtype=np.int32)
    chosen = rng.choice(S, min(hubs, S), replace=False)
    number[chosen] = np.arange(len(chosen))
    for s in range(S):
        near = rng.integers(max(0, s - below), min(S - 1, s + above) + 1, size=3)
        P[s, [*near, *rng.permutation(chosen)[:1]]] = rng.random(3 + min(len(chosen), 1))
    return P / P.sum(axis=1, keepdims=True), direct.Band(number, len(chosen), below, above)


@pytest.mark.parametrize("seed", range(60))
def test_any_band_with_any_hubs_agrees_with_dense_algebra(seed):
    """Bands wider than what is below or above the middle, bands on one side only, one state, no state but hubs."""
    rng = np.random.default_rng(seed)
    S, below, above, hubs = (int(rng.integers(low, high)) for low, high in ((1, 120), (0, 6), (0, 6), (0, 4)))
    dense, band = banded(rng, S, below, above, hubs)
    r, discount, v = rng.normal(size=S), float(rng.choice([0.0, 0.5, 0.99, 0.9999])), np.empty(S)
    P = sp.csr_array(dense)
    kernels.band.value(unsigned(P.indptr), unsigned(P.indices), P.data, r, None, discount, *band, *band.room(S), v)
    exact = np.linalg.solve(np.eye(S) - discount * dense, r)
    np.testing.assert_allclose(v, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())


@pytest.mark.parametrize(("below", "above"), [(1, 1), (0, 1), (1, 0)])
@pytest.mark.parametrize("hubs", [0, 1, 3])
@pytest.mark.parametrize("S", [1, 2, 3, 11, 12, 200])
def test_moves_to_the_next_state_are_eliminated_as_in_any_band(below, above, hubs, S):
    """A loop of their own against the one for all widths, which the same chain in a wider band takes."""
    rng = np.random.default_rng(S + hubs)
    dense, band = banded(rng, S, below, above, hubs)
    P, r, discount = sp.csr_array(dense), rng.normal(size=S), 0.999
    found = []
    for width in (band, band._replace(below=2, above=2)):
        v = np.empty(S)
        kernels.band.value(unsigned(P.indptr), unsigned(P.indices), P.data, r, None, discount, *width, *width.room(S), v)
        found.append(v)
    exact = np.linalg.solve(np.eye(S) - discount * dense, r)
    for v in found:
        np.testing.assert_allclose(v, exact, rtol=0.0, atol=1e-11 * np.abs(exact).max())


def test_both_halves_need_each_other_and_the_hubs():
    """The negative twin: leave out where the ends meet, or what the hubs are worth, and the answer is wrong."""
    rng = np.random.default_rng(3)
    dense, band = banded(rng, 80, 2, 3, 1)
    P, r, v = sp.csr_array(dense), rng.normal(size=80), np.empty(80)
    exact = np.linalg.solve(np.eye(80) - 0.9 * dense, r)
    half, (left, columns) = kernels.band.middle(80, 2, 3), band.room(80)
    parts = ((0, half, True), (half, 80, False))

    def wrong_by(*, meet, hubs):
        for part in parts:
            kernels.band.eliminate(
                unsigned(P.indptr), unsigned(P.indices), P.data, r, None, 0.9, *band, left, columns, None, None, *part
            )
        if meet:
            kernels.band.meet(left, columns, 2, 3, v)
        for part in parts:
            kernels.band.substitute(left, columns, 2, 3, v, *part)
        at_hubs = kernels.band.hub_values(band.number, 1, columns)
        kernels.band.combine(columns, at_hubs if hubs else np.zeros_like(at_hubs), v, 0, 80)
        return np.abs(v - exact).max()

    assert wrong_by(meet=True, hubs=True) < 1e-10
    assert wrong_by(meet=False, hubs=True) > 1e-3
    assert wrong_by(meet=True, hubs=False) > 1e-3


def test_both_ends_meet_in_the_middle_unless_one_has_nothing_to_eliminate():
    assert kernels.band.middle(100, 1, 1) == 50
    assert kernels.band.middle(11, 1, 1) == 11
    assert kernels.band.middle(12, 1, 1) == 6
    assert kernels.band.middle(100, 0, 3) == 100
    assert kernels.band.middle(100, 3, 0) == 0


@pytest.mark.parametrize("make", [lambda: problems.queue(400, gamma=0.999), lambda: problems.replacement(300, gamma=0.99)])
def test_two_threads_eliminate_to_the_same_bits(make, monkeypatch):
    mdp = make()
    band = direct.model_band(mdp)
    assert band is not None
    rows = unsigned(np.array(mdp.first[1:] - 1))
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(team, "team_size", lambda _, __, threads=threads: threads)
        v = np.empty(mdp.n_states)
        direct.eliminate(mdp, rows, band, band.room(mdp.n_states), v, threads)
        found.append(v)
    np.testing.assert_array_equal(*found)
    exact = np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * mdp.P[rows].toarray(), mdp.r[rows])
    np.testing.assert_allclose(found[0], exact, atol=1e-10 * np.abs(exact).max())


def test_a_large_queue_is_solved_to_the_same_bits_by_any_number_of_threads():
    mdp = problems.queue(250_000, gamma=0.999)
    assert mdp.n_transitions >= 2 * team.WORTH_IT
    one, two = tr.solve(mdp, threads=1), tr.solve(mdp, threads=2)
    np.testing.assert_array_equal(one.value, two.value)
    assert one.converged
