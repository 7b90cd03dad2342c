"""Runs: the same seed the same run, nothing lost on the way, on disk and back."""

import numpy as np
import pytest

import reference
import tightrope as tr
from bridge import mdp_of
from tightrope.approximate import (
    Exact,
    FittedQ,
    KappaAPI,
    KappaPSDP,
    LSTDValue,
    MonteCarloValue,
    Run,
    SampledModel,
    Status,
    run,
)
from tightrope.errors import InvalidArgument, InvalidFile, OracleFailed
from tightrope.model.problems import garnet, gridworld
from tightrope.model.sampler import ModelSource

MDP = garnet(30, 3, 4, gamma=0.9, seed=1)


def fails_at(iteration, with_what):
    """An oracle that works until the given call, then does what it is told."""
    calls = iter(range(1, 1_000))

    def oracle(problem, nu, rng):
        return with_what() if next(calls) == iteration else SampledModel(2)(problem, nu, rng)

    return oracle


def explode():
    raise ZeroDivisionError("no luck today")


@pytest.mark.parametrize("kind", [KappaAPI, KappaPSDP])
@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        (explode, "iteration 7 failed: ZeroDivisionError: no luck today"),
        (lambda: np.zeros(30), "iteration 7 failed: InvalidPolicy: the oracle .* returned ndarray, not a Policy"),
    ],
)
def test_an_oracle_that_fails_in_iteration_7_loses_nothing(kind, what, complaint):
    with pytest.raises(OracleFailed, match=complaint) as caught:
        run(MDP, kind(0.5, fails_at(7, what), iterations=12), seed=5)
    kept = caught.value.run
    assert "6 iterations before it" in str(caught.value)
    assert kept.status is Status.FAILED
    assert (kept.iterations, len(kept.rows)) == (6, 7)
    whole = run(MDP, kind(0.5, SampledModel(2), iterations=12), seed=5)
    assert list(kept.policies) == list(whole.policies[:6])
    resumed = run(MDP, kind(0.5, SampledModel(2), iterations=12), resume=kept)
    assert list(resumed.policies) == list(whole.policies)
    np.testing.assert_allclose(resumed["loss"], whole["loss"], atol=1e-12)
    assert np.array_equal(resumed["samples"], whole["samples"])
    assert resumed.status is Status.FINISHED


def test_the_cause_is_kept():
    with pytest.raises(OracleFailed) as caught:
        run(MDP, KappaAPI(0.5, fails_at(1, explode)))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.run.iterations == 0
    assert caught.value.run.policy == tr.Policy.uniform(MDP)


def test_a_regressor_that_says_nan_is_a_clear_error():
    class Hollow:
        def get_params(self, deep=False):  # noqa: ARG002
            return {}

        def fit(self, X, y):  # noqa: ARG002
            return self

        def predict(self, X):
            return np.full(len(X), np.nan)

    with pytest.raises(OracleFailed, match="Hollow predicted nan for state 0, action 0"):
        run(MDP, KappaAPI(0.5, FittedQ(Hollow(), 100), iterations=2))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [(np.full(30, np.nan), "numbers that are not finite"), (np.zeros(3), r"found shape \(3,\)")],
)
def test_an_evaluation_that_is_none_is_refused(answer, complaint):
    values = iter([np.zeros(30), answer])
    with pytest.raises(OracleFailed, match=complaint) as caught:
        run(MDP, KappaAPI(0.5, Exact(), evaluate=lambda problem, pi, nu, rng: next(values)))  # noqa: ARG005
    assert caught.value.run.iterations == 0


def test_ctrl_c_is_a_status():
    def interrupt():
        raise KeyboardInterrupt

    kept = run(MDP, KappaPSDP(0.5, fails_at(4, interrupt), iterations=9), seed=2)
    assert kept.status is Status.INTERRUPTED
    assert kept.iterations == 3
    assert kept.policy.k == 3
    assert repr(kept).startswith("interrupted after 3 iterations")


@pytest.mark.parametrize("kind", [KappaAPI, KappaPSDP])
@pytest.mark.parametrize("evaluate", [MonteCarloValue(2), LSTDValue(samples=500)])
def test_the_seed_decides(kind, evaluate):
    algorithm = kind(0.5, SampledModel(2), iterations=3, evaluate=evaluate)
    one, again, other = (run(MDP, algorithm, seed=seed) for seed in (1, 1, 2))
    assert list(one.policies) == list(again.policies)
    assert np.array_equal(one.value, again.value)
    assert not np.array_equal(one.value, other.value)


