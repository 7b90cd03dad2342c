"""Models in which time passes whatever is done: found out exactly, and swept from the latest state to the earliest."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import tightrope as tr
from tightrope import kernels, problems
from tightrope.engine import choice as choosing
from tightrope.engine import methods, outline, rounds
from tightrope.engine.choice import IN_TIME, NAMES, Choice
from tightrope.engine.monitor import Aim
from tightrope.engine.workspace import Workspace
from tightrope.kernels import team


def seasons(periods=24, size=60, gamma=0.999):
    """A queue whose arrivals depend on the hour: three rates of service, and the clock goes on whatever is done."""
    hour, length = np.divmod(np.arange(periods * size), size)
    arrival = 0.2 + 0.5 * np.sin(np.pi * hour / periods) ** 2
    later = (hour + 1) % periods * size
    P, r = [], []
    for rate in (0.1, 0.4, 0.7):
        up, down = arrival * (1.0 - rate), rate * (1.0 - arrival)
        to = (np.minimum(length + 1, size - 1), np.maximum(length - 1, 0), length)
        moves = sp.coo_array(
            (
                np.concatenate([up, down, 1.0 - up - down]),
                (np.tile(np.arange(len(hour)), 3), np.concatenate(to) + np.tile(later, 3)),
            )
        )
        P.append(moves.tocsr())
        r.append(-0.1 * length - 3.0 * rate)
    return tr.MDP.from_actions(P, np.stack(r, axis=1), gamma)


def period_of(P):
    """By the book: the greatest common divisor of all n for which a state can be back after n steps."""
    moves = np.asarray(P) > 0
    power, found = moves, 0
    for n in range(1, 2 * len(moves) + 2):
        if power.diagonal().any():
            found = math.gcd(found, n)
        power = power @ moves
    return found


def period(mdp, least=0):
    depth = np.empty(mdp.n_states, np.int64)
    indptr, indices, _, _, first, _ = mdp.arrays
    return kernels.graph.period(indptr, indices, first, least, np.empty(mdp.n_states, indices.dtype), depth), depth


def in_turn(seed, periods, size, actions=2, successors=3):
    """Periods of `size` states each, in a row or mixed up; every move leads to some states of the next."""
    rng = np.random.default_rng(seed)
    S = periods * size
    P = np.zeros((actions, S, S))
    for a in range(actions):
        for s in range(S):
            to = (s // size + 1) % periods * size + rng.choice(size, min(successors, size), replace=False)
            P[a, s, to] = rng.dirichlet(np.ones(len(to)))
    return P, rng.normal(size=(S, actions))


def shuffled(P, r, seed):
    order = np.random.default_rng(seed).permutation(len(r))
    return P[:, order][:, :, order], r[order]


def solved(P, r, gamma=0.99, **options):
    return tr.solve(tr.MDP.from_actions(P, r, gamma), **options)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("periods", [1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("seed", range(4))
def test_the_period_is_that_of_the_book_however_states_are_numbered(seed, periods, compiled):
    if compiled:
        kernels.tiers.compile_loops()
    P, r = shuffled(*in_turn(seed, periods, 1 + seed, successors=2), seed)
    mdp = tr.MDP.from_actions(P, r, 0.9)
    found, depth = period(mdp)
    assert found == period_of(P.sum(axis=0))
    assert found % periods == 0
    before, after = P.sum(axis=0).nonzero()
    assert ((depth[after] - depth[before] - 1) % found == 0).all()


@pytest.mark.parametrize("seed", range(40))
def test_the_period_of_sparse_random_models_is_that_of_the_book(seed):
    """One or two moves a state: many cycles, some states that nobody leads to."""
    rng = np.random.default_rng(seed)
    S = int(rng.integers(2, 14))
    P = np.eye(S)[rng.integers(0, S, S)]
    if seed % 2:
        P = 0.5 * (P + np.eye(S)[rng.integers(0, S, S)])
    found, _ = period(tr.MDP.from_actions(P[None], np.zeros((S, 1)), 0.9))
    exact = period_of(P)
    assert exact % found == 0
    reached = np.linalg.matrix_power(np.eye(S) + P, S)[0] > 0.0
    assert found == exact or not reached.all()


def test_it_is_given_up_early_where_time_does_not_pass():
    """At the first state that can stay: the others are not even met."""
    P, r = in_turn(0, 5, 4)
    P[0, 0] = 0.5 * (P[0, 0] + np.eye(20)[0])
    mdp = tr.MDP.from_actions(P, r, 0.9)
    found, depth = period(mdp, least=3)
    assert found == 1 == period_of(P.sum(axis=0))
    assert (depth == mdp.n_states + 1).sum() > 10
    assert not outline.outline(mdp).timed


@pytest.mark.parametrize(("periods", "timed"), [(1, False), (2, False), (3, True), (12, True)])
def test_time_passes_where_every_cycle_takes_a_multiple_of_three_steps_or_more(periods, timed):
    mdp = tr.MDP.from_actions(*in_turn(1, periods, 20), 0.99)
    assert outline.outline(mdp).timed == timed
    sol = tr.solve(mdp)
    assert (IN_TIME in sol.choices) == timed
    assert not timed or sol.choices[0] == NAMES[methods.gauss_seidel]


def test_a_few_states_that_nobody_leads_to_do_not_stop_the_clock():
    """Two more states, one after the other, that lead into the fourth period."""
    P, r = in_turn(2, 7, 5)
    S = len(r)
    more = np.zeros((2, S + 2, S + 2))
    more[:, :S, :S] = P
    more[:, S, 15:20] = 0.2
    more[:, S + 1, S] = 1.0
    mdp = tr.MDP.from_actions(more, np.vstack([r, r[:2]]), 0.99)
    assert period(mdp)[0] == 7
    assert outline.outline(mdp).timed


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("gamma", [0.9, 0.999])
def test_numbers_make_no_difference(monkeypatch, gamma, large):
    """Time may be the slow coordinate of a state's number, the fast one, run backwards or be mixed up: as many sweeps do."""
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    P, r = in_turn(3, 30, 8)
    S, numbers = len(r), np.arange(len(r)).reshape(30, 8)
    orders = {"slow": numbers.ravel(), "fast": numbers.T.ravel(), "backwards": numbers[::-1].ravel()}
    orders["mixed up"] = np.random.default_rng(0).permutation(S)
    backups = {}
    for name, order in orders.items():
        mdp = tr.MDP.from_actions(P[:, order][:, :, order], r[order], gamma)
        sol, exact = tr.solve(mdp, tol=1e-9), tr.solve(mdp, tr.policy_iteration(), tol=1e-12)
        assert NAMES[methods.gauss_seidel] in sol.choices
        assert NAMES[methods.krylov] not in sol.choices
        np.testing.assert_allclose(sol.value, exact.value, atol=sol.gap + exact.gap)
        assert ("order" in mdp.facts) == (name != "slow")
        backups[name] = sol.backups
    assert max(backups.values()) < 2 * min(backups.values())  # where a period is said to begin makes some difference


