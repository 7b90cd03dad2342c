"""The zoo against its sources: each model is written out again here, outcome by outcome, and one known value is met."""

from __future__ import annotations

import inspect
import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from reference import optimum
from tightrope.errors import InvalidArgument, InvalidModel
from tightrope.model import problems
from tightrope.model.policy import Policy
from tightrope.model.problems import decoration
from zoo import assert_is, assert_starts

# ---------------------------------------------------------------- the whole zoo

SIZES = {
    "chain": [{"n_states": n} for n in (1, 2, 7)] + [{"slip": 0.0}, {"slip": 1.0}],
    "cliff": [{"height": 2, "width": 2}, {"height": 5, "width": 3}, {"slip": 0.3}],
    "forest": [{"n_states": n} for n in (2, 50_000)] + [{"p": 0.0}, {"p": 1.0}],
    "gambler": [{"goal": n} for n in (2, 3, 17)] + [{"p": 0.0}, {"p": 1.0}],
    "garnet": [{"n_states": 1, "branching": 1}, {"n_states": 7, "branching": 7}, {"n_states": 5000, "branching": 3}],
    "gridworld": [{"height": 1, "width": 1}, {"height": 1, "width": 9}, {"height": 150, "width": 70}, {"slip": 0.0}, {"slip": 1}],
    "inventory": [{"capacity": 1}, {"capacity": 40, "demand": 0.0}, {"capacity": 300, "demand": 100.0, "max_order": 3}],
    "queue": [{"capacity": 1}, {"capacity": 70_000}, {"services": (0.6,), "service_costs": (0.0,)}],
    "random_sparse_deterministic": [{"n_states": 1}, {"density": 0.0}, {"density": 1.0, "n_actions": 1}],
    "replacement": [{"n_states": 1}, {"increments": (0.0, 1.0)}, {"n_states": 40_000}],
    "sysadmin": [{"machines": n} for n in (1, 2, 9)] + [{"healthy": 1.0, "shaken": 0.0}],
    "tandem": [{"capacity": 1, "stations": 1}, {"stations": 3}, {"arrival": 0.0, "service": 0.0, "help_rate": 0.0}],
    "tightrope": [{"c": 0.0}, {"c": 20.0, "gamma": 0.0}],
}


def test_the_catalogue_lists_every_problem_and_nothing_else():
    assert sorted(problems.catalogue()) == sorted(SIZES)
    assert set(problems.catalogue()) <= set(problems.__all__)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_every_problem_describes_itself_and_names_its_source(name):
    function = problems.catalogue()[name]
    doc = inspect.getdoc(function)
    assert doc.splitlines()[0].endswith(".")
    assert any(f"({year})" in doc or f" {year})" in doc for year in range(1950, 2020)), "no source with its year"
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.default is not inspect.Parameter.empty
        assert f"{parameter.name}:" in doc


@pytest.mark.parametrize("name", sorted(SIZES))
def test_every_problem_is_a_model_at_several_sizes(name):
    # Construction validates; what is checked here is that nothing needed mending and nothing was left at the door.
    build = problems.catalogue()[name]
    for parameters in [{}, *SIZES[name]]:
        mdp = build(**parameters)
        assert mdp.slack <= 1e-12
        assert mdp.start.sum() == pytest.approx(1.0)
        assert mdp.pairs.state_names is None or len(mdp.pairs.state_names) == mdp.n_states
        assert mdp.pairs.action_names is None or len(mdp.pairs.action_names) >= mdp.pairs.n_actions
        assert not mdp.r.flags.writeable


@pytest.mark.parametrize("name", sorted(SIZES))
def test_gamma_is_passed_on_and_checked(name):
    build = problems.catalogue()[name]
    assert build(gamma=0.25).gamma == 0.25
    for bad in (1.0, -0.1, math.nan, "high"):
        with pytest.raises(InvalidModel, match="gamma must"):
            build(gamma=bad)


def test_large_models_carry_no_state_names():
    assert problems.gridworld(100, 100).pairs.state_names is not None
    assert problems.gridworld(100, 101).pairs.state_names is None
    assert decoration.names(decoration.NAMED + 1, str) is None


