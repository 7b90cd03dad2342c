"""A simulator and no model: learn when to renew a machine from samples alone.

    python examples/simulator.py

The machine earns less as it wears and may break. Only `step` knows how; the learner sees states, actions and rewards. The exact
answer, from the model written down beside it, is there to compare with.
"""

from __future__ import annotations

import numpy as np

import tightrope as tr
from tightrope.online import Simulator, learn_seeds, sizes

AGES, RUN, RENEW = 8, 0, 1
WEAR, COST = 0.5, 3.0


def step(age: int, action: int, rng: np.random.Generator) -> tuple[float, int]:
    """The reward, and the age after one day."""
    if action == RENEW:
        return -COST, 0
    return 1.0 - 0.3 * age, min(age + int(rng.random() < WEAR), AGES - 1)


if __name__ == "__main__":
    learner = tr.OnlineKappaPI(kappa=0.9, slow=tr.StepSchedule(0.85), explore=0.2)
    runs = learn_seeds(Simulator(sizes(AGES, 2), 0.95, step), learner, steps=20_000, seeds=4)

    ages = np.arange(AGES)
    P = np.zeros((AGES, 2, AGES))
    P[ages, RUN, ages] += 1.0 - WEAR
    P[ages, RUN, np.minimum(ages + 1, AGES - 1)] += WEAR
    P[:, RENEW, 0] = 1.0
    mdp = tr.MDP.from_dense(P, np.stack((1.0 - 0.3 * ages, np.full(AGES, -COST)), axis=1), gamma=0.95)
    best = tr.solve(mdp)

    print("renew from age, optimal:", int(best.policy.actions.argmax()))
    for run in runs:
        chance = run.policy.weights.reshape(AGES, 2)[:, RENEW]
        loss = (best.value - tr.value(mdp, run.policy)).max()
        age = int((chance > 0.5).argmax())
        print(f"learned from {run.steps:,} samples: from age {age}, loses {loss:.3f} of {best.value.max():.1f}")
