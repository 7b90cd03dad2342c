"""`solve`: one entry point, with the engine when no algorithm is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.engine import ENGINE, Limits, Monitor, Room, Status, again, machine, remember
from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.solution import Account, Solution, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.engine import Backend, Row
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.planning.iteration import PolicyIteration


def solve(
    mdp: MDP,
    algorithm: PolicyIteration | None = None,
    *,
    tol: float = 1e-6,
    atol: float | None = None,
    v0: Any = None,
    pi0: Policy | None = None,
    max_iterations: int | None = None,
    max_seconds: float | None = None,
    on_iteration: Callable[[Row], None] | None = None,
    threads: int | None = None,
    backend: Backend | None = None,
) -> Solution:
    """The optimal policy of an MDP, with a certificate.

    Args:
        mdp: the model.
        algorithm: one of the recipes (`kappa_pi(0.9)`, ...) or any `PolicyIteration`; None lets the engine choose as it goes.
        tol: the certified gap to reach, relative to the value scale max(|lower|, |upper|).
        atol: the certified gap to reach in absolute terms, instead of tol.
        v0: a value function to start from [S].
        pi0: a policy to start from. With neither, algorithms start at v = 0; soft updates at the uniform policy, and those that
            evaluate exactly at the policy of the largest rewards where all moves are to near states (queues, stocks).
        max_iterations: stop after this many improvements, with a status that says so.
        max_seconds: stop after about this long, with a status that says so.
        on_iteration: called with each trace row as it is made.
        threads: how many threads sweep large models; all cores by default. The answer is the same for any number.
        backend: who computes: this machine by default, `cluster.petsc()` for the ranks of an MPI job (docs/scaling.md).
    """
    if (
        algorithm is None and type(tol) is float and atol is None and v0 is None and pi0 is None and max_iterations is None
        and max_seconds is None and on_iteration is None and backend is None
        and (threads is None or (type(threads) is int and threads > 0))
    ):  # fmt: skip
        played = again(mdp, tol)
        if played is not None:
            return told(played)
    if not hasattr(mdp, "n_states"):
        found = type(mdp).__name__
        raise InvalidArgument(f"solve needs a model: MDP.from_dense(P, r, gamma), read(path) or one of problems; found {found}")
    if algorithm is not None and not hasattr(algorithm, "step"):
        raise InvalidArgument(
            f"algorithm must be one such as kappa_pi(0.9), or None for the engine's choice; found {algorithm!r}"
        )
    limits = Limits(tol, atol, max_iterations, max_seconds)
    team = None if threads is None else validate.positive_integer(threads, "threads")
    monitor = Monitor(limits, on_iteration, team, backend=backend, room=Room.of(mdp) if backend is None else None)
    name = ENGINE if algorithm is None else repr(algorithm)
    if backend is not None:
        mdp, v0, pi0 = backend.place(mdp, v0, pi0, name, monitor)
    if pi0 is not None:
        pi0.check(mdp)
    if algorithm is not None:
        status = iterate(mdp, algorithm, monitor, v0, pi0)
    else:
        start = validate.vector(v0, mdp.n_states, "v0", "state") if v0 is not None else None
        if start is None and pi0 is not None:
            start = machine(monitor).chain_value(*pi0.induced(mdp), mdp.gamma, None, 0.0, monitor)
        status = machine(monitor).optimise(mdp, monitor, start)
        remember(mdp, monitor, status)
    if backend is None:
        monitor.room.keep(mdp)
    return told(Account.of(mdp, name, monitor, status))


def iterate(mdp: MDP, algorithm: PolicyIteration, monitor: Monitor, v0: Any = None, pi0: Policy | None = None) -> Status:
    """Iterate until the monitor says stop; Ctrl-C ends the run with what was proved so far."""
    now = algorithm.init(mdp, v0, pi0, monitor)
    try:
        status = monitor.record(now.certificate, np.asarray(now.greedy.rows), now.residual, lasting=True)
        while status is None:
            machine(monitor).keep(now, monitor)
            now = algorithm.step(mdp, now, monitor, monitor.limits.goal(now.certificate))
            status = monitor.record(now.certificate, np.asarray(now.greedy.rows), now.residual, lasting=True)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return status
