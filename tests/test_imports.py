"""The arrows between the rooms hold, and `import tightrope` stays cheap."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ("numba", "matplotlib", "pandas", "gymnasium", "sklearn", "rich", "typer", "scipy.sparse.linalg", "scipy.stats")


def run(code):
    """What a fresh interpreter prints for the code, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def test_the_arrows_of_the_house():
    from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS


def test_importing_loads_nothing_heavy():
    loaded = run("import json, sys, tightrope; print(json.dumps(sorted(sys.modules)))")
    assert [name for name in HEAVY if name in loaded] == []


def test_importing_loads_nothing_but_itself_on_top_of_numpy_and_scipy():
    """How long it takes is for benchmarks/ (cold start); here, that there is nothing else to wait for."""
    code = (
        "import json, sys, numpy, scipy.sparse; before = set(sys.modules); import tightrope;"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    assert set(run(code)) - sys.stdlib_module_names == {"tightrope"}


def test_every_public_name_exists_once():
    import tightrope as tr

    assert len(set(tr.__all__)) == len(tr.__all__)
    assert [name for name in tr.__all__ if not hasattr(tr, name)] == []


def test_vocabulary_of_the_design():
    """The names sections 2 to 5 of the paper need are public; other rooms test theirs."""
    import tightrope as tr

    one = "MDP Policy mix T T_pi greedy greedy_set value q_value T_h T_h_pi h_greedy h_greedy_set"
    ahead = "T_kappa T_kappa_pi kappa_greedy kappa_greedy_set surrogate q_kappa H_kappa xi D_kappa cautious"
    names = [*one.split(), *ahead.split()]
    assert [name for name in names if not hasattr(tr, name)] == []