@pytest.mark.parametrize("kind", [KappaAPI, KappaPSDP])
def test_saved_and_loaded(tmp_path, kind):
    one = run(MDP, kind(0.5, SampledModel(2), iterations=3), seed=9)
    one.save(tmp_path / "run.npz")
    back = Run.load(tmp_path / "run.npz")
    assert repr(back) == repr(one)
    assert back.rows[1:] == one.rows[1:]
    assert back.rows[0][2:] == one.rows[0][2:]  # its delta is nan
    assert list(back.policies) == list(one.policies)
    assert type(back.policy) is type(one.policy)
    on = run(MDP, kind(0.5, SampledModel(2), iterations=5), resume=back)
    assert list(on.policies) == list(run(MDP, kind(0.5, SampledModel(2), iterations=5), seed=9).policies)
    (tmp_path / "text.npz").write_text("not a run")
    with pytest.raises(InvalidFile, match="not a tightrope approximate run file"):
        Run.load(tmp_path / "text.npz")


def test_a_source_of_samples_is_enough():
    source = ModelSource(MDP)
    algorithm = KappaAPI(0.5, SampledModel(20), iterations=3, evaluate=MonteCarloValue(20))
    blind = run(source, algorithm, seed=1)
    assert np.isnan(blind["loss"]).all()
    assert "loss not measured, largest delta not measured" in repr(blind)
    seeing = run(MDP, algorithm, seed=1)
    assert list(blind.policies) == list(seeing.policies)  # what is measured is never used
    assert seeing.loss < 0.2 * seeing["loss"][0]


def test_exact_values_need_a_model():
    with pytest.raises(InvalidArgument, match="ExactValue needs the model"):
        run(ModelSource(MDP), KappaAPI(0.5, SampledModel(2)))


def test_measuring_can_be_left_out():
    quick = run(MDP, KappaAPI(0.5, SampledModel(2), iterations=2), measure=False)
    assert np.isnan(quick["delta"]).all()
    assert np.isnan(quick["loss"]).all()


def test_approximate_evaluation_shows_in_the_trace():
    sloppy, careful = (
        run(MDP, KappaPSDP(0.5, Exact(), iterations=3, evaluate=MonteCarloValue(n)), seed=1)["value_error"].max()
        for n in (2, 800)
    )
    assert careful < 0.3 * sloppy


def test_terminal_states_have_value_zero():
    mdp = gridworld(4, 4, gamma=0.9)
    found = run(mdp, KappaAPI(0.5, SampledModel(10), iterations=2, evaluate=LSTDValue(samples=5_000)))
    assert (found.value[mdp.terminal] == 0.0).all()


def test_the_trace_is_a_table():
    found = run(MDP, KappaAPI(0.5, Exact(), iterations=2))
    frame = found.to_dataframe()
    assert list(frame.columns) == ["iteration", "delta", "loss", "value_error", "samples", "seconds"]
    assert frame["iteration"].tolist() == [0, 1, 2]
    with pytest.raises(InvalidArgument, match="there is no column 'gap'; the trace has iteration, delta"):
        found["gap"]


def test_the_summary_reads_well():
    text = repr(run(mdp_of(reference.tightrope(1.0, 0.9)), KappaAPI(0.9, Exact(), iterations=2)))
    assert text.startswith("finished after 2 iterations, loss 0 (began at ")
    assert "KappaAPI(kappa=0.9, oracle=Exact(), iterations=2, evaluate=ExactValue())" in text


def test_names_are_kept_on_disk(tmp_path):
    mdp = tr.MDP.from_dense(np.full((2, 1, 2), 0.5), np.ones((2, 1)), 0.9, state_names=["here", "there"], action_names=["wait"])
    run(mdp, KappaAPI(0.5, Exact(), iterations=1)).save(tmp_path / "run.npz")
    pairs = Run.load(tmp_path / "run.npz").policy.pairs
    assert (pairs.state_names, pairs.action_names) == (("here", "there"), ("wait",))


@pytest.mark.parametrize("seed", [-1, 1.5, "one"])
def test_seeds_are_integers(seed):
    with pytest.raises(InvalidArgument, match="seed must be an integer >= 0"):
        run(MDP, KappaAPI(0.5, Exact()), seed=seed)


def test_what_cannot_be_resumed_is_refused():
    other = mdp_of(reference.tightrope(1.0, 0.9))
    earlier = run(MDP, KappaAPI(0.5, Exact(), iterations=1))
    with pytest.raises(InvalidArgument, match="another model"):
        run(other, KappaAPI(0.5, Exact()), resume=earlier)
    with pytest.raises(InvalidArgument, match="cannot be continued by KappaPSDP"):
        run(MDP, KappaPSDP(0.5, Exact()), resume=earlier)
    with pytest.raises(InvalidArgument, match="cannot be continued by"):
        run(MDP, KappaAPI(0.6, Exact()), resume=earlier)
    with pytest.raises(InvalidArgument, match="pi0 is for another model"):
        run(MDP, KappaAPI(0.5, Exact()), pi0=tr.Policy.uniform(other))
    for wrong in ("api", KappaAPI):
        with pytest.raises(InvalidArgument, match="algorithm must be one such as KappaAPI"):
            run(MDP, wrong)
    with pytest.raises(InvalidArgument, match="a source of samples is an MDP"):
        run("gridworld", KappaAPI(0.5, Exact()))
