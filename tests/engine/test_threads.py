"""One thread or several: the same bits."""

import multiprocessing
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

import tightrope as tr
from tightrope import kernels
from tightrope.engine import outline, sweep, workspace
from tightrope.engine.monitor import Aim
from tightrope.errors import InvalidArgument
from tightrope.kernels import team
from tightrope.model import problems


@pytest.fixture(autouse=True)
def small_models_count_as_large(monkeypatch):
    monkeypatch.setattr(team, "WORTH_IT", 100)
    chains_count_as_large(monkeypatch)


def chains_count_as_large(monkeypatch, large=True):
    for module in (outline, workspace):
        monkeypatch.setattr(module, "CHAIN", 0 if large else 1e9)


@pytest.mark.parametrize("algorithm", [None, tr.value_iteration(), tr.kappa_pi(0.5), tr.h_pi(3)], ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda: problems.gridworld(15, 15, gamma=0.99),
        lambda: problems.garnet(200, gamma=0.99),
        lambda: problems.queue(150, gamma=0.999),
        lambda: problems.gambler(80),  # ragged
    ],
)
@pytest.mark.parametrize("large_chains", [True, False])
def test_the_answer_does_not_depend_on_the_number_of_threads(make, algorithm, large_chains, monkeypatch):
    chains_count_as_large(monkeypatch, large_chains)
    mdp = make()
    one, three = (tr.solve(mdp, algorithm, threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one.value, three.value)
    np.testing.assert_array_equal(one.policy.rows, three.policy.rows)
    assert [row[:-1] for row in one.trace.rows] == [row[:-1] for row in three.trace.rows]
    assert one.converged


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_asked_for_ahead_of_time_changes_no_bit(monkeypatch, threads):
    """Chains of models that no cache holds pass the caches by; whoever sweeps them, on whichever thread, finds them written."""
    near = problems.garnet(500, 4, 5, gamma=0.99)
    usual = tr.solve(near, threads=threads)
    for name, limit in {"WIDE": 100, "LONG": 2_000}.items():
        monkeypatch.setattr(sweep, name, limit)
    vast = problems.garnet(500, 4, 5, gamma=0.99)
    passed = []

    def backup(*arguments):
        passed.append(arguments[9] is arguments[6])  # values are asked for
        return kernels.serial.backup(*arguments)

    monkeypatch.setattr(kernels, "backup", backup)
    found = tr.solve(vast, threads=threads)
    assert set(passed) == {True}
    np.testing.assert_array_equal(found.value, usual.value)
    np.testing.assert_array_equal(found.policy.rows, usual.policy.rows)
    assert [row[:-1] for row in found.trace.rows] == [row[:-1] for row in usual.trace.rows]


def test_rewards_are_seen_alike_by_several_threads_where_they_are_many(monkeypatch):
    mdp = problems.garnet(101, 3, 2, seed=4)
    shared, each = [], team.each
    monkeypatch.setattr(team, "each", lambda *how: shared.append((len(how[2]), how[3])) or each(*how))
    monkeypatch.setattr(team, "WORTH_IT", 250)
    sweep.see_rewards(mdp.reshaped(mdp.r, mdp.gamma), 2)
    monkeypatch.setattr(team, "WORTH_IT", 50)
    for threads in (2, 3):
        twin = mdp.reshaped(mdp.r, mdp.gamma)
        sweep.see_rewards(twin, threads)
        assert vars(twin)["reward_range"] == (mdp.r.min(), mdp.r.max()) == mdp.reward_range
    assert shared == [(1, 1), (2, 2), (3, 3)]


def test_blocks_cover_every_state_once():
    mdp = problems.gambler(80)
    for parts in (1, 2, 7, 500):
        ranges = team.ranges(mdp.P.indptr, mdp.first, parts)
        assert [s for lo, hi in ranges for s in range(lo, hi)] == list(range(mdp.n_states))


def test_small_models_start_no_thread(monkeypatch):
    monkeypatch.setattr(team, "WORTH_IT", 1_000_000)

    def never(_workers):
        raise AssertionError("a thread was started")

    monkeypatch.setattr(team, "_workers", never)
    assert tr.solve(problems.garnet(100), threads=2).converged
    assert workspace.Workspace(problems.garnet(100), None, 2)._threads == 1


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_a_senseless_number_of_threads_is_refused(threads):
    with pytest.raises(InvalidArgument, match="threads"):
        tr.solve(problems.forest(), threads=threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_makes_threads_of_its_own():
    mdp = problems.garnet(200, gamma=0.99)
    value = tr.solve(mdp, threads=2).value
    with multiprocessing.get_context("fork").Pool(1) as pool:
        forked = pool.apply_async(_value, (mdp,)).get(timeout=60)
    np.testing.assert_array_equal(forked, value)


def _value(mdp):
    return tr.solve(mdp, threads=2).value


@pytest.mark.parametrize(("size", "pieces"), [(1.9, 1), (2.0, 2), (3.9, 2), (7.9, 2), (8.0, 4), (16.0, 8), (100.0, 8)])
def test_pieces_follow_from_the_size_alone(monkeypatch, size, pieces):
    """A small model is one piece, and one that is not much larger is in one for sweeps in place, which would be late."""
    mdp = problems.garnet(200, gamma=0.99)
    monkeypatch.setattr(team, "WORTH_IT", mdp.n_transitions / size)
    shape = outline.outline(mdp)
    assert (shape.small, shape.pieces, shape.in_pieces) == (pieces == 1, pieces, size >= 4.0)
    if not shape.small:
        assert len(outline.cuts(mdp)) == pieces


def test_chains_much_smaller_than_their_model_are_swept_whole_by_one_thread(monkeypatch):
    """To hand a sweep of thousands of transitions to another thread takes longer than the sweep; looks are worth it."""
    mdp = problems.garnet(300, 30, 4, gamma=0.99)
    chain = mdp.n_transitions / 30
    answers = []
    for least, whole in ((0.9 * chain, False), (1.1 * chain, True)):
        monkeypatch.setattr(outline, "CHAIN", least)
        twin = tr.MDP(mdp.P, mdp.r, mdp.gamma, mdp.first)
        assert (outline.outline(twin).small, outline.outline(twin).whole) == (False, whole)
        handed_over = []

        def each(kernel, arguments, parts, _threads, to=handed_over):
            to.append(kernel.__name__)
            return [kernel(*arguments, *part) for part in parts]

        monkeypatch.setattr(team, "each", each)
        answers.append(tr.solve(twin, threads=2))
        assert ("policy_backup" in handed_over) != whole
        assert "backup" in handed_over
    pieces, one = answers
    np.testing.assert_array_equal(pieces.value, one.value)
    assert [row[:-1] for row in pieces.trace.rows] == [row[:-1] for row in one.trace.rows]


@pytest.mark.parametrize("wide", [False, True])
def test_blocks_see_all_of_each_other_that_a_transition_can_reach(wide):
    """Cut into blocks, a sweep is the same whether what lies beyond a seam is copied in part or whole."""
    mdp = problems.gridworld(40, 30, slip=0.1, gamma=0.99)
    if wide:
        mdp.facts["reach"] = mdp.n_states  # as if some transition went from one end to the other
    work = workspace.Workspace(mdp, np.random.default_rng(0).random(mdp.n_states), Aim(1e-6, -1.0), 1)
    assert work.in_pieces
    work.u[:] = np.nan  # whatever is read without having been copied spoils the sweep
    work.bellman_gauss_seidel()
    assert mdp.facts["reach"] == (mdp.n_states if wide else 30)
    assert np.isfinite(work.v).all()
    expected = mdp.reshaped(mdp.r, mdp.gamma)
    expected.facts["reach"] = mdp.n_states
    again = workspace.Workspace(expected, np.random.default_rng(0).random(mdp.n_states), Aim(1e-6, -1.0), 1)
    again.bellman_gauss_seidel()
    np.testing.assert_array_equal(work.v, again.v)


def test_a_large_model_with_a_goal_stops_in_its_first_round_when_time_is_over():
    solution = tr.solve(problems.gridworld(60, 60, slip=0.1, gamma=0.999), max_seconds=0.0)
    assert solution.status is tr.Status.MAX_SECONDS
    assert 0.0 < solution.gap < np.inf


@pytest.mark.parametrize("step", ["bellman_gauss_seidel", "split_sweeps", "policy_sweeps"])
def test_an_interrupt_in_the_first_round_keeps_what_was_done(monkeypatch, step):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(workspace.Workspace, step, interrupt)
    mdp = problems.garnet(400, gamma=0.99) if step == "policy_sweeps" else problems.gridworld(60, 60, slip=0.1, gamma=0.999)
    truth = tr.solve(mdp, tr.policy_iteration(), tol=1e-9).value
    solution = tr.solve(mdp)
    assert solution.status is tr.Status.INTERRUPTED
    assert solution.backups >= mdp.n_pairs  # the look that says what was reached, at least
    assert (solution.lower <= truth + 1e-6).all()
    assert (truth <= solution.upper + 1e-6).all()


def test_whoever_interrupts_finds_no_thread_at_work():
    """A thread that still wrote to v while the last look was taken would leave a certificate of something else."""
    began, go_on, done = threading.Event(), threading.Event(), []

    def kernel(part):
        if part == 1:
            began.wait(10.0)
            threading.Timer(0.2, go_on.set).start()
            raise KeyboardInterrupt
        began.set()
        go_on.wait(10.0)
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        team.each(kernel, (), [(0,), (1,)], 2)
    assert done == [0]


def test_what_goes_wrong_on_a_thread_is_told_and_the_next_call_finds_it_ready():
    def kernel(divisor, part):
        return divisor // part

    with pytest.raises(ZeroDivisionError):
        team.each(kernel, (12,), [(0,), (1,)], 2)
    assert team.each(kernel, (12,), [(n,) for n in (1, 2, 3, 4, 6)], 3) == [12, 6, 4, 3, 2]


def test_a_thread_that_waits_keeps_nothing_alive():
    """A model of many gigabytes is not to stay in memory because a thread that swept it has nothing else to do."""
    array = np.zeros(3)
    there = weakref.ref(array)
    team.each(lambda values, part: values[part], (array,), [(0,), (1,)], 2)
    del array
    for _ in range(100):
        if there() is None:
            return
        time.sleep(0.01)
    pytest.fail("the thread holds on to the array")


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
def test_ctrl_c_while_waiting_for_a_thread_waits_for_it():
    done = []

    def kernel(part):
        if part == 0:
            time.sleep(0.5)
            done.append(part)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            team.each(kernel, (), [(0,), (1,)], 2)
        assert done == [0]
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
