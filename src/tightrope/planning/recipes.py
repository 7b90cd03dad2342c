"""The algorithms by name: each is one cell of the table improvement x evaluation."""

from __future__ import annotations

from tightrope.planning.evaluate import Exact, Lambda, Sweeps
from tightrope.planning.improve import Kappa, Lookahead, OneStep
from tightrope.planning.iteration import PolicyIteration


def policy_iteration(*, alpha: float = 1.0) -> PolicyIteration:
    """Howard's policy iteration; soft updates are safe for every α in (0, 1]."""
    return PolicyIteration(OneStep(), Exact(), alpha)


def value_iteration() -> PolicyIteration:
    """v <- T v."""
    return PolicyIteration(OneStep(), Sweeps(1))


def modified_policy_iteration(m: int = 10) -> PolicyIteration:
    """Greedy improvement, then m backups of the policy (Puterman and Shin, 1978)."""
    return PolicyIteration(OneStep(), Sweeps(m))


def h_pi(h: int, *, alpha: float = 1.0, non_monotone: bool = False) -> PolicyIteration:
    """h-PI: h-greedy improvement, exact evaluation; contracts by γ^h."""
    return PolicyIteration(Lookahead(h), Exact(), alpha, non_monotone)


def h_vi(h: int) -> PolicyIteration:
    """h-VI: v <- T^h v."""
    return PolicyIteration(Lookahead(h), Sweeps(1))


def kappa_pi(kappa: float, *, alpha: float = 1.0, non_monotone: bool = False) -> PolicyIteration:
    """κ-PI: κ-greedy improvement, exact evaluation; contracts by ξ = γ(1-κ)/(1-γκ)."""
    return PolicyIteration(Kappa(kappa), Exact(), alpha, non_monotone)


def kappa_vi(kappa: float) -> PolicyIteration:
    """κ-VI: v <- T_κ v, which is κ-λ-PI with λ = κ."""
    return PolicyIteration(Kappa(kappa), Lambda(kappa))


def kappa_lambda_pi(kappa: float, lam: float) -> PolicyIteration:
    """κ-λ-PI: κ-greedy improvement, then T_λ^π, with λ in [κ, 1]."""
    return PolicyIteration(Kappa(kappa), Lambda(lam))
