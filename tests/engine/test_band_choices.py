"""Policies that states choose on the way through a band: the value of what was chosen, never worse, and all in one go."""

import numpy as np
import pytest

import tightrope as tr
from reference import optimum
from tightrope import kernels, problems
from tightrope.engine import direct
from tightrope.engine.choice import NAMES, ON_THE_WAY
from tightrope.engine.methods import factorise
from tightrope.kernels import team, unsigned

pytestmark = pytest.mark.usefixtures("compiled")

GAMMA = 0.95


def banded_model(rng, S, A, below, above, hubs):
    """Moves within a band, and to some hub now and then; the band as elimination takes it."""
    number = np.full(S, -1, dtype=np.int32)
    chosen = rng.choice(S, hubs, replace=False)
    number[chosen] = np.arange(hubs)
    P = np.zeros((A, S, S))
    for a in range(A):
        for s in range(S):
            near = rng.integers(max(0, s - below), min(S - 1, s + above) + 1, size=2)
            P[a, s, [*near, *rng.permutation(chosen)[:1]]] = rng.random(2 + min(hubs, 1))
    P /= P.sum(axis=2, keepdims=True)
    return tr.MDP.from_actions(P, rng.normal(size=(S, A)), GAMMA), direct.Band(number, hubs, below, above)


def improved(mdp, band, v, *, down):
    """The value and the policy that one way through the band comes to."""
    new, rows = np.array(v), np.zeros(mdp.n_states, dtype=mdp.first.dtype)
    kernels.band.improve(*mdp.arrays, new, unsigned(rows), *band, *band.room(mdp.n_states), down)
    return new, tr.Policy.of_rows(mdp.pairs, rows)


