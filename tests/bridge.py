"""From a reference case to the library's own types, and back."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

import reference
import tightrope as tr

if TYPE_CHECKING:
    from reference import Case


def mdp_of(case: Case) -> tr.MDP:
    """The case as a model."""
    return tr.MDP.from_dense(case.P, case.r, case.gamma, feasible=case.ok)


def policy_of(mdp: tr.MDP, pi: np.ndarray) -> tr.Policy:
    """Weights [S, A] as a policy: deterministic where every weight is 0 or 1."""
    if np.isin(pi, (0.0, 1.0)).all():
        return tr.Policy.deterministic(mdp, pi.argmax(axis=1))
    return tr.Policy.stochastic(mdp, pi)


def weights_of(case: Case, pi: tr.Policy) -> np.ndarray:
    """A policy as weights [S, A]."""
    table = np.zeros(case.r.shape)
    table[case.ok] = pi.weights
    return table


def value_of(case: Case, pi: tr.Policy) -> np.ndarray:
    """The value of a library policy by the reference: for laws that are about the policy, not about evaluation."""
    return reference.value(case, weights_of(case, pi))


@cache
def pool(n: int = 1_000, seed: int = 20181, **fixed: float) -> list[tuple[Case, tr.MDP]]:
    """n random cases with their models, built once for the whole test run."""
    return [(case, mdp_of(case)) for case in reference.random_cases(n, seed, **fixed)]


def exact_of(mdp: tr.MDP) -> reference.Exact:
    """A model in fractions, from exactly the numbers it stores."""
    return reference.exact(mdp.P.toarray(), mdp.r, mdp.first, mdp.gamma)
