"""Exact planning: every algorithm is improvement x evaluation in one loop."""

from tightrope.planning.evaluate import Exact, Lambda, Sweeps
from tightrope.planning.improve import Kappa, Lookahead, OneStep
from tightrope.planning.iteration import Iterate, PolicyIteration
from tightrope.planning.recipes import (
    h_pi,
    h_vi,
    kappa_lambda_pi,
    kappa_pi,
    kappa_vi,
    modified_policy_iteration,
    policy_iteration,
    value_iteration,
)
from tightrope.planning.solve import solve

__all__ = [
    "Exact",
    "Iterate",
    "Kappa",
    "Lambda",
    "Lookahead",
    "OneStep",
    "PolicyIteration",
    "Sweeps",
    "h_pi",
    "h_vi",
    "kappa_lambda_pi",
    "kappa_pi",
    "kappa_vi",
    "modified_policy_iteration",
    "policy_iteration",
    "solve",
    "value_iteration",
]
