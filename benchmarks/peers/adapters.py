"""Each peer behind one small door: convert the model once, then solve it with a named method to a tolerance of the peer's own.

Every adapter has `methods` (those of the short form are `quick`), which of them need no tolerance (`exact`),
`refuses(mdp, method)` (why it is not asked to solve a model), `convert(mdp)` and `ready(converted, method, tolerance)`. That
returns what solves, and what reads the value function out of the result: only the first is timed, and it does nothing that could
have been done before. Tolerances are absolute; every adapter receives them already multiplied by the value scale.
"""

from __future__ import annotations

import os
import tempfile
import tracemalloc
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import tightrope as tr
from tightrope.engine.monitor import Aim
from tightrope.engine.outline import cuts
from tightrope.engine.sweep import reach
from tightrope.engine.workspace import Workspace


class Ours:
    """`tightrope.solve(mdp)` as it comes: certified, no tuning.

    What a model finds out about itself at its first solve and keeps (row widths, sinks, its band, which rows are alike, in which
    order values spread, how far its successors lie, where it is cut for threads, the range of rewards, what rounding does, how it
    prints) counts as conversion, like the structures that peers build.
    """

    name = "tightrope"
    methods = ("1 thread", "2 threads")
    exact = quick = methods

    def refuses(self, mdp, method):  # noqa: ARG002  (one door for all)
        return None

    def convert(self, mdp):
        """From SciPy arrays through the public door, validation included."""
        ours = tr.MDP(mdp.P, mdp.r, mdp.gamma, mdp.first)
        for fact in (ours.chain_room, ours.rounding, ours.arrays):
            del fact
        Workspace(ours, np.zeros(ours.n_states), Aim(1e-6, -1.0)).arrange()
        for find in (reach, cuts, repr):
            find(ours)
        return ours

    def ready(self, mdp, method, tolerance):  # noqa: ARG002
        return partial(tr.solve, mdp, threads=int(method[0])), lambda solution: solution.value

    def allocates(self, mdp, method):
        """The most bytes that arrays of a first solve take at a time, what the model then keeps included.

        The process as a whole may grow by less: it has memory left over from before.
        """
        twin = tr.MDP(mdp.P, mdp.r, mdp.gamma, mdp.first)
        tracemalloc.start()
        tr.solve(twin, threads=int(method[0]))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak


class QuantEcon:
    """DiscreteDP in state-action-pair form with a sparse Q."""

    name = "quantecon"
    methods = ("modified PI", "modified PI, k=100", "PI", "VI")
    quick = ("modified PI", "PI", "VI")
    exact = ("PI",)

    def refuses(self, mdp, method):
        wide = method == "PI" and mdp.n_states > 200_000
        return "its sparse LU fills in: minutes and gigabytes already at 1e5 states" if wide else None

    def convert(self, mdp):
        from quantecon.markov import DiscreteDP

        pairs = mdp.pairs
        Q = sp.csr_matrix((mdp.P.data, mdp.P.indices, mdp.P.indptr), shape=mdp.P.shape)
        return DiscreteDP(mdp.r, Q, mdp.gamma, pairs.states, pairs.actions)

    def ready(self, ddp, method, tolerance):
        if method == "PI":
            run = partial(ddp.solve, "policy_iteration")
        elif method == "VI":
            run = partial(ddp.solve, "value_iteration", epsilon=tolerance, max_iter=10**8)
        else:
            k = 100 if method.endswith("100") else 20
            run = partial(ddp.solve, "modified_policy_iteration", epsilon=tolerance, max_iter=10**7, k=k)
        return run, lambda found: found.v


