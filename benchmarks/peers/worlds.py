"""Models that textbooks and trades know, beyond those that `tightrope.problems` builds."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp

import tightrope as tr
from tightrope import problems


def maze(size, loops, slip, gamma, seed=0):
    """A random maze of size x size cells in which a share of the walls is missing, with the goal in the last corner."""
    rng = np.random.default_rng(seed)
    walls = np.ones((2 * size + 1, 2 * size + 1), bool)
    walls[1, 1] = False
    path, met = [(0, 0)], {(0, 0)}
    while path:
        row, column = path[-1]
        ways = [(row + up, column + right) for up, right in ((0, 1), (1, 0), (0, -1), (-1, 0))]
        ways = [(y, x) for y, x in ways if 0 <= y < size and 0 <= x < size and (y, x) not in met]
        if not ways:
            path.pop()
            continue
        y, x = ways[rng.integers(len(ways))]
        walls[y + row + 1, x + column + 1] = walls[2 * y + 1, 2 * x + 1] = False
        path.append((y, x))
        met.add((y, x))
    walls[1:-1, 1:-1] &= rng.random((2 * size - 1, 2 * size - 1)) >= loops
    return problems.Grid(2 * size + 1, 2 * size + 1, walls).mdp(slip=slip, gamma=gamma)


def gambler(goal, gamma, luck=0.4):
    """Stakes from 1 to what is owned or still lacking, doubled with a chance of `luck`, until the goal or nothing is left."""
    owned = np.arange(goal + 1)
    stakes = np.maximum(np.minimum(owned, goal - owned), 1)
    first = np.append(0, np.cumsum(stakes))
    state, stake = np.repeat(owned, stakes), np.arange(first[-1]) - np.repeat(first[:-1], stakes) + 1
    stake[(state == 0) | (state == goal)] = 0
    pair = np.arange(first[-1])
    won, lost = ((np.full(len(pair), chance), (pair, to)) for chance, to in ((luck, state + stake), (1.0 - luck, state - stake)))
    P = sum(sp.coo_array(moves, shape=(len(pair), goal + 1)).tocsr() for moves in (won, lost))
    return tr.MDP(P, luck * ((state + stake == goal) & (stake > 0)), gamma, first)


def seasons(periods, size, gamma):
    """A queue whose arrivals depend on the hour, and three rates of service; the clock goes on whatever is done."""
    rates = (0.1, 0.4, 0.7)

    def dynamics(states, action):
        hour, length = np.divmod(states, size)
        arrival, rate = 0.2 + 0.5 * np.sin(np.pi * hour / periods) ** 2, rates[action]
        up, down = arrival * (1.0 - rate), rate * (1.0 - arrival)
        to = np.stack([np.minimum(length + 1, size - 1), np.maximum(length - 1, 0), length], axis=1)
        return ((hour + 1) % periods * size)[:, None] + to, np.stack([up, down, 1.0 - up - down], axis=1), -0.1 * length - action

    return tr.MDP.from_function(dynamics, periods * size, len(rates), gamma)


def stocks(size, gamma):
    """Two goods in stock, each 0 to size - 1, ordered together by 0, 2 or 4: one fee for both; 0 to 3 of each are asked for."""
    demand = np.array([0.2, 0.4, 0.3, 0.1])
    chances, wanted = np.outer(demand, demand).ravel(), np.stack(np.divmod(np.arange(16), 4))

    def dynamics(states, action):
        ordered = 2 * np.array(divmod(action, 3))
        stock = np.minimum(np.stack(np.divmod(states, size)) + ordered[:, None], size - 1)
        left = np.maximum(stock[..., None] - wanted[:, None], 0)
        sold = (stock[..., None] - left).sum(axis=0) @ chances
        rewards = 3.0 * sold - 2.0 * (ordered.sum() > 0) - 0.5 * ordered.sum() - 0.05 * stock.sum(axis=0)
        return left[0] * size + left[1], np.tile(chances, (len(states), 1)), rewards

    return tr.MDP.from_function(dynamics, size * size, 9, gamma)


def fleet(machines, levels, gamma):
    """Machines that wear level by level, each with a chance of a fifth; one of them at a time can be made as good as new."""
    worn = np.array(list(itertools.product((0, 1), repeat=machines)))
    chances, weights = np.prod(np.where(worn, 0.2, 0.8), axis=1), levels ** np.arange(machines)

    def dynamics(states, action):
        wear = states[:, None] // weights % levels
        rewards = -3.0 * (wear == levels - 1).sum(axis=1) - 2.0 * (action < machines)
        if action < machines:
            wear[:, action] = 0
        to = np.minimum(wear[:, None] + worn, levels - 1) @ weights
        return to, np.tile(chances, (len(states), 1)), rewards

    return tr.MDP.from_function(dynamics, levels**machines, machines + 1, gamma)


def nearest(across, up, size):
    """The four points of a grid around each place, by their numbers, and the share of each; across, the grid goes round."""
    left, below = np.floor(across).astype(int), np.minimum(up.astype(int), size - 2)
    right, above = across - left, up - below
    corners = [(left + i) % size * size + below + j for i, j in itertools.product((0, 1), repeat=2)]
    chances = [x * y for x, y in itertools.product((1.0 - right, right), (1.0 - above, above))]
    return np.stack(corners, axis=1), np.stack(chances, axis=1)


def pendulum(size, gamma):
    """Gymnasium's pendulum on a grid of angles and speeds, with five torques: moves are spread over the four nearest points."""
    torques = np.linspace(-2.0, 2.0, 5)

    def dynamics(states, action):
        angle, speed = np.divmod(states, size)
        angle, speed = angle * 2.0 * np.pi / size - np.pi, speed * 16.0 / (size - 1) - 8.0
        rewards = -(angle**2 + 0.1 * speed**2 + 0.001 * torques[action] ** 2)
        speed = np.clip(speed + 0.05 * (15.0 * np.sin(angle) + 3.0 * torques[action]), -8.0, 8.0)
        across, up = (angle + 0.05 * speed + np.pi) / (2.0 * np.pi) * size, (speed + 8.0) / 16.0 * (size - 1)
        return *nearest(across, up, size), rewards

    return tr.MDP.from_function(dynamics, size * size, len(torques), gamma)


