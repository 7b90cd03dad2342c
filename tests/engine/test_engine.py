"""The engine: every method solves, the right one is found, and factorisations agree with dense algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

import tightrope as tr
from reference import optimum
from tightrope import kernels
from tightrope.engine import Limits, Monitor, chain_flow, chain_value, direct, optimal
from tightrope.engine.choice import NAMES, Choice
from tightrope.engine.methods import Report, factorise, gauss_seidel, krylov, sweep
from tightrope.engine.monitor import Aim
from tightrope.engine.workspace import Workspace
from tightrope.model import problems

MODELS = {
    "garnet": lambda: problems.garnet(300, gamma=0.99),
    "grid": lambda: problems.gridworld(20, 20, gamma=0.999),
    "deterministic grid": lambda: problems.gridworld(20, 20, slip=0.0, gamma=0.9999),
    "queue": lambda: problems.queue(400, gamma=0.999),
    "forest": lambda: problems.forest(300, gamma=0.99),
    "replacement": lambda: problems.replacement(400, gamma=0.999),
    "inventory": lambda: problems.inventory(60, gamma=0.99),
    "sysadmin": lambda: problems.sysadmin(6),
    "gambler": lambda: problems.gambler(100),
    "tandem": lambda: problems.tandem(12, gamma=0.999),
}


@pytest.mark.parametrize("name", MODELS)
def test_default_engine_is_certified_against_dense_policy_iteration(name):
    mdp = MODELS[name]()
    v = optimum(mdp)
    sol = tr.solve(mdp, tol=1e-8)
    assert sol.converged
    slack = 1e-9 * np.abs(v).max()
    assert (sol.lower <= v + slack).all()
    assert (v <= sol.upper + slack).all()


@pytest.mark.parametrize("method", [sweep, gauss_seidel, krylov, factorise])
@pytest.mark.parametrize("name", MODELS)
def test_each_method_alone_converges_on_every_model(name, method, monkeypatch):
    monkeypatch.setattr(Choice, "next", lambda _self: method)
    mdp = MODELS[name]()
    sol = tr.solve(mdp, tol=1e-5, max_iterations=20_000)
    assert sol.converged
    assert np.abs(sol.value - optimum(mdp)).max() <= sol.gap


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: problems.garnet(2000, gamma=0.99), {"sweeps"}),
        (lambda: problems.gridworld(60, 60, gamma=0.999), {"Gauss-Seidel"}),
        (lambda: problems.queue(5000, gamma=0.999), {"factorisation"}),
        (lambda: problems.tandem(40, gamma=0.999), {"BiCGSTAB"}),
    ],
)
def test_the_right_method_is_found(make, expected):
    words = {sentence.split()[0] for sentence in tr.solve(make()).choices}
    assert expected <= words


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.999])
def test_band_with_hubs_agrees_with_dense_algebra(discount):
    """A band, plus a few columns that everybody jumps to."""
    rng = np.random.default_rng(0)
    S = 300
    near = np.clip(np.arange(S)[:, None] + rng.integers(-5, 6, size=(S, 3)), 0, S - 1)
    far = rng.choice([7, 150, 299], size=(S, 1))
    columns = np.hstack((near, far))
    p = rng.dirichlet(np.ones(4), size=S)
    P = sp.csr_array((p.ravel(), columns.ravel(), np.arange(0, 4 * S + 1, 4)), shape=(S, S))
    P.sum_duplicates()
    band = direct.narrow_band(P)
    assert band is not None
    assert band.hubs == 3
    r = rng.normal(size=S)
    exact = np.linalg.solve(np.eye(S) - discount * P.toarray(), r)
    np.testing.assert_allclose(direct.solve_chain(P, r, discount), exact, rtol=1e-10, atol=1e-10)


def test_scattered_chains_have_no_hubs_and_still_agree():
    mdp = problems.garnet(400, 1, 4)
    P = mdp.P
    assert direct.narrow_band(P) is None
    exact = np.linalg.solve(np.eye(400) - 0.9 * P.toarray(), mdp.r)
    np.testing.assert_allclose(direct.solve_chain(P, mdp.r, 0.9), exact, rtol=1e-10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: problems.garnet(5000, 1, 4, gamma=0.999),  # mixes: plain sweeps
        lambda: problems.queue(5000, gamma=0.9999),  # a band: factorised
        lambda: problems.gridworld(70, 70, gamma=0.9999),  # planar
    ],
)
@pytest.mark.parametrize("goal", [0.0, 1e-3])
def test_chain_values_of_large_models_reach_their_goal(make, goal):
    mdp = make()
    P, r = tr.Policy.uniform(mdp).induced(mdp)
    v = chain_value(P, r, mdp.gamma, goal=goal)
    exact = sp.linalg.spsolve(sp.csc_array(sp.identity(len(r)) - mdp.gamma * P), r)
    assert np.abs(v - exact).max() <= max(goal, 1e-9 * np.abs(exact).max())


def shuffled(P, r):
    order = np.random.default_rng(0).permutation(len(r))
    return sp.csr_array(P[order][:, order]), r[order]


@pytest.mark.parametrize(
    "chain",
    [
        lambda grid: tr.solve(grid).policy.induced(grid),  # values run along paths
        lambda grid: shuffled(*tr.Policy.uniform(grid).induced(grid)),  # values diffuse, in no order
    ],
)
def test_large_chain_without_a_cheap_factorisation(monkeypatch, chain):
    """BiCGSTAB is what is left for such chains: without it, the answer takes at least twice the products."""
    monkeypatch.setattr("tightrope.engine.chain.factor_cost", lambda _P: np.inf)
    mdp = problems.gridworld(60, 60, gamma=0.999)
    P, r = chain(mdp)
    exact = sp.linalg.spsolve(sp.csc_array(sp.identity(len(r)) - mdp.gamma * P), r)
    watch, without = Monitor(Limits()), Monitor(Limits())
    np.testing.assert_allclose(chain_value(P, r, mdp.gamma, goal=1e-6, monitor=watch), exact, atol=1e-6)
    monkeypatch.setattr("tightrope.engine.chain._Rounds.krylov", lambda _self: None)
    np.testing.assert_allclose(chain_value(P, r, mdp.gamma, goal=1e-6, monitor=without), exact, atol=1e-6)
    assert without.backups > 2 * watch.backups


@pytest.mark.parametrize("seed", [10, 14, 66])
@pytest.mark.parametrize("cheap", [True, False])
def test_a_goal_below_rounding_is_not_pursued_for_ever(monkeypatch, cheap, seed):
    """Almost decomposable chains, on which rounding keeps the residual of sweeps above what is asked.

    What was best on an earlier chain is tried first, and the last resort is remembered all the same.
    """
    rng = np.random.default_rng(seed)
    S, P = 54, np.zeros((54, 54))
    for row in P:
        successors = rng.choice(S, rng.integers(1, 6), replace=False)
        row[successors] = rng.dirichlet(np.full(len(successors), 0.1))
    P /= P.sum(axis=1, keepdims=True)
    r = rng.normal(size=S)
    exact = np.linalg.solve(np.eye(S) - 0.9999 * P, r)
    if not cheap:
        monkeypatch.setattr("tightrope.engine.chain.factor_cost", lambda _P: np.inf)
    watch = Monitor(Limits(max_seconds=60.0))
    watch.favourite = "krylov"
    found = chain_value(sp.csr_array(P), r, 0.9999, np.zeros(S), 1e-18, watch)
    assert watch.backups < (500 if cheap else 5000) * S
    np.testing.assert_allclose(found, exact, atol=(1e-12 if cheap else 1e-10) * np.abs(exact).max())


def test_a_round_that_made_things_worse_is_undone(monkeypatch):
    def diverge(self):
        self.v = 1e6 * np.random.default_rng(0).normal(size=len(self.v))

    monkeypatch.setattr("tightrope.engine.chain._Rounds.krylov", diverge)
    monkeypatch.setattr("tightrope.engine.chain.factor_cost", lambda _P: np.inf)
    mdp = problems.queue(3000, gamma=0.99)
    P, r = tr.Policy.uniform(mdp).induced(mdp)
    exact = sp.linalg.spsolve(sp.csc_array(sp.identity(len(r)) - mdp.gamma * P), r)
    np.testing.assert_allclose(chain_value(P, r, mdp.gamma), exact, atol=1e-11 * np.abs(exact).max())


@pytest.mark.parametrize("S", [50, 3000])
def test_chain_flow_is_the_transposed_system(S):
    mdp = problems.garnet(S, 1, 3)
    rng = np.random.default_rng(1)
    mass, v = rng.dirichlet(np.ones(S)), rng.normal(size=S)
    flow = chain_flow(mdp.P, mass, 0.95)
    assert flow @ v == pytest.approx(mass @ chain_value(mdp.P, v, 0.95), rel=1e-9)


def test_workspace_allocates_the_chain_once():
    mdp = problems.queue(50)
    work = Workspace(mdp, None, Aim(1e-6, -1.0))
    work.look()
    work.take_chain()
    before = [a.ctypes.data for a in work.room.chain(mdp)]
    work.look()
    work.take_chain()
    assert [a.ctypes.data for a in work.room.chain(mdp)] == before


def test_optimal_with_zero_tolerance_goes_to_the_limit_of_floats():
    mdp = problems.gridworld(10, 10, gamma=0.99)
    found = optimal(mdp, tol=0.0)
    assert found.certificate.relative_gap < 1e-11


def test_an_optimum_of_zero_is_reached_from_far_away():
    """The value scale shrinks with v: neither a loop without end nor a premature limit of precision."""
    mdp = tr.MDP(np.eye(2), [0.0, 0.0], 0.99)
    assert optimal(mdp, tol=1e-6, v0=np.array([2.0, 2.0])).certificate.upper.max() < 1e-250
    free = tr.MDP.from_dense(np.ones((1, 2, 1)), np.array([[-5.0, 0.0]]), 0.9)
    sol = tr.solve(free)
    assert sol.upper.max() < 1e-250
    assert sol.policy.actions[0] == 1


def test_equal_rewards_leave_no_span_and_no_warning():
    for gamma in (0.9, 0.999, 0.999999):
        mdp = problems.garnet(30, gamma=gamma)
        level = tr.MDP(mdp.P, np.ones(mdp.n_pairs), gamma, mdp.first)
        found = optimal(level, tol=0.0)
        np.testing.assert_allclose(found.value, 1.0 / (1.0 - gamma), rtol=1e-8)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 30_003])
def test_extent_misses_no_entry_in_any_lane(size):
    values = np.random.default_rng(size).normal(size=size)
    for place in {0, size // 2, *range(max(size - 5, 0), size)}:
        for extreme in (-9.0, 9.0):
            v = values.copy()
            v[place] = extreme
            assert kernels.extent(v) == (v.min(), v.max())


@pytest.mark.parametrize(("size", "gamma", "seed"), [(1000, 0.99, 0), (1000, 0.9999, 1), (10_000, 0.99, 2), (100_000, 0.99, 0)])
def test_sweeps_finish_what_they_promise_to_where_two_far_successors_mix(size, gamma, seed):
    """Other methods made such models worse before sweeps were given them back: three times the work and more."""
    mdp = problems.garnet(size, 4, 2, gamma=gamma, seed=seed)
    solution = tr.solve(mdp)
    assert "modified policy iteration" in solution.explain()
    assert "BiCGSTAB" not in solution.explain()
    assert "Gauss-Seidel" not in solution.explain()
    assert solution.backups < 60 * mdp.n_pairs


def test_sweeps_do_not_keep_a_model_whose_values_diffuse():
    """The twin: here they promise to take thousands of backups."""
    assert "BiCGSTAB" in tr.solve(problems.tandem(29, gamma=0.999)).explain()


def test_sweeps_in_place_are_not_tried_where_bicgstab_gets_on(monkeypatch):
    """The twin: they are as soon as it brings nothing."""
    mdp = problems.tandem(40, gamma=0.999)
    assert NAMES[gauss_seidel] not in tr.solve(mdp).choices
    learn = Choice.learn

    def doubt(self, method, tell, _gained):
        learn(self, method, tell, 1.0)

    monkeypatch.setattr(Choice, "learn", doubt)
    assert NAMES[gauss_seidel] in tr.solve(mdp).choices


@pytest.mark.parametrize(
    "make",
    [
        lambda: problems.forest(10, gamma=0.9),
        lambda: problems.forest(50, gamma=0.95),
        lambda: problems.queue(19, gamma=0.99),
        lambda: problems.replacement(20, gamma=0.99),
        lambda: problems.tandem(5, gamma=0.99),
    ],
)
def test_small_bands_are_eliminated(make):
    """A state far away in a small model is a hub, though it would be near in a large one."""
    mdp = make()
    solution = tr.solve(mdp, tol=1e-9)
    assert "factorisation" in solution.explain()
    assert np.abs(solution.value - optimum(mdp)).max() <= solution.gap + 1e-9 * np.abs(solution.value).max()


@pytest.mark.parametrize("size", [10, 20, 30, 40, 60])
def test_a_small_model_that_leads_anywhere_is_no_band_of_hubs(size):
    assert direct.model_band(problems.garnet(size, 4, 5, seed=size)) is None


@pytest.mark.parametrize(("backups", "asks"), [(30.0, False), (40.0, True)])
def test_nobody_asks_what_a_factorisation_costs_where_asking_costs_more_than_sweeping(monkeypatch, backups, asks):
    """Rows are wide: twelve backups and more go into asking, on top of twelve improvements."""
    asked = []
    monkeypatch.setattr(Workspace, "factor_cost", lambda _self: asked.append(1) or np.inf)
    mdp = problems.garnet(300, 3, 100, gamma=0.999)
    choice = Choice(Workspace(mdp, None, Aim(1e-6, -1.0)))
    choice.learn(sweep, lambda: Report(1.0, backups * mdp.n_transitions, policies=2), 0.5)
    assert choice.next() is sweep
    assert bool(asked) is asks
