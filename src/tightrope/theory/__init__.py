"""What the theorems promise, in numbers: rates, concentrability, bounds, and advice on kappa."""

from tightrope.theory.advice import KappaCurve, best_kappa
from tightrope.theory.bounds import Bound, Statement, kappa_api_bound, kappa_psdp_bound
from tightrope.theory.concentrability import Concentrability, concentrability
from tightrope.theory.interval import Interval
from tightrope.theory.rates import (
    Lipschitz,
    SmallerCoefficient,
    contraction,
    effective_horizon,
    g,
    iterations_needed,
    lipschitz,
    smaller_coefficient,
    value_span,
)
from tightrope.theory.sampled import sampled_c_star, sampled_C_star_kappa
from tightrope.theory.soft import SoftUpdate, soft_rate, soft_update_is_safe
from tightrope.theory.ties import EasiestOptimal, easiest_optimal

__all__ = [
    "Bound",
    "Concentrability",
    "EasiestOptimal",
    "Interval",
    "KappaCurve",
    "Lipschitz",
    "SmallerCoefficient",
    "SoftUpdate",
    "Statement",
    "best_kappa",
    "concentrability",
    "contraction",
    "easiest_optimal",
    "effective_horizon",
    "g",
    "iterations_needed",
    "kappa_api_bound",
    "kappa_psdp_bound",
    "lipschitz",
    "sampled_C_star_kappa",
    "sampled_c_star",
    "smaller_coefficient",
    "soft_rate",
    "soft_update_is_safe",
    "value_span",
]
