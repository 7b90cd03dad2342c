"""Gymnasium: environments as models, models as environments, and policies that act in them."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import tightrope as tr
from tightrope.errors import InvalidArgument, InvalidModel, InvalidPolicy, MissingDiscount
from tightrope.model import gym
from tightrope.model.locate import find, locate
from tightrope.planning import solve

GAMMA = 0.95
NAMES = ["FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "Taxi-v4"]


def make(name):
    return gymnasium.make(name, disable_env_checker=True)


def values_from_table(env, gamma, *, honour=True):
    """v* of the environment's own table by plain value iteration, with `terminated` honoured or (wrongly) not."""
    table = env.unwrapped.P

    def backed_up(moves, v):
        return sum(p * (r + gamma * v[t] * (not (ends and honour))) for p, t, r, ends in moves)

    v = np.zeros(len(table))
    for _ in range(3000):
        u = np.array([max(backed_up(moves, v) for moves in table[s].values()) for s in range(len(table))])
        if np.abs(u - v).max() < 1e-12:
            return u
        v = u
    return v


@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_that_of_the_environments_own_table(name):
    env = make(name)
    mdp = tr.MDP.from_gymnasium(env, GAMMA)
    S = env.observation_space.n
    assert mdp.n_states - S in (0, 1)
    value = solve(mdp, tol=1e-12).value
    np.testing.assert_allclose(value[:S], values_from_table(env, GAMMA), atol=1e-8)
    np.testing.assert_array_equal(mdp.start[:S], env.unwrapped.initial_state_distrib)


def test_ignoring_terminated_is_wrong_on_the_cliff():
    env = make("CliffWalking-v1")
    right, wrong = values_from_table(env, GAMMA), values_from_table(env, GAMMA, honour=False)
    start = int(env.unwrapped.start_state_index)
    assert right[start] == pytest.approx(-(1 - GAMMA**13) / (1 - GAMMA))  # 13 steps of -1
    assert wrong[start] == pytest.approx(-1 / (1 - GAMMA))  # as if it walked for ever
    mdp = tr.MDP.from_gymnasium(env, GAMMA)
    assert solve(mdp, tol=1e-10).value[start] == pytest.approx(right[start])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "Taxi-v4"])
def test_the_mean_return_of_10000_episodes_agrees_with_the_optimum(name):
    env = make(name).unwrapped  # without the time limit, which the table knows nothing of
    mdp = tr.MDP.from_gymnasium(env, GAMMA)
    solution = solve(mdp, tol=1e-10)
    found = gym.evaluate_in(env, solution.policy, 10_000, seed=3, gamma=GAMMA)
    expected = float(mdp.start @ solution.value)
    assert abs(found.mean - expected) <= 4 * found.standard_error + 1e-9
    assert not found.truncated
    assert len(found.returns) == len(found.lengths) == 10_000
    assert "mean return" in str(found)


def test_evaluation_is_seeded():
    env = make("FrozenLake-v1")
    mdp = tr.MDP.from_gymnasium(env, GAMMA)
    for policy in (tr.Policy.uniform(mdp), solve(mdp).policy):
        a, b, c = (gym.evaluate_in(env, policy, 50, seed=s) for s in (1, 1, 2))
        np.testing.assert_array_equal(a.returns, b.returns)
        np.testing.assert_array_equal(a.lengths, b.lengths)
        assert (a.lengths != c.lengths).any()


def test_masks_remove_actions_and_change_nothing_that_matters():
    env = make("Taxi-v4")
    masked, full = tr.MDP.from_gymnasium(env, GAMMA), tr.MDP.from_gymnasium(env, GAMMA, masks=False)
    assert full.n_pairs == 500 * 6 + 1
    assert masked.n_pairs == sum(env.unwrapped.action_mask(s).sum() for s in range(500)) + 1
    np.testing.assert_allclose(solve(masked, tol=1e-12).value, solve(full, tol=1e-12).value, atol=1e-8)
    for s in range(500):
        offered = masked.pairs.actions[masked.first[s] : masked.first[s + 1]]
        np.testing.assert_array_equal(offered, np.flatnonzero(env.unwrapped.action_mask(s)))


class Table:
    """An environment that is nothing but a table."""

    def __init__(self, P, S, A):
        self.P = P
        self.observation_space, self.action_space = gymnasium.spaces.Discrete(S), gymnasium.spaces.Discrete(A)


