"""The performance bounds of κ-API (Theorem 5) and κ-PSDP (Theorem 6), in forms that hold, each with the name of its origin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope.model import validate
from tightrope.operators import value, xi
from tightrope.theory import rates
from tightrope.theory.interval import Interval, outwards

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.model.policy import Policy
    from tightrope.theory.concentrability import Concentrability

#: The name of the bound that needs no theorem: v* - v^π <= (max r - min r)/(1-γ).
ANY = "any policy"


@dataclass(frozen=True)
class Statement:
    """One bound on μ(v* - v^π): its name, the part that grows with the error δ and the part that decays with k."""

    name: str
    error: Interval
    start: float

    @property
    def total(self) -> Interval:
        """The bound, as an interval around its exact value: `total.upper` is what is guaranteed."""
        return self.error + Interval(self.start, self.start)


@dataclass(frozen=True)
class Bound:
    """Every statement that applies, the smallest first in `best`; it prints as a sentence and converts to a float."""

    algorithm: str
    kappa: float
    delta: float
    k: float
    statements: tuple[Statement, ...]

    @property
    def best(self) -> Statement:
        """The statement with the smallest guarantee; the first of those that differ by rounding only."""
        least = min(statement.total.upper for statement in self.statements)
        return next(statement for statement in self.statements if statement.total.upper <= least * (1.0 + 1e-12))

    @property
    def value(self) -> float:
        """What is guaranteed: mu(v* - v) is at most this."""
        return self.best.total.upper

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        count = "in the limit of many iterations" if self.k == math.inf else f"after {self.k:g} iterations"
        setting = f"{self.algorithm}, kappa = {self.kappa:g}, delta = {self.delta:g}, {count}"
        best = self.best
        if best.name == ANY:
            infinite = math.inf in (statement.total.upper for statement in self.statements)
            why = "nu = 0 at a state that is reached, so the error there is not controlled" if infinite else "delta is too large"
            return f"{setting}: the theorem says no more than what holds for any policy, mu(v* - v) <= {self.value:.6g}: {why}."
        return (
            f"{setting}: mu(v* - v) <= {self.value:.6g} ({best.name}; "
            f"{best.error.upper:.4g} from the oracle's error, {best.start:.4g} from the start)."
        )


def kappa_api_bound(
    coefficients: Concentrability,
    kappa: float,
    delta: float,
    k: int | None = None,
    *,
    V: float | None = None,
    pi0: Policy | None = None,
    printed: bool = False,
) -> Bound:
    """A bound on μ(v* - v^{π_k}) for κ-API with oracle error δ (Theorem 5); κ = 0 is plain API.

    Statement 1: δ[(1-κ)²S2 + κ(1-κ)(S1+S1*) + κ²c(0)] + ξ^k V. Statement 2: δ[m(κC_κ/(1-ξ) + (1-κ)²S1) + κ(1-κ)S1 +
    (1-κ)²(1-(1-κ)^{m-1})γ^m S2^(m)] + ξ^m V at m = k, and at any m < k with the V that holds for every policy, because the
    error of the last m iterations is all that counts then.

    Args:
        coefficients: of the model, μ and ν.
        kappa: in [0, 1].
        delta: the oracle's error ν(T_κ v - T_κ^π v), at most this in every iteration.
        k: iterations; None for the limit.
        V: a bound on v* - v^{π_0}; by default (max r - min r)/(1-γ), which holds for every policy.
        pi0: the initial policy, to take max(v* - v^{π_0}) for V.
        printed: the paper's literal expressions (R_max/(1-γ) for V, no ceil in statement 2), for comparison only.
    """

    def repeated(m: int) -> Interval:
        x, left = kappa, 1.0 - kappa
        share = -math.expm1((m - 1) * math.log1p(-x)) if x < 1.0 else 1.0
        each = Interval(0.0, 0.0)
        if x > 0.0:
            each = (x / rates.one_minus_xi(coefficients.gamma, x)) * coefficients.C_star_kappa(x)
        if left > 0.0:
            each = each + left**2 * coefficients.S1 + (x * left / m) * coefficients.S1
        rest = left**2 * share
        return float(m) * each + (rest * coefficients.S2_from(m) if rest > 0.0 else Interval(0.0, 0.0))

    case = _Case.checked("kappa-API", "Theorem 5", coefficients, kappa, delta, k, V, pi0)
    if printed:
        return case.printed(
            coefficients.C_kappa_api(case.kappa),
            (1.0 - coefficients.gamma) ** 2,
            coefficients.C_kappa_api_k1(case.kappa),
            lambda n: coefficients.C_kappa_api_k2(case.kappa, n),
        )
    return case.bound(coefficients.api_coefficient(case.kappa), repeated)


def kappa_psdp_bound(
    coefficients: Concentrability,
    kappa: float,
    delta: float,
    k: int | None = None,
    *,
    V: float | None = None,
    pi0: Policy | None = None,
    printed: bool = False,
) -> Bound:
    """A bound on μ(v* - v^{σ_{κ,k}}) for κ-PSDP with oracle error δ (Theorem 6); κ = 0 is plain PSDP.

    Statement 1: δ[(1-κ)S1* + κc(0)] + ξ^k V. Statement 2: δ m C_κ^{π*}/(1-ξ) + ξ^m V at m = k, and at any m < k with the V
    that holds for every policy. Arguments as in `kappa_api_bound`.
    """

    def repeated(m: int) -> Interval:
        return (m / rates.one_minus_xi(coefficients.gamma, kappa)) * coefficients.C_star_kappa(kappa)

    case = _Case.checked("kappa-PSDP", "Theorem 6", coefficients, kappa, delta, k, V, pi0)
    if printed:
        room = rates.one_minus_xi(coefficients.gamma, case.kappa)
        return case.printed(coefficients.C_star_1_kappa(case.kappa), room, (1.0 / room) * coefficients.C_star_kappa(case.kappa))
    return case.bound(coefficients.psdp_coefficient(case.kappa), repeated)


def initial_loss(coefficients: Concentrability, V: float | None, pi0: Policy | None) -> float:
    """The smallest known bound on v* - v^{π_0}: the one given, max(v* - v^{π_0}) itself, or what holds for every policy."""
    mdp = coefficients.mdp
    loss = rates.value_span(mdp) if V is None else rates.span(V)
    if pi0 is None:
        return loss
    return min(loss, max(0.0, float((value(mdp, coefficients.pi_star) - value(mdp, pi0)).max())))


@dataclass(frozen=True)
class _Case:
    """What both theorems share: the numbers, checked, and how statements are assembled."""

    algorithm: str
    theorem: str
    gamma: float
    kappa: float
    delta: float
    k: float
    V: float
    V_any: float
    R_max: float

    @classmethod
    def checked(
        cls,
        algorithm: str,
        theorem: str,
        coefficients: Concentrability,
        kappa: float,
        delta: float,
        k: int | None,
        V: float | None,
        pi0: Policy | None,
    ) -> _Case:
        mdp = coefficients.mdp
        count = math.inf if k is None else validate.positive_integer(k, "k")
        return cls(
            algorithm,
            theorem,
            mdp.gamma,
            validate.kappa(kappa),
            rates.error(delta),
            count,
            initial_loss(coefficients, V, pi0),
            rates.value_span(mdp),
            mdp.reward_size,
        )

    @property
    def xi(self) -> float:
        return xi(self.gamma, self.kappa)

    def bound(self, coefficient: Interval, repeated: Callable[[int], Interval]) -> Bound:
        """The statements that apply; `repeated(m)` is what δ is multiplied by in statement 2 with m iterations."""
        first = Statement(f"{self.theorem}, statement 1", coefficient.at_error(self.delta), self._decayed(self.k))
        found = [first]
        m = self._best_m(repeated)
        if m is not None:
            V = self.V if m == self.k else self.V_any
            name = f"{self.theorem}, statement 2" + (f" at m = {m}" if m < self.k else "")
            found.append(Statement(name, repeated(m).at_error(self.delta), _up(self.xi**m * V)))
        found.append(Statement(ANY, Interval(0.0, 0.0), _up(self.V_any)))
        return Bound(self.algorithm, self.kappa, self.delta, self.k, tuple(found))

    def printed(
        self,
        coefficient: Interval,
        scale: float,
        first: Interval,
        second: Callable[[int], Interval] | None = None,
    ) -> Bound:
        """The two statements exactly as the paper prints them, R_max/(1-γ) and the missing ceil included."""
        V = self.R_max / (1.0 - self.gamma)
        decayed = 0.0 if self.k == math.inf else self.xi**self.k * V
        one = Statement(f"{self.theorem}, statement 1 as printed", (1.0 / scale) * coefficient.at_error(self.delta), decayed)
        if not 0.0 < self.delta < V:
            return Bound(self.algorithm, self.kappa, self.delta, self.k, (one,))
        log = math.log(V / self.delta)
        n = math.ceil(log / rates.one_minus_xi(self.gamma, self.kappa))
        grows = (log / scale) * first.at_error(self.delta)
        if second is not None:
            grows = grows + (1.0 / scale) * second(n).at_error(self.delta)
        name = f"{self.theorem}, statement 2 as printed (k = {n})"
        return Bound(self.algorithm, self.kappa, self.delta, self.k, (one, Statement(name, grows, self.delta)))

    def _decayed(self, k: float) -> float:
        return 0.0 if k == math.inf else _up(self.xi**k * self.V)

    def _best_m(self, repeated: Callable[[int], Interval]) -> int | None:
        """The m <= k that makes statement 2 smallest; None when it says nothing (k = inf without error to balance)."""
        if self.delta == 0.0 or not repeated(1).finite:
            return None if self.k == math.inf else int(self.k)
        slope = self.delta * repeated(1).upper
        if self.xi == 0.0 or self.V_any == 0.0:
            guess = 1.0
        else:  # where the derivative of m·slope + ξ^m V vanishes
            rate = -math.log1p(-rates.one_minus_xi(self.gamma, self.kappa))
            guess = max(math.log(max(self.V_any * rate / slope, 1e-300)) / rate, 1.0)
        near = {1, max(math.floor(guess), 1), math.ceil(guess)}
        choices = {int(min(m, self.k)) for m in near} | ({int(self.k)} if self.k < math.inf else set())
        return min(sorted(choices), key=self._second(repeated))

    def _second(self, repeated: Callable[[int], Interval]) -> Callable[[int], float]:
        def total(m: int) -> float:
            V = self.V if m == self.k else self.V_any
            return repeated(m).at_error(self.delta).upper + self.xi**m * V

        return total


def _up(x: float) -> float:
    return outwards(x, x, steps=2).upper
