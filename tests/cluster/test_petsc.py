"""One model on the ranks of a real MPI job: the answers of one machine, whoever holds which states, and no rank left waiting."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

import bridge
import petsc_driver
import reference
import tightrope as tr
from tightrope import archive, cluster
from tightrope.cluster import ranks, reading
from tightrope.cluster.share import span
from tightrope.errors import MissingExtra
from tightrope.model.problems import catalogue

DRIVER = Path(__file__).parents[1] / "petsc_driver.py"
MISSING = [name for name in ("petsc4py", "mpi4py") if importlib.util.find_spec(name) is None] + (
    [] if shutil.which("mpiexec") else ["mpiexec"]
)
real = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}: `make test-cluster` installs them and runs this")
#: For Open MPI: it refuses root, and more ranks than cores, unless told; a rank that waits lets others work.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def start(n, task, folder):
    """The driver on n ranks."""
    command = ["mpiexec", "-n", str(n), sys.executable, str(DRIVER), task, str(folder)]
    return subprocess.Popen(command, env=os.environ | MPI, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(n, task, folder):
    job = start(n, task, folder)
    try:
        out, err = job.communicate(timeout=180)
    except subprocess.TimeoutExpired:
        job.kill()
        pytest.fail(f"{task} on {n} ranks hangs: {job.communicate()}")
    assert job.returncode == 0, out + err
    return out


def solutions(folder):
    found = {path.name.removesuffix(".solution.npz"): tr.Solution.load(path) for path in folder.glob("*.solution.npz")}
    assert found
    return found


@real
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_zoo_is_solved_as_on_one_machine(n, tmp_path):
    run(n, "zoo", tmp_path)
    found = solutions(tmp_path)
    assert len(found) == len(catalogue()) * len(petsc_driver.KAPPAS)
    for name, solution in found.items():
        problem, kappa = name.rsplit("-", 1)
        mdp = catalogue()[problem]()
        here = tr.solve(mdp, tr.kappa_pi(float(kappa)))
        assert solution.converged
        assert solution.relative_gap <= 1e-6
        assert (solution.lower <= here.upper).all(), name
        assert (here.lower <= solution.upper).all(), name
        assert np.abs(solution.value - here.value).max() <= 0.5 * (solution.gap + here.gap), name
        assert solution.policy.pairs.same(mdp.pairs), name
        assert solution.policy.pairs.action_names == mdp.pairs.action_names
        assert solution.policy.pairs.state_names == mdp.pairs.state_names
        assert (tr.value(mdp, solution.policy) >= solution.lower).all(), name
        assert f"on {n} rank" in solution.model


@real
@pytest.mark.parametrize("n", [1, 2, 3])
def test_certificates_are_sound_on_small_ragged_models_by_every_algorithm(n, tmp_path):
    run(n, "cases", tmp_path)
    found = solutions(tmp_path)
    drawn = reference.random_cases(24, seed=7)
    assert min(case.r.shape[0] for case in drawn) == 1  # fewer states than ranks
    assert any(not case.ok.all() for case in drawn)
    for name, solution in found.items():
        case = drawn[int(name.split("-")[0])]
        slack = case.slack(case.v_star)
        assert (solution.lower <= case.v_star + slack).all(), name
        assert (case.v_star <= solution.upper + slack).all(), name
        v_pi = bridge.value_of(case, solution.policy)
        assert (solution.lower <= v_pi + slack).all(), name
        assert (case.v_star - v_pi).max() <= solution.gap + slack, name
        assert solution.converged or solution.status is tr.Status.PRECISION, name


@real
@pytest.mark.parametrize("n", [1, 3])
def test_every_rank_reads_its_rows_and_a_run_begins_where_it_is_told(n, tmp_path):
    rng = np.random.default_rng(3)
    mdp = ragged(rng)
    tr.write(mdp, tmp_path / "ragged.npz")
    square = tr.problems.garnet(11, 3, 4, seed=5)
    tr.write(square, tmp_path / "P.bin")
    tr.write(square, tmp_path / "model.csv")
    run(n, "files", tmp_path)
    found = solutions(tmp_path)
    assert found["ragged.npz"].policy.pairs.same(mdp.pairs)
    again = tr.MDP(square.P, square.r, 0.9, square.first)
    cost = tr.MDP(mdp.P, -mdp.r, mdp.gamma, mdp.first, actions=mdp.pairs.ids)
    nine = tr.MDP(mdp.P, mdp.r, 0.9, mdp.first, actions=mdp.pairs.ids)
    expected = {"ragged.npz": nine, "P.bin": again, "model.csv": again, "costs": cost, "v0": mdp, "pi0": mdp, "uniform": mdp}
    for name, model in expected.items():
        here = tr.solve(model)
        assert np.abs(found[name].value - here.value).max() <= 0.5 * (found[name].gap + here.gap), name
    assert found["v0"].iterations == 0  # it began at the answer
    assert found["pi0"].iterations == 0
    assert found["uniform"].iterations > 1


def ragged(rng):
    counts = rng.integers(1, 4, 17)
    first = np.concatenate(([0], np.cumsum(counts)))
    ids = np.concatenate([np.sort(rng.choice(6, n, replace=False)) for n in counts])
    P = rng.dirichlet(np.ones(17), size=first[-1]) * (rng.random((first[-1], 17)) < 0.4)
    P[:, 0] += 0.1
    P /= P.sum(axis=1, keepdims=True)
    start_of = rng.dirichlet(np.ones(17))
    names = [f"s{i}" for i in range(17)]
    return tr.MDP(P, rng.normal(size=first[-1]), 0.95, first, start_of, actions=ids, state_names=names)


@real
@pytest.mark.parametrize("n", [1, 3])
def test_what_one_rank_finds_wrong_all_ranks_say_alike(n, tmp_path):
    tr.write(tr.problems.garnet(seed=1), tmp_path / "damaged.npz")
    whole = bytearray((tmp_path / "damaged.npz").read_bytes())
    at = archive.members(tmp_path / "damaged.npz")["data"].begin + 801
    whole[at] ^= 1
    (tmp_path / "damaged.npz").write_bytes(whole)
    run(n, "refused", tmp_path)
    said = json.loads((tmp_path / "said.json").read_text())
    for name, errors in said.items():
        assert len(errors) == n, name
        assert len(set(errors)) == 1, name
    one = {name: errors[0] for name, errors in said.items()}
    last, first = (" (rank 2 of 3)", " (rank 0 of 3)") if n == 3 else ("", "")
    assert one["nan"].startswith("InvalidModel: r at state 90, action 1 is nan; rewards must be finite")
    assert one["nan"].endswith(last)
    assert one["leaky"].startswith("InvalidModel: probabilities at state 1, action 0 sum to 0.5;")
    assert one["leaky"].endswith(first)
    assert one["gamma"].startswith("InvalidModel: gamma must lie in [0, 1); found 1.0")
    assert "the checksum of data differs: the file is damaged" in one["damaged"]
    assert "foreign.npz is a checkpoint of another model, MDP(100 states" in one["foreign"]
    assert "Name another file, or remove this one." in one["foreign"]
    assert "is a checkpoint of PolicyIteration(improve=OneStep(), evaluate=Sweeps(m=1)); this run is" in one["other"]
    assert "v0 must have shape (100,)" in one["v0"]
    assert "there is no folder" in one["disk"]


@real
def test_an_error_nobody_expected_ends_all_ranks(tmp_path):
    job = start(3, "uncaught", tmp_path)
    _, err = job.communicate(timeout=60)
    assert job.returncode != 0
    assert err.count("RuntimeError: only here") == 1


@real
def test_a_killed_run_goes_on_from_its_checkpoint_on_another_number_of_ranks(tmp_path):
    log = tmp_path / "log"
    assert signalled(tmp_path, signal.SIGKILL) != 0
    reached = [int(line) for line in log.read_text().split()][-1]
    assert not list(tmp_path.glob("*.solution.npz"))
    header, members = archive.open_parts(tmp_path / "run.npz", "checkpoint")
    assert header["ranks"] == 2
    saved = members["trace"].shape[0] - 1
    assert saved >= reached - 1  # one checkpoint interval is one iteration here
    run(3, "long", tmp_path)
    solution = solutions(tmp_path)["long"]
    went_on = [int(line) for line in log.read_text().split()]
    assert went_on[went_on.index(reached) + 1] == saved  # looked at again, and on
    assert list(solution.trace["iteration"]) == list(range(len(solution.trace)))
    assert (np.diff(solution.trace["gap"]) <= 1e-12).all()
    assert (np.diff(solution.trace["seconds"]) > 0).all()
    here = tr.solve(tr.problems.gridworld(40, 40, gamma=0.995), tr.value_iteration())
    assert solution.converged
    assert solution.iterations == here.iterations
    assert np.abs(solution.value - here.value).max() <= 0.5 * (solution.gap + here.gap)
    assert f"taken up from a checkpoint after iteration {saved}" in solution.explain()


@real
def test_ctrl_c_on_one_rank_ends_the_run_of_all_with_the_best_so_far(tmp_path):
    assert signalled(tmp_path, signal.SIGINT) == 0
    solution = solutions(tmp_path)["long"]
    assert solution.status is tr.Status.INTERRUPTED
    assert solution.iterations >= 20


def signalled(folder, which):
    """The exit code of a run on two ranks after one of them, some iterations on, was sent a signal."""
    job, log, deadline = start(2, "long", folder), folder / "log", time.monotonic() + 90
    while (not log.is_file() or log.read_text().count("\n") < 25) and time.monotonic() < deadline:
        assert job.poll() is None, job.communicate()
        time.sleep(0.02)
    os.kill(int((folder / "pid1").read_text()), which)
    job.communicate(timeout=60)
    return job.returncode


@real
def test_the_command_line_speaks_with_one_voice(tmp_path):
    def command(*arguments):
        line = ["mpiexec", "-n", "2", sys.executable, "-m", "tightrope", "solve", *arguments, "--cluster"]
        return subprocess.run(line, env=os.environ | MPI, capture_output=True, text=True, check=False, timeout=90)

    out = tmp_path / "policy.csv"
    done = command("gridworld:height=9,width=9", "--kappa", "0.5", "--json", "-o", str(out))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    here = tr.solve(tr.problems.gridworld(9, 9), tr.kappa_pi(0.5))
    assert told["states"] == 81
    assert told["converged"]
    assert told["start_value_lower"] <= here.upper[0]
    assert told["start_value_upper"] >= here.lower[0]
    assert out.read_text().count("\n") == 82
    limited = command("gridworld:height=9,width=9", "--kappa", "0", "--max-iterations", "1")
    assert limited.returncode == 1
    assert limited.stdout.count("stopped at max_iterations") == 1
    bad = command("nosuch")
    assert bad.returncode == 2
    assert bad.stderr.count("there is no file 'nosuch'") == 1


def test_without_the_engines_one_error_names_what_to_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "petsc4py", None)
    ranks.engines.cache_clear()
    with pytest.raises(MissingExtra, match=r"petsc4py and mpi4py.*tightrope\[cluster\].*make cluster"):
        tr.solve(tr.problems.chain(), backend=cluster.petsc())
    ranks.engines.cache_clear()


def test_checksums_of_parts_make_that_of_the_whole():
    content = np.random.default_rng(0).bytes(1000)
    for cut in (0, 1, 7, 500, 1000):
        a, b = content[:cut], content[cut:]
        assert reading.joined(zlib.crc32(a), zlib.crc32(b), len(b)) == zlib.crc32(content)


def test_every_state_has_one_rank():
    for states, size in ((10, 3), (2, 5), (1, 1), (7, 7)):
        spans = [span(states, rank, size) for rank in range(size)]
        assert [s for begin, end in spans for s in range(begin, end)] == list(range(states))
        assert max(end - begin for begin, end in spans) - min(end - begin for begin, end in spans) <= 1
