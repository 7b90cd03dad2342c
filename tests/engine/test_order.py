"""States in the order in which values spread: found where their numbers are in the way, left alone where they are not."""

import itertools
from collections import deque

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine import choice as choosing
from tightrope.engine import outline
from tightrope.engine.outline import AS_NUMBERED
from tightrope.engine.room import Room
from tightrope.experiments.tour import rooms
from tightrope.kernels import team, unsigned


def renumbered(mdp, seed=0):
    """The same model with its states numbered at random."""
    old = np.random.default_rng(seed).permutation(mdp.n_states)
    pairs = np.concatenate([np.arange(mdp.first[s], mdp.first[s + 1]) for s in old])
    first = np.append(0, np.cumsum(np.diff(mdp.first)[old]))
    return tr.MDP(sp.csr_array(mdp.P[pairs][:, old]), mdp.r[pairs], mdp.gamma, first), old


def grid(slip=0.1, gamma=0.999, side=30):
    return problems.gridworld(side, side, slip=slip, gamma=gamma)


def outward(mdp, sinks=None):
    indptr, indices, _, _, first, _ = mdp.arrays
    order, place = np.empty((2, mdp.n_states), indices.dtype)
    scratch = np.empty(mdp.n_states + 1, indptr.dtype), np.empty_like(indices)
    found, _ = kernels.graph.outward(indptr, indices, first, True, *scratch, order, place)
    assert sinks in (None, found)
    return order, place


def random_model(seed, S=40, sinks=3, beyond=5):
    """Single moves and forks to anywhere; the first states are sinks, the last go round in circles."""
    rng = np.random.default_rng(seed)
    P = np.zeros((2 * S, S))
    for s, a in itertools.product(range(S), (0, 1)):
        if s < sinks:
            to = s
        elif s < S - beyond:
            to = rng.integers(0, S - beyond, size=1 + a)
        else:
            to = S - beyond + (s + 1 + a) % beyond
        P[2 * s + a, to] = 1.0
    P /= P.sum(axis=1, keepdims=True)
    return tr.MDP(P, rng.normal(size=2 * S), 0.95)


@pytest.mark.parametrize("seed", range(10))
def test_one_pass_finds_sinks_and_the_widest_rows(seed):
    """Against the definitions, one state at a time; some of the models have a state that cannot be left."""
    rng = np.random.default_rng(seed)
    first = np.append(0, np.cumsum(rng.integers(1, 4, size=12)))
    states = np.repeat(np.arange(12), np.diff(first))
    P = rng.random((first[-1], 12)) * (rng.random((first[-1], 12)) < 0.3)
    P[np.arange(first[-1]), states] += 0.1
    P[rng.random(first[-1]) < 0.2] = 0.0
    P[P.sum(axis=1) == 0.0, states[P.sum(axis=1) == 0.0]] = 1.0  # stays
    mdp = tr.MDP(P / P.sum(axis=1, keepdims=True), rng.normal(size=first[-1]), 0.9, first)
    widths = [[np.count_nonzero(P[l]) for l in range(first[s], first[s + 1])] for s in range(12)]
    assert mdp.width == max(map(max, widths))
    assert mdp.chain_begin.tolist() == np.append(0, np.cumsum([max(w) for w in widths])).tolist()
    assert mdp.chain_room == sum(max(w) for w in widths)
    stays = [all((np.flatnonzero(P[l]) == [s]).all() for l in range(first[s], first[s + 1])) for s in range(12)]
    assert mdp.has_sinks == any(stays)


def width(P):
    """What `kernels.graph.width` finds, and the order it is found in."""
    indptr, indices = unsigned(P.indptr), unsigned(P.indices)
    order, place = np.empty((2, P.shape[0]), indices.dtype)
    found = kernels.graph.width(indptr, indices, np.empty_like(indptr), np.empty_like(indices), order, place)
    return int(found), order.astype(int), place.astype(int)


@pytest.mark.parametrize("seed", range(10))
def test_the_width_of_a_chain_is_that_of_an_order_by_distance(seed):
    P = sp.csr_array(sp.random_array((60, 60), density=0.02, rng=np.random.default_rng(seed)) + 0.5 * sp.eye_array(60))
    found, order, place = width(P)
    np.testing.assert_array_equal(order[place], np.arange(60))
    i, j = P.nonzero()
    assert found == np.abs(place[i] - place[j]).max()
    steps = shortest_path(P, directed=False, unweighted=True)
    parts, of = connected_components(P, directed=False)
    assert parts > 1
    begins = [0, *(1 + np.flatnonzero(np.diff(of[order]))), 60]
    assert len(begins) == parts + 1  # one after the other
    for lo, hi in itertools.pairwise(begins):
        far = steps[order[lo], order[lo:hi]]
        assert (np.diff(far) >= 0).all()


