"""What the tests run under mpiexec: `python petsc_driver.py TASK FOLDER`. Rank 0 writes what the ranks came to."""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import bridge
import reference
import tightrope as tr
from tightrope import cluster
from tightrope.cluster import ranks
from tightrope.cluster.reading import find
from tightrope.model.problems import catalogue

KAPPAS = (0.0, 0.5, 0.9)
LIMIT = 0.99  # sweeps of a chain that forgets more slowly are for other tests


def algorithms(case):
    """One of each kind; the soft update is the safe one."""
    return {
        "engine": None,
        "pi": tr.policy_iteration(),
        "mpi": tr.modified_policy_iteration(5),
        "h_pi": tr.h_pi(3),
        "h_vi": tr.h_vi(2),
        "kappa_pi": tr.kappa_pi(case.kappa),
        "kappa_lambda": tr.kappa_lambda_pi(case.kappa, 0.5 * (1.0 + case.kappa)),
        "soft": tr.kappa_pi(case.kappa, alpha=max(case.kappa, 0.5)),
    }


def zoo(folder):
    """Every problem with every kappa, read as the command line reads it: functions are built in parts."""
    for name in catalogue():
        for kappa in KAPPAS:
            keep(folder, f"{name}-{kappa}", find(name).mdp, tr.kappa_pi(kappa))


def cases(folder):
    """Random small models, some with fewer states than there are ranks, by every kind of algorithm."""
    for i, case in enumerate(reference.random_cases(24, seed=7)):
        if case.gamma <= LIMIT:
            for name, algorithm in algorithms(case).items():
                keep(folder, f"{i}-{name}", bridge.mdp_of(case), algorithm)


def files(folder):
    """Models on disk, of which every rank reads its rows; and where a run begins."""
    for path in ("ragged.npz", "P.bin", "model.csv"):
        keep(folder, path, find(str(folder / path), 0.9).mdp, tr.kappa_pi(0.5))
    keep(folder, "costs", find(str(folder / "ragged.npz"), costs=True).mdp, None)
    whole = tr.read(folder / "ragged.npz")
    best = tr.solve(whole)
    keep(folder, "v0", cluster.read(folder / "ragged.npz"), None, v0=best.value)
    keep(folder, "pi0", whole, tr.policy_iteration(), pi0=best.policy)
    soft = tr.Policy.uniform(whole)
    keep(folder, "uniform", whole, tr.kappa_pi(0.0, alpha=0.5), pi0=soft)


def refused(folder):
    """What only one rank, or all of them, find wrong: the error each rank sees."""

    def dynamics(states, action):
        r = np.where(states == 90, np.nan, 1.0) if action else np.ones(len(states))
        return (states + 1) % 100, 1.0, r

    def leaky(states, action):
        return (states + 1) % 100, np.where(states == 1, 0.5, 1.0)[:, None], 0.0 * states + action

    backend = cluster.petsc(folder / "foreign.npz", minutes=0.0)
    tr.solve(tr.problems.garnet(seed=1), tr.value_iteration(), backend=backend, max_iterations=5)
    tries = {
        "nan": lambda: cluster.from_function(dynamics, 100, 2, 0.9),
        "leaky": lambda: cluster.from_function(leaky, 100, 2, 0.9),
        "gamma": lambda: cluster.from_function(leaky, 100, 2, 1.0),
        "damaged": lambda: cluster.read(folder / "damaged.npz"),
        "foreign": lambda: tr.solve(tr.problems.garnet(seed=2), tr.value_iteration(), backend=backend),
        "other": lambda: tr.solve(tr.problems.garnet(seed=1), tr.kappa_pi(0.5), backend=backend),
        "v0": lambda: tr.solve(tr.problems.garnet(seed=1), backend=cluster.petsc(), v0=np.zeros(7)),
        "disk": lambda: cluster.petsc().save(tr.solve(tr.problems.garnet(), backend=cluster.petsc()), folder / "no" / "x.npz"),
    }
    said = {}
    for name, attempt in tries.items():
        try:
            attempt()
        except tr.errors.TightropeError as error:
            said[name] = ranks.world().gather(f"{type(error).__name__}: {error}")
    if backend.leads:
        (folder / "said.json").write_text(json.dumps(said))


def uncaught(folder):  # noqa: ARG001  (one signature for all)
    """An error that one rank alone meets, where nobody agrees on anything."""
    if ranks.world().rank == ranks.world().size - 1:
        raise RuntimeError("only here")
    ranks.world().Barrier()


def long(folder):
    """A run of more than a thousand short iterations that is saved after each; it says who runs it and how far it is."""
    rank = ranks.world().rank
    (folder / f"pid{rank}").write_text(str(os.getpid()))
    backend = cluster.petsc(folder / "run.npz", minutes=0.0)
    with (folder / "log").open("a") as log:

        def say(row):
            print(row.iteration, file=log, flush=True)

        keep(
            folder, "long", find("gridworld:height=40,width=40,gamma=0.995").mdp, tr.value_iteration(), backend, on_iteration=say
        )


def keep(folder, name, mdp, algorithm, backend=None, **start):
    """Solve, and save the whole solution both ways."""
    used = backend or cluster.petsc()
    solution = tr.solve(mdp, algorithm, backend=used, **start)
    used.save(solution, folder / f"{name}.solution.npz")
    whole = used.gather(solution)
    assert (whole is not None) == used.leads
    if whole is not None:
        again = tr.Solution.load(folder / f"{name}.solution.npz")
        assert again.policy == whole.policy
        assert (again.lower == whole.lower).all()
        assert repr(again) == repr(whole) == repr(solution)


if __name__ == "__main__":
    warnings.simplefilter("error")
    {f.__name__: f for f in (zoo, cases, files, refused, uncaught, long)}[sys.argv[1]](Path(sys.argv[2]))
