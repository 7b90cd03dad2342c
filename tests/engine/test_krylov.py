"""Policy iteration by BiCGSTAB, component by component: against dense algebra, SciPy's components and each other."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

import tightrope as tr
from reference import optimum
from tightrope import problems
from tightrope.engine import choice as choosing
from tightrope.engine import methods, workspace
from tightrope.engine.choice import IN_PARTS, NAMES, Choice
from tightrope.engine.monitor import Aim
from tightrope.engine.outline import AS_NUMBERED, components, strong_components
from tightrope.engine.workspace import Workspace
from tightrope.kernels import team
from zoo import controller


def random_graph(seed):
    """A model of few states and fewer transitions: components of all sizes."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(1, 30)), int(rng.integers(1, 3))
    P = [np.eye(S)[rng.integers(0, S, S)] * 0.5 + np.eye(S)[rng.integers(0, S, S)] * 0.5 for _ in range(A)]
    return tr.MDP.from_actions([sp.csr_array(p) for p in P], rng.normal(size=(S, A)), 0.95)


@pytest.mark.parametrize("seed", range(60))
def test_components_are_those_of_scipy_and_successors_come_first(seed):
    mdp = random_graph(seed)
    S = mdp.n_states
    graph = np.zeros((S, S))
    for s in range(S):
        graph[s] = mdp.P.toarray()[mdp.first[s] : mdp.first[s + 1]].sum(axis=0)
    count, expected = connected_components(sp.csr_array(graph), connection="strong")
    found = strong_components(mdp)
    assert len(set(zip(found.tolist(), expected.tolist(), strict=True))) == count == found.max() + 1
    sources, successors = np.nonzero(graph)
    assert (found[sources] >= found[successors]).all()


@pytest.mark.parametrize("seed", range(60))
def test_parts_are_whole_components_and_lead_only_to_earlier_ones(seed):
    mdp = random_graph(seed)
    S, component = mdp.n_states, strong_components(mdp)
    order, place, begin = components(mdp, *AS_NUMBERED)
    assert (begin[0], begin[-1]) == (0, S)
    if order is None:
        assert len(begin) == 2
        assert np.bincount(component).max() > S / 2
        return
    np.testing.assert_array_equal(np.asarray(order)[np.asarray(place)], np.arange(S))
    part = np.searchsorted(begin, np.asarray(place), side="right") - 1
    for c in range(component.max() + 1):
        assert len(set(part[component == c])) == 1
    owner = np.repeat(mdp.pairs.states, np.diff(mdp.P.indptr))
    assert (part[owner] >= part[mdp.P.indices]).all()
    for i, (lo, hi) in enumerate(itertools.pairwise(begin)):
        numbers = component[part == i]
        assert len(set(numbers)) in (1, hi - lo)  # one component, or one state each


def phases(count=12, size=25, gamma=0.999, seed=0, *, closed=False):
    """Garnets one after the other: from each, now and then, on to a later one; or from none of them anywhere."""
    rng = np.random.default_rng(seed)
    S, A, b = count * size, 2, 4
    phase = np.arange(S) // size
    new = rng.permutation(S)
    successors = phase[:, None, None] * size + rng.integers(0, size, (S, A, b))
    if not closed:
        leaves, later = rng.random((S, A)) < 0.1, np.minimum(phase[:, None] + rng.integers(1, 4, (S, A)), count - 1)
        successors[..., 0] = np.where(leaves, later * size + rng.integers(0, size, (S, A)), successors[..., 0])
    chances, r = rng.dirichlet(np.ones(b), (S, A)), rng.normal(size=(S, A)) * (1.0 + phase[:, None])
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            np.add.at(P[new[s], a], new[successors[s, a]], chances[s, a])
    rewards = np.empty((S, A))
    rewards[new] = r
    return tr.MDP(P.reshape(S * A, S), rewards.ravel(), gamma)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_components_are_solved_one_after_the_other(closed, seed, monkeypatch):
    monkeypatch.setattr(Choice, "next", lambda _self: methods.krylov)
    mdp = phases(seed=seed, closed=closed)
    sol = tr.solve(mdp, tol=1e-9)
    assert sol.converged
    assert IN_PARTS in sol.choices
    assert np.abs(sol.value - optimum(mdp)).max() <= sol.gap
    assert sol.iterations <= 3  # a component that has been solved stays so


