"""The fastest certified way to the optimum of one MDP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.engine.certificate import Certificate, certify
from tightrope.engine.chain import chain_value
from tightrope.engine.monitor import Limits, Monitor, Status
from tightrope.engine.sweep import Sweeper
from tightrope.model.policy import Policy

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Optimum:
    """A policy, what is proved about it, and how the run ended."""

    policy: Policy
    certificate: Certificate
    status: Status

    @property
    def value(self) -> FloatArray:
        """The best estimate of v* [S]."""
        return self.certificate.value


def optimal(mdp: MDP, *, tol: float = 1e-6, v0: FloatArray | None = None, monitor: Monitor | None = None) -> Optimum:
    """An optimal policy with a certified relative gap of tol (0: as small as floats allow); a monitor brings its own limits."""
    watch = monitor or Monitor(Limits(tol))
    v = np.zeros(mdp.n_states) if v0 is None else np.array(v0, dtype=np.float64)
    sweeper = Sweeper(mdp)
    status = None
    try:
        while True:
            u, rows, low, high = sweeper.backup(v)
            watch.backups += mdp.n_pairs
            found = certify(mdp, u, low, high)
            status = watch.record(found, rows, max(abs(low), abs(high)))
            if status is not None:
                break
            v = chain_value(mdp.P[rows], mdp.r[rows], mdp.gamma, u, 0.05 * max(found.gap, 4.0 * found.floor), watch)
    except KeyboardInterrupt:
        if watch.best is None:
            raise
        status = Status.INTERRUPTED
    assert watch.best is not None  # noqa: S101  (the loop ends after a record)
    return Optimum(Policy.of_rows(mdp.pairs, watch.best[0]), watch.best[1], status)
