"""Policies evaluated in the order of their own moves: against SciPy's components, dense algebra and each other."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

import tightrope as tr
from reference import optimum
from tightrope import kernels, problems
from tightrope.cli.warm import shuffled
from tightrope.engine import choice as choosing
from tightrope.engine import downstream as along
from tightrope.engine import methods
from tightrope.engine.choice import NAMES, Choice
from tightrope.engine.downstream import downstream_round, flows
from tightrope.engine.monitor import Aim
from tightrope.engine.outline import near
from tightrope.engine.workspace import Workspace
from tightrope.kernels import team
from zoo import controller

NAME = NAMES[methods.downstream]


def sparse(seed, gamma=0.95):
    """A model of one to three successors a pair: policies with blocks of all sizes, states that stay put, and single moves."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 40)), int(rng.integers(1, 4))
    P = sum(np.eye(S)[rng.integers(0, S, (A, S))] * share for share in rng.dirichlet(np.ones(3)))
    return tr.MDP.from_actions([sp.csr_array(p) for p in P], rng.normal(size=(S, A)), gamma)


def draining(seed, size=60, gamma=0.99):
    """What is stored is used up, faster or slower, and bought when there is little left: most states are passed but once."""
    rng = np.random.default_rng(seed)
    price = rng.random(3)

    def dynamics(states, action):
        use = np.minimum(1 + action + np.arange(2), states[:, None])
        buys = states < 6
        to = np.where(buys[:, None], states[:, None] + 3 + np.arange(2), states[:, None] - use)
        return np.minimum(to, size - 1), [0.4, 0.6], price[action] - 0.01 * states - 3.0 * buys

    return tr.MDP.from_function(dynamics, size, 3, gamma)


def looked_at(mdp, tol=1e-6):
    work = Workspace(mdp, np.zeros(mdp.n_states), Aim(tol, -1.0))
    work.look()
    return work


def dense_value(mdp, rows):
    taken = rows.astype(int)
    return np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * mdp.P[taken].toarray(), mdp.r[taken])


def searched(mdp, rows):
    """The components of a chain, its states in order, and what `blocks` says of them."""
    S = mdp.n_states
    indptr, indices, _, _, first, _ = mdp.arrays
    component, order, waiting = (np.empty(S, indices.dtype) for _ in range(3))
    reached, root = np.empty(S, indptr.dtype), np.empty(S, bool)
    return component, order, *kernels.downstream.blocks(indptr, indices, first, rows, component, order, reached, waiting, root)


@pytest.mark.parametrize("seed", range(60))
def test_components_of_a_policy_are_those_of_scipy_and_successors_come_first(seed):
    mdp = sparse(seed)
    rows = looked_at(mdp).rows
    P = mdp.P[rows.astype(int)]
    component, order, inside, most = searched(mdp, rows)
    count, expected = connected_components(P, connection="strong")
    assert len(set(zip(component.tolist(), expected.tolist(), strict=True))) == count == component.max() + 1
    assert sorted(order) == list(range(mdp.n_states))
    assert (np.diff(component[order].astype(int)) >= 0).all()
    sources, successors = P.nonzero()
    assert (component[sources] >= component[successors]).all()
    sizes, transitions = np.bincount(expected), np.bincount(expected, np.diff(P.indptr))
    assert inside == sizes[sizes > 1].sum()
    assert most == max(transitions[sizes > 1], default=0)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_values_are_those_of_dense_algebra(seed, compiled):
    if compiled:
        kernels.tiers.compile_loops()
    mdp = sparse(seed, gamma=0.99)
    work, S = looked_at(mdp), mdp.n_states
    component, order, _, most = searched(mdp, work.rows)
    index = mdp.arrays[1].dtype
    room = np.empty(S + 1, index), np.empty(most + 1, index), np.empty(most + 1), np.empty(S)
    v = np.random.default_rng(seed).normal(size=S)  # wherever it begins
    told = (component, order, np.empty(S, index), *room, np.empty(S), np.empty(S), *kernels.krylov.room(S), 0.0, 1e-12, 200)
    kernels.downstream.value(*mdp.arrays[:4], mdp.gamma, work.rows, v, *told)
    np.testing.assert_allclose(v, dense_value(mdp, work.rows), rtol=1e-8, atol=1e-8)