def test_components_save_work(monkeypatch):
    """Twin: the same model solved whole, by the same method, computes several times as many rows."""
    apart = tr.solve(phases())
    assert IN_PARTS in apart.choices
    monkeypatch.setattr(choosing, "SLOW", 1.0)  # not along policies either
    monkeypatch.setattr("tightrope.engine.outline.MOST", 0.0)
    whole = tr.solve(phases())
    assert IN_PARTS not in whole.choices
    assert apart.converged
    assert whole.converged
    assert 3 * apart.backups < whole.backups


def test_a_connected_model_is_not_taken_apart():
    sol = tr.solve(problems.tandem(40, gamma=0.999))
    assert any(choice.startswith("BiCGSTAB") for choice in sol.choices)
    assert IN_PARTS not in sol.choices


def test_states_keep_their_order_within_a_component():
    mdp = phases(4, 10)
    order = np.random.default_rng(0).permutation(40).astype(np.uint32)
    place = np.empty_like(order)
    place[order] = np.arange(40)
    found, _, begin = components(mdp, order, place)
    for lo, hi in itertools.pairwise(begin):
        assert (np.diff(place[found[lo:hi]].astype(int)) > 0).all()


@pytest.mark.parametrize("seed", [24, 30, 77, 219])
def test_policies_do_not_go_round_in_circles(seed, monkeypatch):
    """Evaluated to a tenth of their residual for ever, those of these models do: γ is so large that this says little."""
    monkeypatch.setattr(Choice, "next", lambda _self: methods.krylov)
    rng = np.random.default_rng(seed)
    P = np.zeros((120, 40))
    for row in P:
        successors = rng.choice(40, int(rng.integers(1, 3)), replace=False)
        row[successors] = rng.dirichlet(np.ones(len(successors)))
    mdp = tr.MDP(P / P.sum(axis=1, keepdims=True), rng.normal(size=120), 0.999999)
    assert tr.solve(mdp, max_iterations=60).converged


