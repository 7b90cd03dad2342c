"""Stock, queues and machines against their sources: each model is written out again here, and one known value is met."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from reference import optimum
from tightrope.model import problems
from zoo import assert_is, assert_starts


def test_inventory_is_putermans_example():
    mdp = problems.inventory(3, demand=(0.25, 0.5, 0.25))
    # Table 3.2.1: r(s, a), and P(. | s + a).
    assert mdp.r.tolist() == [0, -1, -2, -5, 5, 0, -3, 6, -1, 5]
    after = np.array([[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25]])
    np.testing.assert_array_equal(mdp.P.toarray(), after[[0, 1, 2, 3, 1, 2, 3, 2, 3, 3]])
    # Section 4.6.1: three months, undiscounted, in sixteenths.
    v = np.zeros(4)
    for _ in range(3):
        v = np.maximum.reduceat(mdp.r + mdp.P @ v, mdp.first[:-1])
    np.testing.assert_allclose(16 * v, [67, 129, 194, 227])


def test_inventory_with_poisson_demand_is_its_description():
    M, mean, order = 9, 3.5, 4
    chance = [math.exp(-mean) * mean**d / math.factorial(d) for d in range(60)]
    outcomes = {}
    for s, a in itertools.product(range(M + 1), range(order + 1)):
        if s + a <= M:
            cost = (7.0 + 3.0 * a if a else 0.0) + 0.5 * (s + a)
            outcomes[s, a] = [(p, max(s + a - d, 0), 9.0 * min(d, s + a) - cost) for d, p in enumerate(chance)]
    mdp = problems.inventory(M, mean, price=9.0, setup=7.0, unit=3.0, holding=0.5, max_order=order)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


def test_inventory_orders_by_an_s_S_rule():
    # Scarf (1960): with a set-up cost it is optimal to order up to S when the stock is below s, and otherwise nothing.
    mdp = problems.inventory(30, 6.0)
    v = optimum(mdp)
    q = mdp.r + mdp.gamma * mdp.P @ v
    order = np.array([q[mdp.first[s] : mdp.first[s + 1]].argmax() for s in range(31)])
    ordering = np.flatnonzero(order)
    assert ordering.tolist() == list(range(len(ordering)))
    assert len(ordering) > 0
    assert len(set((ordering + order[ordering]).tolist())) == 1


def test_queue_is_its_description():
    N, lam, speeds, costs = 4, 0.35, (0.2, 0.6), (0.5, 2.0)
    outcomes = {}
    for s, k, admit in itertools.product(range(N + 1), range(2), (0, 1)):
        if s == N and admit:
            continue
        base = -0.3 * s - costs[k]
        arrived = (lam, s + 1, base + 5.0) if admit else (lam, s, base)
        outcomes[s, 2 * k + admit] = [
            arrived,
            (speeds[k], max(s - 1, 0), base),
            (1 - lam - speeds[k], s, base),
        ]
    mdp = problems.queue(N, arrival=lam, services=speeds, service_costs=costs, reward=5.0, holding=0.3)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


def test_tandem_is_its_description():
    N, lam, mu, more, costs = 2, 0.2, 0.15, 0.3, (3.0, 1.0, 0.5)
    outcomes = {}
    for x, a in itertools.product(itertools.product(range(N + 1), repeat=3), range(3)):
        base = -sum(c * n for c, n in zip(costs, x, strict=True))
        happens = [(lam, (x[0] + 1, *x[1:]), base + 7.0) if x[0] < N else (lam, x, base)]
        for i in range(3):
            after = list(x)
            if x[i] > 0 and (i == 2 or x[i + 1] < N):
                after[i] -= 1
                if i < 2:
                    after[i + 1] += 1
            happens.append((mu + more * (i == a), tuple(after), base))
        happens.append((1 - lam - 3 * mu - more, x, base))
        number = {y: n for n, y in enumerate(itertools.product(range(N + 1), repeat=3))}
        outcomes[number[x], a] = [(p, number[y], r) for p, y, r in happens]
    mdp = problems.tandem(N, 3, arrival=lam, service=mu, help_rate=more, reward=7.0, holding=costs)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


def test_tandem_of_one_station_is_a_queue():
    mdp = problems.tandem(8, 1, arrival=0.3, service=0.2, help_rate=0.3, reward=4.0, holding=[0.5], gamma=0.9)
    queue = problems.queue(8, arrival=0.3, services=(0.5,), service_costs=(0.0,), reward=4.0, holding=0.5, gamma=0.9)
    admits = [*range(1, 17, 2), 16]  # of two actions a state; the full one turns away
    np.testing.assert_allclose(mdp.P.toarray(), queue.P.toarray()[admits], atol=1e-15)
    np.testing.assert_allclose(mdp.r, np.asarray(queue.r)[admits], atol=1e-15)


def test_queue_with_one_place_has_a_closed_form():
    lam, mu, R, gamma = 0.3, 0.6, 10.0, 0.9
    mdp = problems.queue(1, arrival=lam, services=(mu,), service_costs=(0.0,), reward=R, holding=0.0, gamma=gamma)
    # Admit: v0 = λR + γ(λ v1 + (1-λ) v0), v1 = γ(μ v0 + (1-μ) v1).
    ratio = gamma * mu / (1 - gamma * (1 - mu))
    v0 = lam * R / (1 - gamma * (1 - lam) - gamma * lam * ratio)
    np.testing.assert_allclose(optimum(mdp), [v0, ratio * v0])


def test_queue_admits_up_to_a_threshold_and_works_faster_when_it_is_long():
    # Stidham (1985): both controls are monotone in the length of the queue.
    mdp = problems.queue(60)
    q = mdp.r + mdp.gamma * mdp.P @ optimum(mdp)
    best = np.array([mdp.pairs.actions[mdp.first[s] + q[mdp.first[s] : mdp.first[s + 1]].argmax()] for s in range(61)])
    speed, admits = np.divmod(best, 2)
    assert (np.diff(admits) <= 0).all()
    assert (np.diff(speed) >= 0).all()
    assert admits[0] == 1
    assert admits[-2] == 0
    assert set(speed.tolist()) == {0, 1}


def test_replacement_is_its_description():
    n, p = 5, (0.2, 0.5, 0.3)
    outcomes = {}
    for x in range(n):
        outcomes[x, 0] = [(p[j], min(x + j, n - 1), -0.1 * x) for j in range(3)]
        outcomes[x, 1] = [(p[j], min(j, n - 1), -4.0) for j in range(3)]
    mdp = problems.replacement(n, increments=p, cost=0.1, price=4.0)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 0)


def test_replacement_with_steady_wear_is_the_best_cycle():
    # Wear of one a period, replaced at m: v(0) = -(Σ_{i<m} γ^i c i + γ^m price)/(1 - γ^m); the best m is found by trying all.
    gamma, c, price, n = 0.97, 0.2, 5.0, 60
    cycles = [-(sum(gamma**i * c * i for i in range(m)) + gamma**m * price) / (1 - gamma**m) for m in range(1, n)]
    v = optimum(problems.replacement(n, increments=(0.0, 1.0), cost=c, price=price, gamma=gamma))
    assert 0 < int(np.argmax(cycles)) < n - 2
    assert v[0] == pytest.approx(max(cycles), rel=1e-12)


def test_sysadmin_is_its_description():
    n, good, poor, cost = 3, 0.9, 0.4, 0.75
    outcomes = {}
    for s, a in itertools.product(range(2**n), range(n + 1)):
        up = [s >> i & 1 for i in range(n)]
        chance = [0.0 if not up[i] else good if up[(i - 1) % n] else poor for i in range(n)]
        if a:
            chance[a - 1] = 1.0
        r = sum(up) - cost * (a > 0)
        outcomes[s, a] = [
            (math.prod(c if b else 1 - c for c, b in zip(chance, bits, strict=True)), sum(b << i for i, b in enumerate(bits)), r)
            for bits in itertools.product((0, 1), repeat=n)
        ]
    mdp = problems.sysadmin(n, healthy=good, shaken=poor, reboot_cost=cost)
    assert_is(mdp, outcomes)
    assert_starts(mdp, 7)
    assert mdp.pairs.state_names[6] == "110"
    assert mdp.P.nnz == 3**n * (1 + Fraction(2, 3) * n)


def test_sysadmin_of_one_machine_reboots_it_for_ever():
    np.testing.assert_allclose(optimum(problems.sysadmin(1, gamma=0.9)), [9.0, 10.0])
