"""Solve an inventory problem of your own, with proof.

    python examples/inventory.py

A shop holds at most 20 units, orders every morning, and sells to random demand. The model is three NumPy arrays. The answer is a
policy, and two numbers for every state between which its optimal value lies: the last lines check them without the library.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import poisson

import tightrope as tr

ROOM, MEAN, PRICE, SETUP, UNIT, HOLDING = 20, 6.0, 8.0, 4.0, 2.0, 1.0


def shop() -> tuple[np.ndarray, np.ndarray]:
    """P[s, a, s'] and r[s, a] for stock s and order a; a reward of -inf says that an order does not fit in."""
    P = np.zeros((ROOM + 1, ROOM + 1, ROOM + 1))
    r = np.full((ROOM + 1, ROOM + 1), -np.inf)
    demand = poisson(MEAN).pmf(np.arange(ROOM))
    for s in range(ROOM + 1):
        for a in range(ROOM + 1 - s):
            stock = s + a
            P[s, a, stock - np.arange(stock)] = demand[:stock]  # what is left after a demand of 0, 1, ..., stock - 1
            P[s, a, 0] += 1.0 - demand[:stock].sum()  # sold out
            sold = stock - P[s, a] @ np.arange(ROOM + 1)
            r[s, a] = PRICE * sold - (SETUP + UNIT * a if a else 0.0) - HOLDING * stock
    return P, r


def check(P: np.ndarray, r: np.ndarray, gamma: float, sol: tr.Solution) -> bool:
    """If backing up `lower` raises it, it is below v*; if backing up `upper` lowers it, it is above v* (T is monotone)."""
    rounding = 1e-9 * np.abs(sol.upper).max()
    backup = lambda v: (r + gamma * P @ v).max(axis=1)  # noqa: E731  (T v, in one line)
    return bool((backup(sol.lower) >= sol.lower - rounding).all() and (backup(sol.upper) <= sol.upper + rounding).all())


if __name__ == "__main__":
    P, r = shop()
    sol = tr.solve(tr.MDP.from_dense(P, r, gamma=0.95))
    print(sol)
    print()
    for s in range(0, ROOM + 1, 4):
        print(f"stock {s:2}: order {sol.policy.actions[s]:2}   v* between {sol.lower[s]:.6f} and {sol.upper[s]:.6f}")
    print("\nchecked with NumPy alone:", check(P, r, 0.95, sol))
