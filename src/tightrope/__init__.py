"""Tightrope: Markov decision processes solved with multi-step greedy policies, with a certificate beside every answer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tightrope import errors
from tightrope.model.mdp import MDP
from tightrope.model.policy import Policy, mix
from tightrope.operators import (
    D_kappa,
    H_kappa,
    T,
    T_h,
    T_h_pi,
    T_kappa,
    T_kappa_pi,
    T_pi,
    cautious,
    greedy,
    greedy_set,
    h_greedy,
    h_greedy_set,
    kappa_greedy,
    kappa_greedy_set,
    q_kappa,
    q_value,
    surrogate,
    value,
    xi,
)
from tightrope.planning import (
    Exact,
    Kappa,
    Lambda,
    Lookahead,
    OneStep,
    PolicyIteration,
    Sweeps,
    h_pi,
    h_vi,
    kappa_lambda_pi,
    kappa_pi,
    kappa_vi,
    modified_policy_iteration,
    policy_iteration,
    solve,
    value_iteration,
)
from tightrope.solution import Solution, Status, Trace

if TYPE_CHECKING:
    from tightrope import approximate, online, testing, theory, views
    from tightrope.approximate import KappaAPI, KappaPSDP, SwitchingPolicy
    from tightrope.model import problems
    from tightrope.model.files import read, read_policy, write, write_policy
    from tightrope.model.gym import as_gymnasium, estimate_from_gymnasium, evaluate_in
    from tightrope.online import OnlineKappaPI, StepSchedule, learn

#: Names whose rooms load at first use, so that a solver does not pay for importing the learners.
_LATER = {
    "approximate": "tightrope.approximate",
    "cluster": "tightrope.cluster",
    "online": "tightrope.online",
    "testing": "tightrope.testing",
    "theory": "tightrope.theory",
    "views": "tightrope.views",
    "problems": "tightrope.model.problems",
    "read": "tightrope.model.files:read",
    "read_policy": "tightrope.model.files:read_policy",
    "write": "tightrope.model.files:write",
    "write_policy": "tightrope.model.files:write_policy",
    "as_gymnasium": "tightrope.model.gym:as_gymnasium",
    "estimate_from_gymnasium": "tightrope.model.gym:estimate_from_gymnasium",
    "evaluate_in": "tightrope.model.gym:evaluate_in",
    "KappaAPI": "tightrope.approximate:KappaAPI",
    "KappaPSDP": "tightrope.approximate:KappaPSDP",
    "SwitchingPolicy": "tightrope.approximate:SwitchingPolicy",
    "OnlineKappaPI": "tightrope.online:OnlineKappaPI",
    "StepSchedule": "tightrope.online:StepSchedule",
    "learn": "tightrope.online:learn",
}

__all__ = [
    "MDP",
    "D_kappa",
    "Exact",
    "H_kappa",
    "Kappa",
    "KappaAPI",
    "KappaPSDP",
    "Lambda",
    "Lookahead",
    "OneStep",
    "OnlineKappaPI",
    "Policy",
    "PolicyIteration",
    "Solution",
    "Status",
    "StepSchedule",
    "Sweeps",
    "SwitchingPolicy",
    "T",
    "T_h",
    "T_h_pi",
    "T_kappa",
    "T_kappa_pi",
    "T_pi",
    "Trace",
    "approximate",
    "as_gymnasium",
    "cautious",
    "cluster",
    "errors",
    "estimate_from_gymnasium",
    "evaluate_in",
    "greedy",
    "greedy_set",
    "h_greedy",
    "h_greedy_set",
    "h_pi",
    "h_vi",
    "kappa_greedy",
    "kappa_greedy_set",
    "kappa_lambda_pi",
    "kappa_pi",
    "kappa_vi",
    "learn",
    "mix",
    "modified_policy_iteration",
    "online",
    "policy_iteration",
    "problems",
    "q_kappa",
    "q_value",
    "read",
    "read_policy",
    "solve",
    "surrogate",
    "testing",
    "theory",
    "value",
    "value_iteration",
    "views",
    "write",
    "write_policy",
    "xi",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'tightrope' has no attribute {name!r}")
    module, _, part = _LATER[name].partition(":")
    found = import_module(module)
    globals()[name] = getattr(found, part) if part else found
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
