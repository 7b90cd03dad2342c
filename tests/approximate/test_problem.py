"""The seam: surrogates as problems, their samples, and what an oracle may answer."""

import numpy as np
import pytest

import reference
import reference_approximate as slow
import tightrope as tr
from bridge import mdp_of, policy_of, pool
from tightrope.approximate import Exact, Problem, realised_delta
from tightrope.approximate.problem import ask
from tightrope.errors import InvalidArgument, InvalidPolicy
from tightrope.model.policy import Policy
from tightrope.model.sampler import Simulator, sizes


def test_delta_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    for case, mdp in pool(200, 21):
        nu = rng.dirichlet(np.ones(len(case.v)))
        problem = Problem.original(mdp).surrogate(case.v, case.kappa)
        found = realised_delta(problem, policy_of(mdp, case.pi), nu)
        expected = slow.delta(case, case.v, case.pi, nu, case.kappa)
        assert found == pytest.approx(expected, abs=20 * case.slack(case.v, case.v_star))
        assert found >= 0.0


def test_samples_have_the_shaped_reward_on_average():
    rng = np.random.default_rng(1)
    for case, mdp in pool(20, 22, gamma=0.9):
        problem = Problem.original(mdp).surrogate(case.v, 0.3)
        rows = np.repeat(np.arange(mdp.n_pairs), 4_000)
        r, following = problem.sample(rows, rng)
        mean, spread = r.reshape(-1, 4_000).mean(axis=1), r.reshape(-1, 4_000).std(axis=1)
        shaped = (case.r + 0.7 * 0.9 * case.P @ case.v)[case.ok]
        assert (np.abs(mean - shaped) <= 5.0 * spread / np.sqrt(4_000) + 1e-9 * np.abs(case.v).max()).all()
        assert problem.gamma == pytest.approx(0.27)
        assert ((following >= 0) & (following < mdp.n_states)).all()


def test_the_unshaped_reward_is_another():
    """The negative twin: forgetting the bonus (1-κ)γ v(s') is visible."""
    case, mdp = pool(1, 22, gamma=0.9)[0]
    v = np.full(len(case.v), 10.0)
    r, _ = Problem.original(mdp).surrogate(v, 0.3).sample(np.arange(mdp.n_pairs), np.random.default_rng(0))
    np.testing.assert_allclose(r - mdp.r, 0.7 * 0.9 * 10.0)


def test_samples_of_all_surrogates_are_counted_together():
    mdp = mdp_of(reference.tightrope(1.0, 0.9))
    original = Problem.original(mdp)
    original.sample(np.zeros(3, dtype=int), np.random.default_rng(0))
    original.surrogate(np.zeros(4), 0.5).sample(np.zeros(4, dtype=int), np.random.default_rng(0))
    assert original.meter.samples == 7


def test_a_simulator_is_never_asked_what_happens_after_the_end():
    def step(s, a, rng):  # noqa: ARG001
        assert s != 2, "asked after the end"
        return 1.0, min(s + 1, 2)

    source = Simulator(sizes(3, 2), 0.9, step, terminal=[False, False, True])
    problem = Problem.original(source).surrogate(np.array([2.0, 1.0, 0.0]), 0.5)
    r, following = problem.sample(np.array([0, 5, 2, 4]), np.random.default_rng(0))
    assert following.tolist() == [1, 2, 2, 2]
    np.testing.assert_allclose(r, [1.0 + 0.45, 0.0, 1.0, 0.0])
    assert problem.meter.samples == 2


def test_an_oracle_that_needs_the_model_says_so():
    source = Simulator(sizes(2, 2), 0.9, lambda s, a, rng: (0.0, s))  # noqa: ARG005
    with pytest.raises(InvalidArgument, match=r"Exact needs the model.*SampledModel"):
        Exact()(Problem.original(source), np.full(2, 0.5), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda p: np.zeros(p.n_states, dtype=int), "returned ndarray, not a Policy"),
        (lambda p: None, "returned NoneType"),  # noqa: ARG005
        (lambda p: tr.Policy.uniform(mdp_of(reference.tightrope(1.0, 0.5))), "for another model"),  # noqa: ARG005
        (lambda p: Policy.of_rows(p.pairs, np.zeros(p.n_states, dtype=int)), "not one pair of each state"),
        (lambda p: Policy(p.pairs, None, np.full(p.pairs.n_pairs, 0.9)), "sum to"),
        (lambda p: Policy(p.pairs, None, np.full(p.pairs.n_pairs, np.nan)), "nan; weights are probabilities"),
    ],
)
def test_an_answer_that_is_no_policy_is_refused(answer, complaint):
    rng = np.random.default_rng(3)
    mdp = tr.MDP.from_dense(rng.dirichlet(np.ones(3), size=(3, 2)), rng.normal(size=(3, 2)), 0.9)
    with pytest.raises(InvalidPolicy, match=complaint):
        ask(lambda problem, nu, rng: answer(problem), Problem.original(mdp), mdp.start, rng)  # noqa: ARG005
