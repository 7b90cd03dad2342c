"""The public checks: ready-made oracles and models pass, broken ones are told why they do not."""

import numpy as np
import pytest

import tightrope as tr
from tightrope.approximate import LSPI, ApproximateVI, ConservativePI, Exact, Noisy, PolicySearch, SampledModel, WorstCase
from tightrope.model.policy import Policy
from tightrope.model.problems import garnet, gridworld
from tightrope.model.sampler import ModelSource, Simulator, sizes
from tightrope.testing import CheckFailed, check_mdp, check_oracle


@pytest.mark.parametrize(
    "oracle",
    [
        Exact(),
        WorstCase(0.05),
        WorstCase(0.05, deterministic=True),
        Noisy(0.1),
        ApproximateVI(5),
        ApproximateVI(tolerance=0.01),
        SampledModel(20),
        ConservativePI(rounds=30),
        ConservativePI(100_000, rounds=50),
        LSPI(samples=5_000),
        PolicySearch(samples=10_000),
    ],
    ids=repr,
)
def test_ready_made_oracles_pass(oracle):
    report = check_oracle(oracle)
    assert len(report.rows) == 12
    assert all(row.delta <= row.at_random for row in report.rows)
    assert repr(report).startswith(f"{oracle!r}: all checks passed\n")


def test_fitted_q_passes():
    from sklearn.tree import DecisionTreeRegressor

    from tightrope.approximate import FittedQ

    check_oracle(FittedQ(DecisionTreeRegressor(), samples=3_000), kappas=(0.0, 0.9))


def test_a_model_of_ones_own_can_be_used():
    report = check_oracle(SampledModel(10), garnet(30, 3, 4, seed=2), kappas=(0.5,))
    assert [row.nu for row in report.rows] == ["uniform", "start", "last"]
    assert report.rows[0].samples == 900


def unseeded(problem, nu, rng):  # noqa: ARG001
    return Policy.of_rows(problem.pairs, problem.pairs.first[:-1] + np.random.randint(0, problem.pairs.counts))  # noqa: NPY002


def careless(problem, nu, rng):
    nu[0] = 7.0
    return Exact()(problem, nu, rng)


def shortsighted(problem, nu, rng):
    """Learns the first half only, whatever nu says, and does its worst elsewhere."""
    pi, worst = Exact()(problem, nu, rng), WorstCase(1e9)(problem, nu, rng)
    return Policy.of_rows(problem.pairs, np.where(np.arange(problem.n_states) < 8, pi.rows, worst.rows))


def failing(problem, nu, rng):
    if problem.gamma > 0.5:
        raise ArithmeticError("too far ahead")
    return Exact()(problem, nu, rng)


class Boastful:
    delta = 1e-3

    def __call__(self, problem, nu, rng):
        return Noisy(5.0)(problem, nu, rng)


@pytest.mark.parametrize(
    ("oracle", "complaint"),
    [
        (unseeded, "the same rng gave two different policies: take all randomness from rng"),
        (careless, "it changed nu: copy before you write"),
        (shortsighted, r"nu right its policy loses .*, more than acting at random"),
        (failing, "on halves with kappa=0.9 and nu uniform it raised ArithmeticError: too far ahead"),
        (Boastful(), "more than the 0.001 it promises"),
        (lambda problem, nu, rng: 3, "returned int, not a Policy"),  # noqa: ARG005
    ],
    ids=["unseeded", "careless", "shortsighted", "failing", "boastful", "no policy"],
)
def test_broken_oracles_are_told_what_is_wrong(oracle, complaint):
    with pytest.raises(CheckFailed, match=complaint):
        check_oracle(oracle)


def test_a_shortsighted_oracle_is_only_blamed_where_it_is_wrong():
    with pytest.raises(CheckFailed) as caught:
        check_oracle(shortsighted, kappas=(0.5,))
    assert not any("nu left" in line for line in caught.value.broken)
    assert "fails" in str(caught.value)


def test_the_global_generator_is_left_as_it_was():
    np.random.seed(1)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    check_oracle(Exact(), kappas=(0.5,))
    assert np.random.random() == expected  # noqa: NPY002


def test_good_models_pass():
    report = check_mdp(gridworld(5, 5))
    assert (report.states, report.terminal, report.unreachable) == (25, 1, 0)
    mdp = garnet(20, 2, 3, seed=1)
    assert check_mdp(ModelSource(mdp), like=mdp).unreachable is None


def test_states_that_cannot_be_reached_are_counted():
    P = np.eye(3)[:, None, :]
    assert check_mdp(tr.MDP.from_dense(P, np.zeros((3, 1)), 0.9, start=[1, 0, 0])).unreachable == 2


def source(step, **settings):
    return Simulator(sizes(3, 2), 0.9, step, **settings)


class Wrong:
    """A source whose every answer can be spoiled."""

    def __init__(self, spoil, terminal=(False, False, False), gamma=0.9):
        self.pairs, self.gamma, self.terminal, self.spoil = sizes(3, 2), gamma, np.array(terminal), spoil

    def sample(self, rows, rng):
        return self.spoil(len(rows), rng)

    def sample_one(self, s, a, rng):  # noqa: ARG002
        r, following = self.spoil(1, rng)
        return float(r[0]), int(following[0])


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (Wrong(lambda n, rng: (np.zeros(n), np.full(n, 3))), "states 0 to 2; found int64 3 to 3"),  # noqa: ARG005
        (Wrong(lambda n, rng: (np.full(n, np.nan), np.zeros(n, dtype=int))), "reward of nan"),  # noqa: ARG005
        (Wrong(lambda n, rng: (np.zeros(n - 1), np.zeros(n, dtype=int))), "two arrays of shape"),  # noqa: ARG005
        (Wrong(lambda n, rng: (np.random.random(n), np.zeros(n, dtype=int))), "same rng gave two"),  # noqa: ARG005, NPY002
        (Wrong(lambda n, rng: 1 / 0), "sample raised ZeroDivisionError"),  # noqa: ARG005
        (Wrong(lambda n, rng: (np.zeros(n), np.zeros(n, int)), [0, 1, 1]), "terminal must be a boolean"),  # noqa: ARG005
        (Wrong(lambda n, rng: (np.zeros(n), np.zeros(n, int)), gamma=1.5), "gamma must lie in"),  # noqa: ARG005
        (Wrong(lambda n, rng: (np.full(n, np.inf if n == 1 else 0.0), np.zeros(n, int))), "sample_one at state 0"),  # noqa: ARG005
    ],
)
def test_broken_sources_are_told_what_is_wrong(made, complaint):
    with pytest.raises(CheckFailed, match=complaint):
        check_mdp(made, samples=1_000)


def test_samples_are_held_against_the_truth():
    P = np.full((3, 2, 3), 1 / 3)
    truth = tr.MDP.from_dense(P, np.arange(6.0).reshape(3, 2), 0.9)
    fair = source(lambda s, a, rng: (2.0 * s + a, int(rng.integers(3))))
    check_mdp(fair, like=truth, samples=6_000)
    loaded = source(lambda s, a, rng: (2.0 * s + a, int(rng.random() < 0.4)))
    with pytest.raises(CheckFailed, match="samples do not follow P: state 0, action 0 led to state"):
        check_mdp(loaded, like=truth, samples=6_000)
    generous = source(lambda s, a, rng: (2.0 * s + a + 0.01, int(rng.integers(3))))
    with pytest.raises(CheckFailed, match=r"samples do not follow r: the mean reward at state 0, action 0 is 0\.01, r says 0"):
        check_mdp(generous, like=truth, samples=6_000)
