"""How fast errors shrink, how far a step looks, how smooth values are: the constants, in forms that keep their digits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.operators import xi

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP


def room(gamma: float, kappa: float) -> float:
    """1 - γκ, as (1-κ) + κ(1-γ): exact where both are close to one."""
    g, k = validate.gamma(gamma), validate.kappa(kappa)
    return (1.0 - k) + k * (1.0 - g)


def contraction(gamma: float, *, kappa: float | None = None, h: int | None = None) -> float:
    """The factor by which one exact iteration shrinks max(v* - v): ξ for κ-PI and κ-VI, γ^h for h-PI and h-VI."""
    if (kappa is None) == (h is None):
        raise InvalidArgument("give either kappa=... or h=...")
    return xi(gamma, kappa) if kappa is not None else validate.gamma(gamma) ** validate.horizon(h)


def one_minus_xi(gamma: float, kappa: float) -> float:
    """1 - ξ = (1-γ)/(1-γκ), without cancellation."""
    return (1.0 - validate.gamma(gamma)) / room(gamma, kappa)


def stay_weight(gamma: float, kappa: float) -> float:
    """w = κ(1-γ)/(1-γκ), the weight of μ in d_κ = w μ + (1-w) d_0; 1-w = ξ/γ."""
    return validate.kappa(kappa) * (1.0 - validate.gamma(gamma)) / room(gamma, kappa)


def effective_horizon(gamma: float, kappa: float = 1.0) -> float:
    """1/(1-κγ): how many steps the surrogate MDP of a κ-greedy step looks ahead; κ = 1 gives the model's own horizon."""
    return 1.0 / room(gamma, kappa)


def value_span(mdp: MDP) -> float:
    """V = (max r - min r)/(1-γ), a bound on v* - v^π for every policy, whatever the signs of the rewards.

    The paper prints R_max/(1-γ), which is too small for signed rewards (a chain with r = -1 and a goal +1 refutes it).
    """
    low, high = mdp.reward_range
    return (high - low) / (1.0 - mdp.gamma)


def g(kappa: float, n: int) -> float:
    """The function g of the binomial lemma after n iterations, in closed form: (1 - (1-κ)^{n-1})/κ; n-1 at κ = 0, 0 for n = 1."""
    k, count = validate.kappa(kappa), validate.positive_integer(n, "n")
    if k == 0.0 or count == 1:
        return float(count - 1)
    return 1.0 / k if k == 1.0 else -math.expm1((count - 1) * math.log1p(-k)) / k


def iterations_needed(gamma: float, kappa: float, delta: float, V: float, *, printed: bool = False) -> float:
    """The smallest k with ξ^k V <= δ: after that many iterations the start no longer matters.

    0 when δ >= V, inf when δ = 0 and κ < 1. With `printed`, the paper's k* = ceil(log(V/δ)/(1-ξ)), which is at least as large.
    """
    modulus, d, size = xi(gamma, kappa), error(delta), span(V)
    if d >= size:
        return 0
    if modulus == 0.0:
        return 1
    if d == 0.0:
        return math.inf
    gap = math.log(size / d)
    if printed:
        return math.ceil(gap / one_minus_xi(gamma, kappa))
    rate = -math.log1p(-one_minus_xi(gamma, kappa))
    k = max(math.ceil(gap / rate), 1)
    while k > 1 and modulus ** (k - 1) * size <= d:  # the quotient of two rounded logarithms may be one too many
        k -= 1
    while modulus**k * size > d:
        k += 1
    return k


@dataclass(frozen=True)
class Lipschitz:
    """How much v^π, q^π and q_κ^π change, at most, per unit of the policy norm max_s Σ_a |π(a|s) - π'(a|s)|."""

    v: float
    q: float
    q_kappa: float


def lipschitz(mdp: MDP, kappa: float = 0.0, *, printed: bool = False) -> Lipschitz:
    """L_v = R/(1-γ)^2, L_q = γ L_v, L_{q_κ} = ξ L_v, with R half the span of the rewards; `printed` takes the paper's R_max."""
    low, high = mdp.reward_range
    size = mdp.reward_size if printed else 0.5 * (high - low)
    L = size / (1.0 - mdp.gamma) ** 2
    return Lipschitz(L, mdp.gamma * L, xi(mdp.gamma, kappa) * L)


@dataclass(frozen=True)
class SmallerCoefficient:
    """ν(α*) = (1-α*)ν + α*μ has C_{κ'}^{π*}(μ, ν(α*)) <= C, which is at most C_κ^{π*}(μ, ν)."""

    alpha_star: float
    C: float


def smaller_coefficient(gamma: float, C: float, kappa: float, larger: float) -> SmallerCoefficient:
    """Lemma 4: from C = C_κ^{π*}(μ,ν) and a larger κ', the mixture ν(α*) and a coefficient no larger than C.

    α* = 1/(1 + (1-κ')C/((1-ξ_κ)(κ'-κ))), in (0, 1] (1 at κ' = 1); C' = C + (1-ξ')/(1-κ) (κ'-κ)(1-C), strictly smaller when
    1 < C < ∞.
    """
    k, k_2 = validate.kappa(kappa), validate.kappa(larger)
    if not k < k_2:
        raise InvalidArgument(f"the lemma compares kappa with a larger one; found kappa={k:g} and larger={k_2:g}")
    size = validate.real(C, "C")
    if not size >= 1.0:
        raise InvalidArgument(f"C must be at least 1, as every concentrability coefficient is; found {size!r}")
    if k_2 == 1.0:
        return SmallerCoefficient(1.0, 1.0)
    if size == math.inf:
        return SmallerCoefficient(0.0, math.inf)
    odds = (1.0 - k_2) / (one_minus_xi(gamma, k) * (k_2 - k)) * size
    return SmallerCoefficient(1.0 / (1.0 + odds), size + one_minus_xi(gamma, k_2) / (1.0 - k) * (k_2 - k) * (1.0 - size))


def error(delta: object) -> float:
    """A user's δ, checked: the error of a κ-greedy step (Definition 2), finite and not negative."""
    d = validate.real(delta, "delta")
    if not 0.0 <= d < math.inf:
        raise InvalidArgument(
            f"delta must be a finite number >= 0; found {d!r}. It is the oracle's error nu(T_kappa v - T_kappa^pi v)"
        )
    return d


def span(V: object) -> float:
    """A user's V, checked: a bound on v* - v^π0, finite and not negative."""
    size = validate.real(V, "V")
    if not 0.0 <= size < math.inf:
        raise InvalidArgument(f"V must be a finite number >= 0, a bound on v* - v^pi0; found {size!r}")
    return size