def test_what_a_policy_does_says_nothing_about_the_order_of_time():
    """Stocks that the first action lets grow, by the month: numbers of successors are higher, and months not in order."""
    levels, months = 40, 12

    def dynamics(states, action):
        level, month = np.divmod(states, months)
        to = np.clip(level[:, None] - action + np.array([1, 2]), 0, levels - 1) * months + ((month + 1) % months)[:, None]
        return to, np.full(to.shape, 0.5), np.sqrt(np.minimum(level, action)) - 0.02 * level

    mdp = tr.MDP.from_function(dynamics, levels * months, 4, 0.999)
    sol = tr.solve(mdp)
    order, place = mdp.facts["order"]
    np.testing.assert_array_equal(place[order], np.arange(mdp.n_states))
    steps = np.diff(order.astype(int) % months)
    assert (steps[steps != 0] % months == months - 1).all()  # back by a month
    assert (steps != 0).sum() == months - 1
    exact = tr.solve(mdp, tr.policy_iteration(), tol=1e-9)
    np.testing.assert_allclose(sol.value, exact.value, atol=sol.gap + exact.gap)


def test_the_fewest_states_are_swept_before_what_they_lead_to():
    """A tree that is climbed from the root to the leaves, which lead back to it: two thirds of the states are leaves."""
    depth, branches = 5, 3
    S = (branches ** (depth + 1) - 1) // (branches - 1)

    def dynamics(states, action):
        children = branches * states[:, None] + 1 + (action + np.arange(2)) % branches
        return np.where(children < S, children, 0), np.tile([0.8, 0.2], (len(states), 1)), np.cos(states)

    mdp = tr.MDP.from_function(dynamics, S, branches, 0.9)
    sol, exact = tr.solve(mdp), tr.solve(mdp, tr.policy_iteration(), tol=1e-9)
    assert outline.outline(mdp).timed
    order, _ = mdp.facts["order"]
    assert order[0] == 0  # the root; then the leaves, and so on
    assert (np.diff(order[1:].astype(int))[: branches**depth - 1] == 1).all()
    assert order[1] == S - branches**depth
    np.testing.assert_allclose(sol.value, exact.value, atol=sol.gap + exact.gap)


def test_without_its_order_and_without_going_first_it_takes_longer(monkeypatch):
    P, r = in_turn(3, 30, 8)
    order = np.arange(len(r)).reshape(30, 8).T.ravel()
    P, r = P[:, order][:, :, order], r[order]
    found = solved(P, r, 0.999)
    monkeypatch.setattr(outline, "PERIOD", 1000)
    monkeypatch.setattr(choosing, "DIFFUSE", np.inf)  # BiCGSTAB would help it out
    assert solved(P, r, 0.999).backups > 3 * found.backups