@pytest.mark.parametrize(("mdp", "least"), [(problems.queue(200), 1), (grid(side=20), 20)])
def test_the_width_of_a_chain_does_not_depend_much_on_how_states_are_numbered(mdp, least):
    """A path has a band of one on either side, whoever is met first, and a grid one of about its side."""
    mixed, _ = renumbered(mdp, 3)
    P, _ = tr.Policy.uniform(mixed).induced(mixed)
    assert least <= width(sp.csr_array(P))[0] <= 1.2 * least + 1
    i, j = P.nonzero()
    assert np.abs(i - j).max() > 10 * least


@pytest.mark.parametrize("seed", range(20))
def test_states_are_ordered_by_their_distance_from_the_sinks(seed):
    mdp, _ = renumbered(random_model(seed), seed)
    order, place = (np.asarray(a).astype(int) for a in outward(mdp, sinks=3))
    np.testing.assert_array_equal(order[place], np.arange(mdp.n_states))
    # An independent breadth-first search, one state and one set at a time.
    P = mdp.P.toarray().reshape(mdp.n_states, 2, mdp.n_states).sum(axis=1)
    leads = [set(np.flatnonzero(row)) for row in P]
    queue = deque(s for s in range(mdp.n_states) if leads[s] == {s})
    steps = dict.fromkeys(queue, 0)
    while queue:
        j = queue.popleft()
        for s in range(mdp.n_states):
            if j in leads[s] and s not in steps:
                steps[s] = steps[j] + 1
                queue.append(s)
    far = [steps.get(s, mdp.n_states) for s in order]
    assert far == sorted(far)
    lost = [s for s in range(mdp.n_states) if s not in steps]
    assert len(lost) >= 5
    assert order[len(steps) :].tolist() == lost


def test_values_spread_in_one_sweep_once_states_are_in_order():
    mdp, _ = renumbered(grid(slip=0.0))
    v, rows, (order, _) = np.empty(mdp.n_states), np.empty(mdp.n_states, np.uint32), outward(mdp)
    n, _, guessed, lost = kernels.spread.spread_values(*mdp.arrays, v, rows, -1.0, False, order, True, None, 0.0)
    assert (n, guessed, lost) == (1, False, 0)
    np.testing.assert_allclose(v, tr.solve(mdp, tr.policy_iteration(), tol=1e-12).value, atol=1e-9)
    # In the order they came in, most have no value after a sweep either way.
    n, _, _, lost = kernels.spread.spread_values(*mdp.arrays, v, rows, -1.0, True, None, False, None, 0.0)
    assert (n, lost) == (2, np.count_nonzero(v == -1.0))
    assert lost > 0.5 * mdp.n_states


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("as_numbered", [False, True])
def test_gauss_seidel_in_an_order_is_the_textbook_sweep_in_that_order(backwards, blocks, as_numbered):
    mdp = grid(slip=0.2, side=7) if as_numbered else renumbered(grid(slip=0.2, side=7))[0]
    S, gamma, P = mdp.n_states, mdp.gamma, mdp.P.toarray()
    order, place = (None, None) if as_numbered else outward(mdp)
    arguments, order = (order, place), np.arange(S) if as_numbered else order
    v, x = np.random.default_rng(2).normal(size=(2, S))
    expected, rows, ends = v.copy(), np.empty(S, dtype=int), np.linspace(0, S, blocks + 1).astype(int)
    for lo, hi in itertools.pairwise(ends):
        seen = v.copy()  # the other blocks as they were
        for s in order[lo:hi][:: -1 if backwards else 1]:
            begin, end = mdp.first[s], mdp.first[s + 1]
            l = rows[s] = begin + int((mdp.r[begin:end] + gamma * (P[begin:end] @ seen)).argmax())
            seen[s] = mdp.r[l] + gamma * (P[l] @ seen)
        expected[order[lo:hi]] = seen[order[lo:hi]]
    found, chosen, others = v.copy(), np.empty(S, np.uint32), None if blocks == 1 else v.copy()
    up, down, far = 0.0, 0.0, 0
    held, *chain = Room().slots(mdp, arguments[0])
    held.fill(mdp.n_pairs)
    for lo, hi in itertools.pairwise(ends):
        _, more, less, further = kernels.in_place.gauss_seidel(
            *mdp.arrays, found, chosen, backwards, *arguments, others, held, *chain, lo, hi
        )
        up, down, far = up + more, down + less, max(far, further)
    # The chain it leaves: swept where the policy's value is known, it changes nothing.
    value = np.linalg.solve(np.eye(S) - gamma * P[rows], mdp.r[rows])
    value = value[order]
    assert kernels.in_place.split_sweep(value, False, True, None, *chain, S) < 1e-9
    # Elsewhere, a sweep of it upwards is the textbook's too.
    swept, seen = x[order], x.copy()
    for s in order:
        stay = P[rows[s], s]
        seen[s] = (mdp.r[rows[s]] + gamma * (P[rows[s]] @ seen - stay * seen[s])) / (1.0 - gamma * stay)
    kernels.in_place.split_sweep(swept, False, True, None, *chain, S)
    np.testing.assert_allclose(swept, seen[order], atol=1e-11)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    np.testing.assert_array_equal(chosen, rows)
    moves = P[rows][np.ix_(order, order)]
    assert up == pytest.approx(np.triu(moves, 1).sum())
    assert down == pytest.approx(np.tril(moves, -1).sum())
    assert far == max(abs(s - j) for s, j in np.argwhere(moves > 0.0))