class MDPSolver:
    """mdpsolver, serial. A model remembers its last solution and starts there, so it is told to start from nothing each time."""

    name = "mdpsolver"
    methods = ("mpi standard", "vi standard", "vi gs", "mpi gs", "mpi sor 1.2", "pi standard", "pi gs")
    quick = methods[:3]
    exact = ()

    def refuses(self, mdp, method):
        rest = mdp.P.nnz > 4_000_000 and method not in self.methods[:2]
        return "beyond 4e6 transitions only its two fastest methods are run" if rest else None

    def convert(self, mdp):
        import mdpsolver

        P, first = mdp.P, mdp.first
        ends = P.indptr[1:-1]
        probabilities = [x.tolist() for x in np.split(P.data, ends)]
        columns = [x.tolist() for x in np.split(P.indices, ends)]
        rewards = mdp.r.tolist()
        cuts = first.tolist()
        each = list(pairwise(cuts))
        model = mdpsolver.model()
        model.mdp(
            discount=mdp.gamma,
            rewards=[rewards[i:j] for i, j in each],
            tranMatProbs=[probabilities[i:j] for i, j in each],
            tranMatColumns=[columns[i:j] for i, j in each],
        )
        return model, [0] * mdp.n_states, [0.0] * mdp.n_states

    def ready(self, converted, method, tolerance):
        model, policy, values = converted
        algorithm, update, *relaxation = method.split()
        run = partial(
            model.solve,
            algorithm=algorithm,
            update=update,
            tolerance=tolerance,
            SORrelaxation=float(relaxation[0]) if relaxation else 1.0,
            initPolicy=policy,
            initValueVector=values,
            makeFinalCheck=False,
            parallel=False,
        )
        return run, lambda _: np.array(model.getValueVector())


class Storm:
    """stormpy: the discounted total reward property R=? [Cdiscount=γ], for which Storm has one method (value iteration)."""

    name = "stormpy"
    methods = quick = ("discounted VI, absolute", "discounted VI, relative")
    exact = ()

    def refuses(self, mdp, method):  # noqa: ARG002
        return None

    def convert(self, mdp):
        import stormpy

        stormpy.developer.set_log_level(stormpy.developer.LogLevel.ERR)
        handle, path = tempfile.mkstemp(suffix=".umb")
        os.close(handle)
        try:
            tr.write(mdp, path)
            model = stormpy.build_model_from_umb(path)
        finally:
            Path(path).unlink()
        (formula,) = stormpy.parse_properties(f'R{{"reward"}}max=? [ Cdiscount={mdp.gamma!r} ]')
        return model, formula

    def ready(self, converted, method, tolerance):
        import stormpy

        environment = stormpy.Environment()
        options = environment.solver().min_max()
        options.precision = stormpy.Rational(tolerance)
        options.relative_termination_criterion = method.endswith("relative")
        run = partial(stormpy.model_checking, *converted, environment=environment)
        return run, lambda found: np.array(found.get_value_vector())


class Toolbox:
    """mdptoolbox-hiive, on dense arrays: its policy methods make P_π dense, its value iteration reads P column by column."""

    name = "mdptoolbox"
    methods = ("PI", "modified PI", "VI")
    quick = ("PI", "VI")
    exact = ("PI",)
    limit = 200e6

    def refuses(self, mdp, method):  # noqa: ARG002
        need = 8.0 * mdp.pairs.n_actions * mdp.n_states**2
        return f"dense arrays of {need / 1e9:.1f} GB" if need > self.limit else None

    def convert(self, mdp):
        S, A, pairs = mdp.n_states, mdp.pairs.n_actions, mdp.pairs
        # Where an action is not offered, the first one of the state takes its place.
        rows = np.repeat(mdp.first[:-1], A).reshape(S, A)
        rows[pairs.states, pairs.actions] = np.arange(mdp.n_pairs)
        return np.stack([mdp.P[rows[:, a]].toarray() for a in range(A)]), mdp.r[rows], mdp.gamma

    def ready(self, converted, method, tolerance):
        from hiive.mdptoolbox import mdp as toolbox

        kinds = {"PI": toolbox.PolicyIteration, "VI": toolbox.ValueIteration, "modified PI": toolbox.PolicyIterationModified}
        options = {} if method == "PI" else {"epsilon": tolerance}

        def run():
            solver = kinds[method](*converted, skip_check=True, **options)
            solver.run()
            return solver

        return run, lambda solver: np.array(solver.V)


#: The likely winners first: what they need limits how long the others may take.
PEERS = (Storm(), QuantEcon(), MDPSolver(), Toolbox())
