"""What solving returns: it prints, converts, saves and loads."""

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InvalidFile
from tightrope.model import problems


@pytest.fixture
def sol():
    return tr.solve(problems.forest(), tr.kappa_pi(0.5))


def test_print_is_a_short_readable_summary(sol):
    text = str(sol)
    assert text.startswith(f"converged in {sol.iterations} iteration")
    assert "gap <= " in text
    assert "backups" in text
    assert "PolicyIteration(improve=Kappa(0.5), evaluate=Exact())" in text
    assert "MDP(3 states" in text


def test_trace_has_a_row_per_iteration_with_growing_cost(sol):
    trace = tr.solve(problems.gridworld(8, 8), tr.value_iteration()).trace
    np.testing.assert_array_equal(trace["iteration"], np.arange(len(trace)))
    assert (np.diff(trace["backups"]) > 0).all()
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert trace[-1].gap <= trace[0].gap
    assert list(sol.trace.to_dataframe().columns)[:3] == ["iteration", "residual", "gap"]


def test_dataframe_carries_names(sol):
    frame = sol.to_dataframe()
    assert len(frame) == 3
    assert {"state", "action", "value", "lower", "upper"} <= set(frame.columns)
    assert (frame["lower"] <= frame["upper"]).all()
    named = tr.solve(problems.tightrope()).to_dataframe()
    assert list(named["state_name"]) == list(problems.tightrope().pairs.state_names)


@pytest.mark.parametrize("make", [problems.forest, problems.tightrope, problems.queue])
def test_save_and_load_give_back_every_bit(tmp_path, make):
    sol = tr.solve(make())
    sol.save(tmp_path / "s.npz")
    back = tr.Solution.load(tmp_path / "s.npz")
    np.testing.assert_array_equal(back.value, sol.value)
    np.testing.assert_array_equal(back.lower, sol.lower)
    np.testing.assert_array_equal(back.upper, sol.upper)
    assert back.policy == sol.policy
    assert back.policy.pairs.state_names == sol.policy.pairs.state_names
    assert (back.status, back.trace, back.algorithm, back.model) == (sol.status, sol.trace, sol.algorithm, sol.model)
    assert str(back) == str(sol)
    assert back.explain() == sol.explain()


def test_a_damaged_or_foreign_file_is_refused(tmp_path, sol):
    path = tmp_path / "s.npz"
    sol.save(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InvalidFile):
        tr.Solution.load(path)
    with pytest.raises(InvalidFile, match="no such file"):
        tr.Solution.load(tmp_path / "absent.npz")


def test_a_failed_save_leaves_the_old_file(tmp_path, sol, monkeypatch):
    path = tmp_path / "s.npz"
    sol.save(path)
    before = path.read_bytes()

    def broken(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", broken)
    monkeypatch.setattr(np.lib.format, "write_array", broken)
    with pytest.raises(OSError, match="disk full"):
        sol.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["s.npz"]


def test_explain_says_what_was_chosen(sol):
    assert "nothing was left to decide" in sol.explain()
    assert "sweeps" in tr.solve(problems.garnet(200)).explain()