def test_where_nothing_is_come_back_to_one_pass_is_exact_to_the_last_digits():
    """Twin: in another order of states the same pass is far off."""
    S = 200
    P = sp.csr_array((np.ones(S), (np.arange(S), np.maximum(np.arange(S) - 1, 0))), shape=(S, S))
    mdp = tr.MDP(P, np.random.default_rng(0).normal(size=S), 0.999, np.arange(S + 1))
    rows = np.arange(S, dtype=mdp.arrays[4].dtype)
    component, order, inside, most = searched(mdp, rows)
    assert (inside, most) == (0, 0)
    exact = dense_value(mdp, rows)
    none = np.empty(0, order.dtype), np.empty(0, order.dtype), np.empty(0), np.empty(0), np.empty(0), np.empty(0)
    for states, right in ((order, True), (order[::-1].copy(), False)):
        v = np.zeros(S)
        told = (component, states, np.empty(S, order.dtype), *none, *kernels.krylov.room(0), 0.0, 0.0, 0)
        assert kernels.downstream.value(*mdp.arrays[:4], mdp.gamma, rows, v, *told) == 0
        assert np.allclose(v, exact, rtol=1e-12) == right


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("seed", range(20))
def test_rounds_improve_policies_until_they_are_optimal(seed, tol):
    mdp = draining(seed)
    work = looked_at(mdp, tol)
    while flows(work):
        improved, _ = downstream_round(work, 30)
        found = work.certificate()
        if found.gap <= tol * found.scale:
            break
    assert improved >= 1
    exact = optimum(mdp)
    assert found.gap <= tol * found.scale
    assert (found.lower <= exact + 1e-9).all()
    assert (exact - 1e-9 <= found.upper).all()
    assert (dense_value(mdp, work.rows) >= exact - found.gap - 1e-9).all()


@pytest.mark.parametrize("seed", range(40))
def test_models_that_begin_so_agree_with_the_book(seed, monkeypatch):
    """Sparse ones too, where some policies flow and others do not: then another method goes on."""
    mdp = sparse(seed, gamma=0.98)
    monkeypatch.setattr(choosing, "HEAVY", 0.0)
    sol = tr.solve(mdp, max_seconds=60.0)
    assert sol.converged
    assert np.abs(sol.value - optimum(mdp)).max() <= sol.gap + 1e-9


