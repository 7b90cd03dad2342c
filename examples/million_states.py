"""A model of a million states from one function: when to charge a battery, and when to sell.

    python examples/million_states.py [LEVELS] [PRICES]

A battery has 1,000 levels, the price of energy 1,000, which makes a million states. The function gets *arrays* of states and one
action, in chunks, and answers with arrays: no loop over states, no table larger than the model itself.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import tightrope as tr

LEVELS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
PRICES = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
WAIT, CHARGE, SELL = 0, 1, 2
STEP = max(LEVELS // 20, 1)  # what is charged or sold at a time
LOSS = 0.1  # of what is charged


def battery(states: np.ndarray, action: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Next states [n, 3], their probabilities [n, 3], rewards [n]; a reward of -inf: not allowed here."""
    level, price = np.divmod(states, PRICES)
    after = level + {WAIT: 0, CHARGE: STEP, SELL: -STEP}[action]
    money = {WAIT: 0.0, CHARGE: -STEP / (1.0 - LOSS), SELL: float(STEP)}[action] * (0.5 + price / PRICES)
    money = np.where((after >= 0) & (after < LEVELS), money, -np.inf)
    # Prices go up or down by a twentieth of their range, and are drawn towards the middle.
    jump, pull = max(PRICES // 20, 1), 0.4 * (price / PRICES - 0.5)
    prices = np.stack((np.maximum(price - jump, 0), price, np.minimum(price + jump, PRICES - 1)), axis=1)
    chance = np.stack((0.3 + pull, np.full(len(states), 0.4), 0.3 - pull), axis=1)
    return np.clip(after, 0, LEVELS - 1)[:, None] * PRICES + prices, chance, money


if __name__ == "__main__":
    begin = time.perf_counter()
    mdp = tr.MDP.from_function(battery, n_states=LEVELS * PRICES, n_actions=3, gamma=0.99)
    print(f"built in {time.perf_counter() - begin:.1f} s: {mdp}")
    sol = tr.solve(mdp)
    print(sol)
    print(sol.explain())
    actions = sol.policy.actions.reshape(LEVELS, PRICES)
    for share in (0.0, 0.5, 0.9):
        row = actions[int(share * (LEVELS - 1))]
        buy, sell = np.flatnonzero(row == CHARGE), np.flatnonzero(row == SELL)
        said = [
            f"charge below {buy.max() / PRICES:.0%}" if len(buy) else "",
            f"sell above {sell.min() / PRICES:.0%}" if len(sell) else "",
        ]
        print(f"battery {share:4.0%} full: {', '.join(filter(None, said))} of the price range")