SHAPES = [(1, 1), (0, 1), (1, 0), (2, 1), (3, 3), (0, 2), (2, 0), (0, 0)]


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("hubs", [0, 1, 3])
@pytest.mark.parametrize(("below", "above"), SHAPES)
def test_it_is_the_value_of_what_was_chosen_and_no_less_than_a_backup(below, above, hubs, down):
    for seed, S in enumerate((3, 5, 12, 40)):
        rng = np.random.default_rng(seed)
        mdp, band = banded_model(rng, S, 3, below, above, hubs)
        v = tr.value(mdp, tr.Policy.of_rows(mdp.pairs, mdp.first[:-1] + rng.integers(0, 3, size=S)))
        new, policy = improved(mdp, band, v, down=down)
        np.testing.assert_allclose(new, tr.value(mdp, policy), rtol=0.0, atol=1e-10)
        assert (new >= tr.T(mdp, v) - 1e-10).all()
        best = optimum(mdp)
        assert (new <= best + 1e-10).all()
        np.testing.assert_allclose(improved(mdp, band, best, down=down)[0], best, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("hubs", [0, 1, 3])
@pytest.mark.parametrize(("below", "above"), SHAPES)
def test_nothing_depends_on_what_memory_held_before(below, above, hubs, down):
    for S in (5, 40):
        mdp, band = banded_model(np.random.default_rng(S), S, 3, below, above, hubs)
        found = []
        for held in (0.0, np.nan):
            rows, room = np.zeros(S, dtype=mdp.first.dtype), band.room(S)
            for array in room:
                array.fill(held)
            v, chosen = np.full(S, held), np.zeros(S)
            kernels.band.value(*mdp.arrays[:4], mdp.first[:-1].copy(), GAMMA, *band, *room, v)
            for array in room:
                array.fill(held)
            kernels.band.improve(*mdp.arrays[:5], GAMMA, chosen, unsigned(rows), *band, *room, down)
            found.append((v, chosen, rows))
        for clean, held in zip(*found, strict=True):
            np.testing.assert_array_equal(clean, held)


def test_it_may_come_to_less_than_what_is_too_good_to_be_true():
    """The negative twin: v <= T v is needed."""
    mdp, band = banded_model(np.random.default_rng(0), 30, 3, 1, 1, 0)
    v = optimum(mdp) + np.random.default_rng(1).random(30)
    assert not (tr.T(mdp, v) >= v).all()
    assert (improved(mdp, band, v, down=True)[0] < v - 1e-3).any()


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize(("below", "above", "hubs"), [(1, 1, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1), (2, 1, 0)])
def test_two_threads_choose_to_the_same_bits(below, above, hubs, down):
    """One begins in the middle as if there were nobody before, where moves are to next states and there are no hubs."""
    for seed, S in enumerate((4, 7, 50, 301)):
        rng = np.random.default_rng(seed)
        mdp, band = banded_model(rng, S, 3, below, above, hubs)
        v = tr.value(mdp, tr.Policy.uniform(mdp))
        found = []
        for threads in (1, 2):
            new, rows = v.copy(), np.zeros(S, dtype=mdp.first.dtype)
            direct.improve(mdp, unsigned(rows), band, band.room(S), new, down, threads)
            found.append((new, rows))
        (one, rows), (two, others) = found
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(rows, others)


@pytest.mark.parametrize("down", [True, False])
def test_who_begins_in_the_middle_is_wrong_until_the_other_comes(down, monkeypatch):
    """The negative twin: what was found as if there were nobody before is not what is there, near the middle."""
    S, resumed = 400, []
    mdp, band = banded_model(np.random.default_rng(3), S, 3, 1, 1, 0)
    v = tr.value(mdp, tr.Policy.uniform(mdp))
    right = improved(mdp, band, v, down=down)[0]
    new, rows = v.copy(), np.zeros(S, dtype=mdp.first.dtype)
    for name in ("eliminate", "substitute"):
        loop = getattr(kernels.tridiagonal, name)
        monkeypatch.setattr(kernels.tridiagonal, name, lambda *a, loop=loop: resumed.append(True) if a[-1] else loop(*a))
    direct.improve(mdp, unsigned(rows), band, band.room(S), new, down, 2)
    assert len(resumed) == 2
    wrong = np.flatnonzero(new != right)
    assert len(wrong) > 0
    assert np.abs(wrong - S // 2).max() < S // 3  # and what was wrong has faded far from there


def swim(S, gamma=0.999):
    """A river: drift down for little, or swim up against it, where most is gained at the far end."""

    def dynamics(states, action):
        before, after = np.maximum(states - 1, 0), np.minimum(states + 1, S - 1)
        if action == 1:
            return before[:, None], [1.0], np.where(states == 0, 0.005, 0.0)
        return np.column_stack([before, states, after]), [0.05, 0.6, 0.35], np.where(states == S - 1, 1.0, 0.0)

    return tr.MDP.from_function(dynamics, S, 2, gamma)


@pytest.mark.parametrize("down", [True, False])
def test_all_that_are_passed_change_where_a_greedy_policy_changes_by_one(down):
    """Everybody drifts; only the last state knows better. Greedy policies learn of that by a state at a time."""
    mdp = swim(60)
    band = direct.model_band(mdp)
    drifting = tr.Policy.of_rows(mdp.pairs, np.r_[mdp.first[1:-1] - 1, mdp.first[-2]])
    v, best = tr.value(mdp, drifting), optimum(mdp)
    greedy = tr.greedy(mdp, v)
    assert (np.asarray(greedy.rows) != np.asarray(drifting.rows)).sum() <= 2
    once = improved(mdp, band, v, down=down)[0]
    if not down:  # from the end where it pays
        np.testing.assert_allclose(once, best, rtol=1e-9)
    twice = improved(mdp, band, once, down=not down)[0]
    np.testing.assert_allclose(twice, best, rtol=1e-9)


@pytest.mark.parametrize("S", [200, 60_000])
def test_few_improvements_are_enough_for_any_river(S):
    """In one call where the model is small, one improvement at a time where it is large; many were needed before."""
    mdp = swim(S)
    sol = tr.solve(mdp)
    assert sol.converged
    assert sol.backups <= 8 * mdp.n_pairs
    kappa = tr.solve(mdp, tr.kappa_pi(0.5), v0=sol.value)
    assert np.abs(kappa.value - sol.value).max() <= 0.5 * (sol.gap + kappa.gap)


def test_ways_go_forth_and_back_but_always_to_an_end_that_nothing_leads_beyond():
    way = kernels.band.way
    assert [way(2, 1, times) for times in range(4)] == [True, False, True, False]
    assert not any(way(0, 1, times) for times in range(4))
    assert all(way(1, 0, times) for times in range(4))


@pytest.mark.parametrize("large", [False, True])
def test_it_is_said_that_states_chose_where_they_did(monkeypatch, large):
    """The twin: from the optimum one greedy evaluation is enough, and nobody has chosen on the way."""
    if large:
        monkeypatch.setattr(team, "WORTH_IT", 100)
    mdp = problems.queue(300, gamma=0.99)
    assert ON_THE_WAY in tr.solve(mdp).choices
    nearly = tr.solve(mdp).value + np.random.default_rng(0).random(301)
    sol = tr.solve(mdp, v0=nearly)
    assert sol.backups < 4 * mdp.n_pairs
    assert sol.choices == (NAMES[factorise],)


@pytest.mark.parametrize("gamma", [0.9, 0.999])
@pytest.mark.parametrize("make", [problems.queue, problems.forest, problems.replacement])
def test_what_everybody_is_paid_more_changes_nothing(make, gamma):
    """The start is as if states were stayed in: no constant is taken for the truth."""
    mdp = make(150, gamma=gamma)
    richer = tr.MDP(mdp.P, mdp.r + 7.0, gamma, mdp.first)
    poor, rich = tr.solve(mdp), tr.solve(richer)
    np.testing.assert_array_equal(poor.policy.rows, rich.policy.rows)
    assert poor.backups == rich.backups


@pytest.mark.parametrize("size", [1e300, 1e304, 1e308])
@pytest.mark.parametrize("below", [0, 1, 2])
def test_values_past_the_largest_number_choose_something(below, size):
    """Staying would be worth more than a float holds: nothing can be proved then, and nothing may break."""
    mdp, band = banded_model(np.random.default_rng(4), 30, 3, below, 1, 1)
    for v in (np.full(30, np.inf), np.full(30, -np.inf), np.full(30, np.nan), np.full(30, size)):
        with np.errstate(all="ignore"):
            _, policy = improved(mdp, band, v, down=True)
        assert (policy.actions >= 0).all()
