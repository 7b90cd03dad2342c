"""Concentrability coefficients: how badly ν may cover where μ leads (Definitions 3 and 4), as certified intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.engine import optimal
from tightrope.errors import InvalidArgument, InvalidPolicy
from tightrope.model import validate
from tightrope.operators import T, value
from tightrope.theory import rates
from tightrope.theory.all_policies import Effort
from tightrope.theory.interval import Interval
from tightrope.theory.series import AllPolicies, OnePolicy

if TYPE_CHECKING:
    from tightrope.executors import Executor
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray

#: A policy whose one-step regret is below this, relative to the value scale, counts as optimal.
OPTIMAL = 1e-9


def concentrability(
    mdp: MDP,
    mu: Any = None,
    nu: Any = None,
    pi_star: Policy | None = None,
    *,
    rtol: float = 1e-3,
    threads: int | None = None,
    memory: int = 2**29,
    max_seconds: float | None = None,
    executor: Executor | None = None,
) -> Concentrability:
    """The coefficients of μ and ν, each computed when first asked for, to the relative width `rtol`.

    Args:
        mdp: the model.
        mu: where the loss is measured [S]; the model's start distribution by default.
        nu: where the oracle's error is controlled [S]; uniform by default.
        pi_star: the optimal policy that the starred coefficients follow; the engine's by default. The bounds hold for each
            optimal policy: `easiest_optimal` finds the one with the smallest C_κ^{π*}.
        rtol: relative width (upper - lower)/lower of every interval.
        threads: cores to use (None: all); results do not depend on it.
        memory: bytes for the blocks of reach probabilities.
        max_seconds: stop each computation after this long, with wider intervals and `complete` false.
        executor: processes or machines that share the work on c(i), such as `cluster.dask.Dask(address)`; None: threads here.
    """
    S = mdp.n_states
    m = mdp.start if mu is None else validate.distribution(mu, S, "mu")
    n = np.full(S, 1.0 / S) if nu is None else validate.distribution(nu, S, "nu")
    width = validate.real(rtol, "rtol")
    if not 0.0 < width < math.inf:
        raise InvalidArgument(f"rtol must be positive; found {width!r}. 1e-3 asks for three digits")
    workers = None if threads is None else validate.positive_integer(threads, "threads")
    size = validate.positive_integer(memory, "memory")
    seconds = None if max_seconds is None else validate.real(max_seconds, "max_seconds")
    if pi_star is not None:
        _refuse_suboptimal(mdp, pi_star)
    return Concentrability(mdp, m, n, pi_star, Effort(width, workers, size, seconds, executor))


@dataclass(frozen=True, eq=False, repr=False)
class Concentrability:
    """The coefficients of one (MDP, μ, ν, π*); make one with `concentrability`. Every answer is an `Interval`.

    Infinite means: a state with ν = 0 is reached, so nothing controls the oracle's error there. That is decided on the
    support graph, not on floats.
    """

    mdp: MDP
    mu: FloatArray
    nu: FloatArray
    given: Policy | None
    effort: Effort

    @property
    def gamma(self) -> float:
        """The model's discount."""
        return self.mdp.gamma

    @cached_property
    def pi_star(self) -> Policy:
        """The optimal policy that the starred coefficients follow."""
        return self.given if self.given is not None else optimal(self.mdp, tol=0.0).policy

    def c(self, i: int) -> Interval:
        """The i-step term: max over π_1..π_i and s of (μ P^{π_1}..P^{π_i})(s)/ν(s), at least 1 (Definition 3)."""
        return self._all.term(validate.positive_integer(i, "i", low=0))

    def c_star(self, i: int) -> Interval:
        """c^{π*}(i) = max_s (μ (P^{π*})^i)(s)/ν(s), at least 1."""
        return self._star.term(validate.positive_integer(i, "i", low=0))

    @property
    def S1(self) -> Interval:
        """Σ_i γ^i c(i)."""
        return self._all.single()

    def S2(self, k: int = 0) -> Interval:
        """Σ_m (m+1) γ^m c(m+k)."""
        return self._all.double(validate.positive_integer(k, "k", low=0))

    def S2_from(self, k: int) -> Interval:
        """γ^k Σ_m (m+1) γ^m c(m+k), to a width that is small beside S2: what statement 2 of Theorem 5 needs."""
        return self._all.double_from(validate.positive_integer(k, "k", low=0))

    @property
    def S1_star(self) -> Interval:
        """Σ_i γ^i c^{π*}(i)."""
        return self._star.single()

    @property
    def C1(self) -> Interval:
        """C^(1) = (1-γ) Σ γ^i c(i)."""
        return (1.0 - self.gamma) * self.S1

    @property
    def C2(self) -> Interval:
        """C^(2) = (1-γ)^2 Σ_{i,j} γ^{i+j} c(i+j)."""
        return self.C2_k(0)

    def C2_k(self, k: int) -> Interval:
        """C^(2,k) = (1-γ)^2 Σ_{i,j} γ^{i+j} c(i+j+k)."""
        return (1.0 - self.gamma) ** 2 * self.S2(k)

    @property
    def C_star_1(self) -> Interval:
        """C^{π*(1)} = (1-γ) Σ γ^i c^{π*}(i)."""
        return (1.0 - self.gamma) * self.S1_star

    @property
    def C_star(self) -> Interval:
        """C^{π*} = C_0^{π*}, the mismatch between ν and the discounted visits of π*."""
        return self.C_star_kappa(0.0)

    def C_star_kappa(self, kappa: float) -> Interval:
        """C_κ^{π*}: the smallest C with d_{κ,μ}^{π*} <= C ν (Definition 4); c(0) at κ = 1. Not always decreasing in κ."""
        return self._star.mismatch(rates.stay_weight(self.gamma, kappa))

    def C_star_1_kappa(self, kappa: float) -> Interval:
        """C_κ^{π*(1)} = (ξ/γ) C^{π*(1)} + (1-ξ)κ c(0) (Definition 4)."""
        return rates.one_minus_xi(self.gamma, kappa) * self.psdp_coefficient(kappa)

    def C_kappa_api(self, kappa: float) -> Interval:
        """C_κ-API = (1-κ)^2 C^(2) + (1-γ)κ((1-κ) C^(1) + (1-γκ) C_κ^{π*(1)})."""
        return (1.0 - self.gamma) ** 2 * self.api_coefficient(kappa)

    def C_kappa_api_k1(self, kappa: float) -> Interval:
        """C_κ-API^(k,1) = (1-κγ)(κ(1-κγ) C_κ^{π*} + (1-κ)^2 C^(1))."""
        k, room = validate.kappa(kappa), rates.room(self.gamma, kappa)
        return room * ((k * room) * self._if(k, self.C_star_kappa, k) + (1.0 - k) ** 2 * self._if(1.0 - k, lambda: self.C1))

    def C_kappa_api_k2(self, kappa: float, k: int) -> Interval:
        """C_κ-API^(k,2) = (1-κ)κ((1-γ) C^(1) + g(κ)(1-κ)γ^k C^(2,k)), with g's closed form at n = k."""
        x, n = validate.kappa(kappa), validate.positive_integer(k, "k")
        weight = (1.0 - x) * x
        growth = rates.g(x, n) * (1.0 - x) * self.gamma**n
        return weight * (
            (1.0 - self.gamma) * self._if(weight, lambda: self.C1) + growth * self._if(weight * growth, self.C2_k, n)
        )

    def api_coefficient(self, kappa: float) -> Interval:
        """C_κ-API/(1-γ)^2 = (1-κ)^2 S2 + κ(1-κ)(S1 + S1*) + κ^2 c(0): what δ is multiplied by; it falls as κ grows."""
        k = validate.kappa(kappa)
        left, both = (1.0 - k) ** 2, k * (1.0 - k)
        singles = self._if(both, lambda: self.S1 + self.S1_star)
        return left * self._if(left, self.S2) + both * singles + k * k * self.c(0)

    def psdp_coefficient(self, kappa: float) -> Interval:
        """C_κ^{π*(1)}/(1-ξ) = (1-κ) S1* + κ c(0): what δ is multiplied by; it falls as κ grows."""
        k = validate.kappa(kappa)
        return (1.0 - k) * self._if(1.0 - k, lambda: self.S1_star) + k * self.c(0)

    def d(self, kappa: float) -> FloatArray:
        """d_{κ,μ}^{π*} = w μ + (1-w) d_0, w = κ(1-γ)/(1-γκ) [S]: where π* leads, stopped with κ's horizon (Definition 4)."""
        stay = rates.stay_weight(self.gamma, kappa)
        return stay * self.mu + (1.0 - stay) * self._star.visits()

    @property
    def complete(self) -> bool:
        """Whether everything computed so far reached the relative width asked for."""
        return all(series.growing.complete for series in self._begun.values())

    @property
    def V(self) -> float:
        """(max r - min r)/(1-γ), which bounds v* - v^π for every policy."""
        return rates.value_span(self.mdp)

    @property
    def uncovered(self) -> int | None:
        """A state with ν = 0 that some policy can reach from μ (the reason for infinite coefficients), or None."""
        bad = self._all.support.reachable & (self.nu == 0.0)
        return int(np.flatnonzero(bad)[0]) if bad.any() else None

    def __repr__(self) -> str:
        parts = [f"Concentrability({self.mdp.n_states:,} states, gamma={self.gamma:g}", f"c(0)={self.c(0)}"]
        for name, series in self._begun.items():
            if series.growing.terms is not None:
                parts.append(f"{name} to i={series.growing.terms.n - 1}")
        if self.uncovered is not None:
            parts.append(f"infinite where nu=0: {self.mdp.pairs.state(self.uncovered)} can be reached")
        if not self.complete:
            parts.append("stopped early: intervals are wider than asked for")
        return ", ".join(parts) + ")"

    @cached_property
    def _begun(self) -> dict[str, AllPolicies | OnePolicy]:
        """The series begun so far, by name."""
        return {}

    @cached_property
    def _all(self) -> AllPolicies:
        self._begun["c"] = series = AllPolicies(self.mdp, self.mu, self.nu, self.effort)
        return series

    @cached_property
    def _star(self) -> OnePolicy:
        chain = self.pi_star.induced(self.mdp)[0]
        self._begun["c_star"] = series = OnePolicy(chain, self.mu, self.nu, self.gamma, self.mdp.slack, self.effort)
        return series

    @staticmethod
    def _if(weight: float, compute: Any, *args: Any) -> Interval:
        """A coefficient, or nothing at all when its weight is zero: κ = 0 and κ = 1 need fewer of them."""
        result: Interval = compute(*args) if weight > 0.0 else Interval(0.0, 0.0)
        return result


def _refuse_suboptimal(mdp: MDP, pi: Policy) -> None:
    """The bounds hold for an optimal policy: anything else given as one is a mistake worth hearing about."""
    v = value(mdp, pi)
    gain = T(mdp, v) - v
    s = int(gain.argmax())
    if gain[s] > OPTIMAL * max(float(np.abs(v).max()), mdp.reward_size):
        raise InvalidPolicy(
            f"pi_star is not optimal: in {mdp.pairs.state(s)} another action gains {gain[s]:.3g} in one step. "
            "Leave it out to take an optimal policy of the model."
        )