def test_the_zoo_loads_neither_numba_nor_rich():
    code = (
        "import sys; from tightrope.model import problems; problems.gridworld(); problems.garnet(); problems.inventory();"
        "print(sorted({'numba', 'rich', 'matplotlib', 'pandas', 'gymnasium', 'scipy.stats'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------- the Tightrope and the chain


@pytest.mark.parametrize(("c", "gamma"), [(0.5, 0.9), (3.0, 0.5), (20.0, 0.99)])
def test_tightrope_is_the_papers(c, gamma):
    mdp = problems.tightrope(c, gamma)
    assert_is(
        mdp,
        {
            (0, 0): [(1, 0, 0)],
            (0, 1): [(1, 1, 0)],
            (1, 0): [(1, 3, 0)],
            (1, 1): [(1, 2, 0)],
            (2, 0): [(1, 2, 1)],
            (3, 0): [(1, 3, -c)],
        },
    )
    assert_starts(mdp, 0)
    end = 1 / (1 - gamma)
    np.testing.assert_allclose(optimum(mdp), [gamma**2 * end, gamma * end, end, -c * end])


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_a_soft_step_on_the_tightrope_fails_below_c_over_one_plus_c(c, side):
    gamma, alpha = 0.9, c / (1 + c) + 0.01 * side
    mdp = problems.tightrope(c, gamma)
    pi_0 = problems.hesitant(mdp)
    assert pi_0 == Policy.deterministic(mdp, [0, 0, 0, 0])
    weights = np.array([1 - alpha, alpha, 1 - alpha, alpha, 1, 1])
    P = np.add.reduceat(weights[:, None] * mdp.P.toarray(), mdp.first[:-1], axis=0)
    v = np.linalg.solve(np.eye(4) - gamma * P, np.add.reduceat(weights * mdp.r, mdp.first[:-1]))
    v_0 = 0.0  # the hesitant policy never leaves s0
    assert v[0] - v_0 == pytest.approx(0.0, abs=1e-13) if side == 0 else np.sign(v[0] - v_0) == side


def test_chain_slips_into_the_other_action():
    n, slip = 4, 0.3
    outcomes = {}
    for s in range(n):
        ahead, back = (min(s + 1, n - 1), 7.0 if s == n - 1 else 0.0), (0, 2.0)
        outcomes[s, 0] = [(1 - slip, *ahead), (slip, *back)]
        outcomes[s, 1] = [(slip, *ahead), (1 - slip, *back)]
    mdp = problems.chain(n, slip=slip, small=2.0, large=7.0)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


@pytest.mark.parametrize("large", [10.0, 2.0])
def test_chain_without_slip_has_a_closed_form(large):
    n, gamma = 6, 0.9
    v = optimum(problems.chain(n, slip=0.0, small=2.0, large=large, gamma=gamma))
    advance = [gamma ** (n - 1 - s) * large / (1 - gamma) for s in range(n)]
    if large == 10.0:  # 10 γ^5 = 5.9 > 2: advancing pays from everywhere
        np.testing.assert_allclose(v, advance)
    else:  # returning for 2 at once beats 2 later
        np.testing.assert_allclose(v, np.full(n, 2.0 / (1 - gamma)))


# ---------------------------------------------------------------- gambler and forest


def test_gambler_is_its_description():
    goal, p = 7, 0.3
    outcomes = {(0, 0): [(1, 0, 0)], (goal, 0): [(1, goal, 0)]}
    for s in range(1, goal):
        for a in range(1, min(s, goal - s) + 1):
            outcomes[s, a] = [(p, s + a, float(s + a == goal)), (1 - p, s - a, 0.0)]
    mdp = problems.gambler(goal, p=p)
    assert_is(mdp, outcomes)
    assert np.flatnonzero(mdp.terminal).tolist() == [0, goal]


def test_gambler_with_a_fair_coin_wins_in_proportion_to_the_capital():
    v = optimum(problems.gambler(40, p=0.5, gamma=1 - 1e-12))
    np.testing.assert_allclose(v[:-1], np.arange(40) / 40, atol=1e-9)


def test_gambler_with_a_poor_coin_plays_boldly():
    # Dubins and Savage: F(x) = p F(2x) for x <= 1/2, p + (1-p) F(2x - 1) above; in fractions, on dyadic capitals.
    p = Fraction(2, 5)

    def bold(x):
        if x in {0, 1}:
            return Fraction(x)
        return p * bold(2 * x) if x <= Fraction(1, 2) else p + (1 - p) * bold(2 * x - 1)

    v = optimum(problems.gambler(64, p=0.4, gamma=1 - 1e-12))
    np.testing.assert_allclose(v[:-1], [float(bold(Fraction(s, 64))) for s in range(64)], atol=1e-9)


def test_forest_meets_the_toolboxes_published_value():
    mdp = problems.forest(3, r1=4, r2=2, p=0.1, gamma=0.9)
    assert_is(
        mdp,
        {
            (0, 0): [(0.1, 0, 0), (0.9, 1, 0)],
            (0, 1): [(1, 0, 0)],
            (1, 0): [(0.1, 0, 0), (0.9, 2, 0)],
            (1, 1): [(1, 0, 1)],
            (2, 0): [(0.1, 0, 4), (0.9, 2, 4)],
            (2, 1): [(1, 0, 2)],
        },
    )
    np.testing.assert_allclose(optimum(mdp), [26.244, 29.484, 33.484], rtol=1e-12)
    assert_starts(mdp, 0)


# ---------------------------------------------------------------- drawn at random


@pytest.mark.parametrize("build", [problems.garnet, problems.random_sparse_deterministic])
def test_same_seed_same_model(build):
    one, two, other = build(seed=7), build(seed=7), build(seed=8)
    given = build(seed=np.random.default_rng(7))
    for twin in (two, given):
        assert (one.P != twin.P).nnz == 0
        np.testing.assert_array_equal(one.r, twin.r)
    assert (one.P != other.P).nnz > 0
    rng = np.random.default_rng(7)
    assert (build(seed=rng).P != build(seed=rng).P).nnz > 0  # a generator goes on


@pytest.mark.parametrize(("S", "b"), [(50, 1), (50, 5), (50, 12), (50, 13), (50, 50)])
def test_garnet_has_exactly_its_branching(S, b):
    mdp = problems.garnet(S, 3, b, seed=3)
    assert mdp.n_pairs == 3 * S
    np.testing.assert_array_equal(np.diff(mdp.P.indptr), b)


@pytest.mark.parametrize(("S", "b"), [(8, 2), (4, 2)])  # Floyd's sampling, and keys
def test_garnet_successors_are_uniform_subsets(S, b):
    n, seeds = 0, range(60)
    subsets = list(itertools.combinations(range(S), b))
    counts = dict.fromkeys(subsets, 0)
    for seed in seeds:
        P = problems.garnet(S, 50, b, seed=seed).P
        for row in P.indices.reshape(-1, b).tolist():
            counts[tuple(row)] += 1
            n += 1
    expected = n / len(subsets)
    chi2 = sum((c - expected) ** 2 / expected for c in counts.values())
    freedom = len(subsets) - 1
    assert chi2 < freedom + 5 * math.sqrt(2 * freedom)


def test_garnet_probabilities_are_spacings_and_rewards_are_normal():
    # Spacings of [0, 1] into b parts: mean 1/b, variance (b-1)/(b²(b+1)).
    b = 4
    mdp = problems.garnet(2000, 5, b, seed=1)
    p = mdp.P.data
    assert p.mean() == pytest.approx(1 / b, abs=1e-12)
    assert p.var() == pytest.approx((b - 1) / (b**2 * (b + 1)), rel=0.03)
    assert abs(mdp.r.mean()) < 0.05
    assert mdp.r.std() == pytest.approx(1.0, rel=0.03)


def test_garnet_that_branches_everywhere_is_worth_what_its_rows_say():
    # Two states, one action, both successors: v = (I - γP)^-1 r, by Cramer's rule on the model's own numbers.
    mdp = problems.garnet(2, 1, 2, gamma=0.9, seed=5)
    (a, b), (c, d) = (np.eye(2) - 0.9 * mdp.P.toarray()).tolist()
    x, y = mdp.r.tolist()
    np.testing.assert_allclose(optimum(mdp), [(d * x - b * y) / (a * d - b * c), (a * y - c * x) / (a * d - b * c)])


def test_random_sparse_deterministic_is_deterministic_and_sparse():
    mdp = problems.random_sparse_deterministic(2000, 3, density=0.2, seed=2)
    assert (mdp.width, mdp.P.nnz) == (1, 6000)
    assert (mdp.P.data == 1.0).all()
    assert np.count_nonzero(mdp.r) == pytest.approx(1200, abs=5 * math.sqrt(6000 * 0.16))
    assert len(np.unique(mdp.P.indices)) > 1800  # e^-3 of the states are missed


def test_random_deterministic_with_one_action_is_worth_its_orbit():
    mdp = problems.random_sparse_deterministic(30, 1, density=0.5, gamma=0.8, seed=4)
    v = optimum(mdp)
    for s in range(30):
        total, at = 0.0, s
        for t in range(200):
            total += 0.8**t * mdp.r[at]
            at = mdp.P.indices[at]
        assert v[s] == pytest.approx(total, abs=1e-12)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problems.tightrope(-1.0), "c must be a finite number >= 0; found -1.0"),
        (lambda: problems.tightrope("steep"), "c must be a number; found 'steep'"),
        (lambda: problems.chain(0), "n_states must be an integer >= 1; found 0"),
        (lambda: problems.chain(slip=-0.1), r"slip must lie in \[0, 1\]"),
        (lambda: problems.chain(large=math.inf), "large must be a finite number; found inf"),
        (lambda: problems.cliff(1), "height must be an integer >= 2; found 1"),
        (lambda: problems.cliff(width=True), "width must be an integer >= 2; found True"),
        (lambda: problems.cliff(fall=math.nan), "fall must be a finite number"),
        (lambda: problems.forest(1), "n_states must be an integer >= 2; found 1"),
        (lambda: problems.forest(p=2), r"p must lie in \[0, 1\]; found 2.0"),
        (lambda: problems.gambler(1), "goal must be an integer >= 2; found 1"),
        (lambda: problems.gambler(p=math.nan), r"p must lie in \[0, 1\]; found nan"),
        (lambda: problems.garnet(3, 2, 5), "branching is 5, but there are only 3 states"),
        (lambda: problems.garnet(seed=-1), "seed must be an integer >= 0 or a numpy.random.Generator; found -1"),
        (lambda: problems.garnet(seed=0.5), "seed must be an integer"),
        (lambda: problems.random_sparse_deterministic(density=1.1), r"density must lie in \[0, 1\]"),
        (lambda: problems.inventory(0), "capacity must be an integer >= 1"),
        (lambda: problems.inventory(demand=-2.0), "demand must be a finite number >= 0; found -2.0"),
        (lambda: problems.inventory(demand=(0.5, 0.4)), "demand sums to 0.9; a distribution over demand levels sums to 1"),
        (lambda: problems.inventory(demand=(1.5, -0.5)), r"demand\[1\] is -0.5; probabilities cannot be negative"),
        (lambda: problems.inventory(max_order=0), "max_order must be an integer >= 1"),
        (lambda: problems.inventory(price=math.nan), "price must be a finite number"),
        (lambda: problems.queue(services=(0.7,), service_costs=(0,)), r"arrival \+ service <= 1 for each"),
        (lambda: problems.queue(services=(-0.1, 0.2)), "services must be probabilities"),
        (lambda: problems.queue(services=(), service_costs=()), "services must be probabilities"),
        (lambda: problems.queue(service_costs=(1.0,)), r"service_costs must have shape \(2,\), one entry per speed"),
        (lambda: problems.replacement(increments=(0.5, 0.6)), "increments sums to 1.1; a distribution over increments"),
        (lambda: problems.replacement(cost="x"), "cost must be a number"),
        (lambda: problems.sysadmin(17), "machines is 17: about 2e.09 transitions; at most 16"),
        (lambda: problems.tandem(help_rate=0.7), r"arrival \+ stations service \+ help_rate must be at most 1; found 0.15"),
        (lambda: problems.tandem(holding=[1.0]), r"holding must have shape \(2,\), one entry per station"),
        (lambda: problems.sysadmin(healthy=1.2), r"healthy must lie in \[0, 1\]"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()
