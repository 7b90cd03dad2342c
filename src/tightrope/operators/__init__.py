"""The paper's operators as pure functions: NumPy arrays in, NumPy arrays out."""

from tightrope.operators.bellman import T, T_pi, greedy, greedy_set, q_value, value
from tightrope.operators.kappa import (
    D_kappa,
    H_kappa,
    T_kappa,
    T_kappa_pi,
    kappa_greedy,
    kappa_greedy_set,
    q_kappa,
    surrogate,
    xi,
)
from tightrope.operators.lookahead import T_h, T_h_pi, h_greedy, h_greedy_set
from tightrope.operators.soft import cautious

__all__ = [
    "D_kappa",
    "H_kappa",
    "T",
    "T_h",
    "T_h_pi",
    "T_kappa",
    "T_kappa_pi",
    "T_pi",
    "cautious",
    "greedy",
    "greedy_set",
    "h_greedy",
    "h_greedy_set",
    "kappa_greedy",
    "kappa_greedy_set",
    "q_kappa",
    "q_value",
    "surrogate",
    "value",
    "xi",
]
