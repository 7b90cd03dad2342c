"""Algorithm 1 in plain Python, line by line as printed: slow, obvious, and independent of the library."""

from __future__ import annotations

import math

EPS = 2.0**-52


class Algorithm1:
    """q, q_kappa and pi as lists of lists [state][action]; `fast` and `slow` are functions of the visit count."""

    def __init__(self, actions, gamma, kappa, fast, slow, *, cautious=True, pi0=None, q0=0.0, q_kappa0=None):
        self.gamma, self.kappa, self.cautious = gamma, kappa, cautious
        self.fast, self.slow = fast, slow
        self.pi = [[1.0 / n] * n for n in actions] if pi0 is None else [list(row) for row in pi0]
        self.q = [[q0] * n for n in actions]
        self.q_kappa = [[q0 if q_kappa0 is None else q_kappa0] * n for n in actions]
        self.pair_visits = [[0] * n for n in actions]
        self.state_visits = [0] * len(actions)

    def v(self, s):
        total = 0.0
        for p, q in zip(self.pi[s], self.q[s], strict=True):
            total += p * q
        return total

    def target(self, s):
        q, ahead = self.q[s], self.q_kappa[s]
        a_kappa = ahead.index(max(ahead))
        a_one = q.index(max(q))
        tolerance = 4 * (len(q) + 1) * EPS * max(abs(x) for x in q)
        if not self.cautious or q[a_kappa] >= self.v(s) - tolerance:
            return a_kappa
        return a_one

    def step(self, s, a, r, following):
        v, best = self.v(following), max(self.q_kappa[following])
        delta = r + self.gamma * v - self.q[s][a]
        delta_kappa = r + self.gamma * (1 - self.kappa) * v + self.kappa * self.gamma * best - self.q_kappa[s][a]
        self.pair_visits[s][a] += 1
        self.state_visits[s] += 1
        mu = self.fast(self.pair_visits[s][a])
        self.q[s][a] += mu * delta
        self.q_kappa[s][a] += mu * delta_kappa
        b, mu = self.target(s), self.slow(self.state_visits[s])
        for i in range(len(self.pi[s])):
            self.pi[s][i] += mu * ((i == b) - self.pi[s][i])


def q_learning(actions, gamma, rate, transitions):
    """Watkins' Q-learning, with the step size by visits of the pair."""
    q = [[0.0] * n for n in actions]
    visits = [[0] * n for n in actions]
    for s, a, r, following in transitions:
        visits[s][a] += 1
        q[s][a] += rate(visits[s][a]) * (r + gamma * max(q[following]) - q[s][a])
    return q


def expected_sarsa(actions, gamma, rate, epsilon, transitions):
    """Expected Sarsa of the epsilon-greedy policy, ties to the lowest action."""
    q = [[0.0] * n for n in actions]
    visits = [[0] * n for n in actions]
    for s, a, r, following in transitions:
        visits[s][a] += 1
        row = q[following]
        value = (1 - epsilon) * max(row) + epsilon * sum(row) / len(row)
        q[s][a] += rate(visits[s][a]) * (r + gamma * value - q[s][a])
    return q


def flat(rows):
    return [x for row in rows for x in row]


def power(p, c=1.0, n0=0.0):
    return lambda n: c / math.pow(n + n0, p)
