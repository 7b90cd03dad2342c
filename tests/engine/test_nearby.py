"""Orders of states that nobody stays in, where numbers mean nothing: against definitions, SciPy's distances and dense algebra."""

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

import tightrope as tr
from reference import optimum
from tightrope import kernels, problems
from tightrope.cli.warm import errands, shuffled
from tightrope.engine import methods, workspace
from tightrope.engine.choice import FROM_ENDS, NAMES, NEARBY
from tightrope.engine.outline import AS_NUMBERED, NOWHERE, distance, near, nearby, outline, promising
from tightrope.kernels import team


def lift(floors=100, gamma=0.99):
    """People get in below and out at the top, which is far away; nothing on the way says so."""

    def dynamics(states, action):
        floor, load = np.divmod(states, 4)
        bottom, top = (floor == 0) & (action == 1), (floor == floors - 1) & (action == 1)
        now = np.where(bottom, np.minimum(load + 1, 3), np.where(top, 0, load))
        to = np.stack([now, np.minimum(now + 1, 3)], axis=1) + 4 * np.clip(floor + action - 1, 0, floors - 1)[:, None]
        return to, [0.9, 0.1], np.where(top, 3.0 * load, -0.01 * load)

    return tr.MDP.from_function(dynamics, 4 * floors, 3, gamma)


def found(mdp, what, *arguments):
    """What a search of `kernels.graph` returns, and the order and the places that it finds."""
    indptr, indices, _, _, first, _ = mdp.arrays
    order, place = np.empty((2, mdp.n_states), indices.dtype)
    number = what(indptr, indices, first, *arguments, order, place)
    return number, order.astype(int), place.astype(int)


def scratch(mdp):
    return np.empty(mdp.n_states + 1, mdp.arrays[0].dtype), np.empty_like(mdp.arrays[1])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("stay", [False, True])
def test_ends_are_where_whatever_is_done_leads_to_one_state(seed, stay):
    rng = np.random.default_rng(seed)
    S = 30
    first = np.append(0, np.cumsum(rng.integers(1, 4, size=S)))
    P = rng.random((first[-1], S)) * (rng.random((first[-1], S)) < 0.1)
    for s in range(S):
        kind, own = rng.integers(5), slice(first[s], first[s + 1])
        if kind == 0:
            P[own] = np.eye(S)[s]
        elif kind == 1:
            P[own] = np.eye(S)[(s + 1) % S]
        elif kind == 2:
            P[own] = np.eye(S)[[(s + 1) % S, (s + 2) % S]].sum(axis=0)
    P[P.sum(axis=1) == 0.0, 0] = 1.0
    mdp = tr.MDP(P / P.sum(axis=1, keepdims=True), rng.normal(size=first[-1]), 0.9, first)

    def ends(s):
        to = [tuple(np.flatnonzero(P[l])) for l in range(first[s], first[s + 1])]
        return set(to) == {(s,)} or (not stay and len(to) > 1 and len(set(to)) == 1 and len(to[0]) == 1)

    expected = [s for s in range(S) if ends(s)]
    number, order, place = found(mdp, kernels.graph.ends, stay)
    assert order[:number].tolist() == expected
    assert number > 0
    assert place[expected].tolist() == list(range(number))
    assert (np.delete(place, expected) == S).all()


