"""The fastest certified way to the optimum of one MDP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope import kernels
from tightrope.engine.certificate import Certificate, certify
from tightrope.engine.evaluate import evaluate
from tightrope.kernels import unsigned
from tightrope.model.policy import Policy

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Optimum:
    """A policy, what is proved about it, and what it cost."""

    policy: Policy
    certificate: Certificate
    backups: int

    @property
    def value(self) -> FloatArray:
        """The best estimate of v* [S]."""
        return self.certificate.value


def optimal(mdp: MDP, *, tol: float = 1e-6, v0: FloatArray | None = None) -> Optimum:
    """An optimal policy with certified relative gap <= tol (0: as small as floats allow)."""
    v = np.zeros(mdp.n_states) if v0 is None else np.array(v0, dtype=np.float64)
    u = np.empty_like(v)
    rows = np.empty(mdp.n_states, dtype=mdp.first.dtype)
    P = mdp.P
    arrays = (unsigned(P.indptr), unsigned(P.indices), P.data, mdp.r, unsigned(mdp.first))
    best: Optimum | None = None
    backups = 0
    while True:
        low, high = kernels.backup(*arrays, mdp.gamma, v, u, unsigned(rows))
        backups += mdp.n_pairs
        found = certify(mdp, u, low, high)
        if best is not None and found.gap >= 0.99 * best.certificate.gap and tol == 0.0:
            return best
        if best is None or found.gap < best.certificate.gap:
            best = Optimum(Policy.of_rows(mdp.pairs, rows.copy()), found, backups)
        if found.relative_gap <= tol:
            return best
        v, sweeps = evaluate(P[rows], mdp.r[rows], mdp.gamma, u, 0.0 if tol == 0.0 else 0.05 * found.gap)
        backups += sweeps * mdp.n_states
        u = np.empty_like(v)