def test_duplicate_successors_are_summed_and_ends_are_kept_apart():
    thrice = [(0.25, 1, 4.0, False), (0.25, 1, 0.0, True), (0.5, 1, 2.0, False)]
    env = Table({0: {0: thrice}, 1: {0: [(1.0, 0, 1.0, False)]}}, 2, 1)
    mdp = tr.MDP.from_gymnasium(env, 0.5)
    np.testing.assert_array_equal(mdp.P.toarray(), [[0, 0.75, 0.25], [1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(mdp.r, [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(mdp.start, [0.5, 0.5, 0])


def test_an_absorbing_target_needs_no_extra_state():
    env = Table({0: {0: [(1.0, 1, 4.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}, 2, 1)
    assert tr.MDP.from_gymnasium(env, 0.5).n_states == 2


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Table(None, 2, 1), "Table publishes no transition table P; estimate one by sampling"),
        (Table({0: {}}, 1, 1), "at state 0, action 0 is not a list of"),
        (Table({0: {0: [(1.0, 0)]}}, 1, 1), "at state 0, action 0 is not a list of"),
        (Table({0: {0: [(1.0, 7, 0.0, False)]}}, 1, 1), "leads to state 7; its states are 0 to 0"),
        (Table({0: {0: [(0.5, 0, 0.0, False)]}}, 1, 1), "sum to 0.5"),
    ],
)
def test_a_bad_table_is_refused_by_name(env, message):
    with pytest.raises(InvalidModel, match=message):
        tr.MDP.from_gymnasium(env, 0.5)


def test_spaces_that_are_not_discrete_are_refused():
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    env.unwrapped.P = {}
    with pytest.raises(InvalidModel, match="CartPole-v1 needs a Discrete observation_space that starts at 0; found Box"):
        tr.MDP.from_gymnasium(env, 0.5)


def test_predict_has_the_form_of_stable_baselines():
    mdp = tr.MDP.from_gymnasium(make("Taxi-v4"), GAMMA)
    policy = solve(mdp).policy
    action, state = policy.predict(17, deterministic=True)
    assert (action, state) == (int(policy.actions[17]), None)
    assert isinstance(action, int)
    actions, _ = policy.predict(np.array([3, 17]), state=None, episode_start=np.array([True, False]), deterministic=False)
    np.testing.assert_array_equal(actions, policy.actions[[3, 17]])
    with pytest.raises(InvalidPolicy, match="observations are state numbers 0 to 500; found 501"):
        policy.predict(501)


def test_a_stochastic_policy_predicts_its_likeliest_action_or_draws_one():
    mdp = tr.MDP.from_dense(np.tile(np.eye(2)[:, None], (1, 3, 1)), np.zeros((2, 3)), 0.5)
    policy = tr.Policy.stochastic(mdp, [[0.2, 0.5, 0.3], [0.6, 0.0, 0.4]])
    np.testing.assert_array_equal(policy.predict(np.array([0, 1]))[0], [1, 0])
    assert policy.predict(1) == (0, None)
    drawn = [policy.predict(1, deterministic=False, rng=np.random.default_rng(s))[0] for s in range(200)]
    assert set(drawn) == {0, 2}


def test_an_estimate_says_how_far_it_can_be_trusted():
    env = make("FrozenLake-v1")
    true = tr.MDP.from_gymnasium(env, GAMMA)
    found = gym.estimate_from_gymnasium(env, GAMMA, steps=20_000, seed=5)
    mdp = found.mdp
    assert found.counts.sum() == found.steps == 20_000
    tried = np.flatnonzero(found.counts)
    rows = [true.pairs.row(int(mdp.pairs.states[l]), int(mdp.pairs.actions[l])) for l in tried]
    off = np.abs(mdp.P[tried].toarray() - true.P[rows].toarray()).sum(axis=1)
    assert (off <= found.radius[tried]).all()  # holds with probability 0.95; the seed is one of those
    assert off.max() > 0
    assert found.radius[found.counts == 0].tolist() == [2.0] * int((found.counts == 0).sum())
    again = gym.estimate_from_gymnasium(env, GAMMA, steps=20_000, seed=5)
    np.testing.assert_array_equal(found.mdp.P.toarray(), again.mdp.P.toarray())
    assert str(found).startswith("estimated from 20,000 steps: MDP(16 states")


def test_an_estimate_honours_ends_and_masks():
    env = make("Taxi-v4")
    found = gym.estimate_from_gymnasium(env, GAMMA, steps=3_000, seed=5)
    for l in np.flatnonzero(found.counts)[:200]:
        s, a = int(found.mdp.pairs.states[l]), int(found.mdp.pairs.actions[l])
        assert env.unwrapped.action_mask(s)[a]
    chain = gym.as_gymnasium(tr.MDP.from_actions([[[0, 1.0], [0, 1.0]]], [[1.0], [0.0]], 0.5, start=[1.0, 0.0]))
    found = gym.estimate_from_gymnasium(chain, 0.5, steps=10, seed=0)
    np.testing.assert_array_equal(found.mdp.P.toarray(), [[0, 1], [0, 1]])
    assert found.counts.tolist() == [10, 0]
    assert found.mdp.terminal.tolist() == [False, True]


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_a_model_as_an_environment_passes_the_checker_and_comes_back(name):
    mdp = tr.MDP.from_gymnasium(make(name), GAMMA)
    env = gym.as_gymnasium(mdp)
    check_env(env)
    back = tr.MDP.from_gymnasium(env, GAMMA)
    np.testing.assert_array_equal(back.P.toarray(), mdp.P.toarray())
    np.testing.assert_allclose(back.r, mdp.r, rtol=1e-15)
    np.testing.assert_array_equal(back.pairs.actions, mdp.pairs.actions)
    np.testing.assert_array_equal(back.start, mdp.start)


def test_an_environment_of_ours_earns_what_the_model_says():
    mdp = locate("garnet:n_states=20,seed=3", 0.7)
    solution = solve(mdp, tol=1e-10)
    env = gymnasium.wrappers.TimeLimit(gym.as_gymnasium(mdp), 60)
    found = gym.evaluate_in(env, solution.policy, 500, seed=1, gamma=0.7)
    assert abs(found.mean - mdp.start @ solution.value) <= 4 * found.standard_error + 1e-6
    assert found.truncated == 500
    assert "cut short" in str(found)


def test_actions_that_are_not_offered_do_not_change_the_optimum():
    mdp = tr.MDP([[0, 1.0], [1.0, 0], [0.5, 0.5]], [1.0, -2.0, 0.5], 0.9, [0, 2, 3])
    env = gym.as_gymnasium(mdp)
    _, info = env.reset(seed=0, options=None)
    assert info["action_mask"].tolist() in ([1, 1], [1, 0])
    full = tr.MDP.from_gymnasium(env, 0.9, masks=False)
    assert full.n_pairs == 4
    np.testing.assert_allclose(solve(full, tol=1e-12).value, solve(mdp, tol=1e-12).value, atol=1e-9)
    env.unwrapped._state = 1
    assert env.step(1)[:4] == (1, -2.0, False, False)
    with pytest.raises(InvalidArgument, match="action 5 is not one of 0 to 1"):
        env.step(5)


def test_rendering_names_the_state():
    from tightrope.model.gym_env import MDPEnv

    mdp = tr.MDP.from_actions([np.eye(1)], [[0.0]], 0.5, state_names=["home"])
    env = MDPEnv(mdp, render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "state 0 (home)"


def test_environments_by_name():
    found = find("gym:CliffWalking-v1", 0.9)
    assert (found.format, found.notes) == ("Gymnasium CliffWalking-v1", ("episodes end in one extra state, the last",))
    assert locate("gym:FrozenLake-v1", 0.9).n_states == 16
    with pytest.raises(MissingDiscount, match=r"gym:FrozenLake-v1 states no discount; give one: --gamma 0\.99"):
        locate("gym:FrozenLake-v1")
    with pytest.raises(InvalidModel, match="gymnasium cannot make 'Nowhere-v1'"):
        locate("gym:Nowhere-v1", 0.9)


def test_problems_and_files_by_name(tmp_path):
    from tightrope.model import files

    mdp = locate("gridworld:height=4,width=3,slip=0.2", 0.5)
    assert (mdp.n_states, mdp.gamma) == (12, 0.5)
    files.write(mdp, tmp_path / "m.npz")
    assert locate(str(tmp_path / "m.npz")).n_states == 12
    for name, message in [
        ("nothing", "there is no file 'nothing' and no problem 'nothing'; problems are chain, cliff"),
        ("gridworld:hight=4", "gridworld has no parameter 'hight'; it takes height, width"),
        ("gridworld:4", "'4' is not of the form parameter=value"),
        ("gridworld:height=tall", "height must be an integer"),
    ]:
        with pytest.raises(InvalidArgument, match=message):
            locate(name)


def test_without_gymnasium_the_extra_is_named():
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from tightrope.model.locate import locate\n"
        "from tightrope.errors import MissingExtra\n"
        "try: locate('gym:FrozenLake-v1', 0.9)\n"
        "except MissingExtra as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "this needs gymnasium, which is not installed: pip install 'tightrope[gymnasium]'\n"