@pytest.mark.parametrize("as_numbered", [True, False])
def test_the_chain_of_pairs_that_are_known_is_that_of_the_sweep_that_found_them(as_numbered):
    """And the sweep is the same, bit for bit, whether it keeps a chain or leaves that for later."""
    mdp = grid(slip=0.2, side=7) if as_numbered else renumbered(grid(slip=0.2, side=7))[0]
    S, (order, place) = mdp.n_states, (None, None) if as_numbered else outward(mdp)
    start, found = np.random.default_rng(2).normal(size=S), []
    for at_once in (True, False):
        v, rows = start.copy(), np.empty(S, np.uint32)
        held, *chain = Room().slots(mdp, order)
        held.fill(mdp.n_pairs)
        how = (rows, False, order, place, None)
        change, *moves = kernels.in_place.gauss_seidel(*mdp.arrays, v, *how, held if at_once else None, *chain, 0, S)
        if not at_once:
            assert moves == [0.0, 0.0, 0]
            nothing, *moves = kernels.in_place.gauss_seidel(*mdp.arrays, None, *how, held, *chain, 0, S)
            assert nothing == 0.0
        end = int(chain[0][S])
        found.append((v, rows, change, *moves, held, *(part[:end] for part in chain[1:3]), chain[3]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (found[0][0] != start).any()


@pytest.mark.parametrize(("slip", "most"), [(0.0, 5.0), (0.1, 20.0)])
@pytest.mark.parametrize("large", [False, True])
def test_numbers_of_states_make_little_difference(monkeypatch, slip, most, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = grid(slip)
    shuffled, old = renumbered(mdp)
    plain, found = tr.solve(mdp, tol=1e-9), tr.solve(shuffled, tol=1e-9)
    np.testing.assert_allclose(found.value, plain.value[old], atol=2e-9)
    assert found.backups < (most + 40.0 * large) * mdp.n_pairs
    assert "distance from the sinks" in found.explain()
    assert "distance from the sinks" not in plain.explain()
    assert mdp.facts["order"] is AS_NUMBERED
    # In the order they came in, the same takes several times as much.
    shuffled.facts["order"] = AS_NUMBERED
    shuffled.facts.pop("room", None)  # which knows how the last solve began
    assert tr.solve(shuffled, tol=1e-9).backups > 2 * found.backups


def scattered(S=400, seed=0):
    """Moves to anywhere, and one state that nobody leaves."""
    mdp = problems.garnet(S, 3, 4, gamma=0.99, seed=seed)
    P = mdp.P.toarray()
    P[:3] = 0.0
    P[:3, 0] = 1.0
    return tr.MDP(P, mdp.r, mdp.gamma)


@pytest.mark.parametrize("seed", range(5))
def test_distances_from_states_to_their_successors_are_added_up(seed):
    mdp, _ = renumbered(random_model(seed), seed)
    indptr, indices, _, _, first, _ = mdp.arrays
    place = np.random.default_rng(seed).permutation(mdp.n_states).astype(np.uint32)
    state, successor = mdp.pairs.states[mdp.P.tocoo().row], mdp.P.tocoo().col
    for there, where in ((None, np.arange(mdp.n_states)), (place, place.astype(int))):
        assert kernels.graph.distance(indptr, indices, first, there, 0) == np.abs(where[state] - where[successor]).sum()


@pytest.mark.parametrize("large", [False, True])
def test_an_order_that_brings_nobody_nearer_is_not_kept(monkeypatch, large):
    """Nor is much tried in it: where moves lead anywhere, other methods are soon better."""
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = scattered()
    found = tr.solve(mdp, tol=1e-9)
    order, place = mdp.facts["order"]
    assert order is place
    np.testing.assert_array_equal(order, np.arange(mdp.n_states))
    assert "as they are numbered" in found.explain()
    assert found.converged
    np.testing.assert_allclose(found.value, tr.solve(mdp, tr.policy_iteration(), tol=1e-12).value, atol=1e-6)
    again = tr.solve(mdp, tol=1e-9)  # the order is known by now
    assert again.backups == found.backups - 2 * mdp.n_pairs  # two sweeps that were lost
    # With an order and time for it, it takes longer.
    monkeypatch.setattr(outline, "NEARER", np.inf)
    patient = tr.solve(scattered(), tol=1e-9)
    assert "distance from the sinks:" in patient.explain()
    assert patient.backups > 1.5 * found.backups


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_numbers_that_are_near_are_kept_though_values_have_to_turn_corners(monkeypatch, slip, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp, again = (rooms(160).mdp(slip=slip, gamma=0.999) for _ in range(2))
    found = tr.solve(mdp)
    assert mdp.facts["order"] is AS_NUMBERED
    assert "in the order" not in found.explain()
    assert "as they are numbered" not in found.explain()
    assert found.backups < 120 * mdp.n_pairs
    monkeypatch.setattr(choosing, "DIFFUSE", np.inf)  # BiCGSTAB would help it out, and so would the order of a policy
    monkeypatch.setattr(choosing, "SLOW", 1.0)
    monkeypatch.setattr(outline, "NEARBY", 0.0)
    hasty = tr.solve(again)  # taken for scattered, and so left to other methods too soon
    assert "as they are numbered" in hasty.explain()
    assert hasty.backups > 1.5 * found.backups
    np.testing.assert_allclose(found.value, hasty.value, atol=2e-6)


def test_where_moves_are_certain_one_sweep_from_the_only_goal_is_enough():
    walls, rng = np.zeros((50, 50), bool), np.random.default_rng(0)
    walls[::10] = walls[:, ::10] = True
    for row, column in itertools.product(range(0, 50, 10), repeat=2):  # a door up and a door to the left
        walls[row, column + rng.integers(1, 10)] = walls[row + rng.integers(1, 10), column] = False
    certain, slippery = (problems.Grid(50, 50, walls).mdp(slip=slip, gamma=0.99) for slip in (0.0, 0.2))
    found = tr.solve(certain)
    assert found.backups <= 4 * certain.n_pairs  # two sweeps that were lost, the one, and a look
    assert "distance from the sinks" in found.explain()
    tr.solve(slippery)
    assert slippery.facts["order"] is AS_NUMBERED


@pytest.mark.parametrize("large", [False, True])
def test_in_a_maze_distances_are_followed_though_numbers_are_near(monkeypatch, large):
    """A way that winds to and fro, with a few short cuts: no order brings its states much nearer, and one has values spread."""
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    rng = np.random.default_rng(0)
    walls = np.zeros((41, 41), bool)
    walls[1::2] = True
    walls[1::4, -1] = walls[3::4, 0] = False
    walls[1::2] &= rng.random((20, 41)) > 0.05
    mdp, again = (problems.Grid(41, 41, walls, goals=[(40, 20)]).mdp(slip=0.1, gamma=0.999) for _ in range(2))
    found = tr.solve(mdp)
    assert "distance from the sinks" in found.explain()
    again.facts["order"] = AS_NUMBERED
    numbered = tr.solve(again)
    assert numbered.backups > 2 * found.backups
    np.testing.assert_allclose(found.value, numbered.value, atol=2e-6)


@pytest.mark.parametrize("make", [lambda: renumbered(grid(side=12))[0], scattered])
def test_what_was_solved_before_makes_no_difference(make):
    """Whether states are put in order depends on the transitions alone, so each run has the same bits after any other."""
    algorithms = (None, tr.kappa_pi(0.9), tr.h_pi(3))
    alone = [tr.solve(make(), algorithm).value for algorithm in algorithms]
    for turn in (1, -1):
        mdp = make()
        for algorithm, value in list(zip(algorithms, alone, strict=True))[::turn]:
            np.testing.assert_array_equal(tr.solve(mdp, algorithm).value, value)


def test_an_order_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(team, "WORTH_IT", 100)
    one, three = (tr.solve(renumbered(grid())[0], threads=n) for n in (1, 3))
    assert "distance from the sinks" in one.explain()
    np.testing.assert_array_equal(one.value, three.value)
    assert [row[:-1] for row in one.trace.rows] == [row[:-1] for row in three.trace.rows]


def test_states_that_reach_no_sink_are_solved_all_the_same():
    for seed in range(10):
        mdp, _ = renumbered(random_model(seed), seed)
        reference = tr.solve(mdp, tr.policy_iteration(), tol=1e-10)
        found = tr.solve(mdp, tol=1e-10)
        assert found.converged
        np.testing.assert_allclose(found.value, reference.value, atol=1e-8)
