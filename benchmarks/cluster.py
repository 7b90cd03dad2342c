"""What several ranks cost and gain: memory, time against one machine, scaling, and the traffic that an order of states makes.

    .venv-cluster/bin/python benchmarks/cluster.py memory|cost|strong|weak|traffic|large [SIZE]

Each part starts `mpiexec` itself and prints a table. Times are the least of several; the spread is printed with them.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
REPEATS = 7


def band(S, A=8, K=12):
    """A model as a function: every pair leads to K states near its own, on a ring."""

    def dynamics(states, action):
        return (
            (states[:, None] + (action + 1) * np.arange(-K // 2, K - K // 2)) % S,
            np.full(K, 1.0 / K),
            np.sin(1e-3 * states + action),
        )

    return dynamics, S, A


def grid(side, gamma=0.99):
    return f"gridworld:height={side},width={side},gamma={gamma}"


# Under mpiexec: rank 0 prints one line of JSON.


def tell(backend, **numbers):
    if backend.leads:
        print("RESULT " + json.dumps(numbers), flush=True)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def do_memory(S, successors):
    import tightrope as tr
    from tightrope import cluster
    from tightrope.cluster import ranks

    backend = cluster.petsc()
    tr.solve(tr.problems.garnet(), tr.modified_policy_iteration(), backend=backend)  # everything is loaded
    base = peak()
    share = cluster.from_function(*band(S, K=successors), 0.9, chunk=1 << 12)
    solution = tr.solve(share, tr.modified_policy_iteration(), backend=backend)
    peaks = ranks.world().gather((base, peak()))
    tell(backend, base=max(b for b, _ in peaks or [(0, 0)]), peak=max(p for _, p in peaks or [(0, 0)]), gap=solution.gap)


def do_times(name, repeats=REPEATS):
    """Seconds of one Bellman backup (with its reductions) and one sweep of the greedy policy's chain; and the halo."""
    import tightrope as tr
    from tightrope import cluster, kernels
    from tightrope.cluster import ranks
    from tightrope.cluster.reading import find
    from tightrope.engine import Limits, Monitor

    backend, comm = cluster.petsc(), ranks.world()
    tr.solve(tr.problems.garnet(), tr.modified_policy_iteration(), backend=backend)
    share = cluster.from_function(*band(int(name)), 0.9) if name.isdigit() else find(name).mdp
    monitor, v = Monitor(Limits(), backend=backend), np.zeros(share.n_states)
    backup, sweep = [], []
    for _ in range(repeats):
        comm.Barrier()
        began = time.perf_counter()
        found = backend.backup(share, v, monitor)
        backend.certify(share, found)
        backup.append(time.perf_counter() - began)
        v = found.u
    P, r = share.P[found.rows], np.array(share.r[found.rows])
    began = time.perf_counter()
    P = share.P[found.rows]
    extract = time.perf_counter() - began
    for _ in range(repeats):
        comm.Barrier()
        began = time.perf_counter()
        kernels.shares.step(P.into(v), r, share.gamma, v)
        sweep.append(time.perf_counter() - began)
    halo = comm.allreduce(share.P.halo())
    tell(backend, backup=backup, sweep=sweep, extract=extract, halo=halo, states=share.whole.n_states, nnz=share.whole.nnz)


def do_solve(name, algorithm, repeats=3):
    """CPU and wall seconds of 20 iterations: on the ranks, and (where there is one) by this machine's own code, one thread."""
    import tightrope as tr
    from tightrope import cluster
    from tightrope.cluster import ranks
    from tightrope.cluster.reading import find
    from tightrope.model.locate import locate

    chosen = {"mpi": tr.modified_policy_iteration(10), "vi": tr.value_iteration(), "h": tr.h_vi(3)}[algorithm]
    backend = cluster.petsc()
    told = {}
    small, here = tr.problems.garnet(), {"threads": 1}
    for who, mdp, how in (("ranks", find(name).mdp, {"backend": backend}), ("one", locate(name), here)):
        if who == "one" and ranks.world().size > 1:
            continue
        tr.solve(small, chosen, **how)
        told[who], told[f"{who} wall"] = [], []
        for _ in range(repeats):
            began, cpu = time.perf_counter(), time.process_time()
            solution = tr.solve(mdp, chosen, max_iterations=20, **how)
            told[who].append(time.process_time() - cpu)
            told[f"{who} wall"].append(time.perf_counter() - began)
        told[f"{who} gap"] = [solution.gap, solution.iterations]
    tell(backend, **told)


def do_large(side, gamma):
    import tightrope as tr
    from tightrope import cluster
    from tightrope.cluster import ranks
    from tightrope.cluster.reading import find

    backend = cluster.petsc()
    began = time.perf_counter()
    share = find(grid(int(side), float(gamma))).mdp
    built, peak_built = time.perf_counter() - began, peak()

    def show(row):
        if row.iteration % 20 == 0:
            print(row, flush=True)

    solution = tr.solve(share, backend=backend, on_iteration=show)
    peaks = ranks.world().gather((peak_built, peak()))
    if backend.leads:
        print(solution, flush=True)
    tell(backend, built=built, seconds=solution.seconds, gap=solution.gap, peaks=peaks, iterations=solution.iterations)


# On this process: start the above, and print.


def run(n, *arguments):
    command = ["mpiexec", "-n", str(n), sys.executable, __file__, "do", *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | MPI, capture_output=True, text=True, check=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))[7:])


