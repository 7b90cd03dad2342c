"""The one loop: improvement x evaluation, with hard or soft updates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.engine import Certificate, Limits, Monitor, machine
from tightrope.errors import InvalidArgument, UnsafeUpdate
from tightrope.model import validate
from tightrope.model.policy import Policy, mix
from tightrope.operators.bellman import greedy_in
from tightrope.planning.evaluate import PRESENT, Evaluate, Exact, Lambda
from tightrope.planning.improve import Improve, Improvement, Kappa

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP
    from tightrope.model.validate import FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Iterate:
    """Where an algorithm stands: v, the policy it came from, and one Bellman backup of v with what it proves."""

    v: FloatArray
    policy: Policy | None
    Tv: FloatArray
    greedy: Policy
    certificate: Certificate
    #: The smallest and the largest entry of T v - v.
    change: tuple[float, float]

    @property
    def extent(self) -> tuple[float, float]:
        """Bounds on the entries of v."""
        (low, high), (least, most) = self.change, self.certificate.extent
        return least - high, most - low

    @property
    def residual(self) -> float:
        """max |T v - v|."""
        low, high = self.change
        return max(abs(low), abs(high))


@dataclass(frozen=True, repr=False)
class PolicyIteration:
    """Improve, update π <- (1-α)π + α π', evaluate; repeat.

    α = 1 is a hard update. Theorem 1: a soft update with a κ-greedy policy is sure to improve only for α >= κ, and with an
    h-greedy one (h > 1) only for α = 1; anything else is refused unless `non_monotone=True` says that it is meant.
    """

    improve: Improve
    evaluate: Evaluate
    alpha: float = 1.0
    non_monotone: bool = False

    def __post_init__(self) -> None:
        alpha = validate.alpha(self.alpha)
        if alpha < 1.0 and not isinstance(self.evaluate, Exact):
            raise InvalidArgument(f"a soft update (alpha={alpha:g}) improves on v^π, so it needs evaluate=Exact()")
        if alpha < self.improve.least_step and not self.non_monotone:
            needed = "alpha = 1" if self.improve.least_step == 1.0 else f"alpha >= kappa = {self.improve.least_step:g}"
            raise UnsafeUpdate(
                f"alpha={alpha:g} with {self.improve!r} may make the policy worse: Theorem 1 (Multi-step Policy Improvement "
                f"and Soft Updates) guarantees improvement in every MDP if and only if {needed}. Use such an alpha, "
                "operators.cautious as the target, or non_monotone=True to do it all the same."
            )
        if isinstance(self.improve, Kappa) and isinstance(self.evaluate, Lambda) and self.evaluate.lam < self.improve.kappa:
            raise InvalidArgument(
                f"lam={self.evaluate.lam:g} is below kappa={self.improve.kappa:g}: kappa-lambda-PI is a contraction "
                "for lam in [kappa, 1]; lam = kappa is kappa-VI"
            )

    def __repr__(self) -> str:
        soft = "" if self.alpha == 1.0 else f", alpha={self.alpha:g}"
        return f"PolicyIteration(improve={self.improve!r}, evaluate={self.evaluate!r}{soft})"

    def init(self, mdp: MDP, v0: Any = None, pi0: Policy | None = None, monitor: Monitor | None = None) -> Iterate:
        """The first iterate: at v0, or at v^{pi0}; if nothing is said at v = 0, or where a policy is the better start."""
        watch = monitor or Monitor(Limits())
        policy = pi0 if pi0 is not None or (v0 is not None and self.alpha == 1.0) else self._first_policy(mdp, watch)
        if v0 is not None:
            return _look(mdp, np.array(validate.vector(v0, mdp.n_states, "v0", "state")), policy, watch)
        return _look(mdp, None if policy is None else machine(watch).policy_value(mdp, policy, None, 0.0, watch), policy, watch)

    def _first_policy(self, mdp: MDP, watch: Monitor) -> Policy | None:
        """What to start from where nobody has said: the uniform policy for soft updates, which need one; mostly none otherwise.

        In a band, one elimination is spent on the policy of the largest rewards: to look ahead at v = 0 costs two, and the few
        states that can be seen from there say little about the rest.
        """
        if self.alpha < 1.0:
            return Policy.uniform(mdp)
        if isinstance(self.evaluate, Exact) and machine(watch).is_band(mdp):
            return greedy_in(mdp.r, mdp.pairs)
        return None

    def step(self, mdp: MDP, now: Iterate, monitor: Monitor | None = None, goal: float = 0.0) -> Iterate:
        """One iteration; `goal` is the gap the run is after, below which inner computations need not be exact."""
        watch = monitor or Monitor(Limits())
        found = self.improve.improve(mdp, now, watch, goal)
        if self.alpha < 1.0 and now.policy is not None:
            found = Improvement(mix(now.policy, found.policy, self.alpha), found.base, found.base, backed_up=False)
        new = _look(mdp, self.evaluate.evaluate(mdp, found, watch, goal), found.policy, watch)
        if isinstance(self.evaluate, Exact) and 0.0 < goal < new.certificate.gap <= PRESENT * found.gap:
            # So little is left that it may be the evaluation's own: no reason to improve the policy before it is exact.
            exact = replace(found, guess=new.v, gap=0.0)
            new = _look(mdp, self.evaluate.evaluate(mdp, exact, watch, goal), found.policy, watch)
        return new


def _look(mdp: MDP, v: FloatArray | None, policy: Policy | None, monitor: Monitor) -> Iterate:
    """Back v up once: the certificate, and the start of whatever improvement comes next. None is zero everywhere."""
    sweep = machine(monitor).backup(mdp, v, monitor)
    monitor.backups += mdp.n_pairs
    certificate = machine(monitor).certify(mdp, sweep)
    greedy = Policy.of_rows(mdp.pairs, sweep.rows)
    here = np.zeros(mdp.n_states) if v is None else v
    return Iterate(here, policy, sweep.u, greedy, certificate, (sweep.low, sweep.high))