def test_without_cycles_one_pass_in_order_is_all():
    """Twelve stages, their states numbered at random, then two states that take turns: no sinks, no numbers to go by."""
    rng = np.random.default_rng(0)
    stages, width = 12, 30
    S = stages * width + 2
    new = rng.permutation(S)
    P, r = np.zeros((2 * S, S)), rng.normal(size=2 * S)
    for s in range(S - 2):
        for a in (0, 1):
            last = s // width == stages - 1
            to = rng.integers((s // width + 1) * width, (s // width + 2) * width, 3) if not last else np.array([S - 2])
            np.add.at(P[2 * new[s] + a], new[to], 1.0 / len(to))
    for a in (0, 1):
        P[2 * new[S - 2] + a, new[S - 1]] = P[2 * new[S - 1] + a, new[S - 2]] = 1.0
    mdp = tr.MDP(P, r, 0.999)
    work = Workspace(mdp, np.zeros(S), Aim(1e-9, -1.0))
    parts = components(mdp, *work.order)
    assert len(parts.begin) == 3  # the two at the end, and all others in a row
    missed, computed, _ = methods.improve_parts(work, parts, 0, 2, (12, 80, np.inf))
    assert missed == 0
    assert computed <= 4 * mdp.n_pairs
    np.testing.assert_allclose(work.v, optimum(mdp), rtol=1e-9, atol=1e-9)


def test_time_ends_between_components_and_between_improvements_of_a_large_one(monkeypatch):
    monkeypatch.setattr(methods, "BATCH", 1)  # every component is large
    calls, improve = [], methods.improve_parts

    def until_the_third(work, parts, lo, hi, limits):
        calls.append((lo, limits[0]))
        work.deadline = -np.inf if lo == 2 and len(calls) > 5 else np.inf
        return improve(work, parts, lo, hi, limits)

    monkeypatch.setattr(methods, "improve_parts", until_the_third)
    work = Workspace(phases(), np.zeros(300), Aim(1e-9, -1.0))
    work.improvements = 12
    methods.krylov(work)
    assert {most for _, most in calls} == {1}
    assert sorted({lo for lo, _ in calls}) == [0, 1, 2]
    assert len(calls) > 5


def test_a_round_leaves_the_chain_that_it_holds_with_its_rewards():
    """They are lost while it is evaluated; pairs that are still the best afterwards are not copied again."""
    mdp = problems.tandem(9, gamma=0.99)
    S = mdp.n_states
    work = Workspace(mdp, np.zeros(S), Aim(1e-9, -1.0))
    assert methods.improve_parts(work, components(mdp, *work.order), 0, 1, (12, 80, np.inf))[0] == 0
    held, _, _, _, r = work.room.slots(mdp, None)
    pairs = held.astype(int)
    stay = mdp.P.toarray()[pairs, np.arange(S)]
    assert (stay > 0.0).any()
    np.testing.assert_allclose(r, mdp.r[pairs] / (1.0 - mdp.gamma * stay), rtol=1e-15)


def test_a_round_that_has_cost_enough_improves_the_policy_no_more():
    mdp = problems.tandem(12, gamma=0.999)
    counts = []
    for enough in (np.inf, 0.0):
        work = Workspace(mdp, np.zeros(mdp.n_states), Aim(1e-9, -1.0))
        missed, _, _ = methods.improve_parts(work, components(mdp, *work.order), 0, 1, (12, 80, enough))
        counts.append((missed, work.improved))
    (missed, improved), hasty = counts
    assert (missed, hasty) == (0, (1, 1))
    assert improved > 1
    assert tr.solve(mdp).converged


def after_sweeps(mdp):
    """Values after two hundred backups from zero: next to nothing but a constant is wrong with them."""
    work = Workspace(mdp, np.zeros(mdp.n_states), Aim(1e-9, -1.0))
    work.look()
    for _ in range(200):
        work.take_backup()
        work.look()
    return work


def bellman_change(mdp, v):
    return np.maximum.reduceat(mdp.r + mdp.gamma * (mdp.P @ v), mdp.first[:-1]) - v


def test_what_sweeps_leave_is_taken_off_before_another_method_begins():
    mdp = problems.garnet(200, 4, 5, gamma=0.999, seed=1)
    plain, centred = after_sweeps(mdp), after_sweeps(mdp)
    span = centred.span
    plain.take_backup()
    centred.take_backup(centre=True)
    assert np.abs(bellman_change(mdp, plain.v)).max() > 1e6 * span
    assert np.abs(bellman_change(mdp, centred.v)).max() <= 0.5 * span + 1e-12 * np.abs(centred.v).max()


def test_nothing_is_taken_off_where_there_are_sinks_or_more_than_a_constant_is_wrong():
    grid = after_sweeps(problems.gridworld(6, 6, gamma=0.9999))
    grid.low, grid.high = 1.0, 1.001
    garnet = Workspace(problems.garnet(200, 4, 5, gamma=0.999, seed=1), np.zeros(200), Aim(1e-9, -1.0))
    garnet.look()
    for work in (grid, garnet):
        expected = work.u.copy()
        work.take_backup(centre=True)
        np.testing.assert_array_equal(work.v, expected)


@pytest.mark.parametrize(("policies", "after", "again"), [(1, None, True), (2, None, False), (1, methods.gauss_seidel, False)])
def test_one_policy_is_not_enough_to_give_sweeps_up(policies, after, again):
    """Not if it was that of the largest rewards: sweeps get a second round then."""
    mdp = problems.garnet(200, 4, 5, gamma=0.99)
    choice = Choice(Workspace(mdp, None, Aim(1e-6, -1.0)))
    if after is not None:
        choice.learn(after, lambda: methods.Report(1.0, 1e13), 0.5)
    chosen = []
    for _ in range(2):
        choice.learn(methods.sweep, lambda: methods.Report(1.0, 1e12, policies), 0.5)
        chosen.append(choice.next() is methods.sweep)
    assert chosen == [again, False]


@pytest.mark.parametrize(
    ("mixing", "again"),
    [
        ((0.99, 0.96, 0.92, 0.91), [True, True, True, False]),  # each of the first three twice as fast as the one before
        ((0.99, 0.96, 0.99, 0.96), [True, True, False, False]),  # no faster than some chain before it
        ((0.96, 0.99, 0.995, 0.995), [True, False, False, False]),  # slower and slower
    ],
)
def test_sweeps_go_on_as_long_as_better_policies_mix_ever_faster(mixing, again):
    """Whatever they promise, and though the gap does not shrink: it is that of another policy each time."""
    mdp = problems.garnet(200, 4, 5, gamma=0.99)
    work = Workspace(mdp, None, Aim(1e-6, -1.0))
    choice, chosen = Choice(work), []
    for work.mixing in mixing:
        choice.learn(methods.sweep, lambda: methods.Report(1.0, 1e12, 1), 1.1)
        chosen.append(choice.next() is methods.sweep)
    assert chosen == again


def test_a_controller_is_found_by_sweeps_alone_though_its_first_policies_mix_slowly(monkeypatch):
    mdp = controller(50, 0.999)
    monkeypatch.setattr(choosing, "SLOW", 1.0)  # nor is it asked how values flow
    sol = tr.solve(mdp)
    assert sol.choices == (NAMES[methods.sweep],)
    monkeypatch.setattr(choosing, "FASTER", np.inf)
    slow = tr.solve(mdp, max_seconds=60.0)  # set up anew
    assert NAMES[methods.krylov] in slow.choices
    assert slow.backups > 1.5 * sol.backups
    assert np.abs(sol.value - slow.value).max() <= sol.gap + slow.gap


def test_bicgstab_after_sweeps_does_not_undo_them(monkeypatch):
    """After six rounds of them v is off by a constant of a thousand times what else is wrong."""
    monkeypatch.setattr(team, "WORTH_IT", 100)

    def after_six(self):
        rounds = self.tried[methods.sweep].rounds if self.tried else 0
        return methods.krylov if rounds == 6 and methods.krylov not in self.tried else methods.sweep

    monkeypatch.setattr(Choice, "next", after_six)

    def solved():
        return tr.solve(problems.garnet(300, 4, 5, gamma=0.99, seed=143), threads=1, max_iterations=100)  # one at a time

    found = solved()
    assert "BiCGSTAB" in found.explain()
    gaps = found.trace["gap"]
    assert (gaps[1:] < gaps[:-1]).all()
    monkeypatch.setattr(workspace, "CONSTANT", 0.0)
    undone = solved()
    assert (undone.trace["gap"][1:] > 100.0 * undone.trace["gap"][:-1]).any()
    assert undone.backups > 1.5 * found.backups


@pytest.mark.parametrize("make", [lambda: problems.tandem(12, gamma=0.9999), phases, lambda: phases(closed=True)])
def test_kappa_pi_and_evaluation_agree_with_dense_algebra(make):
    mdp = make()
    v = optimum(mdp)
    for algorithm in (None, tr.kappa_pi(0.9), tr.policy_iteration()):
        sol = tr.solve(mdp, algorithm, tol=1e-8)
        assert sol.converged
        assert np.abs(sol.value - v).max() <= sol.gap + 1e-9 * np.abs(v).max()


def shuttle(floors, gamma, backwards=False):
    """Up with who got in at the bottom, and down again for more: every step of a policy hangs on what is at both ends."""

    def dynamics(states, action):
        load, floor = np.divmod(states, floors)
        floor = floors - 1 - floor if backwards else floor
        ends = np.where(
            (floor == 0) & (action == 1), np.minimum(load + 1, 4), np.where((floor == floors - 1) & (action == 1), 0, load)
        )
        to = np.clip(floor + action - 1, 0, floors - 1)
        to = np.stack([ends, np.minimum(ends + 1, 4)], axis=1) * floors + (floors - 1 - to if backwards else to)[:, None]
        return to, [0.9, 0.1], np.where((floor == floors - 1) & (action == 1), 3.0 * load, -0.1 * load)

    return tr.MDP.from_function(dynamics, 5 * floors, 3, gamma)


@pytest.mark.parametrize("gamma", [0.95, 0.99, 0.9999])
@pytest.mark.parametrize("backwards", [False, True])
def test_what_is_far_away_either_way_is_known_after_a_few_sweeps(gamma, backwards):
    """Improved a step at a time, a policy would take as many improvements as there are floors; numbered either way."""
    mdp = shuttle(200, gamma, backwards)
    sol = tr.solve(mdp)
    assert sol.backups < 100 * mdp.n_pairs
    assert np.abs(sol.value - optimum(mdp)).max() <= sol.gap + 1e-9 * np.abs(sol.value).max()
