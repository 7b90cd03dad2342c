"""Each sweep against dense algebra: what it computes, and the chain it leaves behind."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine import direct, rounds, sweep
from tightrope.engine.monitor import Aim
from tightrope.engine.sweep import Sweeper
from tightrope.engine.workspace import Workspace
from tightrope.kernels import team


def greedy(mdp, v):
    """T v and its greedy pairs, in plain NumPy."""
    q = mdp.r + mdp.gamma * (mdp.P.toarray() @ v)
    ends = zip(mdp.first[:-1], mdp.first[1:], strict=True)
    rows = np.array([lo + int(q[lo:hi].argmax()) for lo, hi in ends])
    return q[rows], rows


@pytest.mark.parametrize("make", [problems.cliff, lambda: problems.garnet(60, 3, 4, seed=2), problems.inventory])
def test_a_backup_leaves_the_greedy_chain_behind(make):
    mdp = make()
    v = np.random.default_rng(1).normal(size=mdp.n_states)
    work = Workspace(mdp, v, Aim(1e-6, -1.0))
    work.chaining = True
    work.look()
    u, rows = greedy(mdp, v)
    np.testing.assert_allclose(work.u, u, atol=1e-12)
    np.testing.assert_array_equal(work.rows, rows)
    P, r = held_chain(work, mdp)
    np.testing.assert_array_equal(P, mdp.P[rows].toarray())
    np.testing.assert_array_equal(r, mdp.r[rows])


def held_chain(work, mdp):
    """The chain that the room holds, dense, and its rewards."""
    indptr, indices, data, r = work.room.chain(mdp)
    S, n = mdp.n_states, int(indptr[mdp.n_states])
    P = sp.csr_array((data[:n], indices[:n].astype(np.int64), indptr[: S + 1].astype(np.int64)), shape=(S, S))
    return P.toarray(), r


def test_gauss_seidel_takes_the_room_of_the_chain_that_a_look_left_behind():
    """Sweeps that come after it must copy their chain anew, even where there has been a look at the end of it."""
    mdp = problems.gridworld(6, 7, slip=0.2)
    work = Workspace(mdp, np.zeros(mdp.n_states), Aim(1e-6, -1.0))
    work.chaining = True
    work.look()
    assert work.chained
    rounds.gauss_seidel_round(work, np.inf, 40)
    assert work.looked
    work.take_chain()
    np.testing.assert_array_equal(held_chain(work, mdp)[0], mdp.P[work.rows.astype(int)].toarray())


@pytest.mark.parametrize(("size", "width"), [(3, 1), (3, 2), (3, 3), *((200, width) for width in (*range(1, 8), 40))])
def test_rows_of_any_width_are_summed_in_two_halves_wherever_values_lie(size, width):
    """Bit for bit: first, third, fifth ... successor, and second, fourth ...; a plain sum from the left has other bits.

    The small ones end before the first value that would be asked for ahead of time; the largest go on for long after it.
    """
    mdp = problems.garnet(size, 3, width, gamma=0.95, seed=width)
    v = np.random.default_rng(width).normal(size=size)
    S, P = size, mdp.P.data.reshape(3 * size, -1)
    products = P * v[mdp.P.indices.reshape(P.shape)]
    even, odd = (np.array([sum(row) for row in products[:, half::2].tolist()]) for half in (0, 1))
    q = (mdp.r + mdp.gamma * (even + odd)).reshape(S, 3)
    from_the_left = (mdp.r + mdp.gamma * np.array([sum(row) for row in products.tolist()])).reshape(S, 3)
    assert (from_the_left == q).all() == (width <= 2)
    rows = 3 * np.arange(S) + q.argmax(axis=1)
    chain = Workspace(mdp, v, Aim(1e-6, -1.0)).room.chain(mdp)
    indptr, *middle, first, gamma = mdp.arrays
    models = [mdp.arrays, (width, *middle, first, gamma), (indptr, *middle, 3, gamma), (width, *middle, 3, gamma)]
    if width == 1:
        models.append((None, *middle, 3, gamma))
    assert [sweep.rows_of(mdp)[i] for i in (0, 4)] == [width if width > 1 else None, 3]
    for compiled in (False, True):
        if compiled:
            kernels.tiers.compile_loops()
        for asked, model in [(asked, model) for asked in (None, (), v) for model in models]:
            u, found = np.empty(S), np.empty(S, mdp.first.dtype)
            kernels.backup(*model, v, u, found, asked, None, None, None, None, None, 0, S)
            np.testing.assert_array_equal(u, q.max(axis=1))
            np.testing.assert_array_equal(found, rows)
            for part in chain:
                part[:] = 0
            kernels.backup(*model, v, u, found, asked, None, *chain, 0, S)
            np.testing.assert_array_equal(chain[0][: S + 1], np.arange(S + 1) * P.shape[1])
            np.testing.assert_array_equal(chain[1].reshape(S, -1), mdp.P.indices.reshape(P.shape)[rows])
            np.testing.assert_array_equal(chain[2].reshape(S, -1), P[rows])
            np.testing.assert_array_equal(chain[3], mdp.r[rows])
            kernels.policy_backup(mdp.gamma, v, u, asked, None, *chain, 0, S)
            np.testing.assert_array_equal(u, q.max(axis=1))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("make", [problems.cliff, lambda: problems.gridworld(6, 7, slip=0.2), lambda: problems.garnet(40, 3, 4)])
def test_gauss_seidel_is_the_textbook_sweep_and_keeps_the_chain_of_its_choices(make, backwards):
    """Also in later sweeps, which find other pairs better in some states: of the others nothing is copied again."""
    mdp = make()
    S, gamma, P = mdp.n_states, mdp.gamma, mdp.P.toarray()
    work = Workspace(mdp, np.zeros(S), Aim(1e-6, -1.0))
    held, *chain = work.room.slots(mdp, None)
    held.fill(mdp.n_pairs)
    up, down, far = 0.0, 0.0, 0
    before = work.rows.copy()
    for sweep_number in range(3):
        v = np.random.default_rng(2 + sweep_number // 2).normal(size=S)
        expected, rows = v.copy(), np.empty(S, dtype=int)
        for s in range(S - 1, -1, -1) if backwards else range(S):
            lo, hi = mdp.first[s], mdp.first[s + 1]
            l = rows[s] = lo + int((mdp.r[lo:hi] + gamma * (P[lo:hi] @ expected)).argmax())
            expected[s] = mdp.r[l] + gamma * (P[l] @ expected)
        work.v[:] = v
        change, more, less, further = kernels.in_place.gauss_seidel(
            *mdp.arrays, work.v, work.rows, backwards, None, None, None, held, *chain, 0, S
        )
        up, down, far = up + more, down + less, max(far, further)
        np.testing.assert_allclose(work.v, expected, atol=1e-11)
        np.testing.assert_array_equal(work.rows, rows)
        np.testing.assert_array_equal(held, rows)
        assert sweep_number == 0 or np.array_equal(rows, before) == (sweep_number == 1)
        before = rows
        assert change == pytest.approx(np.abs(expected - v).max())
        moves = P[work.rows]
        assert up == pytest.approx(np.triu(moves, 1).sum())
        assert down == pytest.approx(np.tril(moves, -1).sum())
        assert far >= max(abs(s - j) for s, j in np.argwhere(moves > 0.0))
        assert sweep_number > 0 or far == max(abs(s - j) for s, j in np.argwhere(moves > 0.0))
        # The chain has the same value as the policy, whichever way it is swept.
        exact = np.linalg.solve(np.eye(S) - gamma * moves, mdp.r[work.rows])
        for way in (False, True):
            x = exact.copy()
            change = kernels.in_place.split_sweep(x, way, True, None, *chain, S)
            assert change < 1e-9 * max(1.0, np.abs(exact).max())


@pytest.mark.parametrize("size", [40, 2500])
@pytest.mark.parametrize(("backwards", "turn"), [(False, False), (True, False), (True, True)])
def test_sweeps_of_a_chain_converge_to_its_value_side_by_side_too(size, backwards, turn):
    mdp = problems.garnet(size, 1, 4, gamma=0.9, seed=5)
    split = tuple(np.empty_like(a) for a in mdp.arrays[:4])
    _, _, far = kernels.in_place.extract_split(*mdp.arrays[:4], np.arange(size, dtype=np.uint32), 0.9, *split)
    v = np.zeros(size)
    n, change, _ = kernels.in_place.split_sweeps(*split, v, 500, 1e-13, backwards, turn, True, None, far)
    assert n < 500
    assert change <= 1e-13
    np.testing.assert_allclose(v, mdp.r + 0.9 * (mdp.P @ v), atol=1e-11)


def walk_of(mdp, rows):
    """The chain of a policy in split form, and how far moves lead."""
    S = mdp.n_states
    room = tuple(np.empty(n, kind) for n, kind in ((S + 1, np.uint32), (9 * S, np.uint32), (9 * S, float), (S, float)))
    up, down, far = kernels.in_place.extract_split(*mdp.arrays[:4], rows, mdp.gamma, *room)
    P = mdp.P[rows].toarray()
    assert (up, down) == pytest.approx((np.triu(P, 1).sum(), np.tril(P, -1).sum()))
    assert far == max(abs(s - j) for s, j in np.argwhere(P > 0.0))
    return room, far


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("asked", [None, ()])
@pytest.mark.parametrize(("side", "threads"), [(12, 1), (12, 2), (60, 1), (60, 2)])
def test_sweeps_that_follow_each_other_find_what_they_would_one_after_the_other(side, threads, asked, backwards):
    """To the last bit, on lanes and on threads: each stays behind the one before as far as a move leads, and more."""
    mdp = problems.gridworld(side, side, slip=0.2, gamma=0.99)
    S, rng = mdp.n_states, np.random.default_rng(1)
    rows = (mdp.first[:-1] + rng.integers(np.diff(mdp.first))).astype(np.uint32)
    chain, far = walk_of(mdp, rows)
    lag = kernels.in_place.behind(far, S)
    assert far < lag < S
    expected = rng.normal(size=S)
    lanes, pairs = expected.copy(), expected.copy()
    alone = (expected, backwards, None, None, *chain, S, S, 0, S)
    changes = [max(kernels.in_place.split_gauss_seidel(*alone)) for _ in range(8)]
    arguments = (pairs, backwards, asked, *chain, lag, np.zeros(4, np.int64))
    assert team.each(kernels.in_place.split_pair, arguments, [(i,) for i in range(2)], threads) == changes[1:4:2]
    assert team.each(kernels.in_place.split_pair, arguments, [(i,) for i in range(2, 4)], threads) == changes[5::2]
    np.testing.assert_array_equal(pairs, expected)
    if S < kernels.in_place.SIDE_BY_SIDE:
        found = kernels.in_place.split_sweeps(*chain, lanes, 8, 0.0, backwards, False, True, None, far)
        assert found == (8, changes[-1], backwards)
        np.testing.assert_array_equal(lanes, expected)


def test_a_sweep_too_close_behind_another_would_find_something_else():
    """The twin of the last test: with a lag that moves can bridge, lanes meet half-made values."""
    mdp = problems.gridworld(12, 12, slip=0.2, gamma=0.99)
    S, rng = mdp.n_states, np.random.default_rng(1)
    rows = (mdp.first[:-1] + rng.integers(np.diff(mdp.first))).astype(np.uint32)
    chain, far = walk_of(mdp, rows)
    v = rng.normal(size=S)
    close, behind = v.copy(), v.copy()
    kernels.in_place.split_pair(close, False, None, *chain, far // 2, np.zeros(1, np.int64), 0)
    kernels.in_place.split_pair(behind, False, None, *chain, far + 1, np.zeros(1, np.int64), 0)
    for _ in range(2):
        kernels.in_place.split_gauss_seidel(v, False, None, None, *chain, S, S, 0, S)
    assert np.abs(close - v).max() > 1e-3
    np.testing.assert_array_equal(behind, v)


def test_sweeps_wait_for_each_other_where_moves_lead_far():
    assert kernels.in_place.behind(10, 100) > 10
    assert kernels.in_place.behind(60, 100) == 0


@pytest.mark.parametrize("backwards", [False, True])
def test_a_sweep_that_keeps_less_than_nothing_of_the_old_value_is_textbook_over_relaxation(backwards):
    size, relax = 40, 1.2
    mdp = problems.garnet(size, 1, 4, gamma=0.9, seed=5)
    split = tuple(np.empty_like(a) for a in mdp.arrays[:4])
    kernels.in_place.extract_split(*mdp.arrays[:4], np.arange(size, dtype=np.uint32), 0.9, *split)
    indptr, indices, data, r = split
    n = int(indptr[-1])
    P = sp.csr_array((data[:n], indices[:n].astype(np.int64), indptr.astype(np.int64)), shape=(size, size)).toarray()
    v = np.random.default_rng(3).normal(size=size)
    expected = v.copy()
    for s in range(size - 1, -1, -1) if backwards else range(size):
        expected[s] += relax * (r[s] + P[s] @ expected - expected[s])
    data *= relax
    r *= relax
    change = kernels.in_place.split_sweep(v, backwards, True, 1.0 - relax, *split, size)
    np.testing.assert_allclose(v, expected, atol=1e-12)
    assert change > 0.0


def test_nothing_is_backed_up_as_anything_else_is():
    mdp = problems.garnet(60, 3, 4, seed=2)
    zero = Sweeper(mdp).backup(np.zeros(60))
    for one, other in zip(zero, Sweeper(mdp).backup(None), strict=True):
        np.testing.assert_array_equal(one, other)
    u, rows = np.empty(60), np.empty(60, dtype=mdp.first.dtype)
    assert Sweeper(mdp).backup_into(np.zeros(60), u, rows) == zero[2:]
    np.testing.assert_array_equal(zero.u, u)
    np.testing.assert_array_equal(zero.rows, rows)


def test_values_do_not_spread_to_states_that_reach_no_sink():
    """Two states that swap places for ever beside a sink: they keep the value from below."""
    P = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    mdp = tr.MDP(P, [-1.0, 2.0, 0.5], 0.9)
    work = Workspace(mdp, None, Aim(1e-6, -1.0))
    work.spread_values()
    np.testing.assert_allclose(work.v, [-10.0, -10.0, 5.0])
    np.testing.assert_allclose(tr.solve(mdp, tol=1e-12).value, np.linalg.solve(np.eye(3) - 0.9 * P, mdp.r), atol=1e-9)


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9999])
@pytest.mark.parametrize("seed", range(4))
def test_single_moves_are_followed_into_their_cycles(seed, discount):
    rng = np.random.default_rng(seed)
    S = 200
    P = sp.csr_array((np.ones(S), rng.integers(S, size=S), np.arange(S + 1)), shape=(S, S))
    band, r = direct.narrow_band(P), rng.normal(size=S)
    assert band is not None
    assert band.hubs == -1
    exact = np.linalg.solve(np.eye(S) - discount * P.toarray(), r)
    np.testing.assert_allclose(direct.solve_chain(P, r, discount), exact, rtol=1e-9, atol=1e-12)


def test_one_state_with_a_choice_of_successors_is_no_single_move():
    S = 200
    P = sp.lil_array((S, S))
    P[np.arange(S), np.random.default_rng(0).integers(S, size=S)] = 1.0
    P[7] = 0.0
    P[7, [3, 190]] = 0.5
    band = direct.narrow_band(sp.csr_array(P))
    assert band is None or band.hubs >= 0


def test_a_deterministic_model_is_solved_by_following_its_moves():
    mdp = problems.garnet(500, 4, 1, gamma=0.999, seed=1)
    solution = tr.solve(mdp)
    assert [sentence.split()[0] for sentence in solution.choices] == ["factorisation"]
    u, _ = greedy(mdp, solution.value)
    assert np.abs(u - solution.value).max() / (1.0 - mdp.gamma) <= 1e-6 * np.abs(u).max()


@pytest.mark.parametrize(
    ("chain_span", "span", "mixing", "expected"),
    [
        (1e-3, 1.1e-3, 0.5, 0.01),  # settled, and quick: go deeper
        (1e-3, 1e-1, 0.5, 0.1),  # a backup found much to improve: no deeper than at first
        (1e-3, 1.1e-3, 0.999, 0.1),  # settled, but too slow to go far
    ],
)
def test_chains_are_swept_deeper_only_for_a_settled_policy(chain_span, span, mixing, expected):
    assert kernels.rounds.deeper(0.1, 0.1, chain_span, span, mixing, 40.0) == pytest.approx(expected)


@pytest.mark.parametrize("make", [lambda: problems.garnet(50, 3, 4, seed=3), problems.queue, problems.inventory])
def test_a_look_at_the_rewards_is_a_look_at_a_constant(make):
    mdp = make()
    blind, seen = Workspace(mdp, None, Aim(1e-6, -1.0)), Workspace(mdp, None, Aim(1e-6, -1.0))
    blind.look_at_rewards()
    seen.v[:] = seen.base
    seen.look()
    np.testing.assert_allclose(blind.u, seen.u, rtol=1e-9, atol=1e-9 * abs(seen.base))
    scale = max(1.0, abs(seen.base))
    assert blind.low == pytest.approx(seen.low, abs=1e-9 * scale)
    assert blind.high == pytest.approx(seen.high, abs=1e-9 * scale)
    blind.look_at_rewards()  # a second time does nothing
    assert blind.backups == mdp.n_pairs


def test_a_model_is_asked_for_where_no_cache_holds_it_and_values_where_these_lie_far_apart_too(monkeypatch):
    monkeypatch.setattr(sweep, "WIDE", 200)
    monkeypatch.setattr(sweep, "LONG", 1000)
    v = np.zeros(2)
    for mdp, way in (
        (problems.garnet(300, 3, 5), v),
        (problems.garnet(300, 3, 1), None),
        (problems.garnet(100, 3, 5), ()),
        (problems.garnet(20, 3, 5), None),
        (problems.queue(500), ()),
    ):
        assert sweep.asked_for(mdp, mdp.n_transitions, v) is way
    assert sweep.asked_for(problems.garnet(300, 3, 5), 999.0, v) is None  # a policy's chain, which the caches hold
    assert sweep.reach(problems.queue(300)) == 1
