"""Which κ? The bound as a curve over κ, its minimum, and a sentence about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.theory import rates
from tightrope.theory.bounds import Bound, initial_loss, kappa_api_bound
from tightrope.theory.concentrability import Concentrability, concentrability

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray

#: κ from 0 to 1, closer together near 1, where ξ changes fastest.
GRID = tuple(sorted({*np.linspace(0.0, 1.0, 41).round(3).tolist(), 0.985, 0.99, 0.995, 0.999}))

#: δ as a number, as a table {κ: δ}, or as a function of κ.
Error = float | Mapping[float, float] | Callable[[float], float]


@dataclass(frozen=True, eq=False)
class KappaCurve:
    """The bound at every κ, the κ that makes it smallest, and why; it prints as a sentence.

    `bounds` has one `Bound` per κ (statements, terms and all); `iterations` is inf in the limit of many; `exhausted` lists the
    κ left out because the budget does not pay for a single iteration.
    """

    bounds: tuple[Bound, ...]
    exhausted: tuple[float, ...]
    budget: float | None

    @property
    def kappas(self) -> FloatArray:
        """The κ compared."""
        return np.array([bound.kappa for bound in self.bounds])

    @property
    def deltas(self) -> FloatArray:
        """The oracle's error at each κ."""
        return np.array([bound.delta for bound in self.bounds])

    @property
    def values(self) -> FloatArray:
        """The bound at each κ."""
        return np.array([bound.value for bound in self.bounds])

    @property
    def iterations(self) -> FloatArray:
        """How many iterations each κ runs."""
        return np.array([bound.k for bound in self.bounds])

    @property
    def best(self) -> Bound:
        """The bound at the best κ; the largest κ when several are equally good up to rounding."""
        values = self.values
        good = np.flatnonzero(values <= values.min() * (1.0 + 1e-12))
        return self.bounds[int(good[-1])]

    @property
    def kappa(self) -> float:
        """The κ that makes the bound smallest."""
        return self.best.kappa

    @property
    def value(self) -> float:
        """The smallest bound."""
        return self.best.value

    @property
    def at_end(self) -> bool:
        """Whether the smallest bound is at the first or the last κ compared."""
        return self.kappa in (self.bounds[0].kappa, self.bounds[-1].kappa)

    def __str__(self) -> str:
        values = self.values
        if np.ptp(values) <= 1e-9 * abs(values).max():
            return f"{self.best.algorithm}: the bound is {self.value:.6g} at every kappa compared, so it gives no advice here."
        place = "an end point of the range" if self.at_end else "inside the range"
        first, last = self.bounds[0], self.bounds[-1]
        others = " and ".join(f"{b.value:.6g} at kappa = {b.kappa:g}" for b in (first, last) if b.kappa != self.kappa)
        reason = ""
        if self.at_end and np.ptp(self.deltas) == 0.0 and self.kappa == last.kappa and self.budget is None:
            reason = (
                " With an error that does not depend on kappa that is always so: give delta as a table or a function of kappa."
            )
        cost = "" if self.budget is None else f" at equal cost {self.budget:g} ({self.best.k:g} iterations there)"
        left_out = f" {len(self.exhausted)} values of kappa cost more than the whole budget." if self.exhausted else ""
        return (
            f"{self.best.algorithm}: the bound is smallest at kappa = {self.kappa:g}, {place}{cost}: {self.value:.6g}, "
            f"against {others}.{reason}{left_out}"
        )


def best_kappa(
    model: MDP | Concentrability,
    delta: Error,
    *,
    mu: Any = None,
    nu: Any = None,
    bound: Callable[..., Bound] = kappa_api_bound,
    k: int | None = None,
    V: float | None = None,
    pi0: Policy | None = None,
    kappas: Any = None,
    cost: Callable[[float], float] | None = None,
    budget: float | None = None,
) -> KappaCurve:
    """The κ with the smallest performance bound, with the whole curve.

    Args:
        model: an MDP, or its coefficients if they are computed already.
        delta: the oracle's error: a number, a table {κ: δ} (its κ are then compared), or a function of κ. In practice it grows
            with κ, because the surrogate's horizon 1/(1-κγ) does (the paper's remark on the performance tradeoff).
        mu: where the loss is measured, for a model [S].
        nu: where the error is controlled, for a model [S].
        bound: `kappa_api_bound` or `kappa_psdp_bound`.
        k: iterations; None for the limit of many.
        V: as in the bounds.
        pi0: as in the bounds.
        kappas: which κ to compare; by default 0 to 1, closer together near 1.
        cost: what one oracle call costs at κ. With `budget`, each κ runs the iterations it can pay for.
        budget: the total cost each κ may spend, in the same units.
    """
    coefficients = model if isinstance(model, Concentrability) else concentrability(model, mu, nu)
    if isinstance(model, Concentrability) and (mu is not None or nu is not None):
        raise InvalidArgument("mu and nu are part of the coefficients given; leave them out here")
    if (cost is None) != (budget is None):
        raise InvalidArgument("give both cost=... and budget=..., or neither")
    if budget is not None and k is not None:
        raise InvalidArgument("a budget decides the number of iterations: leave k out")
    grid = _grid(kappas, delta)
    funds = None if budget is None else validate.finite(budget, "budget")
    loss = initial_loss(coefficients, V, pi0)
    found, exhausted = [], []
    for kappa in grid:
        count = k
        if cost is not None and funds is not None:
            paid = _iterations(cost, kappa, funds)
            if paid < 1:
                exhausted.append(kappa)
                continue
            count = paid
        found.append(bound(coefficients, kappa, _error(delta, kappa), count, V=loss))
    if not found:
        raise InvalidArgument(f"budget = {funds:g} does not pay for one oracle call at any kappa")
    return KappaCurve(tuple(found), tuple(exhausted), funds)


def _grid(kappas: Any, delta: Error) -> list[float]:
    """The κ to compare, checked and in order."""
    chosen = kappas if kappas is not None else (delta.keys() if isinstance(delta, Mapping) else GRID)
    grid = sorted({validate.kappa(kappa) for kappa in chosen})
    if not grid:
        raise InvalidArgument("there is no kappa to compare: kappas (or the table of delta) is empty")
    return grid


def _error(delta: Error, kappa: float) -> float:
    if isinstance(delta, Mapping):
        if kappa not in delta:
            raise InvalidArgument(f"the table of delta has no entry for kappa = {kappa:g}")
        return rates.error(delta[kappa])
    return rates.error(delta(kappa) if callable(delta) else delta)


def _iterations(cost: Callable[[float], float], kappa: float, budget: float) -> int:
    each = validate.real(cost(kappa), f"cost({kappa:g})")
    if not 0.0 < each < math.inf:
        raise InvalidArgument(f"cost({kappa:g}) is {each!r}; an oracle call costs a positive, finite amount")
    return int(min(budget / each * (1.0 + 1e-12), 1e9))
