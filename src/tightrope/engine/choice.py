"""Which method next: the one whose predicted remaining cost is least.

Predictions come from what each method has lately achieved on this very model (gap reduction per multiplication); a method that
has not been tried yet is given the benefit of the doubt. Costs are counted, not timed: the same model is always solved alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tightrope.engine.certificate import EPS
from tightrope.engine.methods import factorise, gauss_seidel, sweep

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tightrope.engine.workspace import Workspace

    Method: TypeAlias = Callable[[Workspace, float], float]

#: Backups of the whole model that Gauss-Seidel takes where it is the right method.
HOPE = 30.0
#: Improvements that policy iteration takes.
IMPROVEMENTS = 12
#: Multiplications a state that any factorisation costs at the least, known without measuring.
FACTOR_FLOOR = 100.0
#: Rounds of sweeps after which the policy has settled enough for the gap to tell how they converge.
SETTLING = 4
#: A method that has gained nothing yet is taken to need this many times what was spent on it.
DOUBT = 4.0
#: How fast a disappointing method is given another chance.
FORGIVENESS = 0.8

NAMES: dict[Method, str] = {
    sweep: "sweeps of the greedy policy (modified policy iteration)",
    gauss_seidel: "Gauss-Seidel sweeps both ways",
    factorise: "factorisation of the greedy policy's chain (policy iteration)",
}


@dataclass(eq=False)
class Choice:
    """What is known about the methods on this model."""

    work: Workspace
    #: Predicted cost of finishing with each method tried so far, in multiplications.
    remaining: dict[Method, float] = field(default_factory=dict)
    rounds: dict[Method, int] = field(default_factory=dict)
    spent: dict[Method, float] = field(default_factory=dict)

    def next(self) -> Method:
        """The method to use now."""
        if not self.remaining:
            return sweep
        options = dict(self.remaining)
        options.setdefault(gauss_seidel, HOPE * self.work.nnz)
        left = max(IMPROVEMENTS - self.rounds.get(factorise, 0), 2)
        if left * (self.work.nnz + FACTOR_FLOOR * self.work.S) < min(options.values()):
            options[factorise] = left * (self.work.nnz + self.work.factor_cost())
        return min(options, key=options.__getitem__)

    def learn(self, method: Method, cost: float, gained: float, need: float) -> None:
        """Take note of a round: it multiplied the gap by `gained`, which must be multiplied by `need` more."""
        cost += self.work.nnz
        self.rounds[method] = self.rounds.get(method, 0) + 1
        self.spent[method] = self.spent.get(method, 0.0) + cost
        for other in self.remaining:
            self.remaining[other] *= FORGIVENESS
        if method is factorise:
            if self.rounds[method] > 2 * IMPROVEMENTS:
                self.remaining[method] = DOUBT * self.spent[method]
            return
        digits = -np.log(min(max(need, EPS), 0.5))
        if method is sweep and self.rounds[sweep] <= SETTLING and gained < 0.9 and 0.0 < self.work.mixing < 1.0:
            # The first gaps tell of policies that still change; how fast the chain mixes tells more.
            sweeps = digits / -np.log(self.work.mixing)
            improvements = SETTLING + digits / np.log(10.0)
            self.remaining[sweep] = self.work.chain_nnz * (sweeps + 3.0 * improvements) + self.work.nnz * improvements
        elif gained < 1.0:
            self.remaining[method] = cost * digits / -np.log(max(gained, 1e-12))
        else:
            self.remaining[method] = DOUBT * self.spent[method]