def hill(size, gamma):
    """A car too weak for its hill that swings up, on a grid of places and speeds, and begins again once it is at the top."""
    pushes = (-1.0, 0.0, 1.0)

    def dynamics(states, action):
        place, speed = np.divmod(states, size)
        place, speed = -1.2 + 1.8 * place / (size - 1), -0.07 + 0.14 * speed / (size - 1)
        speed = np.clip(speed + 0.0015 * pushes[action] - 0.0025 * np.cos(3.0 * place), -0.07, 0.07)
        place = np.maximum(place + speed, -1.2)
        top = place >= 0.5
        across, up = (np.where(top, -0.5, place) + 1.2) / 1.8 * (size - 1), (np.where(top, 0.0, speed) + 0.07) / 0.14 * (size - 1)
        return *nearest(across, up, size), 5.0 * top - 1.0

    return tr.MDP.from_function(dynamics, size * size, len(pushes), gamma)


def reservoir(levels, gamma):
    """Water for twelve months a year: none to eleven units are let out, none to six flow in; the month is the last digit."""
    inflow = np.array([0, 1, 2, 3, 4, 6])

    def dynamics(states, action):
        level, month = np.divmod(states, 12)
        out, wet = np.minimum(action, level), 1.0 + 0.8 * np.sin(np.pi * month / 6)
        chances = np.exp(-((inflow / 2.0 - wet[:, None]) ** 2))
        to = np.minimum((level - out)[:, None] + inflow, levels - 1) * 12 + ((month + 1) % 12)[:, None]
        rewards = np.sqrt(out) * (1.0 + 0.3 * np.cos(np.pi * month / 6)) - 0.5 * (level < 5)
        return to, chances / chances.sum(axis=1, keepdims=True), rewards

    return tr.MDP.from_function(dynamics, 12 * levels, 12, gamma)


def cab(zones, charges, gamma, seed=0):
    """A cab takes whoever comes to wherever they go, charges where it is, or drives to one of the next three zones."""
    rng = np.random.default_rng(seed)
    wanted, fares = rng.dirichlet(np.full(zones, 0.5), zones), 3.0 * rng.random(zones)

    def dynamics(states, action):
        zone, charge = np.divmod(states, charges)
        if action == 0:
            can = charge >= 3
            to = np.where(can[:, None], np.arange(zones) * charges + np.maximum(charge - 3, 0)[:, None], states[:, None])
            return to, wanted[zone], np.where(can, fares[zone], -5.0)
        if action == 1:
            to, rewards = zone * charges + np.minimum(charge + 5, charges - 1), np.full(len(states), -0.3)
        else:
            to, rewards = (zone + action - 1) % zones * charges + np.maximum(charge - 1, 0), -0.1 - 0.5 * (charge == 0)
        return to[:, None], np.ones((len(states), 1)), rewards

    return tr.MDP.from_function(dynamics, zones * charges, 5, gamma)


def elevator(floors, gamma):
    """Up to nine people get in at the bottom or on the way, and out at the top; those on board do not like to wait."""

    def dynamics(states, action):
        load, floor = np.divmod(states, floors)
        bottom, top = (floor == 0) & (action == 1), (floor == floors - 1) & (action == 1)
        load_now = np.where(bottom, np.minimum(load + 1, 9), np.where(top, 0, load))
        to = np.stack([load_now, np.minimum(load_now + 1, 9)], axis=1) * floors
        return to + np.clip(floor + action - 1, 0, floors - 1)[:, None], [0.9, 0.1], np.where(top, 3.0 * load, -0.1 * load)

    return tr.MDP.from_function(dynamics, 10 * floors, 3, gamma)


