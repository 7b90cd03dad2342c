"""Solves of the same model once more: the same bits by the round that was enough, and by nothing else."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tightrope as tr
from reference import optimum
from tightrope.cli.warm import shuffled
from tightrope.engine.opening import Opening
from tightrope.engine.room import Room
from tightrope.errors import InvalidArgument
from tightrope.model import problems
from tightrope.solution import Account

pytestmark = pytest.mark.usefixtures("compiled")

MODELS = {
    "tightrope": problems.tightrope,
    "goals": lambda: problems.gridworld(9, 8, gamma=0.99),
    "goals in any order": lambda: shuffled(problems.gridworld(9, 8, gamma=0.99)),
    "goals, and a look after the last sweep": lambda: problems.gridworld(12, 12, slip=0.1, gamma=0.95),
    "band": lambda: problems.queue(40, gamma=0.99),
    "hubs": lambda: problems.forest(30, gamma=0.95),
    "single moves": lambda: problems.random_sparse_deterministic(60, gamma=0.9),
    "sweeps": lambda: problems.garnet(80, gamma=0.9),
}


@pytest.fixture
def plays(monkeypatch):
    """What was played, in the order in which it was."""
    kept, play = [], Opening.play

    def watched(self, mdp):
        kept.append(play(self, mdp))
        return kept[-1]

    monkeypatch.setattr(Opening, "play", watched)
    return kept


def same(one, other):
    """All but the seconds."""
    assert (one.status, one.choices, one.model, one.algorithm) == (other.status, other.choices, other.model, other.algorithm)
    assert one.certificate[1:] == other.certificate[1:]
    assert [row[:-1] for row in one.trace.rows] == [row[:-1] for row in other.trace.rows]
    np.testing.assert_array_equal(one.certificate.base, other.certificate.base)
    np.testing.assert_array_equal(one.policy.rows, other.policy.rows)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_solved_again_to_the_same_bits(name, plays):
    mdp = MODELS[name]()
    assert tr.solve(mdp).iterations == 1
    usual = tr.solve(mdp, max_seconds=60.0)  # set up anew, but for what the model knows about itself by now
    assert not plays
    again = [tr.solve(mdp) for _ in range(3)]  # from the second on the loop is at hand
    assert len(plays) == 3
    assert None not in plays
    for sol in again:
        same(sol, usual)
        assert sol.seconds > 0.0
    v = optimum(mdp)
    assert np.abs(again[-1].value - v).max() <= 1e-6 * np.abs(v).max()
    assert not any(np.shares_memory(again[0].certificate.base, other.certificate.base) for other in (usual, *again[1:]))
    assert not np.shares_memory(again[0].policy.rows, again[1].policy.rows)


def test_whoever_asks_for_something_else_gets_that(plays):
    mdp = problems.gridworld(9, 8, gamma=0.99)
    tr.solve(mdp)
    seen = []
    assert tr.solve(mdp, on_iteration=seen.append).trace.rows == tuple(seen)
    assert tr.solve(mdp, atol=1e-3).gap <= 1e-3
    assert tr.solve(mdp, max_iterations=1).iterations == 1
    assert tr.solve(mdp, v0=np.ones(mdp.n_states)).converged
    assert tr.solve(mdp, max_seconds=60.0).converged
    assert tr.solve(mdp, tr.kappa_pi(0.5)).algorithm.startswith("PolicyIteration")
    assert not plays
    assert tr.solve(mdp, tol=1e-11).relative_gap <= 1e-11
    assert not plays
    assert tr.solve(mdp, tol=1e-11).relative_gap <= 1e-11
    assert len(plays) == 1


def test_another_model_with_the_same_transitions_is_another_model(plays):
    mdp = problems.gridworld(9, 8, gamma=0.99)
    for twin in (mdp.reshaped(2.0 * mdp.r, 0.99), mdp.reshaped(mdp.r, 0.9)):
        tr.solve(mdp)
        sol = tr.solve(twin)
        assert not plays
        v = optimum(tr.MDP(mdp.P, twin.r, twin.gamma, mdp.first))
        assert np.abs(sol.value - v).max() <= 1e-6 * np.abs(v).max()


def test_a_round_of_another_run_is_not_taken_for_how_this_one_began(plays):
    """One that was interrupted, or that an algorithm made for an inner problem: the next run needs no round at all."""
    mdp = problems.gridworld(9, 8, gamma=0.99)
    good = tr.solve(mdp, tol=1e-9).value

    def stop(_):
        raise KeyboardInterrupt

    for tol, how in ((1e-3, {"tol": 1e-12, "on_iteration": stop}), (1e-4, {"algorithm": tr.kappa_pi(0.5)})):
        tr.solve(mdp, **how)
        assert tr.solve(mdp, tol=tol, v0=good).iterations == 0
        assert tr.solve(mdp, tol=tol).relative_gap <= tol
    assert not plays
    assert tr.solve(mdp, tol=1e-4).relative_gap <= 1e-4
    assert len(plays) == 1


def test_models_of_many_rounds_or_wide_rows_are_set_up_anew(plays):
    hard, wide = problems.tandem(12, gamma=0.999), problems.garnet(60, 4, 20, gamma=0.9)
    for mdp in (hard, wide):
        for _ in range(2):
            tr.solve(mdp)
    assert not plays
    assert tr.solve(hard).iterations > 1
    assert tr.solve(wide).iterations == 1


PLAIN = """
import sys
import tightrope as tr
mdp = tr.problems.tightrope()
sols = [tr.solve(mdp) for _ in range(3)]
print("numba" in sys.modules, mdp.facts["room"].opening, len({sol.gap for sol in sols}))
"""


def test_loops_that_are_not_compiled_yet_are_not_kept():
    assert subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True).stdout == "False None 1\n"


def test_a_round_that_is_not_enough_for_once_is_not_taken_for_a_solution(monkeypatch):
    """The negative twin: with a loop that proves nothing, the engine goes its usual way."""
    mdp = problems.gridworld(9, 8, gamma=0.99)
    first = tr.solve(mdp)
    opening = mdp.facts["room"].opening
    monkeypatch.setattr(opening, "loop", lambda *_: False)
    monkeypatch.setattr(opening, "resolved", True)
    same(tr.solve(mdp), first)


def test_ctrl_c_is_a_status_here_too(monkeypatch):
    mdp = problems.gridworld(9, 8, gamma=0.99)
    first = tr.solve(mdp)
    opening = mdp.facts["room"].opening
    loop, pressed = opening.loop, []

    def interrupted(*arguments):
        found = loop(*arguments)
        if not pressed:
            pressed.append(True)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(opening, "loop", interrupted)
    monkeypatch.setattr(opening, "resolved", True)
    sol = tr.solve(mdp)
    assert sol.status is tr.Status.INTERRUPTED
    assert not sol.converged
    assert sol.certificate[1:] == first.certificate[1:]
    same(tr.solve(mdp), first)


def test_what_is_not_asked_for_is_told_when_it_is():
    """A solution played is named once somebody looks, whatever is looked at first, and then lets go of the model."""
    mdp = problems.tightrope()
    first, (alone, other) = tr.solve(mdp), (tr.solve(mdp) for _ in range(2))
    same(pickle.loads(pickle.dumps(alone)), first)  # noqa: S301  (our own)
    same(copy.copy(other), first)
    for field in Account._fields:
        sol = tr.solve(mdp)
        assert any(part is mdp for part in sol._told)
        getattr(sol, field)
        assert not any(part is mdp for part in sol._told)
        with pytest.raises(AttributeError):
            setattr(sol, field, None)
        same(sol, first)
    assert repr(tr.solve(mdp)).startswith("converged in 1 iteration, gap <= ")
    assert tr.solve(mdp).explain() == first.explain()


@pytest.mark.parametrize("name", ["values", "_told_not", "__len__"])
def test_what_a_solution_has_not_is_an_error_before_and_after_it_is_told(name):
    mdp = problems.tightrope()
    tr.solve(mdp)
    sol = tr.solve(mdp)
    for _ in range(2):
        with pytest.raises(AttributeError, match=f"'Solution' object has no attribute '{name}'"):
            getattr(sol, name)
        assert sol.converged


def test_what_a_round_tells_is_the_same_every_time():
    """Solutions that were played share the account of their round: it never changes, whatever else the model is asked."""
    mdp = problems.gridworld(9, 8, gamma=0.99)
    first = tr.solve(mdp)
    early = tr.solve(mdp)
    account = mdp.facts["room"].opening.told.copy()
    for how in ({"tol": 1e-3}, {"v0": np.ones(mdp.n_states)}, {"algorithm": tr.kappa_pi(0.5)}, {"tol": 1e-12}, {}):
        tr.solve(mdp, **how)
    late = tr.solve(mdp)
    np.testing.assert_array_equal(mdp.facts["room"].opening.told, account)
    for sol in (early, late):
        same(sol, first)


def test_threads_may_ask_the_same_solution():
    mdp = problems.gridworld(9, 8, gamma=0.99)
    first = tr.solve(mdp)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(200):
            sol = tr.solve(mdp)
            for found in pool.map(lambda field, sol=sol: getattr(sol, field), ("status", "choices", "model", "algorithm")):
                assert found is not None
            same(sol, first)


def test_threads_do_not_share_what_an_opening_works_in():
    mdp = problems.gridworld(40, 40, gamma=0.999)
    first = tr.solve(mdp)
    with ThreadPoolExecutor(4) as pool:
        for sol in pool.map(lambda _: tr.solve(mdp), range(200)):
            same(sol, first)


def test_bad_input_is_refused_however_often_the_model_was_solved():
    mdp = problems.tightrope()
    tr.solve(mdp)
    tr.solve(mdp)
    for bad in ({"threads": 0}, {"threads": True}, {"tol": -1.0}, {"tol": np.nan}, {"tol": "x"}, {"tol": np.ones(2)}):
        with pytest.raises(InvalidArgument, match=next(iter(bad))):
            tr.solve(mdp, **bad)
    with pytest.raises(InvalidArgument, match="solve needs a model"):
        tr.solve(7)


def test_a_room_goes_nowhere_with_its_opening():
    mdp = problems.forest(30, gamma=0.95)
    tr.solve(mdp)
    twin = pickle.loads(pickle.dumps(mdp))  # noqa: S301  (our own)
    assert isinstance(twin.facts["room"], Room)
    assert twin.facts["room"].opening is None
    same(tr.solve(twin), tr.solve(mdp))
