"""Sources of samples: the right frequencies, the same bits, and clear errors."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from tightrope import MDP, kernels
from tightrope.errors import InvalidArgument, InvalidModel, InvalidPolicy
from tightrope.model.sampler import ModelSource, Simulator, Source, alias_table, gymnasium_source, sizes, source_of


@pytest.fixture(scope="module")
def mdp():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(9, 0.3), size=14)
    P[0], P[1] = np.eye(9)[4], np.full(9, 1 / 9)
    return MDP(P, rng.normal(size=14), 0.9, first=[0, 1, 3, 4, 6, 8, 9, 11, 13, 14])


def test_next_states_follow_P(mdp):
    n = 200_000
    source = ModelSource(mdp)
    for row in range(mdp.n_pairs):
        rewards, following = source.sample(np.full(n, row), np.random.default_rng(row))
        share = np.bincount(following, minlength=9) / n
        p = mdp.P[[row]].toarray()[0]
        assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()
        assert (rewards == mdp.r[row]).all()


def test_alias_tables_hold_exactly_the_probabilities(mdp):
    indptr, alias = alias_table(mdp.P)
    for row in range(mdp.n_pairs):
        part = alias[indptr[row] : indptr[row + 1]]
        mass = np.zeros(9)
        np.add.at(mass, part["own"], part["cut"] / len(part))
        np.add.at(mass, part["other"], (1 - part["cut"]) / len(part))
        np.testing.assert_allclose(mass, mdp.P[[row]].toarray()[0], atol=1e-15)


def test_the_extremes_of_a_uniform_number_stay_within_the_row(mdp):
    tables = alias_table(mdp.P)
    for row in range(mdp.n_pairs):
        support = mdp.P[[row]].indices
        for unit in (0.0, 1.0 - 2.0**-53):
            assert kernels.sampling.column(*tables, np.uint64(row), unit) in support


def test_the_generator_is_xoshiro256_plus_plus():
    """Against the published algorithm, in Python's unbounded integers."""
    mask = 2**64 - 1
    state = [1, 2, 3, 2**63 + 5]
    words = np.array(state, dtype=np.uint64)

    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    for _ in range(100):
        result = (rotate((state[0] + state[3]) & mask, 23) + state[0]) & mask
        t = (state[1] << 17) & mask
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= t
        state[3] = rotate(state[3], 45)
        assert int(kernels.sampling.random_word(words)) == result
    assert words.tolist() == state
    units = np.array([kernels.sampling.random_unit(words) for _ in range(2000)])
    assert 0 <= units.min() < 0.01
    assert 0.99 < units.max() < 1
    assert abs(units.mean() - 0.5) < 0.03


def test_same_seed_same_samples(mdp):
    rows = np.arange(14).repeat(10)
    one, two = (ModelSource(mdp).sample(rows, np.random.default_rng(3))[1] for _ in range(2))
    assert (one == two).all()


def test_one_sample_is_one_of_many(mdp):
    source = ModelSource(mdp)
    many = source.sample([3], np.random.default_rng(1))
    assert source.sample_one(2, 0, np.random.default_rng(1)) == (many[0][0], many[1][0])


def test_sources_are_recognised(mdp):
    assert isinstance(source_of(mdp), ModelSource)
    simulator = Simulator(sizes(2, 2), 0.9, lambda s, a, _: (float(a), 1 - s))
    assert source_of(simulator) is simulator
    assert isinstance(simulator, Source)
    with pytest.raises(InvalidArgument, match="a source of samples is"):
        source_of(3)


def test_a_simulator_is_asked_pair_by_pair():
    simulator = Simulator(sizes(3, 2), 0.9, lambda s, a, _: (10.0 * s + a, (s + a) % 3))
    rewards, following = simulator.sample([0, 3, 5], np.random.default_rng(0))
    assert rewards.tolist() == [0.0, 11.0, 21.0]
    assert following.tolist() == [0, 2, 0]
    assert repr(simulator) == "Simulator(<lambda>, 3 states, 6 pairs, gamma=0.9)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: ModelSource(m).sample([14], np.random.default_rng(0)), "rows are numbered 0 to 13"),
        (lambda m: ModelSource(m).sample([-1], np.random.default_rng(0)), "found -1"),
        (lambda m: ModelSource(m).sample_one(9, 0, np.random.default_rng(0)), "there is no state 9"),
        (
            lambda _: Simulator(sizes(2, 1), 0.9, lambda *_: (np.nan, 0)).sample_one(0, 0, None),
            "reward after state 0, action 0 is nan",
        ),
        (
            lambda _: Simulator(sizes(2, 1), 0.9, lambda *_: (0.0, 2)).sample_one(0, 0, None),
            "next state after state 0, action 0 is 2",
        ),
        (lambda _: sizes(0, 2), "n_states must be an integer >= 1"),
    ],
)
def test_bad_requests(mdp, call, message):
    with pytest.raises(InvalidArgument, match=message):
        call(mdp)


def test_an_action_that_is_not_offered(mdp):
    with pytest.raises(InvalidPolicy, match="state 0 has no action 1"):
        ModelSource(mdp).sample_one(0, 1, np.random.default_rng(0))


def test_terminal_states_of_a_simulator_are_checked():
    with pytest.raises(InvalidModel, match=r"a boolean per state, shape \(2,\)"):
        Simulator(sizes(2, 1), 0.9, lambda *_: (0.0, 0), terminal=[0, 1, 1])


class Corridor(gymnasium.Env):
    """Four cells; right at the last one earns 1 and ends. No table, but a state that can be set."""

    observation_space = Discrete(4)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002  (the signature of Gymnasium)
        super().reset(seed=seed)
        self.s = 0
        return 0, {}

    def step(self, action):
        if action == 1 and self.s == 3:
            return 3, 1.0, True, False, {}
        slip = self.np_random.random() < 0.25
        self.s = int(np.clip(self.s + (1 if (action == 1) != slip else -1), 0, 3))
        return self.s, 0.0, False, False, {}


def test_an_environment_with_a_settable_state():
    source = gymnasium_source(Corridor(), 0.9)
    assert source.pairs.n_states == 5
    assert source.terminal.tolist() == [False] * 4 + [True]
    rng = np.random.default_rng(0)
    assert source.sample_one(3, 1, rng) == (1.0, 4)
    assert source.sample_one(4, 0, rng) == (0.0, 4)
    following = source.sample(np.full(4000, 3), rng)[1]
    assert np.mean(following == 2) == pytest.approx(0.75, abs=0.03)
    one, two = (source.sample(np.full(50, 3), np.random.default_rng(5))[1].tolist() for _ in range(2))
    assert one == two


def test_an_environment_with_a_table():
    source = gymnasium_source(gymnasium.make("FrozenLake-v1", map_name="8x8"), 0.99)
    assert isinstance(source, ModelSource)
    assert source.mdp.n_states >= 64


def test_environments_that_cannot_be_asked():
    class Continuous(Corridor):
        observation_space = Box(0, 1)

    class Sealed(Corridor):
        def reset(self, *, seed=None, options=None):  # noqa: ARG002  (the signature of Gymnasium)
            return 0, {}

    with pytest.raises(InvalidModel, match="Discrete observation_space"):
        gymnasium_source(Continuous(), 0.9)
    with pytest.raises(InvalidModel, match="neither a transition table P nor a settable state s"):
        gymnasium_source(Sealed(), 0.9)
    with pytest.raises(InvalidModel, match="CartPole-v1 needs a Discrete observation_space"):
        gymnasium_source(gymnasium.make("CartPole-v1"), 0.9)