def spread(times, unit=1e3):
    return f"{unit * min(times):.1f} ({unit * float(np.median(times)):.1f} median, {unit * max(times):.1f} worst)"


def memory(size="1000000", successors="12"):
    print(f"| ranks | peak MB a rank | of it before the model | model and solve | times ranks, of one rank's |\n|{'---|' * 5}")
    alone = None
    for n in (1, 2, 3):
        found = run(n, "memory", size, successors)
        net = found["peak"] - found["base"]
        alone = alone or (found["peak"], net)
        print(
            f"| {n} | {found['peak']:.0f} | {found['base']:.0f} | {net:.0f} | "
            f"{n * found['peak'] / alone[0]:.2f} all, {n * net / alone[1]:.2f} without what was loaded before |"
        )


def cost(*_):
    """CPU seconds, which other users of a machine disturb least: 20 iterations of the same algorithm on one core."""
    print(f"| model | algorithm | one rank s | one machine, one thread s | ratio | gap after 20 iterations |\n|{'---|' * 6}")
    for name in ("gridworld:height=400,width=400", "garnet:n_states=30000,n_actions=8,branching=8", "queue:capacity=100000"):
        for algorithm in ("mpi", "vi", "h"):
            found = run(1, "solve", name, algorithm)
            ours, one = min(found["ranks"]), min(found["one"])
            gaps = " = ".join(f"{found[who][0]:.6g}" for who in ("ranks gap", "one gap"))
            print(f"| {name} | {algorithm} | {ours:.2f} | {one:.2f} | {ours / one:.2f} | {gaps} |", flush=True)


def strong(*_):
    print(f"| model | ranks | backup ms | sweep of a chain ms | halo (states) |\n|{'---|' * 5}")
    for name in (grid(1000), "1000000", "garnet:n_states=100000,n_actions=8,branching=8"):
        for n in (1, 2, 3):
            found = run(n, "times", name)
            print(f"| {name} | {n} | {spread(found['backup'])} | {spread(found['sweep'])} | {found['halo']} |", flush=True)


def weak(*_):
    print(f"| states a rank | ranks | backup ms | sweep ms | halo |\n|{'---|' * 5}")
    for each in (250_000, 1_000_000):
        for n in (1, 2, 3):
            found = run(n, "times", str(n * each))
            print(f"| {each:,} | {n} | {spread(found['backup'])} | {spread(found['sweep'])} | {found['halo']} |", flush=True)


def traffic(side="300"):
    """Values that cross between ranks in one product, for three orders of the states of one grid."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    import tightrope as tr

    mdp = tr.problems.gridworld(int(side), int(side))
    S, states = mdp.n_states, mdp.pairs.states
    graph = sp.csr_array((np.ones(mdp.P.nnz), (np.repeat(states, np.diff(mdp.P.indptr)), mdp.P.indices)), shape=(S, S))
    shuffled = np.random.default_rng(0).permutation(S)
    mixed = sp.csr_array(sp.csr_matrix(graph)[shuffled][:, shuffled])
    order = reverse_cuthill_mckee(sp.csr_matrix(mixed + mixed.T), symmetric_mode=True)
    orders = {"row by row": graph, "shuffled": mixed, "shuffled, then RCM": sp.csr_array(sp.csr_matrix(mixed)[order][:, order])}
    print(f"| ranks | {' | '.join(orders)} |\n|{'---|' * (1 + len(orders))}")
    for n in (2, 4, 16, 64):
        print(f"| {n} | " + " | ".join(f"{crossing(matrix, n):,}" for matrix in orders.values()) + " |")
    for name, places in (("shuffled", shuffled), ("shuffled, then RCM", shuffled[order])):
        path = Path(tempfile.gettempdir()) / f"tightrope-traffic-{os.getpid()}.npz"
        tr.write(reordered(mdp, places), path)
        found = run(2, "times", path)
        path.unlink()
        print(f"\n{name}, 2 ranks: backup {spread(found['backup'])} ms, halo {found['halo']:,}")


def crossing(graph, n):
    S, total = graph.shape[0], 0
    for rank in range(n):
        begin, end = S * rank // n, S * (rank + 1) // n
        columns = graph.indices[graph.indptr[begin] : graph.indptr[end]]
        total += len(np.unique(columns[(columns < begin) | (columns >= end)]))
    return total


def reordered(mdp, places):
    """The same model with its states in another order: new state i is old state places[i]."""
    import tightrope as tr

    number = np.empty(mdp.n_states, dtype=np.int64)
    number[places] = np.arange(mdp.n_states)
    P = sp.csr_array((mdp.P.data, number[mdp.P.indices], mdp.P.indptr), shape=mdp.P.shape)
    return tr.MDP.from_pairs(number[mdp.pairs.states], mdp.pairs.actions, P, mdp.r, mdp.gamma)


def large(side="4473", gamma="0.9"):
    print(json.dumps(run(2, "large", side, gamma), indent=1))


if __name__ == "__main__":
    if sys.argv[1] == "do":
        {
            "memory": lambda S, K: do_memory(int(S), int(K)),
            "times": lambda name, n=REPEATS: do_times(name, int(n)),
            "solve": do_solve,
            "large": do_large,
        }[sys.argv[2]](*sys.argv[3:])
    else:
        {f.__name__: f for f in (memory, cost, strong, weak, traffic, large)}[sys.argv[1]](*sys.argv[2:])
