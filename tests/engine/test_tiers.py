"""Plain loops and compiled ones: the same bits, and Numba is loaded only when it pays."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope import kernels
from tightrope.kernels import tiers

SOLVE = """
import json, sys
import numpy as np
import tightrope as tr
from tightrope import kernels, problems
kernels.tiers.PATIENCE = float(sys.argv[1])
models = [
    problems.gridworld(9, 9, slip=0.2, gamma=0.99), problems.gridworld(12, 12, slip=0.0, gamma=0.999), problems.forest(10),
    problems.queue(60), problems.replacement(30), problems.inventory(12), problems.garnet(40, 3, 4, gamma=0.9999, seed=1),
    problems.garnet(60, 3, 1, gamma=0.999, seed=2), problems.tightrope(), problems.cliff(),
]
path, P = np.random.default_rng(0).permutation(60), np.zeros((60, 2, 60))
P[path, 0, np.roll(path, 1)] = P[path, 1, np.roll(path, -1)] = 1.0
P[path[0]] = np.eye(60)[path[0]]
models.append(problems.garnet(30, 4, 20, seed=3))
models.append(problems.garnet(23, 3, 23, gamma=0.99, seed=5))
models.append(problems.tandem(4, 3, gamma=0.999))
models.append(tr.MDP(P.reshape(120, 60), -np.arange(120.0) % 7.0, 0.99))
found = []
for mdp in models:
    for algorithm in (None, tr.kappa_pi(0.9), tr.kappa_lambda_pi(0.5, 0.7), tr.h_pi(3)):
        sol = tr.solve(mdp, algorithm, tol=1e-9, max_iterations=300)
        found.append([sol.value.tobytes().hex(), sol.gap, sol.backups, np.asarray(sol.policy.rows).tolist()])
told = ("distance from the sinks" in tr.solve(models[-1]).explain(), "BiCGSTAB" in tr.solve(models[-2]).explain())
print(json.dumps([found, "numba" in sys.modules, told]))
"""


def run(program, *arguments):
    done = subprocess.run([sys.executable, "-W", "error", "-c", program, *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_plain_and_compiled_loops_agree_bit_for_bit():
    (plain, loaded, told), (compiled, needed, _) = run(SOLVE, "inf"), run(SOLVE, "-1")
    assert all(told)
    assert not loaded
    assert needed
    assert plain == compiled


def test_a_large_model_is_compiled_for_at_once():
    solve = "import json, sys, tightrope as tr\ntr.solve(tr.problems.gridworld(80, 80))\n"
    assert run(solve + "print(json.dumps('numba' in sys.modules))")


LONG = """
import json, sys
import tightrope as tr
from tightrope import kernels
kernels.tiers.PATIENCE = float(sys.argv[1])
sol = tr.solve(tr.problems.garnet(60, 3, 5, gamma=0.99), tr.modified_policy_iteration(m=3000), max_iterations=1)
print(json.dumps([sol.value.tobytes().hex(), "numba" in sys.modules, sol.iterations]))
"""


def test_one_long_run_on_a_small_model_is_compiled_on_the_way():
    """However long a single call goes on, plain Python takes its share and no more."""
    plain, switched = run(LONG, "inf"), run(LONG, "0.05")
    assert (plain[1], switched[1]) == (False, True)
    assert plain[0] == switched[0]
    assert plain[2] == switched[2] == 1


CACHED = """
import json
from pathlib import Path
import tightrope as tr
tr.solve(tr.problems.gridworld(80, 80))
print(json.dumps([tr.__file__, sorted((p.name, p.stat().st_mtime_ns) for p in Path.home().rglob("*.nbc"))]))
"""


def test_compiled_loops_are_kept_in_the_home_folder_where_the_package_may_not_be_written_to(tmp_path, monkeypatch):
    """A file where the folder of the cache should be stops everybody, the superuser too."""
    package, home = tmp_path / "package", tmp_path / "home"
    shutil.copytree(Path(tr.__file__).parent, package / "tightrope", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "tightrope" / "kernels" / "__pycache__").write_text("taken")
    home.mkdir()
    for name, value in {"PYTHONPATH": package, "HOME": home, "XDG_CACHE_HOME": home / ".cache"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    where, first = run(CACHED)
    assert Path(where).is_relative_to(package)
    assert any("gauss_seidel_round" in name for name, _ in first)
    assert run(CACHED)[1] == first  # nothing is compiled again


SOLVE_LATER = """
import json
from pathlib import Path
import tightrope as tr
from tightrope.cli.warm import copies, errands, shuffled
for mdp in (
    tr.problems.garnet(700, 3, 4), tr.problems.gridworld(80, 80), shuffled(tr.problems.gridworld(70, 70, slip=0.2)),
    tr.problems.queue(3000), tr.problems.tandem(50, gamma=0.9999), copies(tr.problems.tandem(5, gamma=0.9999), 50),
    shuffled(tr.problems.queue(3000, gamma=0.999)), shuffled(tr.problems.tandem(50, gamma=0.9999)),
    errands(90, 0.9), shuffled(errands(90, 0.99)), errands(90, 0.9999), errands(250, 0.95),
    tr.problems.gridworld(500, 420), tr.problems.garnet(150_000, 3, 5), tr.problems.tandem(100, 3, gamma=0.9),
    tr.problems.inventory(300, [0.1] * 10, gamma=0.99), tr.problems.inventory(900, [0.1] * 10, gamma=0.99),
    tr.problems.garnet(150, 5, 150, gamma=0.99), tr.problems.garnet(700, 3, 700, gamma=0.99),
):
    tr.solve(mdp)
    if mdp.n_states < 10_000:
        tr.solve(mdp, tr.kappa_pi(0.5))
