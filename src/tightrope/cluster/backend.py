"""PETSc over MPI as the backend of the one loop: the same algorithms, certificates and traces, on as many ranks as there are."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import kernels
from tightrope.cluster import chain, gathering, ranks
from tightrope.cluster.checkpoint import Saving
from tightrope.cluster.share import Share, of_function, of_mdp, span
from tightrope.engine import Status, Sweep, certify
from tightrope.engine.backend import Start
from tightrope.engine.monitor import Tally
from tightrope.errors import InvalidArgument
from tightrope.kernels import unsigned
from tightrope.model import validate
from tightrope.model.function import Function
from tightrope.model.pairs import Pairs
from tightrope.model.policy import Policy
from tightrope.planning import OneStep, PolicyIteration
from tightrope.planning.evaluate import SHARE
from tightrope.planning.solve import iterate
from tightrope.solution import told

if TYPE_CHECKING:
    import os

    from tightrope.cluster.matrix import Rows
    from tightrope.engine import Certificate, Monitor
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray
    from tightrope.planning import Iterate
    from tightrope.planning.improve import Improvement
    from tightrope.solution import Solution

#: How much of the present gap an evaluation on the way to an optimum may leave, and the share of states whose action may still
#: change when it is worth evaluating to that point; before, an evaluation costs about as much as two backups.
FORCING, SETTLED = 0.05, 0.01

_METHODS = {
    "sweeps": "sweeps of the greedy policy, each a product with its rows (modified policy iteration)",
    "krylov": "GMRES on the greedy policy's chain, preconditioned by an incomplete factorisation of each rank's block",
}


def petsc(checkpoint: str | os.PathLike[str] | None = None, *, minutes: float = 10.0) -> Petsc:
    """The ranks of this MPI job as a backend for `solve`; one rank where the program was not started by mpiexec.

    Args:
        checkpoint: a file to save the state of a run to; if it is there already, the run is taken up from it, on any number
            of ranks.
        minutes: how often that is done.
    """
    return Petsc(ranks.world(), None if checkpoint is None else Path(checkpoint), validate.finite(minutes, "minutes", low=0.0))


@dataclass(eq=False)
class Petsc:
    """Every rank holds the rows of its own states as a PETSc AIJ matrix; products, sums and solves are PETSc's and MPI's."""

    comm: Any = field(repr=False)
    checkpoint: Path | None = None
    minutes: float = 10.0
    _saving: Saving | None = field(default=None, repr=False)

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, which prints."""
        return bool(self.comm.rank == 0)

    def place(self, mdp: MDP | Share | Function, v0: Any, pi0: Policy | None, algorithm: str, monitor: Monitor) -> Start:
        """This rank's share of a model; v0 and pi0 may be of the whole model or of this share. A checkpoint is taken up."""
        share = self._share(mdp)
        with ranks.agreeing(self.comm):
            v0, pi0 = self._part(share, v0), self._policy(share, pi0)
        if self.comm.rank:
            monitor.on_iteration = None
        ranks.watch_interrupts()
        self._saving = Saving(share, monitor, algorithm, self.checkpoint, 60.0 * self.minutes)
        if self._saving.resume():
            v0, pi0 = self._saving.v, self._saving.policy
        return Start(share, v0, pi0)

    def backup(self, mdp: Share, v: FloatArray | None, monitor: Monitor) -> Sweep:  # noqa: ARG002  (a protocol)
        """P v by PETSc, then the best pair of each state here."""
        v = np.zeros(mdp.n_states) if v is None else v
        u = np.empty_like(v)
        rows = np.empty(len(v), dtype=mdp.first.dtype)
        low, high = kernels.shares.best(mdp.P.into(v), mdp.r, unsigned(mdp.first), mdp.gamma, v, u, rows)
        return Sweep(u, rows, *ranks.extremes(self.comm, low, high))

    def certify(self, mdp: Share, sweep: Sweep) -> Certificate:
        """From the extremes of all ranks."""
        extent = ranks.extremes(self.comm, float(sweep.u.min(initial=np.inf)), float(sweep.u.max(initial=-np.inf)))
        return certify(mdp, sweep.u, sweep.low, sweep.high, extent)  # type: ignore[arg-type]  # it asks for whole numbers only

    def chain_value(
        self, P: Rows, r: FloatArray, gamma: float, guess: FloatArray | None, goal: float, monitor: Monitor, most: float = np.inf
    ) -> FloatArray:
        """By sweeps, or by Krylov rounds where those get further."""
        begin = self._taken_up(np.array(r if guess is None else guess))
        before = P.products
        v, method = chain.chain_value(self.comm, P, r, gamma, begin, goal, most=most, pause=lambda v: self._pause(v, monitor))
        monitor.backups += (P.products - before) * len(r)
        monitor.note(_METHODS[method])
        return v

    def policy_value(self, mdp: Share, policy: Policy, guess: FloatArray | None, goal: float, monitor: Monitor) -> FloatArray:
        """From the policy's rows of this share."""
        return self.chain_value(*policy.induced(mdp), mdp.gamma, guess, goal, monitor)  # type: ignore[arg-type]

    def is_band(self, mdp: Share) -> bool:  # noqa: ARG002  (a protocol)
        """Never: nothing is eliminated here."""
        return False

    def sweep_chain(self, P: Rows, r: FloatArray, gamma: float, v: FloatArray, m: int, monitor: Monitor) -> FloatArray:
        """m products."""
        v = v.copy()
        for _ in range(m):
            kernels.shares.step(P.into(v), r, gamma, v)
        monitor.backups += m * len(r)
        return v

    def optimise(self, mdp: Share, monitor: Monitor, v0: FloatArray | None, look: Sweep | None = None) -> Status:  # noqa: ARG002  (a protocol)
        """By the one loop: improve in one step, evaluate as far as that pays."""
        low = mdp.reward_range[0] / (1.0 - mdp.gamma)
        start = self._taken_up(np.full(mdp.n_states, low) if v0 is None else v0)
        return iterate(mdp, PolicyIteration(OneStep(), _AsFarAsItPays()), monitor, start)  # type: ignore[arg-type]

    def together(self, tally: Tally) -> Tally:
        """Counts added up, the clock of rank 0, and Ctrl-C for all where one rank has heard it."""
        lead = self.comm.rank == 0
        counts = (tally.changes, tally.backups, lead * tally.seconds, lead * tally.late, ranks.interrupted())
        changes, backups, seconds, late, stop = ranks.total(self.comm, *counts)
        if stop:
            raise KeyboardInterrupt
        return Tally(int(changes), int(backups), seconds, bool(late))

    def keep(self, now: Iterate, monitor: Monitor) -> None:
        """Remember where the run stands, and save it if it is time."""
        saving = self._saving
        if saving is None or saving.path is None:
            return
        if monitor is saving.monitor:
            saving.v, saving.policy, saving.guess = now.v, now.policy, None
        else:
            saving.guess = now.v
        if saving.due():
            saving.write()

    def gather(self, solution: Solution) -> Solution | None:
        """The solution of the whole model on rank 0, None on the others; all ranks must ask for it together."""
        policy, pairs = solution.policy, solution.policy.pairs
        before = self.comm.exscan(pairs.n_pairs) or 0
        counts = gathering.gather(self.comm, pairs.counts.astype(np.int64))
        ids = gathering.gather(self.comm, pairs.actions.astype(np.int32))
        rows = gathering.gather(self.comm, np.asarray(policy.rows).astype(np.int64) + before)
        base = gathering.gather(self.comm, solution.certificate.base)
        names = self.comm.gather(pairs.state_names)
        if counts is None or names is None:
            return None
        first = np.concatenate(([0], np.cumsum(counts)))
        state_names = None if None in names else [name for part in names for name in part]
        whole = Pairs.checked(validate.first_pairs(first, len(counts), int(first[-1])), ids, state_names, pairs.action_names)
        found = solution.certificate._replace(base=validate.frozen(base))
        policy = Policy.of_rows(whole, rows.astype(whole.first.dtype))
        return told(solution.account._replace(policy=policy, certificate=found))

    def save(self, solution: Solution, path: str | os.PathLike[str]) -> None:
        """Write what `Solution.load` reads, piece by piece: nobody holds the whole. All ranks must ask for it together."""
        header, arrays = solution.stored()
        pairs = solution.policy.pairs
        before = self.comm.exscan(pairs.n_pairs) or 0
        named = self.comm.gather(pairs.state_names)
        if named is not None:
            header["state_names"] = None if None in named else [name for part in named for name in part]
        spread = {
            "first": pairs.first[1 if self.comm.rank else 0 :].astype(np.int64) + before,
            "rows": np.asarray(solution.policy.rows).astype(np.int64) + before,
            "base": arrays["base"],
        }
        if self.comm.allreduce(pairs.ids is not None):
            spread["ids"] = pairs.actions.astype(np.int32)
        gathering.save(self.comm, path, "solution", header, spread, {"trace": arrays["trace"]})

    def _share(self, mdp: Any) -> Share:
        if isinstance(mdp, Share):
            return mdp
        return of_function(self.comm, mdp) if isinstance(mdp, Function) else of_mdp(self.comm, mdp)

    def _part(self, share: Share, v0: Any) -> Any:
        """This share's part of a vector over all states, or over the states of the share."""
        if v0 is None or np.shape(v0) == (share.n_states,):
            return v0
        begin, end = span(share.whole.n_states, self.comm.rank, self.comm.size)
        return validate.vector(v0, share.whole.n_states, "v0", "state")[begin:end]

    def _policy(self, share: Share, pi0: Policy | None) -> Policy | None:
        """A policy of this share's states, from one of all states."""
        if pi0 is None or pi0.pairs is share.pairs:
            return pi0
        if pi0.pairs.n_states != share.whole.n_states or pi0.pairs.n_pairs != share.whole.n_pairs:
            raise InvalidArgument(f"pi0 is a policy of {pi0.pairs.n_states} states; the model has {share.whole.n_states}")
        lo = int(pi0.pairs.first[share.begin])
        hi = int(pi0.pairs.first[share.begin + share.n_states])
        if pi0.rows is None:
            return Policy(share.pairs, None, validate.frozen(np.array(pi0.weights[lo:hi])))
        rows = np.asarray(pi0.rows[share.begin : share.begin + share.n_states]) - lo
        return Policy.of_rows(share.pairs, rows.astype(share.first.dtype))

    def _taken_up(self, start: FloatArray) -> FloatArray:
        """How far the run of a checkpoint had come within an iteration, once; else the start."""
        saving = self._saving
        if saving is None or saving.guess is None or not saving.resumed:
            return start
        guess, saving.guess, saving.resumed = saving.guess, None, False
        return guess

    def _pause(self, v: FloatArray, monitor: Monitor) -> bool:
        """Between rounds of a long evaluation: save if it is time; whether to stop."""
        saving = self._saving
        if saving is not None and saving.due():
            saving.guess = v
            saving.write()
        return monitor.deadline < np.inf and bool(self.comm.bcast(time.perf_counter() >= monitor.deadline))


@dataclass(frozen=True)
class _AsFarAsItPays:
    """Evaluation on the way to an optimum: a policy that is still changing is not worth knowing the value of."""

    def evaluate(self, mdp: Any, found: Improvement, monitor: Monitor, goal: float) -> FloatArray:
        """To a fraction of the present gap, within a budget while policies change."""
        last = monitor.rows[-1]
        P, r = found.policy.induced(mdp)
        states, pairs = mdp.whole.n_states, mdp.whole.n_pairs
        most = np.inf if last.changes <= SETTLED * states else 2.0 * pairs / states
        aim = max(SHARE * goal, FORCING * last.gap)
        return monitor.backend.chain_value(P, r, mdp.gamma, found.guess, aim, monitor, most)