def test_nothing_flows_where_most_states_are_come_back_to_and_nothing_is_touched():
    mdp = problems.garnet(300, 3, 5, gamma=0.99)
    work = looked_at(mdp)
    before = work.v.copy(), work.u.copy(), work.rows.copy()
    assert not flows(work)
    assert work.flow is None
    assert work.looked
    for now, then in zip((work.v, work.u, work.rows), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert NAME not in tr.solve(mdp).choices


def test_a_model_that_was_looked_at_before_its_first_round_is_solved_again_from_the_beginning():
    """Rides anywhere beside single moves, but nothing runs down: it is asked how values flow, and they do not."""
    rng = np.random.default_rng(1)
    anywhere, somewhere, rewards = rng.integers(0, 500, (500, 30)), rng.integers(0, 500, (3, 500)), rng.random((4, 500))
    rewards[0] *= 1.2

    def dynamics(states, action):
        to = anywhere[states] if action == 0 else somewhere[action - 1, states, None]
        return to, np.full(to.shape[1], 1.0 / to.shape[1]), rewards[action, states]

    kernels.tiers.compile_loops()
    mdp = tr.MDP.from_function(dynamics, 500, 4, 0.95)
    assert mdp.chain_room > choosing.HEAVY * mdp.n_transitions / 4
    first, *others = (tr.solve(mdp) for _ in range(3))
    assert np.abs(first.value - optimum(mdp)).max() <= first.gap
    for sol in others:
        assert sol.choices == first.choices == (NAMES[methods.sweep],)
        np.testing.assert_array_equal(sol.value, first.value)


def test_a_component_that_takes_half_the_room_for_chains_is_too_large(monkeypatch):
    mdp = draining(0)
    work = looked_at(mdp)
    assert flows(work)
    monkeypatch.setattr(along, "MOST", 0.0)
    assert not flows(work)


def cab(zones, charges, gamma):
    """Takes people anywhere, which uses up charge, or charges, or drives on: rides have many successors, the rest one."""
    rng = np.random.default_rng(0)
    wanted, fares = rng.dirichlet(np.full(zones, 0.5), zones), 3.0 * rng.random(zones)

    def dynamics(states, action):
        zone, charge = np.divmod(states, charges)
        if action == 0:
            to = np.where(
                (charge >= 3)[:, None], np.arange(zones) * charges + np.maximum(charge - 3, 0)[:, None], states[:, None]
            )
            return to, wanted[zone], np.where(charge >= 3, fares[zone], -5.0)
        if action == 1:
            return (zone * charges + np.minimum(charge + 5, charges - 1))[:, None], [1.0], np.full(len(states), -0.3)
        return ((zone + 1) % zones * charges + np.maximum(charge - 1, 0))[:, None], [1.0], np.full(len(states), -0.1)

    return tr.MDP.from_function(dynamics, zones * charges, 3, gamma)


@pytest.mark.parametrize("gamma", [0.95, 0.999])
def test_a_cab_is_solved_in_a_few_backups(gamma, monkeypatch):
    """Twin: without, it takes several times as many."""
    mdp = cab(10, 150, gamma)
    sol = tr.solve(mdp)
    assert sol.choices == (NAME,)
    assert np.abs(sol.value - optimum(mdp)).max() <= sol.gap + 1e-9 * np.abs(sol.value).max()
    monkeypatch.setattr(choosing, "HEAVY", np.inf)
    monkeypatch.setattr(choosing, "SLOW", 1.0)
    other = tr.solve(mdp, max_seconds=60.0)  # set up anew
    assert NAME not in other.choices
    assert 3 * sol.backups < other.backups


def test_it_takes_over_where_sweeps_mix_slowly(monkeypatch):
    """A controller brings a mass to rest from anywhere. Twin: without, it takes twice as many backups."""
    mdp = controller(50, 0.999)
    sol = tr.solve(mdp)
    assert sol.choices[0] == NAMES[methods.sweep]
    assert NAME in sol.choices
    assert np.abs(sol.value - optimum(mdp)).max() <= sol.gap + 1e-9 * np.abs(sol.value).max()
    monkeypatch.setattr(choosing, "SLOW", 1.0)
    other = tr.solve(mdp, max_seconds=60.0)  # set up anew
    assert NAME not in other.choices
    assert 2 * sol.backups < other.backups


@pytest.mark.parametrize(("mixing", "asked"), [(0.95, True), (0.8, False)])
def test_it_is_asked_only_where_chains_mix_slowly_and_twice_at_most_in_vain(monkeypatch, mixing, asked):
    calls = []
    monkeypatch.setattr(choosing, "flows", lambda _work: bool(calls.append(1)))
    mdp = problems.garnet(200, 4, 5, gamma=0.99)
    choice = Choice(looked_at(mdp))
    choice.work.mixing = mixing
    for _ in range(4):
        choice.learn(methods.sweep, lambda: methods.Report(1.0, 1e12, 1), 1.1)
        assert choice.next() is not methods.downstream
    assert len(calls) == (2 if asked else 0)


def test_an_interrupt_leaves_what_was_proved_before(monkeypatch):
    mdp = cab(10, 150, 0.999)
    monkeypatch.setattr("tightrope.engine.methods.downstream_round", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    sol = tr.solve(mdp, max_seconds=60.0)
    assert sol.status is tr.Status.INTERRUPTED
    assert np.isfinite(sol.gap)


def swim(n, gamma):
    """Upstream against the current to a large reward, or down to a small one at once: from most places the first is not seen."""

    def dynamics(states, action):
        if action == 0:
            return np.maximum(states - 1, 0)[:, None], [1.0], 0.005 * (states == 0)
        to = np.stack([np.maximum(states - 1, 0), states, np.minimum(states + 1, n - 1)], axis=1)
        return to, [0.05, 0.05, 0.9], 1.0 * (states == n - 1)

    return tr.MDP.from_function(dynamics, n, 2, gamma)


@pytest.mark.parametrize("large", [False, True])
def test_a_policy_in_a_band_that_has_far_to_go_is_carried_on_by_sweeps(monkeypatch, large):
    """A policy that is improved a state at a time takes as many improvements as there are states from which the goal pays."""
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = swim(500, 0.95)
    sol = tr.solve(mdp)
    exact = optimum(mdp)
    assert np.abs(sol.value - exact).max() <= sol.gap + 1e-12
    assert sol.choices[0] == NAMES[methods.factorise]
    assert sol.backups < 80 * mdp.n_pairs
    assert (sol.policy.actions == 1).sum() > 100  # so many states


def tool(size=1000, gamma=0.999):
    """It wears the faster it is used, by leaps, until it is replaced; its states are numbered at random."""

    def dynamics(states, action):
        to = np.minimum(states[:, None] + (action + 1) * np.array([0, 1, 3, 9]), size - 1)
        worn = states == size - 1
        return np.where(worn[:, None], 0, to), [0.3, 0.4, 0.2, 0.1], np.where(worn, -20.0, (action + 1) ** 0.7 - states / size)

    return shuffled(tr.MDP.from_function(dynamics, size, 4, gamma))


def test_policies_that_have_begun_badly_and_get_no_better_begin_from_the_largest_rewards_as_well(monkeypatch):
    mdp = tool()
    sol = tr.solve(mdp, tol=1e-9)
    assert NAME in sol.choices
    np.testing.assert_allclose(sol.value, optimum(mdp), rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(along, "LITTLE", np.inf)  # the twin: nobody asks
    assert tr.solve(tool(), tol=1e-9).backups > 1.5 * sol.backups


def test_improving_on_two_policies_at_once_is_at_least_as_good_as_on_either():
    """Whichever is better in a state: the greedy policy of that has a value no lower than either, in every state."""
    for seed in range(20):
        mdp = sparse(seed)
        rng = np.random.default_rng(seed)
        one, other = (mdp.first[:-1] + rng.integers(np.diff(mdp.first)) for _ in range(2))
        both = np.maximum(dense_value(mdp, one), dense_value(mdp, other))
        work = Workspace(mdp, both, Aim(1e-6, -1.0))
        work.look()
        assert (dense_value(mdp, work.rows) >= both - 1e-9).all()


@pytest.mark.parametrize("backwards", [False, True])
def test_a_policy_that_has_far_to_go_downstream_is_carried_on_by_sweeps(backwards):
    """Stay for a little, or climb for more at the top: a rung at a time, it would take an improvement for every rung."""

    def dynamics(states, action):
        rung = 299 - states if backwards else states
        if action == 0:
            return states[:, None], [1.0], np.full(300, 0.005)
        to = np.where(rung[:, None] >= 298, np.array([297, 298]), rung[:, None] + np.array([1, 2]))
        return np.minimum(299 - to if backwards else to, 299), [0.5, 0.5], 1.0 * (rung >= 297)

    mdp = tr.MDP.from_function(dynamics, 300, 2, 0.999)
    work = looked_at(mdp)
    assert flows(work)
    improved, _ = downstream_round(work, 60)
    found = work.certificate()
    assert found.gap <= 1e-6 * found.scale
    assert improved < 20
    assert np.abs(found.value - optimum(mdp)).max() <= found.gap + 1e-9


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.91, 0.99])
def test_where_little_counts_but_what_is_near_sweeps_in_place_come_first(gamma):
    """Twin: not where moves lead anywhere."""
    close, scattered = problems.tandem(20, gamma=gamma), problems.garnet(441, 3, 5, gamma=gamma)
    assert near(close)
    assert not near(scattered)
    for mdp, first in ((close, gamma <= 0.9), (scattered, False)):
        choice = Choice(Workspace(mdp, None, Aim(1e-6, -1.0)))
        assert (choice.next() is methods.gauss_seidel) == first
        sol = tr.solve(mdp)
        assert np.abs(sol.value - optimum(mdp)).max() <= sol.gap + 1e-9


@pytest.mark.parametrize(
    ("gamma", "mixing", "gained", "comes"),
    [(0.95, 0.5, 1.0, True), (0.95, 0.5, 0.5, False), (0.95, 0.95, 1.0, False), (0.99, 0.5, 1.0, False)],
)
def test_sweeps_in_place_come_next_where_chains_mix_and_policies_get_no_better(monkeypatch, gamma, mixing, gained, comes):
    monkeypatch.setattr(choosing, "flows", lambda _work: False)
    choice = Choice(looked_at(problems.garnet(200, 4, 5, gamma=gamma)))
    choice.work.mixing = mixing
    for _ in range(2):  # the first is always new
        choice.learn(methods.sweep, lambda: methods.Report(1.0, 16.0 * choice.work.nnz, 2), gained)
    assert (choice.next() is methods.gauss_seidel) == comes