@pytest.mark.parametrize("large", [False, True])
def test_seasons_are_swept_against_time(monkeypatch, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = seasons()
    found = tr.solve(mdp)
    assert IN_TIME in found.explain()
    assert large or NAMES[methods.krylov] not in found.explain()
    exact = tr.solve(mdp, tr.policy_iteration(), tol=1e-9)
    np.testing.assert_allclose(found.value, exact.value, atol=found.gap + exact.gap)
    monkeypatch.setattr(outline, "PERIOD", 1000)
    assert tr.solve(seasons()).backups > 1.1 * found.backups


@pytest.mark.parametrize("large", [False, True])
def test_a_second_solve_on_any_number_of_threads_has_the_same_bits(monkeypatch, large):
    """The first begins with zeros, and so must the second: no values are kept."""
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = tr.MDP.from_actions(*in_turn(4, 12, 15), 0.99)
    first, *others = (tr.solve(mdp, threads=n) for n in (1, 1, 2, 2))
    for other in others:
        np.testing.assert_array_equal(first.value, other.value)
        np.testing.assert_array_equal(first.policy.actions, other.policy.actions)
        assert first.backups == other.backups


@pytest.mark.parametrize("method", [methods.sweep, methods.krylov, methods.factorise])
@pytest.mark.parametrize("large", [False, True])
def test_any_method_may_begin(monkeypatch, method, large):
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = tr.MDP.from_actions(*in_turn(6, 9, 7), 0.95)
    best = tr.solve(mdp)
    monkeypatch.setattr(Choice, "next", lambda self: methods.gauss_seidel if self.tried else method)
    found = tr.solve(mdp, max_seconds=60.0)  # set up anew
    assert found.choices[0] == NAMES[method]
    np.testing.assert_allclose(found.value, best.value, atol=found.gap + best.gap)


@pytest.mark.parametrize("algorithm", [tr.kappa_pi(0.9), tr.h_pi(3), tr.policy_iteration(), tr.kappa_vi(0.5)])
def test_named_algorithms_find_the_same_where_time_passes(algorithm):
    mdp = tr.MDP.from_actions(*in_turn(5, 12, 6), 0.95)
    found, best = tr.solve(mdp, algorithm, tol=1e-9), tr.solve(mdp, tol=1e-9)
    np.testing.assert_allclose(found.value, best.value, atol=found.gap + best.gap)


@pytest.mark.parametrize("make", [problems.queue, problems.inventory, problems.forest, lambda: problems.garnet(50, 3, 4)])
def test_time_does_not_pass_in_other_models(make):
    assert not outline.outline(make()).timed


def test_without_levels_the_same_sweeps_take_longer():
    backups = []
    for sinks in (False, True):
        mdp = seasons()
        work = Workspace(mdp, np.zeros(mdp.n_states), Aim(1e-6, -1.0))
        work.has_sinks = sinks  # what values are not levelled for
        *_, change, goal, _ = rounds.gauss_seidel_round(work, np.inf, 1000)
        assert change <= goal
        backups.append(work.backups)
    levelled, plain = backups
    assert plain > 2 * levelled


@pytest.mark.parametrize("seed", range(3))
def test_a_sweep_against_time_shrinks_errors_as_a_whole_period_does(seed):
    """Ten periods of 120 states: by gamma ** 10 after the first sweep, whatever the error; halves bring values half as far."""
    P, r = in_turn(seed, 10, 120)
    S, gamma, rng = len(r), 0.9, np.random.default_rng(seed)
    mdp = tr.MDP.from_actions(P[:1], r[:, :1], gamma)
    split = tuple(np.empty_like(a) for a in mdp.arrays[:4])
    kernels.in_place.extract_split(*mdp.arrays[:4], np.arange(S, dtype=np.uint32), gamma, *split)
    exact = np.linalg.solve(np.eye(S) - gamma * P[0], r[:, 0])
    assert kernels.in_place.SIDE_BY_SIDE <= S
    left = {}
    for halves in (False, True):
        v = exact + 1.0 + rng.random(S)
        for _ in range(4):
            kernels.in_place.split_sweep(v, True, halves, None, *split, S)
        left[halves] = np.abs(v - exact).max()
    assert left[False] <= 2.0 * gamma**31 * (1.0 + 1e-9)
    assert left[True] > 2.0 * gamma**31


@pytest.mark.parametrize("timed", [False, True])
def test_halves_are_swept_side_by_side_unless_time_passes(monkeypatch, timed):
    """Nobody waits for the state before, where all of a period lead to the next."""
    sweep, seen = kernels.in_place.split_sweep, []
    monkeypatch.setattr(kernels.in_place, "split_sweep", lambda *how: (seen.append(how[2]), sweep(*how))[1])
    P, r = in_turn(1, 10, 20)
    if not timed:
        P = 0.9 * P + 0.1 * np.eye(len(r))
    mdp = tr.MDP.from_actions(P, r, 0.9)
    assert outline.outline(mdp).timed == timed
    work = Workspace(mdp, np.zeros(len(r)), Aim(1e-6, -1.0, 0.0))
    work.bellman_gauss_seidel()
    work.split_sweeps(3, 0.0, turn=False)
    assert seen == 3 * [not timed]
