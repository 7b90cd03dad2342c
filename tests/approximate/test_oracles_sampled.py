"""Oracles that learn from samples: the error shrinks with the budget, the seed decides, bad input is refused."""

import numpy as np
import pytest

import tightrope as tr
from tightrope.approximate import (
    LSPI,
    ConservativePI,
    FittedQ,
    PolicySearch,
    Problem,
    SampledModel,
    features,
    realised_delta,
    walk,
)
from tightrope.approximate.oracles.conservative import Pool, exact_step, sampled_step
from tightrope.errors import InvalidArgument
from tightrope.model.policy import Policy
from tightrope.model.problems import garnet, gridworld
from tightrope.model.sampler import Simulator, sizes
from tightrope.operators import q_value, value

RNG = np.random.default_rng
KAPPA = 0.9


@pytest.fixture(scope="module", params=["grid", "garnet"])
def problem(request):
    """The first surrogate κ-API meets on a 10x10 gridworld and on a 200-state Garnet."""
    mdp = gridworld(10, 10, gamma=0.95) if request.param == "grid" else garnet(200, 4, 5, gamma=0.95, seed=1)
    return Problem.original(mdp).surrogate(value(mdp, tr.Policy.uniform(mdp)), KAPPA)


def mean_delta(oracle, problem, seeds):
    nu = np.full(problem.n_states, 1.0 / problem.n_states)
    return np.mean([realised_delta(problem, oracle(problem, nu, RNG(seed)), nu) for seed in range(seeds)])


def small_trees():
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(n_estimators=10)


@pytest.mark.parametrize(
    ("small", "large", "seeds"),
    [
        (SampledModel(2), SampledModel(100), 3),
        (ConservativePI(20_000, rounds=20), ConservativePI(1_000_000, rounds=300), 1),
        (FittedQ(small_trees(), 1_500, rounds=15), FittedQ(small_trees(), 40_000, rounds=15), 1),
        (LSPI(samples=1_500), LSPI(samples=100_000), 2),
        (PolicySearch(2_000), PolicySearch(300_000), 2),
    ],
    ids=["SampledModel", "ConservativePI", "FittedQ", "LSPI", "PolicySearch"],
)
def test_more_samples_mean_a_smaller_delta(problem, small, large, seeds):
    few, many = mean_delta(small, problem, seeds), mean_delta(large, problem, seeds)
    assert many < 0.6 * few
    uniform = realised_delta(problem, problem.uniform(), np.full(problem.n_states, 1 / problem.n_states))
    assert many < 0.6 * uniform


ALL = [
    SampledModel(3),
    ConservativePI(100_000, rounds=10),
    FittedQ(small_trees(), 500, rounds=3),
    LSPI(samples=500),
    PolicySearch(500),
]


@pytest.mark.parametrize("oracle", ALL, ids=lambda o: type(o).__name__)
def test_the_seed_decides(problem, oracle):
    nu = np.full(problem.n_states, 1 / problem.n_states)
    assert oracle(problem, nu, RNG(1)) == oracle(problem, nu, RNG(1))
    assert oracle(problem, nu, RNG(1)) != oracle(problem, nu, RNG(2))


@pytest.mark.parametrize("oracle", ALL, ids=lambda o: type(o).__name__)
def test_the_budget_is_kept(problem, oracle):
    before = problem.meter.samples
    oracle(problem, np.full(problem.n_states, 1 / problem.n_states), RNG(1))
    used = problem.meter.samples - before
    budget = getattr(oracle, "samples", 3 * problem.pairs.n_pairs)
    assert 0.5 * budget <= used <= 1.25 * budget


def corridor(s, a, rng):
    """Five states in a row, the last one the end: going right costs 1 and may fail, standing still costs 2."""
    if a == 1 and rng.random() < 0.9:
        return -1.0, s + 1
    return (-2.0, s) if a == 0 else (-1.0, s)


