"""Runs: repeatable, resumable, interruptible, measured and saved."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from tightrope import MDP, Policy, archive, kernels, q_value, value
from tightrope.errors import InvalidArgument, InvalidFile
from tightrope.kernels import unsigned
from tightrope.model import problems
from tightrope.model.sampler import ModelSource, Simulator
from tightrope.online import ExpectedSarsa, Log, OnlineKappaPI, QLearning, Run, StepSchedule, learn, learn_seeds, resume
from tightrope.online.learner import rule
from tightrope.online.learning import _begin, _job


@pytest.fixture(scope="module")
def mdp():
    rng = np.random.default_rng(0)
    return MDP.from_dense(rng.dirichlet(np.full(8, 0.5), size=(8, 3)), rng.random((8, 3)), 0.8)


def simulator(mdp):
    source = ModelSource(mdp)
    return Simulator(mdp.pairs, mdp.gamma, source.sample_one, mdp.terminal)


def same_bits(run, other):
    assert run.state.table.tobytes() == other.state.table.tobytes()
    assert run.state.state_visits.tobytes() == other.state.state_visits.tobytes()
    assert run.chance.words.tobytes() == other.chance.words.tobytes()
    assert run.chance.place.tolist() == other.chance.place.tolist()
    for name, column in run.trace.items():
        if name != "seconds":
            np.testing.assert_array_equal(column, other.trace[name])


LEARNERS = (OnlineKappaPI(0.5), OnlineKappaPI(0.9, cautious=False), QLearning(), ExpectedSarsa())


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_same_seed_same_bits(mdp, learner):
    one, two, other = (learn(mdp, learner, 3000, seed) for seed in (1, 1, 2))
    same_bits(one, two)
    assert one.state.table.tobytes() != other.state.table.tobytes()
    assert one.steps == one.state.steps == 3000


def test_workers_change_nothing(mdp):
    one, two = (learn_seeds(mdp, OnlineKappaPI(0.5), 4000, 7, seeds=4, workers=workers) for workers in (1, 2))
    for a, b in zip(one, two, strict=True):
        same_bits(a, b)
    assert len({run.state.table.tobytes() for run in one}) == 4


@pytest.mark.parametrize("restart", [1.0, 0.1])
@pytest.mark.parametrize("kind", ["model", "simulator", "log"])
def test_resumed_runs_go_on_bit_for_bit(mdp, tmp_path, kind, restart):
    n = 400_000 if kind == "model" else 1500
    source = {"model": mdp, "simulator": simulator(mdp), "log": recorded(mdp, 777)}[kind]
    learner = OnlineKappaPI(0.5, slow=StepSchedule(0.8))
    whole = learn(source, learner, n, 5, restart=restart, model=mdp)
    half = learn(source, learner, n // 3 + 1, 5, restart=restart, model=mdp)
    half.save(tmp_path / "half.npz")
    loaded = Run.load(tmp_path / "half.npz")
    same_bits(loaded, half)
    same_bits(resume(loaded, source, n, model=mdp), whole)
    same_bits(resume(half, source, n, model=mdp), whole)
    assert half.steps == n // 3 + 1


def recorded(mdp, n):
    rng = np.random.default_rng(3)
    rows = rng.integers(0, mdp.n_pairs, n)
    rewards, following = ModelSource(mdp).sample(rows, rng)
    return Log(mdp.pairs, mdp.gamma, mdp.pairs.states[rows], mdp.pairs.actions[rows], rewards, following)


def test_a_run_with_a_custom_schedule_is_resumed_with_its_learner(mdp, tmp_path):
    learner = OnlineKappaPI(0.5, fast=StepSchedule.custom(lambda n: n**-0.7))
    whole = learn(mdp, learner, 5000, 5)
    learn(mdp, learner, 2000, 5).save(tmp_path / "run.npz")
    with pytest.raises(InvalidArgument, match=r"Run.load\(path, learner=...\)"):
        Run.load(tmp_path / "run.npz")
    same_bits(resume(Run.load(tmp_path / "run.npz", learner), mdp, 5000), whole)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_saved_runs_know_their_learner(mdp, tmp_path, learner):
    run = learn(mdp, learner, 500)
    run.save(tmp_path / "run.npz")
    again = Run.load(tmp_path / "run.npz")
    assert again.learner == learner
    assert again.seed == run.seed
    assert repr(again) == repr(run)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "run.npz").write_text("nothing of the sort")
    with pytest.raises(InvalidFile, match="online run"):
        Run.load(tmp_path / "run.npz")


def test_a_file_that_lacks_something_is_refused(mdp, tmp_path):
    run = learn(mdp, QLearning(), 10)
    run.save(tmp_path / "run.npz")
    header, arrays = archive.load(tmp_path / "run.npz", "online run")
    del arrays["words"]
    archive.save(tmp_path / "run.npz", "online run", {k: v for k, v in header.items() if k not in {"kind", "version"}}, arrays)
    with pytest.raises(InvalidFile, match="lacks 'words' of an online run"):
        Run.load(tmp_path / "run.npz")


def test_a_simulator_that_fails_ends_all_seeds_at_once(mdp):
    def step(*_):
        raise RuntimeError("the simulator broke")

    with pytest.raises(RuntimeError, match="the simulator broke"):
        learn_seeds(Simulator(mdp.pairs, mdp.gamma, step), OnlineKappaPI(0.5), 10**8, seeds=4)


def test_checkpoint(mdp, tmp_path, monkeypatch):
    monkeypatch.setattr("tightrope.online.learning.CHECKPOINT", 0.0)
    run = learn(mdp, OnlineKappaPI(0.5), 300_000, 5, checkpoint=tmp_path / "run.npz")
    same_bits(Run.load(tmp_path / "run.npz"), run)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]


def interrupt_soon():
    threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()


@pytest.mark.parametrize("kind", ["model", "simulator"])
def test_ctrl_c_keeps_what_was_learned(mdp, tmp_path, kind):
    source = mdp if kind == "model" else simulator(mdp)
    learn(source, OnlineKappaPI(0.5), 10)
    interrupt_soon()
    run = learn(source, OnlineKappaPI(0.5), 10**9, 5, model=mdp, checkpoint=tmp_path / "run.npz")
    assert run.interrupted
    assert 0 < run.steps < 10**9
    assert run.state.steps == run.steps == run.trace["step"][-1]
    assert "interrupted" in repr(run)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    goal = run.steps + 1000
    same_bits(
        resume(Run.load(tmp_path / "run.npz"), source, goal, model=mdp), learn(source, OnlineKappaPI(0.5), goal, 5, model=mdp)
    )


def test_ctrl_c_ends_all_seeds(mdp):
    learn(mdp, OnlineKappaPI(0.5), 10)
    interrupt_soon()
    runs = learn_seeds(mdp, OnlineKappaPI(0.5), 10**9, seeds=3)
    assert all(run.interrupted for run in runs)
    assert len(runs) == 3


def test_an_interrupt_inside_a_simulator_is_kept_too(mdp):
    calls = 0

    def step(s, a, rng):
        nonlocal calls
        calls += 1
        if calls == 100:
            raise KeyboardInterrupt
        return ModelSource(mdp).sample_one(s, a, rng)

    run = learn(Simulator(mdp.pairs, mdp.gamma, step), OnlineKappaPI(0.5), 1000)
    assert run.interrupted
    assert run.steps == 99


def test_measurements_are_what_they_say(mdp):
    learner = OnlineKappaPI(0.7, explore=0.3)
    nu = np.arange(1, 9) / 36
    run = learn(mdp, learner, 2000, 3, nu=nu)
    state = run.state
    v_star = value(mdp, Policy.deterministic(mdp, _optimal_actions(mdp)))
    short = v_star - value(mdp, state.policy)
    assert run.trace["loss"][-1] == pytest.approx(short.max())
    assert run.trace["loss_nu"][-1] == pytest.approx(nu @ short)
    v = np.add.reduceat(state.pi * state.q, mdp.first[:-1])
    assert run.trace["distance"][-1] == pytest.approx(np.abs(v - v_star).max())
    q, ahead = state.q.reshape(8, 3), state.q_kappa.reshape(8, 3)
    chosen = [(q[s, ahead[s].argmax()] >= v[s] - 1e-12) or q[s].argmax() == ahead[s].argmax() for s in range(8)]
    assert run.trace["took_kappa"][-1] == pytest.approx(np.mean(chosen))
    assert run.trace["min_visits"][-1] == state.pair_visits.min()
    assert run.trace["step"].tolist()[:6] == [1, 2, 3, 4, 5, 6]
    assert run.trace["step"][-1] == 2000
    assert run.scale == pytest.approx(np.abs(v_star).max())
    assert run.loss == run.trace["loss"][-1]
    frame = run.to_dataframe()
    assert list(frame.columns) == ["step", "loss", "loss_nu", "distance", "took_kappa", "min_visits", "seconds"]


def _optimal_actions(mdp):
    actions = np.zeros(8, dtype=int)
    for _ in range(20):
        actions = q_value(mdp, Policy.deterministic(mdp, actions)).reshape(8, 3).argmax(axis=1)
    return actions


def test_many_seeds_as_one_table(mdp):
    runs = learn_seeds(mdp, OnlineKappaPI(0.5), 1000, seeds=3)
    assert runs.column("loss").shape == (3, len(runs.steps))
    assert set(runs.to_dataframe()["run"]) == {0, 1, 2}
    assert "3 seeds" in repr(runs)
    with pytest.raises(InvalidArgument, match="no measurement 'lost'"):
        runs.column("lost")


def test_states_are_drawn_from_nu(mdp):
    nu = np.arange(1, 9) / 36
    run = learn(mdp, OnlineKappaPI(0.5), 100_000, 1, nu=nu)
    np.testing.assert_allclose(run.state.state_visits / 100_000, nu, atol=0.006)
    uniform = learn(mdp, OnlineKappaPI(0.5), 100_000, 1)
    np.testing.assert_allclose(uniform.state.state_visits / 100_000, 1 / 8, atol=0.006)


def test_actions_are_drawn_from_the_policy_and_explored(mdp):
    """With a policy that hardly moves, the share of each action is (1-e) π + e/3."""
    weights = np.tile([0.7, 0.2, 0.1], 8)
    learner = OnlineKappaPI(0.5, slow=StepSchedule.constant(1e-9), explore=0.3)
    run = learn(mdp, learner, 240_000, 1, state=learner.init(mdp, pi0=weights))
    share = (run.state.pair_visits / np.repeat(run.state.state_visits, 3)).reshape(8, 3)
    np.testing.assert_allclose(share, np.tile([0.59, 0.24, 0.17], (8, 1)), atol=0.015)


def appraised(state, learner):
    """What the loops remember of every state, worked out afresh."""
    worth = np.empty(state.pairs.n_states, kernels.online.WORTH)
    kernels.online.appraise(unsigned(state.pairs.first), learner.soft, state.table, worth)
    return worth


@pytest.mark.parametrize("learner", [OnlineKappaPI(0.5), QLearning(), ExpectedSarsa(explore=0.3)])
def test_the_worth_of_a_state_is_what_its_actions_say(learner):
    mdp = problems.garnet(9, 3, 2, gamma=0.9, seed=1)
    state = learn(mdp, learner, 2000, 1).state
    pi, q, ahead = (x.reshape(9, 3) for x in (state.pi, state.q, state.q_kappa))
    worth, soft = appraised(state, learner), learner.soft
    np.testing.assert_allclose(worth["v"], (1 - soft) * (pi * q).sum(axis=1) + soft * q.mean(axis=1), rtol=1e-14)
    assert (worth["w"] == ahead.max(axis=1)).all()


@pytest.mark.parametrize("learner", [OnlineKappaPI(0.5), ExpectedSarsa(explore=0.3)])
def test_what_is_changed_between_steps_or_runs_is_seen(learner):
    """A step alone, a run and a run resumed after the user overwrote q all go on from what stands there now."""
    mdp = problems.garnet(9, 3, 2, gamma=0.9, seed=1)
    log = Log(mdp.pairs, mdp.gamma, [0, 1, 0], [0, 2, 1], [1.0, 0.0, 2.0], [1, 0, 1])
    by_step, by_run, resumed = learner.init(mdp), learner.init(mdp), learn(log, learner, 3)
    for state in (by_step, by_run):
        for transition in zip(log.states, (0, 2, 1), log.rewards, log.next_states, strict=True):
            learner.step(state, *transition)
    for state in (by_step, by_run, resumed.state):
        state.q[3:6], state.q_kappa[3:6] = (7.0, 8.0, 9.0), (3.0, 2.0, 1.0)
    learner.step(by_step, 0, 0, 1.0, 1)
    assert by_step.q[0] != learner.step(learner.init(mdp), 0, 0, 1.0, 1).q[0]
    assert learn(log, learner, 1, state=by_run).state.table.tobytes() == by_step.table.tobytes()
    assert resume(resumed, log, 4).state.table.tobytes() == by_step.table.tobytes()


@pytest.mark.parametrize("n_states", [3, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_looking_ahead_for_speed_changes_nothing(n_states, weighted):
    """Steps prepared in rounds of sixteen, of two, of one, and the general loop give the same bits."""
    mdp = problems.garnet(n_states, 3, 2, gamma=0.9, seed=1)
    source, learner = ModelSource(mdp), OnlineKappaPI(0.5, explore=0.3)
    nu = np.arange(1, n_states + 1) / np.arange(1, n_states + 1).sum()
    job = _job(mdp, learner, 5000, None, nu if weighted else None, 1.0, None)
    nothing, first = np.empty(0), unsigned(mdp.first)
    results = []
    for ahead in (None, 1, 2, 16, 16):
        run = _begin(job, np.random.SeedSequence(1))
        worth = appraised(run.state, learner)
        known = (rule(learner, mdp.gamma), nothing, nothing, run.state.table, run.state.state_visits, worth)
        chance = (run.chance.words, run.chance.place)
        if ahead is None:
            kernels.online.follow(first, *source.tables, mdp.r, mdp.terminal, *job.nu_tables, *known, *chance, 5000)
        else:
            for part in (5000,) if len(results) < 4 else (1, 17, 982, 4000):
                kernels.online.walk(first, *source.tables, mdp.r, *job.nu_tables, *known, *chance, part, ahead)
        results.append((run.state.table.tobytes(), run.chance.words.tobytes(), run.steps))
        assert worth.tobytes() == appraised(run.state, learner).tobytes()
    assert all(result == results[0] for result in results)
    whole = learn(mdp, learner, 5000, np.random.SeedSequence(1), nu=nu if weighted else None)
    assert whole.state.table.tobytes() == results[0][0]


def test_a_trajectory_follows_the_chain_and_starts_again_at_terminal_states():
    chain = MDP.from_dense(np.roll(np.eye(5), 1, axis=1)[:, None, :], np.ones((5, 1)), 0.9, terminal=[4])
    start = np.array([1.0, 0, 0, 0, 0])
    run = learn(chain, OnlineKappaPI(0.5), 5000, nu=start, restart=0.0)
    assert run.state.state_visits.tolist() == [1000] * 5
    assert run.state.v == pytest.approx([3.439, 2.71, 1.9, 1.0, 0.0], abs=1e-3)
    often = learn(chain, OnlineKappaPI(0.5), 20_000, nu=start, restart=0.5).state.state_visits / 20_000
    np.testing.assert_allclose(often[:4] / often[0], [1, 0.5, 0.25, 0.125], atol=0.02)


def test_a_simulator_learns_what_its_model_is(mdp):
    run = learn(simulator(mdp), QLearning(explore=0.5), 6000, 1, model=mdp)
    assert run.loss < 0.2
    blind = learn(simulator(mdp), QLearning(explore=0.5), 300, 1)
    assert np.isnan(blind.loss)
    assert "loss" not in repr(blind)


@pytest.mark.parametrize("seed", range(3))
def test_convergence_on_a_small_garnet(seed):
    mdp = problems.garnet(30, 3, 4, gamma=0.9, seed=seed)
    for learner in (OnlineKappaPI(0.5, slow=StepSchedule(0.85), explore=0.2), QLearning(explore=0.2)):
        run = learn(mdp, learner, 1_000_000, seed)
        assert run.loss < 0.01 * run.scale


@pytest.mark.parametrize("kappa", [0.0, 0.6, 1.0])
def test_q_and_q_kappa_both_tend_to_q_star(mdp, kappa):
    """Theorem (convergence): (q_n, q_κ,n, π_n) -> (q*, q*, π*)."""
    q_star = q_value(mdp, Policy.deterministic(mdp, _optimal_actions(mdp)))
    errors = []
    for steps in (10_000, 2_000_000):
        run = learn(mdp, OnlineKappaPI(kappa, slow=StepSchedule(0.85), explore=0.3), steps, 4)
        errors.append([np.abs(run.state.q - q_star).max(), np.abs(run.state.q_kappa - q_star).max(), run.loss])
    early, late = np.array(errors)
    assert (late < [0.05, 0.05, 1e-3]).all()
    assert (late < 0.3 * early).all()


def test_the_first_state_is_left_alone(mdp):
    learner = OnlineKappaPI(0.5)
    start = learner.init(mdp)
    learn(mdp, learner, 100, state=start)
    assert start.steps == 0
    run = learn(mdp, learner, 100)
    resume(run, mdp, 200)
    assert run.steps == 100


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: learn(m, OnlineKappaPI(0.5), 10, nu=[0, *[1 / 7] * 7]), "state 0 would never be learned"),
        (lambda m: learn(m, OnlineKappaPI(0.5), 10, nu=[0.5] * 8), "nu sums to 4"),
        (lambda m: learn(m, OnlineKappaPI(0.5), 0), "steps must be an integer >= 1"),
        (lambda m: learn(m, OnlineKappaPI(0.5), 10, restart=1.5), r"restart must lie in \[0, 1\]"),
        (lambda m: learn(m, OnlineKappaPI(0.5), 10, state=OnlineKappaPI(0.5).init((2, 2), gamma=0.9)), "other states or actions"),
        (lambda m: learn(m, QLearning(), 10, state=QLearning().init(m, gamma=0.5)), "discounts by 0.5, the source by 0.8"),
        (lambda _: learn("a model", OnlineKappaPI(0.5), 10), "a source of samples is an MDP"),
        (lambda m: learn(simulator(m), OnlineKappaPI(0.5), 10, model=problems.tightrope(2, 0.9)), "the model to measure against"),
        (lambda m: resume(learn(m, QLearning(), 10), problems.tightrope(2, 0.9), 20), "other states or actions"),
        (lambda m: OnlineKappaPI(0.5).init(m).policy and OnlineKappaPI(1.5), r"kappa must lie in \[0, 1\]"),
        (lambda _: OnlineKappaPI(0.5, explore=-0.1), r"explore must lie in \[0, 1\]"),
        (lambda _: OnlineKappaPI(0.5).init((3, 2)), "give gamma="),
        (lambda _: OnlineKappaPI(0.5).init(7), "sizes"),
        (lambda m: QLearning().init(m, pi0=Policy.uniform(m)), "give q0 instead of pi0"),
        (lambda m: OnlineKappaPI(0.5).init(m, q0=[1.0, 2.0]), r"q0 must have shape \(24,\)"),
    ],
)
def test_bad_input_gets_one_clear_error(mdp, call, message):
    with pytest.raises(InvalidArgument, match=message):
        call(mdp)


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        ((8, 0, 0.0, 0), "there is no state 8"),
        ((-1, 0, 0.0, 0), "there is no state -1"),
        ((0, 3, 0.0, 0), "state 0 has no action 3"),
        ((0, 0, float("nan"), 0), "the reward after state 0, action 0 is nan"),
        ((0, 0, 0.0, 9), "the state after state 0, action 0 is 9"),
    ],
)
def test_a_bad_transition_is_named(mdp, transition, message):
    learner = OnlineKappaPI(0.5)
    with pytest.raises(ValueError, match=message):
        learner.step(learner.init(mdp), *transition)