def errand(size, gamma):
    """A slippery yard with puddles, from one corner to the other; then the next errand begins where this one did."""
    moves = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def dynamics(states, action):
        row, column = np.divmod(states, size)
        there = [moves[(action + turn) % 4] for turn in (0, 1, 3)]
        to = [np.clip(row + down, 0, size - 1) * size + np.clip(column + right, 0, size - 1) for down, right in there]
        done = states == size * size - 1
        return np.where(done[:, None], 0, np.stack(to, axis=1)), [0.9, 0.05, 0.05], 10.0 * done - 0.1 * (states * 7919 % 13 == 0)

    return tr.MDP.from_function(dynamics, size * size, 4, gamma)


def dice(goal, gamma):
    """The game of Pig, alone: throw on, or bank what was thrown since, which a one loses; at the goal it begins again."""
    thrown = np.arange(2, 7)

    def dynamics(states, action):
        banked, turn = np.divmod(states, goal)
        if action == 1:
            return (np.minimum(banked + turn, goal - 1) * goal)[:, None], [1.0], np.full(len(states), -0.1)
        won = (banked + turn)[:, None] + thrown >= goal
        on = np.where(won, 0, banked[:, None] * goal + np.minimum(turn[:, None] + thrown, goal - 1))
        return np.column_stack([banked * goal, on]), np.full(6, 1 / 6), won.mean(axis=1) - 0.1

    return tr.MDP.from_function(dynamics, goal * goal, 2, gamma)


def wear(size, gamma):
    """A tool that wears the faster it is used, by leaps, until it has to be replaced."""

    def dynamics(states, action):
        to = np.minimum(states[:, None] + (action + 1) * np.array([0, 1, 3, 9]), size - 1)
        worn = states == size - 1
        return np.where(worn[:, None], 0, to), [0.3, 0.4, 0.2, 0.1], np.where(worn, -20.0, (action + 1) ** 0.7 - states / size)

    return tr.MDP.from_function(dynamics, size, 4, gamma)