print(json.dumps(sorted(p.name for p in Path.home().rglob("*.nbc"))))
"""


def test_after_warm_nothing_is_left_to_compile(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    warm = subprocess.run([sys.executable, "-m", "tightrope", "warm"], capture_output=True, text=True, check=True)
    assert warm.stdout.startswith("compiled for small models, goals, ")
    kept = sorted(p.name for p in tmp_path.rglob("*.nbc"))
    assert len(kept) > 50
    assert run(SOLVE_LATER) == kept


EARLY = """
import json, sys
import tightrope as tr
from tightrope import kernels
kernels.tiers.PATIENCE = float("inf")
loaded = []
for mdp in (
    tr.problems.garnet(1000, 4, 5), tr.problems.gridworld(45, 45, slip=0.1), tr.problems.queue(2000),
    tr.problems.inventory(70, [0.1] * 10), tr.problems.tandem(12, gamma=0.999), tr.problems.tandem(40, gamma=0.999),
):
    tr.solve(mdp)
    loaded.append("numba" in sys.modules)
print(json.dumps(loaded))
"""


def test_small_models_wait_for_no_compiler_unless_they_take_many_sweeps():
    assert run(EARLY) == [False, False, False, False, False, True]


THREADS = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
import tightrope as tr
from tightrope import kernels
mdp = tr.problems.gridworld(8, 8, slip=0.2)
kernels.tiers.PATIENCE = 0.02
with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(lambda _: tr.solve(mdp).value.tobytes().hex(), range(60)))
print(json.dumps([sorted(set(found)), "numba" in sys.modules]))
"""


def test_threads_that_are_sweeping_meanwhile_agree():
    answers, loaded = run(THREADS)
    assert loaded
    assert len(answers) == 1


@pytest.fixture
def plain(monkeypatch):
    """A loop that is not compiled, as every process begins."""
    monkeypatch.setattr(tiers.Loop, "spent", 0.0)

    def double(x, out):
        for i in range(len(x)):
            out[i] = 2.0 * x[i]
        return type(x).__name__

    return tiers.Loop(double)


def test_a_loop_works_on_plain_numbers_and_counts_its_time(plain):
    x, out = np.arange(3.0), np.empty(3)
    assert plain(x, out) == "memoryview"
    assert out.tolist() == [0.0, 2.0, 4.0]
    assert tiers.Loop.spent > 0.0
    x.flags.writeable = False
    plain(x, out)
    with pytest.raises(TypeError, match="read-only"):
        plain(out, x)


def test_once_compiled_nothing_is_plain():
    tiers.compile_loops()
    for module in (kernels.serial, kernels.band, kernels.rounds):
        assert not [name for name, kernel in vars(module).items() if isinstance(kernel, tiers.Loop)]
    assert kernels.backup is kernels.serial.backup is kernels.rounds.backup