@pytest.mark.parametrize("kappa", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("oracle", ALL, ids=lambda o: type(o).__name__)
def test_a_simulator_is_enough(oracle, kappa):
    source = Simulator(sizes(5, 2), 0.8, corridor, terminal=np.arange(5) == 4)
    v = np.array([-8.0, -6.0, -4.0, -2.0, 0.0])
    pi = oracle(Problem.original(source).surrogate(v, kappa), np.full(5, 0.2), RNG(0))
    weights = pi.weights.reshape(5, 2)
    assert (weights[:4, 1] > 0.5).all()


def test_walks_are_unbiased_for_q():
    mdp = garnet(20, 2, 3, gamma=0.8, seed=3)
    problem = Problem.original(mdp)
    pi = Policy.stochastic(mdp, RNG(0).dirichlet(np.ones(2), size=20).ravel())
    rows = np.repeat(np.arange(mdp.n_pairs), 2_000)
    found = walk.returns(problem, rows, walk.choosing(pi), RNG(1)).reshape(-1, 2_000)
    assert (np.abs(found.mean(axis=1) - q_value(mdp, pi)) < 4.5 * found.std(axis=1) / np.sqrt(2_000)).all()


def test_rewards_to_go_are_unbiased_for_q():
    mdp = garnet(10, 2, 3, gamma=0.7, seed=3)
    problem = Problem.original(mdp)
    pi = Policy.stochastic(mdp, RNG(0).dirichlet(np.ones(2), size=10).ravel())
    steps = walk.walks(problem, mdp.start, walk.choosing(pi), 100_000, RNG(2))
    q = q_value(mdp, pi)
    for row in range(mdp.n_pairs):
        here = steps.to_go[steps.rows == row]
        assert abs(here.mean() - q[row]) < 4.5 * here.std() / np.sqrt(len(here))


def test_exploration_visits_what_the_uniform_policy_visits_from_nu():
    mdp = garnet(15, 3, 2, gamma=0.8, seed=4)
    nu = np.zeros(15)
    nu[3] = 1.0
    found = walk.explore(Problem.original(mdp), nu, 300_000, RNG(0))
    P, _ = tr.Policy.uniform(mdp).induced(mdp)
    visits = 0.2 * np.linalg.solve(np.eye(15) - 0.8 * P.toarray().T, nu)
    np.testing.assert_allclose(found.counts.reshape(15, 3).sum(axis=1) / 300_000, visits, atol=0.01)
    assert found.counts.sum() == 300_000
    seen = found.seen
    assert np.abs(found.P[seen].toarray() - mdp.P.toarray()[seen])[found.counts[seen] > 2_000].max() < 0.05
    np.testing.assert_allclose(found.r[seen], mdp.r[seen])


def test_with_kappa_zero_only_states_of_nu_are_tried():
    mdp = garnet(15, 3, 2, gamma=0.8, seed=4)
    nu = np.zeros(15)
    nu[[2, 5]] = 0.5
    found = walk.explore(Problem.original(mdp).surrogate(np.zeros(15), 0.0), nu, 3_000, RNG(0))
    assert np.flatnonzero(found.counts.reshape(15, 3).sum(axis=1)).tolist() == [2, 5]


def test_empirical_models_are_models():
    """Rows are distributions, terminal states stay, and many samples find the truth."""
    mdp = gridworld(4, 4, gamma=0.9)
    found = walk.everywhere(Problem.original(mdp), 5_000, RNG(0))
    np.testing.assert_allclose(found.P.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(found.P.toarray() - mdp.P.toarray()).max() < 0.05
    dead = np.flatnonzero(mdp.terminal)
    rows = mdp.first[dead]
    assert (found.P.toarray()[rows, dead] == 1.0).all()
    assert (found.r[rows] == 0.0).all()


def test_pieces_do_not_change_what_is_gathered(monkeypatch):
    mdp = garnet(30, 2, 3, gamma=0.8, seed=4)
    problem = Problem.original(mdp)
    whole = walk.explore(problem, mdp.start, 5_000, RNG(3))
    monkeypatch.setattr(walk, "PIECE", 700)
    parts = walk.explore(problem, mdp.start, 5_000, RNG(3))
    assert np.array_equal(whole.counts, parts.counts)
    np.testing.assert_allclose(whole.P.toarray(), parts.P.toarray(), atol=1e-12)


def test_sampled_advantage_is_unbiased():
    """The advantage of a target chosen beforehand, measured by walks, is that of the model."""
    mdp = garnet(12, 3, 3, gamma=0.9, seed=5)
    problem = Problem.original(mdp).surrogate(np.zeros(12), 0.8)
    pi, nu = problem.uniform(), mdp.start
    q = q_value(problem.model, pi)
    pool = Pool(np.full(mdp.n_pairs, 100.0), 100.0 * q)
    measured = np.array([sampled_step(problem, pi, nu, pool, 2_000, RNG(i))[0].advantage for i in range(200)])
    exact = exact_step(problem, pi, nu)
    assert abs(measured.mean() - exact.advantage) < 4 * measured.std() / np.sqrt(200)
    one, _ = sampled_step(problem, pi, nu, pool, 2_000, RNG(0))
    assert one.target.distance(exact.target) == 0.0
    assert one.largest == pytest.approx(exact.largest)


def test_choosing_and_measuring_with_the_same_walks_would_be_biased():
    """The negative twin: the best of noisy numbers looks better than it is."""
    mdp = garnet(12, 3, 3, gamma=0.9, seed=5)
    problem = Problem.original(mdp).surrogate(np.zeros(12), 0.8)
    pi, nu = problem.uniform(), mdp.start
    gained, true = [], []
    for i in range(50):
        _, fresh = sampled_step(problem, pi, nu, Pool.empty(mdp.pairs), 800, RNG(i))
        q = fresh.earned / np.maximum(fresh.tried, 1)
        top = q.reshape(12, 3).max(axis=1) - q.reshape(12, 3).mean(axis=1)
        gained.append(nu @ top)
        chosen = q.reshape(12, 3).argmax(axis=1)
        real = q_value(problem.model, pi).reshape(12, 3)
        true.append(nu @ (real[np.arange(12), chosen] - real.mean(axis=1)))
    assert np.mean(gained) > 1.2 * np.mean(true)


def test_features_that_fit_the_optimum_need_fewer_samples():
    """Half the states of a doubled model are copies: telling them apart is wasted on LSPI."""
    base = garnet(40, 3, 3, gamma=0.9, seed=6)
    P = np.kron(np.ones((2, 1)), base.P.toarray())
    P = np.concatenate([P, P], axis=1) / 2
    mdp = tr.MDP(P, np.tile(base.r, 2), 0.9)
    problem = Problem.original(mdp).surrogate(np.zeros(80), 0.8)
    groups = features.aggregated(np.arange(80) % 40)
    table, fitting = mean_delta(LSPI(samples=2_000), problem, 5), mean_delta(LSPI(groups, samples=2_000), problem, 5)
    assert fitting < table


def test_large_systems_are_solved_by_iteration_to_the_same_answer(monkeypatch):
    problem = Problem.original(garnet(40, 3, 3, gamma=0.9, seed=6)).surrogate(np.zeros(40), 0.8)
    nu = np.full(40, 1 / 40)
    by_elimination = LSPI(samples=20_000)(problem, nu, RNG(0))
    monkeypatch.setattr("tightrope.approximate.oracles.lspi.SMALL", 10)
    assert LSPI(samples=20_000)(problem, nu, RNG(0)) == by_elimination


def test_when_lspi_chatters_the_best_policy_is_kept():
    """A quadratic cannot hold q: the iterates get better and worse again, and walks from ν choose among them."""
    mdp = gridworld(10, 10, gamma=0.95)
    y, x = np.divmod(np.arange(100), 10)
    phi = np.column_stack([x, y, x * y, x * x, y * y, np.ones(100)])
    problem, nu = Problem.original(mdp).surrogate(np.zeros(100), 0.98), np.full(100, 0.01)
    settings = {"features": phi, "samples": 100_000, "rounds": 8}
    for seed in range(3):
        kept, last = (realised_delta(problem, kind(**settings)(problem, nu, RNG(seed)), nu) for kind in (LSPI, Restless))
        assert kept < 0.8 * last


class Restless(LSPI):
    """LSPI that takes the last policy, whatever it is: the negative twin of keeping the best."""

    def __call__(self, problem, nu, rng):
        from tightrope.approximate.oracles import lspi

        choose, lspi._best = lspi._best, lambda problem, policies, nu, samples, rng: policies[-1]  # noqa: ARG005
        try:
            return super().__call__(problem, nu, rng)
        finally:
            lspi._best = choose


def test_weights_and_repeated_rows_are_the_same_regression():
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor

    class RepeatedRidge(Ridge):
        def fit(self, X, y):  # no sample_weight: rows are repeated instead
            return super().fit(X, y)

    problem = Problem.original(garnet(20, 2, 3, gamma=0.9, seed=7)).surrogate(np.zeros(20), 0.5)
    phi = RNG(1).normal(size=(20, 4))
    nu = np.full(20, 0.05)
    plain = FittedQ(Ridge(), 500, rounds=4, features=phi)(problem, nu, RNG(0))
    assert FittedQ(RepeatedRidge(), 500, rounds=4, features=phi)(problem, nu, RNG(0)) == plain
    FittedQ(KNeighborsRegressor(1), 500, rounds=2)(problem, nu, RNG(0))


class Hollow:
    """A regressor that learns nothing and says nan."""

    def get_params(self, deep=False):  # noqa: ARG002
        return {}

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict(self, X):
        return np.where(np.arange(len(X)) == 5, np.nan, 0.0)


class Short(Hollow):
    def predict(self, X):
        return np.zeros(len(X) - 1)


@pytest.mark.parametrize(
    ("oracle", "complaint"),
    [
        (lambda: FittedQ(Hollow(), 100), "Hollow predicted nan for state 2, action 1 in regression 1"),
        (lambda: FittedQ(Short(), 100), r"Short predicted an array of shape \(39,\) for 40 pairs"),
        (lambda: FittedQ("trees"), "regressor must have fit and predict"),
        (lambda: FittedQ(samples=0), "samples must be an integer"),
        (lambda: FittedQ(rounds=0), "rounds must be an integer"),
        (lambda: LSPI(samples=3), "at least 10 samples; found 3"),
        (lambda: LSPI(ridge=-1), "ridge must be"),
        (lambda: LSPI(np.ones((7, 2))), r"one row per pair \(40\) or one per state \(20\); found shape \(7, 2\)"),
        (lambda: PolicySearch(features=np.ones(5)), r"found shape \(5,\)"),
        (lambda: PolicySearch(features=np.full((20, 2), np.nan)), "features of state 0 are not finite"),
        (lambda: PolicySearch(step=0.0), "step must be"),
        (lambda: SampledModel(0), "n must be an integer >= 1; found 0"),
        (lambda: features.aggregated([0.5, 1.0]), "groups must be one integer"),
    ],
)
def test_bad_input_is_refused(oracle, complaint):
    problem = Problem.original(garnet(20, 2, 3, gamma=0.9, seed=7))
    with pytest.raises(InvalidArgument, match=complaint):
        oracle()(problem, np.full(20, 0.05), RNG(0))


def test_oracles_print_what_they_are():
    assert repr(FittedQ(small_trees(), 100)) == "FittedQ(ExtraTreesRegressor, samples=100)"
    assert repr(FittedQ()) == "FittedQ(ExtraTrees, samples=10000)"
    assert repr(LSPI(np.ones((4, 2)))) == "LSPI(2 features, samples=10000, rounds=20)"
    assert repr(PolicySearch()) == "PolicySearch(a table, samples=10000, rounds=20)"
    assert repr(SampledModel(5)) == "SampledModel(n=5)"
    assert "features" in repr(PolicySearch(features=np.ones(5)))