def belief(counts, gamma):
    """Two arms of a bandit, of which so many wins and losses are remembered; half of them are forgotten when there are more."""

    def dynamics(states, arm):
        wins, losses = states // counts ** (3 - 2 * arm) % counts, states // counts ** (2 - 2 * arm) % counts
        chance = (wins + 1) / (wins + losses + 2)
        won = np.where(wins < counts - 1, 1, -(wins // 2)) * counts ** (3 - 2 * arm)
        lost = np.where(losses < counts - 1, 1, -(losses // 2)) * counts ** (2 - 2 * arm)
        return states[:, None] + np.stack([won, lost], axis=1), np.stack([chance, 1.0 - chance], axis=1), chance

    return tr.MDP.from_function(dynamics, counts**4, 2, gamma)


def river(size, gamma):
    """RiverSwim: a little to be had at the near bank, a lot at the far one, and a current against those who swim there."""

    def dynamics(states, action):
        if action == 0:
            return np.maximum(states - 1, 0)[:, None], [1.0], 0.005 * (states == 0)
        to = np.stack([np.maximum(states - 1, 0), states, np.minimum(states + 1, size - 1)], axis=1)
        chances = np.where(
            (states == 0)[:, None], [0.0, 0.4, 0.6], np.where((states == size - 1)[:, None], [0.4, 0.0, 0.6], [0.05, 0.6, 0.35])
        )
        return to, chances, 1.0 * (states == size - 1)

    return tr.MDP.from_function(dynamics, size, 2, gamma)


def rental(size, gamma):
    """Jack's car rental (Sutton and Barto): two places with up to `size` cars each, of which up to five are moved overnight."""

    def day(wanted, returned):
        """What a number of cars in the evening becomes by the next, and the cars let, at the mean numbers of both."""
        ask, back = chances(wanted, size), chances(returned, size)
        P, let = np.zeros((size + 1, size + 1)), np.zeros(size + 1)
        for cars in range(size + 1):
            for n, chance in enumerate(capped(ask, cars)):
                P[cars, cars - n :] += chance * capped(back, size - cars + n)
                let[cars] += chance * n
        return P, let

    (here, let_here), (there, let_there) = day(3, 3), day(4, 2)
    days, let = np.kron(here, there), 10.0 * np.add.outer(let_here, let_there).ravel()
    left, right = np.divmod(np.arange((size + 1) ** 2), size + 1)
    moves = [(s, a + 5, a) for s in range(len(let)) for a in range(-5, 6) if left[s] - a >= 0 and right[s] + a >= 0]
    states, actions, moved = np.array(moves).T
    to = np.minimum(left[states] - moved, size) * (size + 1) + np.minimum(right[states] + moved, size)
    return tr.MDP.from_pairs(states, actions, sp.csr_array(days[to]), let[to] - 2.0 * np.abs(moved), gamma)


def chances(mean, most):
    """How likely 0, 1, ... `most` are that come independently, this many on average."""
    return np.exp(np.arange(most + 1) * np.log(mean) - mean - np.cumsum(np.log(np.maximum(np.arange(most + 1), 1))))


def capped(chances, most):
    """The same where no more than `most` can be had."""
    return np.append(chances[:most], 1.0 - chances[:most].sum())


def racetrack(size, speed, gamma, slip=0.1):
    """A car on a square, from standing to the far corner: each step its speed changes by one at most either way, or fails to.

    Who leaves the square is put back to the start.
    """
    ways = 2 * speed + 1
    shape = size, size, ways, ways

    def dynamics(states, action):
        x, y, right, up = np.unravel_index(states, shape)
        home, start = (x >= size - 2) & (y >= size - 2), np.ravel_multi_index((0, 0, speed, speed), shape)
        to = []
        for more in (np.divmod(action, 3), (1, 1)):
            faster, higher = (np.clip(old + change - 1, 0, 2 * speed) for old, change in zip((right, up), more, strict=True))
            at = x + faster - speed, y + higher - speed
            out = np.any([(c < 0) | (c >= size) for c in at], axis=0)
            on = np.ravel_multi_index((*(np.clip(c, 0, size - 1) for c in at), faster, higher), shape)
            to.append(np.where(home, states, np.where(out, start, on)))
        return np.stack(to, axis=1), [1.0 - slip, slip], np.where(home, 0.0, -1.0)

    return tr.MDP.from_function(dynamics, int(np.prod(shape)), 9, gamma)


def lake(size, holes, gamma, seed=0):
    """FrozenLake of any size: a third of the steps go as meant, the others to either side; a share of the cells are holes."""
    ends = np.random.default_rng(seed).random((size, size)) < holes
    ends[0, 0], ends[-1, -1] = False, True
    ends, goal, steps = ends.ravel(), size * size - 1, ((0, -1), (1, 0), (0, 1), (-1, 0))

    def dynamics(states, action):
        to = []
        for way in (action - 1, action, action + 1):
            at = [np.clip(c + step, 0, size - 1) for c, step in zip(np.divmod(states, size), steps[way % 4], strict=True)]
            to.append(np.where(ends[states], states, at[0] * size + at[1]))
        to = np.stack(to, axis=1)
        return to, np.full(3, 1 / 3), ((to == goal) & ~ends[states, None]).sum(axis=1) / 3

    return tr.MDP.from_function(dynamics, size * size, 4, gamma)


def thermostat(size, gamma, noise=0.02):
    """A temperature that is to be held: what is done moves it a little, and chance as much; all states lead to all others."""
    here, moves = np.linspace(0.0, 1.0, size), np.array([-0.03, 0.0, 0.03])
    meant = np.clip(np.add.outer(here, moves), 0.0, 1.0)
    P = np.exp(-0.5 * (np.subtract.outer(meant, here) / noise) ** 2) + 1e-12
    return tr.MDP.from_dense(P / P.sum(axis=2, keepdims=True), -np.add.outer(np.abs(here - 0.8), 0.3 * np.abs(moves)), gamma)


def pursuit(size, gamma):
    """Catch somebody who walks at random, on a square whose opposite sides are one."""
    cells, steps = size * size, ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))

    def moved(cell, step):
        row, column = np.divmod(cell, size)
        return (row + step[0]) % size * size + (column + step[1]) % size

    def dynamics(states, action):
        hunter, prey = np.divmod(states, cells)
        caught = hunter == prey
        to = np.stack([moved(hunter, steps[action]) * cells + moved(prey, step) for step in steps], axis=1)
        return np.where(caught[:, None], states[:, None], to), np.full(5, 0.2), np.where(caught, 0.0, -1.0)

    return tr.MDP.from_function(dynamics, cells * cells, 5, gamma)


def torus(size, gamma, seed=0):
    """Prizes everywhere on a slippery square whose opposite sides are one: no goal, and no end."""
    prizes, steps = np.random.default_rng(seed).random(size * size), ((1, 0), (-1, 0), (0, 1), (0, -1))

    def dynamics(states, action):
        row, column = np.divmod(states, size)
        there = [steps[(action + turn) % 4] for turn in (0, 1, 3)]
        to = [(row + down) % size * size + (column + right) % size for down, right in there]
        return np.stack(to, axis=1), [0.8, 0.1, 0.1], prizes[states]

    return tr.MDP.from_function(dynamics, size * size, 4, gamma)
