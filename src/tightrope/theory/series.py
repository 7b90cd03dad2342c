"""Series of concentrability terms that grow as far as they are asked for: infinite where ν is zero, certified elsewhere."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.theory.all_policies import Effort, Reduced, all_terms
from tightrope.theory.interval import INFINITE, Interval, outwards
from tightrope.theory.one_policy import Flow, one_policy
from tightrope.theory.support import Support
from tightrope.theory.terms import EXACT, Terms

if TYPE_CHECKING:
    from collections.abc import Callable

    import scipy.sparse as sp

    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray

    #: An interval read off what is known so far.
    Asked = Callable[[Any], Interval]


class Growing:
    """What is known so far, computed anew only when an interval asked of it is wider than promised."""

    def __init__(
        self, compute: Callable[[Callable[[Any], float]], tuple[Any, bool]], always: tuple[Asked, ...], rtol: float
    ) -> None:
        self._compute, self._always, self._rtol = compute, always, rtol
        self.found: Any = None
        #: Whether everything asked for came out as narrow as promised.
        self.complete = True

    def until(self, asked: Asked, *also: Asked, rtol: float = math.inf) -> Any:
        """What is known, far enough that `asked` is narrow; where that takes new work, `also` and the usual sums are too."""
        narrow = min(rtol, self._rtol)
        if self.found is None or (asked(self.found).relative_width > narrow and self.complete):
            wanted = [(each, narrow) for each in (asked, *also)] + [(each, self._rtol) for each in self._always]
            self.found, finished = self._compute(partial(_excess, wanted))
            self.complete = finished and all(each(self.found).relative_width <= width for each, width in wanted)
        return self.found

    @property
    def terms(self) -> Terms | None:
        """The terms known so far."""
        return self.found.terms if isinstance(self.found, Flow) else self.found


class AllPolicies:
    """c(i) over all sequences of policies, and its sums."""

    def __init__(self, mdp: MDP, mu: FloatArray, nu: FloatArray, effort: Effort) -> None:
        self.gamma, self.first = mdp.gamma, first_term(mu, nu)
        self.support = Support(mdp.P, mdp.first, mu > 0.0, nu == 0.0)

        def compute(excess: Callable[[Terms], float]) -> tuple[Terms, bool]:
            return all_terms(Reduced.of(mdp, mu, nu, self.support), effort, excess)

        always: tuple[Asked, ...] = () if self.support.ever else (Terms.single, Terms.double)
        self.growing = Growing(compute, always, effort.rtol)

    def term(self, i: int) -> Interval:
        """c(i), exactly."""
        if i == 0 or self.support.meets_at(i):
            return self.first if i == 0 else INFINITE
        found: Terms = self.growing.until(partial(_unknown, i), partial(_unknown, _further(i)), rtol=EXACT)
        return found.term(i)

    def single(self) -> Interval:
        """Σ_i γ^i c(i)."""
        if _meets(self.support, self.gamma, 0):
            return INFINITE
        found: Terms = self.growing.until(Terms.single)
        return found.single()

    def double(self, k: int) -> Interval:
        """Σ_m (m+1) γ^m c(m+k)."""
        if _meets(self.support, self.gamma, k):
            return INFINITE
        found: Terms = self.growing.until(partial(Terms.double, k=k))
        return found.double(k)

    def double_from(self, k: int) -> Interval:
        """γ^k Σ_m (m+1) γ^m c(m+k), to a width that is small beside the whole sum (k = 0)."""
        if _meets(self.support, self.gamma, 0):
            return INFINITE
        found: Terms = self.growing.until(Terms.double)
        return self.gamma**k * found.double(k)


class OnePolicy:
    """c^π(i) of one policy, its sum, and its discounted visits against ν."""

    def __init__(self, P: sp.csr_array, mu: FloatArray, nu: FloatArray, gamma: float, slack: float, effort: Effort) -> None:
        self.gamma, self.first, self._mu, self._nu = gamma, first_term(mu, nu), mu, nu
        self._P = P

        def compute(excess: Callable[[Flow], float]) -> tuple[Flow, bool]:
            return one_policy(P, mu, nu, gamma, slack, effort, excess)

        self.growing = Growing(compute, (_single, partial(self._mismatch, stay=0.0)), effort.rtol)

    @cached_property
    def support(self) -> Support:
        """Where the policy goes."""
        return Support(self._P, np.arange(len(self._mu) + 1), self._mu > 0.0, self._nu == 0.0)

    def term(self, i: int) -> Interval:
        """c^π(i), exactly."""
        if i == 0 or self.support.meets_at(i):
            return self.first if i == 0 else INFINITE
        ask, further = (lambda flow, at=at: _unknown(at, flow.terms) for at in (i, _further(i)))
        flow: Flow = self.growing.until(ask, further, rtol=EXACT)
        return flow.terms.term(i)

    def single(self) -> Interval:
        """Σ_i γ^i c^π(i)."""
        if _meets(self.support, self.gamma, 0):
            return INFINITE
        flow: Flow = self.growing.until(_single)
        return flow.terms.single()

    def mismatch(self, stay: float) -> Interval:
        """max_s (w μ + (1-w) d_0)(s)/ν(s) for the weight w = stay, at least 1."""
        if stay == 1.0 or self.gamma == 0.0:
            return self.first
        if _meets(self.support, self.gamma, 0):
            return INFINITE
        return self._mismatch(self.growing.until(partial(self._mismatch, stay=stay)), stay)

    def visits(self) -> FloatArray:
        """d_0 = (1-γ) Σ γ^i μ P^i [S], a distribution."""
        flow: Flow = self.growing.until(_single)
        middle = 0.5 * (flow.lower + flow.upper)
        return middle / middle.sum()

    def _mismatch(self, flow: Flow, stay: float) -> Interval:
        seen = self._nu > 0.0
        move, m, n = (1.0 - stay) * (1.0 - self.gamma), self._mu[seen], self._nu[seen]
        low = float(((stay * m + move * flow.lower[seen]) / n).max())
        high = float(((stay * m + move * flow.upper[seen]) / n).max())
        return outwards(max(1.0, low), max(1.0, high))


def first_term(mu: FloatArray, nu: FloatArray) -> Interval:
    """c(0) = max(1, max μ/ν)."""
    seen = nu > 0.0
    if (mu[~seen] > 0.0).any():
        return INFINITE
    top = max(1.0, float((mu[seen] / nu[seen]).max()))
    return Interval(1.0, 1.0) if top == 1.0 else outwards(top, top)


def _meets(support: Support, gamma: float, k: int) -> bool:
    """Whether a discounted sum from the k-th term on meets an infinite one: at γ = 0 only the k-th counts."""
    return support.meets_from(k) if gamma > 0.0 else support.meets_at(k)


def _excess(wanted: list[tuple[Asked, float]], found: Any) -> float:
    """How many times too wide the widest interval is, but for rounding, which no further term removes."""
    floor = (found.terms if isinstance(found, Flow) else found).rounding
    return 0.0 if floor == math.inf else max((asked(found).relative_width - floor) / width for asked, width in wanted)


def _single(flow: Flow) -> Interval:
    return flow.terms.single()


def _unknown(i: int, terms: Terms) -> Interval:
    """What is left to know about the i-th term: nothing once its bracket is as narrow as rounding allows."""
    return Interval(1.0, 1.0) if terms.knows(i) else terms.term(i)


def _further(i: int) -> int:
    """A later term than the i-th, so that asking for one term after the other does not start anew each time."""
    return max(32, 1 << i.bit_length())