@pytest.mark.parametrize("seed", range(10))
def test_states_are_ordered_by_their_distance_from_one_that_is_far_away_but_for_hubs(seed):
    rng = np.random.default_rng(seed)
    S = 60
    P = np.zeros((2 * S, S))
    for s in range(S):
        for l in (2 * s, 2 * s + 1):
            P[l, rng.integers(max(s - 4, 0), min(s + 5, S), size=2)] = 0.4
            P[l, rng.choice([0, 0, 7])] += 0.2  # where everybody may be sent back to
    mdp = shuffled(tr.MDP(P / P.sum(axis=1, keepdims=True), rng.normal(size=2 * S), 0.9))
    leads = (mdp.P.toarray().reshape(S, 2, S) > 0.0).sum(axis=1)
    np.fill_diagonal(leads, 0)
    hubs, order, place = found(mdp, kernels.graph.nearby, *scratch(mdp), 15)
    np.testing.assert_array_equal(order[place], np.arange(S))
    expected = np.flatnonzero(leads.sum(axis=0) > 15)
    assert order[:hubs].tolist() == expected.tolist()
    assert hubs > 0
    rest = np.delete(leads, expected, axis=0)[:, np.setdiff1d(np.arange(S), expected)]
    steps = shortest_path(rest, directed=False, unweighted=True)
    of = {s: i for i, s in enumerate(np.setdiff1d(np.arange(S), expected))}
    there = [of[s] for s in order[hubs:]]
    reached = steps[there[0], there]
    reached = reached[np.isfinite(reached)]
    assert len(reached) > 40
    assert (np.diff(reached) >= 0).all()
    # What leads to hubs is not counted as far.
    pairs = mdp.P.tocoo()
    i, j = place[np.asarray(mdp.pairs.states)[pairs.row]], place[pairs.col]
    wanted = np.abs(i - j)[j >= hubs].sum()
    assert kernels.graph.distance(*mdp.arrays[:2], mdp.arrays[4], place.astype(np.uint32), hubs) == wanted


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("gamma", [0.95, 0.999])
@pytest.mark.parametrize(("world", "size"), [(lift, 100), (errands, 25)])
def test_what_is_far_away_is_found_whatever_the_numbers_of_states(monkeypatch, world, size, gamma, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = world(size, gamma)
    mixed = shuffled(mdp)
    assert near(mdp)
    assert nearby(mdp) is AS_NUMBERED
    assert not near(mixed)
    assert (outline(mixed).ends is None) == (world is lift)
    sol, again = tr.solve(mixed, tol=1e-9), tr.solve(mixed, tol=1e-9)
    assert (NEARBY if world is lift else FROM_ENDS) in sol.choices
    np.testing.assert_allclose(sol.value, optimum(mixed), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(again.value, sol.value)
    assert again.backups <= sol.backups  # the order is found once
    # As good as in order, but for states that choose while a band is eliminated: without numbers there is none.
    with monkeypatch.context() as only_sweeps:
        only_sweeps.setattr("tightrope.engine.outline.model_band", lambda _: None)
        assert sol.backups < 3 * tr.solve(world(size, gamma), tol=1e-9).backups
    # The twin: by numbers that mean nothing it takes longer.
    twin = shuffled(mdp)
    twin.facts["order"] = AS_NUMBERED
    assert tr.solve(twin, tol=1e-9).backups > 1.5 * sol.backups


def test_where_all_begins_again_is_where_the_order_begins():
    mixed = shuffled(errands(25, 0.99))
    (number, steps), order, place = found(mixed, kernels.graph.outward, False, *scratch(mixed))
    assert (number, steps) == (1, 48)
    assert mixed.r[mixed.first[order[0]]] == 1.0
    shape = outline(mixed)
    assert (shape.ends.tolist(), shape.steps) == ([order[0]], 48)
    tr.solve(mixed)
    np.testing.assert_array_equal(mixed.facts["order"][0], order)
    np.testing.assert_array_equal(mixed.facts["order"][1], place)


@pytest.mark.parametrize("large", [False, True])
def test_values_spread_from_where_all_begins_again_if_what_comes_after_hardly_counts(monkeypatch, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = errands(25, 0.95)
    ends, after = promising(mdp)
    sol = tr.solve(mdp, tol=1e-9)
    assert sol.choices[0] == NAMES[methods.gauss_seidel]
    best = optimum(mdp)
    np.testing.assert_allclose(sol.value, best, rtol=1e-9, atol=1e-9)
    start = mdp.P.indices[mdp.P.indptr[mdp.first[ends[0]]]]
    assert abs(after - best[start]) < 0.1 * abs(best[ends[0]])
    # Its twins: from elsewhere it takes longer; what comes after counts; and it is nothing to go for.
    monkeypatch.setattr(workspace, "promising", lambda _: NOWHERE)
    assert tr.solve(errands(25, 0.95), tol=1e-9).backups > 1.5 * sol.backups
    assert promising(errands(25, 0.999)) is NOWHERE
    other = np.array(mdp.r)
    other[0] = 2.0
    assert promising(mdp.reshaped(other, 0.95)) is NOWHERE


@pytest.mark.parametrize("mdp", [problems.garnet(500, 3, 4, gamma=0.99), problems.garnet(300, 2, 2, gamma=0.9)])
def test_where_moves_lead_anywhere_no_order_is_made_of_it(mdp):
    assert distance(mdp) > 0.3 * mdp.n_states * mdp.n_transitions
    assert nearby(mdp) is AS_NUMBERED


def test_transitions_alone_decide_on_an_order():
    mixed = shuffled(lift())
    tr.solve(mixed)
    order = mixed.facts["order"]
    assert order[0] is not None
    twin = mixed.reshaped(-mixed.r, 0.9)
    assert twin.facts["order"] is order
    other = shuffled(lift())
    other = tr.MDP(other.P, np.roll(other.r, 50), 0.999, other.first)
    tr.solve(other)
    np.testing.assert_array_equal(other.facts["order"][0], order[0])
