"""Networks: of queues, of corners and of nodes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import tightrope as tr


def polling(room, gamma):
    """One server between two queues, who serves where it is or goes over; it costs more to wait in the second."""

    def dynamics(states, action):
        queues, at = np.divmod(states, 2)
        first, second = np.divmod(queues, room)
        at = 1 - at if action == 1 else at
        served = np.stack([(at == 0) & (first > 0), (at == 1) & (second > 0)]) & (action == 0)
        after = [(first + 1, second), (first, second + 1), (first, second), (first - served[0], second - served[1])]
        to = [(np.minimum(x, room - 1) * room + np.minimum(y, room - 1)) * 2 + at for x, y in after]
        return np.stack(to, axis=1), [0.2, 0.15, 0.15, 0.5], -(first + 2.0 * second) - (action == 1)

    return tr.MDP.from_function(dynamics, 2 * room * room, 2, gamma)


def cube(bits, gamma, seed=0):
    """The corners of a cube: one chooses the edge to go along, and goes along any of them three times out of ten."""
    prizes = np.random.default_rng(seed).normal(size=1 << bits)

    def dynamics(states, action):
        to = np.stack([states ^ (1 << action), *(states ^ (1 << bit) for bit in range(bits))], axis=1)
        return to, [0.7, *np.full(bits, 0.3 / bits)], prizes[states]

    return tr.MDP.from_function(dynamics, 1 << bits, bits, gamma)


def routes(size, gamma, seed=0):
    """The way to the oldest node of a network that grew as popular nodes grow: to a neighbour, or now and then to any of them."""
    rng = np.random.default_rng(seed)
    near, ends = [[1], [0], *([] for _ in range(size - 2))], [0, 1]
    for node in range(2, size):
        for other in sorted(set(rng.choice(ends, 2).tolist())):
            near[node].append(other)
            near[other].append(node)
            ends += [node, other]
    near = [[0], *(others[:12] for others in near[1:])]
    states = np.repeat(np.arange(size), [len(others) for others in near])
    actions = np.concatenate([np.arange(len(others)) for others in near])
    P = sp.lil_array((len(states), size))
    for pair, (state, action) in enumerate(zip(states.tolist(), actions.tolist(), strict=True)):
        for other in near[state]:
            P[pair, other] += 0.2 / len(near[state])
        P[pair, near[state][action]] += 0.8
    return tr.MDP.from_pairs(states, actions, sp.csr_array(P), -1.0 * (states > 0), gamma)
