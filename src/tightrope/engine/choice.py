"""Which method next: the one whose predicted remaining cost is least.

Each method predicts from what it has just seen of this very model, and is believed as long as the gap bears it out; one that
has not been tried yet is given the benefit of the doubt. Costs are counted, not timed: the same model is always solved alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tightrope.engine.downstream import flows
from tightrope.engine.methods import HOPE, IMPROVEMENTS, QUICK, downstream, factorise, gauss_seidel, hope, krylov, sweep
from tightrope.engine.outline import near
from tightrope.kernels.bounds import EPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tightrope.engine.methods import Report
    from tightrope.engine.workspace import Workspace

    Method: TypeAlias = Callable[[Workspace], Callable[[], Report]]

#: Backups of the whole model that other methods may take before BiCGSTAB is tried. Sweeps often keep their promise of as many,
#: where policies of a few far successors mix well.
DIFFUSE = 60.0
#: Backups of the whole model that policy iteration takes where few states can be come back to, or sweeps in place where policies
#: have far to go; and what a sweep of a chain leaves of the span where it is worth asking whether states can be come back to.
ALONG, SLOW = 15.0, 0.9
#: Discount up to which sweeps in place come next where policies are evaluated well and get no better all the same: what is far
#: away is not known here yet, it travels with such sweeps, and no constant error stays behind for long. And that up to which they
#: come first where successors are near.
SHORT, SHORTEST = 0.97, 0.9
#: How many times as wide as others the widest row of a state is where chains are no smaller than the model for their actions.
HEAVY = 2.0
#: Multiplications a state that any factorisation costs at the least, known without measuring.
FACTOR_FLOOR = 100.0
#: What it takes to find out what a factorisation costs, in multiplications for each transition of the chain.
SURVEY = 50.0
#: A method that gains nothing is taken to need this many times what was spent on it; sweeps only if so many rounds in a row gain
#: nothing, since one may just have found a better policy.
DOUBT, IN_VAIN = 8.0, 2
#: Rounds after which a method that sweeps is taken to need at least as much again as was spent on it, whatever it promises,
#: unless it comes to less at the pace of the last round.
TRUST = 3
#: How many times faster than any before it the chain of a policy mixes where those before were bad examples.
FASTER = 1.5
#: How fast a disappointing method is given another chance.
FORGIVENESS = 0.8

NAMES: dict[Method, str] = {
    sweep: "sweeps of the greedy policy (modified policy iteration)",
    gauss_seidel: "Gauss-Seidel sweeps, against the drift of the greedy policy where it has one",
    krylov: "BiCGSTAB on the greedy policy's chain, preconditioned by Gauss-Seidel sweeps to and fro (policy iteration)",
    downstream: "policies evaluated in the order of their own moves, each state after all it leads to (policy iteration)",
    factorise: "factorisation of the greedy policy's chain (policy iteration)",
}
#: What is said where policies are improved on the way through a band.
ON_THE_WAY = "moves are to near states: each chooses while it is eliminated, given what those before it have chosen"
#: What is said once states have been put in order.
IN_ORDER = "states are swept in the order of their distance from the sinks: in the order they came in, values would spread slowly"
#: What is said where all begins again.
FROM_ENDS = (
    "states are swept in the order of their distance from where all begins again: by their numbers, values would spread slowly"
)
#: What is said where nobody stays, and numbers mean nothing.
NEARBY = "states are swept in an order in which they are near to their successors: by their numbers they are not"
#: What is said where no order would help.
ANY_ORDER = "states are swept as they are numbered: values spread slowly, but in the order of distances from the sinks as well"
#: What is said where time passes.
IN_TIME = "time passes: every cycle of moves takes a multiple of a few steps; states are swept from the latest to the earliest"
#: What is said where components are solved one by one.
IN_PARTS = "the model falls into components, which are solved one after the other, each after all that it leads to"
#: What is said where pairs lead alike.
LED_ALIKE = "many actions lead alike: what comes after is added up once for all that do"
#: What is said where rows are wide.
PRUNED = "actions that cannot be best any more are left out of backups: rows are wide"


class Tried:
    """What is known about a method that has been tried on this model; costs are in multiplications."""

    rounds = 0
    spent = 0.0
    #: The last rounds in a row that gained next to nothing.
    in_vain = 0
    #: The predicted cost of finishing with it.
    remaining = 0.0
    #: How fast chains have mixed at best: minus the logarithm of what a sweep leaves of the span of the change.
    pace = 0.0


class Choice:
    """What is known about the methods on this model."""

    def __init__(self, work: Workspace) -> None:
        self.work = work
        self.tried: dict[Method, Tried] = {}
        #: How often it was asked whether values flow along a policy that they do not flow along.
        self.in_vain = 0

    def next(self) -> Method:
        """The method to use now."""
        if self.work.band is not None and self.work.factorised < 2 * IMPROVEMENTS:
            return factorise
        if not self.tried:
            if self.work.spreads or self.work.timed or (self.work.gamma <= SHORTEST and near(self.work.mdp)):
                return gauss_seidel
            heavy = self.work.mdp.chain_room > HEAVY * self.work.chain_nnz
            return downstream if heavy and flows(self.work) else sweep
        nnz = self.work.nnz
        options: dict[Method, float] = {sweep: QUICK * self.work.effort}
        if self.work.band is None:  # elimination costs less there
            options[krylov] = DIFFUSE * nnz
        if self._has_far_to_go():
            options[gauss_seidel] = ALONG * nnz
        elif krylov not in self.tried or self.tried[krylov].in_vain > 0:  # values that diffuse are carried nowhere by sweeps
            options[gauss_seidel] = hope(self.work) * nnz
        options |= {method: tried.remaining for method, tried in self.tried.items() if method is not downstream}
        best = min(options, key=options.__getitem__)
        if self._flows(options[best]):
            return downstream
        least = IMPROVEMENTS * (self.work.effort + FACTOR_FLOOR * self.work.S) + SURVEY * self.work.chain_nnz
        if factorise not in options and least < options[best]:
            options[factorise] = IMPROVEMENTS * (self.work.effort + self.work.factor_cost())
        return min(options, key=options.__getitem__)

    def _has_far_to_go(self) -> bool:
        """Whether policies get no better though they are evaluated well, and discounting leaves little of what is far away."""
        swept, others = self.tried.get(sweep), downstream in self.tried or krylov in self.tried
        in_vain = swept is not None and swept.in_vain > 0 and self.work.mixing <= SLOW
        return (others or in_vain) and self.work.gamma <= SHORT

    def _flows(self, cost: float) -> bool:
        """Whether values flow along the greedy policy, so that this costs less than the best of the rest."""
        tried, promised = self.tried.get(downstream), np.inf
        if tried is not None:
            promised = tried.remaining
        elif self.work.band is None and sweep in self.tried and self.work.mixing > SLOW:
            promised = ALONG * self.work.nnz
        if promised >= cost or self.in_vain == IN_VAIN:
            return False
        found = flows(self.work)
        self.in_vain += not found
        return found

    def learn(self, method: Method, tell: Callable[[], Report], gained: float) -> None:
        """Take note of a round: what it can tell, and that it multiplied the gap by `gained` (0: there was none before)."""
        report, nnz, look = tell(), self.work.nnz, self.work.effort
        for other in self.tried.values():
            other.remaining *= FORGIVENESS
        now = self.tried.setdefault(method, Tried())
        now.rounds += 1
        now.spent += report.cost + look
        pace = -np.log(max(self.work.mixing, EPS))
        faster, now.pace = method is sweep and pace > FASTER * now.pace, max(now.pace, pace)
        now.in_vain = 0 if gained < 0.9 or faster else now.in_vain + 1
        by_gap = np.inf
        if 0.0 < gained < 1.0:
            need = max(self.work.goal / self.work.gap, EPS)
            by_gap = np.log(need) / np.log(max(gained, EPS)) * (report.cost + look)
        promising = now.in_vain < IN_VAIN if method in (sweep, downstream) else now.rounds < 2 * IMPROVEMENTS
        if method is sweep and promising:
            # The first policy is that of the largest rewards, whose chain may be a bad example; so were all that are outpaced.
            hasty = len(self.tried) == 1 and (faster if now.rounds > 1 else report.policies == 1)
            now.remaining = min(report.remaining, QUICK * look) if hasty else report.remaining
        elif method in (gauss_seidel, krylov) and now.in_vain == 0:
            now.remaining = min(report.remaining, by_gap)
        elif method in (krylov, downstream, factorise) and promising:
            now.remaining = report.remaining
        else:
            now.remaining = max(DOUBT * now.spent, HOPE * nnz)
        if method in (sweep, gauss_seidel, downstream) and now.rounds >= TRUST:
            now.remaining = max(now.remaining, min(now.spent, by_gap))
