"""Problems of operations research: stock, queues, machines that wear out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.model.mdp import MDP
from tightrope.model.problems.decoration import names, start_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.model.validate import FloatArray, IntArray

#: Poisson demand less likely than this is left out: in sums of probabilities it is lost to rounding anyway.
NEGLIGIBLE = 1e-16


def inventory(
    capacity: int = 20,
    demand: float | Sequence[float] = 6.0,
    *,
    price: float = 8.0,
    setup: float = 4.0,
    unit: float = 2.0,
    holding: float = 1.0,
    max_order: int | None = None,
    gamma: float = 0.95,
) -> MDP:
    """Inventory control with lost sales: how much to order each month against random demand.

    State s is the stock, action a the order, s + a <= capacity. Demand D is met from u = s + a as far as it goes:
    s' = max(u - D, 0), r = price E[min(D, u)] - (setup + unit a if a > 0) - holding u.

    Args:
        capacity: the largest stock.
        demand: the mean of a Poisson distribution, or the probabilities of a demand of 0, 1, 2, ...
        price: what a sold unit brings.
        setup: cost of ordering at all.
        unit: cost of each unit ordered.
        holding: cost a month of each unit in stock after the order arrives.
        max_order: the largest order; by default only the capacity limits it.
        gamma: discount in [0, 1).

    Puterman (1994), Markov Decision Processes, section 3.2; its example is
    `inventory(3, demand=(0.25, 0.5, 0.25))` with the other defaults.
    """
    M = validate.positive_integer(capacity, "capacity")
    A = M if max_order is None else min(M, validate.positive_integer(max_order, "max_order"))
    costs = {"price": price, "setup": setup, "unit": unit, "holding": holding}
    gain, fixed, each, keep = (validate.finite(x, name) for name, x in costs.items())
    stock = _left_over(_demand(demand, M), M)
    sold = np.arange(M + 1) - stock @ np.arange(M + 1.0)
    s, a = np.nonzero(np.add.outer(np.arange(M + 1), np.arange(A + 1)) <= M)
    u = s + a
    r = gain * sold[u] - np.where(a > 0, fixed + each * a, 0.0) - keep * u
    first = np.concatenate(([0], np.cumsum(np.bincount(s))))
    return MDP(stock[u], r, gamma, first, start_at(M + 1, 0))


def queue(
    capacity: int = 100,
    *,
    arrival: float = 0.4,
    services: Sequence[float] = (0.3, 0.5),
    service_costs: Sequence[float] = (0.0, 1.0),
    reward: float = 10.0,
    holding: float = 0.5,
    gamma: float = 0.99,
) -> MDP:
    """A queue whose arrivals may be turned away and whose server may work faster at a price.

    State s is the number in the system. In each (uniformised) period a customer arrives with probability `arrival`, or one
    is served with probability services[k], or nothing happens. Action 2k + 1 works at speed k and admits an arrival, 2k turns
    it away; a full system admits nobody. r = arrival reward [admit] - holding s - service_costs[k].

    Args:
        capacity: the largest number in the system; there are capacity + 1 states.
        arrival: probability of an arrival in a period.
        services: probability of a completion for each speed; arrival + max(services) <= 1.
        service_costs: cost a period of each speed.
        reward: paid for each customer admitted.
        holding: cost a period of each customer in the system.
        gamma: discount in [0, 1).

    Lippman (1975), Applying a new device in the optimization of exponential queueing systems; Puterman (1994), Markov
    Decision Processes, section 3.7 (admission control and service rate control), here both at once.
    """
    N = validate.positive_integer(capacity, "capacity")
    lam = validate.unit(arrival, "arrival")
    speeds = validate.vector(services, np.size(services), "services", "speed")
    costs = validate.vector(service_costs, len(speeds), "service_costs", "speed")
    prize, wait = validate.finite(reward, "reward"), validate.finite(holding, "holding")
    if not len(speeds) or speeds.min() < 0.0 or lam + speeds.max() > 1.0 + validate.ROUNDING:
        raise InvalidArgument(
            f"services must be probabilities with arrival + service <= 1 for each; found arrival={lam:g}, "
            f"services={speeds.tolist()}. Shorten the period: divide both by the same number."
        )

    def dynamics(states: IntArray, action: int) -> tuple[object, object, object]:
        k, admit = divmod(action, 2)
        up, down = lam * admit, speeds[k]
        successors = np.stack([states, states + 1, np.maximum(states - 1, 0)], axis=1)
        r = up * prize - wait * states - costs[k]
        return successors, [max(1.0 - up - down, 0.0), up, down], np.where((states == N) & bool(admit), -np.inf, r)

    speed_names = [f"speed {k}" for k in range(len(speeds))]
    return MDP.from_function(
        dynamics,
        N + 1,
        2 * len(speeds),
        gamma,
        start=start_at(N + 1, 0),
        action_names=[f"{name}, {door}" for name in speed_names for door in ("turn away", "admit")],
    )


def tandem(
    capacity: int = 9,
    stations: int = 2,
    *,
    arrival: float = 0.15,
    service: float = 0.1,
    help_rate: float = 0.2,
    reward: float = 0.0,
    holding: Sequence[float] | None = None,
    gamma: float = 0.99,
) -> MDP:
    """Queues in series with one helper, who can stand at one station at a time.

    Customers arrive at the first station and go through all of them in turn; each holds up to `capacity`, and who is done waits
    in place while the next is full. State s has x_1 customers at the first station, x_2 at the second, and so on, the last
    counting fastest. In each (uniformised) period one arrives, or one is done at some station, or the helper gets one done at the
    station it stands at, action a, or nothing happens. r = reward arrival [x_1 < capacity] - Σ holding_i x_i.

    Args:
        capacity: the most customers a station holds; there are (capacity + 1)^stations states.
        stations: how many there are in the series.
        arrival: probability of an arrival in a period; a full first station turns it away.
        service: probability that a station completes a service in a period.
        help_rate: probability that the helper does; arrival + stations service + help_rate <= 1.
        reward: paid for each customer admitted.
        holding: cost a period of each customer, by station; by default stations, ..., 2, 1: as many as there are stations to go.
        gamma: discount in [0, 1).

    Rosberg, Varaiya and Walrand (1982), Optimal control of service in tandem queues, with a helper in place of a variable rate.
    """
    N, n = validate.positive_integer(capacity, "capacity"), validate.positive_integer(stations, "stations")
    rates = {"arrival": arrival, "service": service, "help_rate": help_rate}
    lam, mu, more = (validate.unit(x, name) for name, x in rates.items())
    prize = validate.finite(reward, "reward")
    costs = validate.vector(np.arange(n, 0.0, -1.0) if holding is None else holding, n, "holding", "station")
    if lam + n * mu + more > 1.0 + validate.ROUNDING:
        raise InvalidArgument(
            f"arrival + stations service + help_rate must be at most 1; found {lam:g} + {n} * {mu:g} + {more:g}. "
            "Shorten the period: divide all three by the same number."
        )
    step = (N + 1) ** np.arange(n - 1, -1, -1)

    def dynamics(states: IntArray, action: int) -> tuple[object, object, object]:
        x = states[:, None] // step % (N + 1)
        onward = np.append(step[1:], 0) - step  # what a completed service does to the number of a state
        free = np.column_stack((x[:, 1:] < N, np.ones(len(states), dtype=bool)))
        done = np.where((x > 0) & free, states[:, None] + onward, states[:, None])
        joined = np.where(x[:, 0] < N, states + step[0], states)
        chances = [lam, *(mu + more * (i == action) for i in range(n))]
        successors = np.column_stack((joined, done, states))
        return successors, [*chances, max(1.0 - sum(chances), 0.0)], prize * lam * (x[:, 0] < N) - x @ costs

    S = (N + 1) ** n
    helping = [f"help station {i}" for i in range(1, n + 1)]
    return MDP.from_function(dynamics, S, n, gamma, start=start_at(S, 0), action_names=helping)


def replacement(
    n_states: int = 90,
    *,
    increments: Sequence[float] = (0.35, 0.64, 0.01),
    cost: float = 0.0025,
    price: float = 10.0,
    gamma: float = 0.999,
) -> MDP:
    """Engine replacement: keep an engine that costs more to run as it wears, or pay for a new one.

    State x is the wear (mileage class). Keeping pays -cost x and wears on: x' = min(x + j, n - 1) with probability
    increments[j]; replacing pays -price and wears on from 0.

    Args:
        n_states: number of wear classes.
        increments: probabilities of wearing by 0, 1, 2, ... classes in a period.
        cost: running cost a period and class of wear.
        price: cost of a new engine.
        gamma: discount in [0, 1).

    Rust (1987), Optimal replacement of GMC bus engines, without his unobserved shocks; the defaults are near his estimates
    (90 mileage classes, linear cost).
    """
    S = validate.positive_integer(n_states, "n_states")
    p = validate.distribution(increments, np.size(increments), "increments", "increment")
    run, new = validate.finite(cost, "cost"), validate.finite(price, "price")

    def dynamics(states: IntArray, action: int) -> tuple[object, object, object]:
        wear = states if action == 0 else np.zeros_like(states)
        successors = np.minimum(wear[:, None] + np.arange(len(p), dtype=wear.dtype), S - 1)
        return successors, p, -run * wear - new * action

    return MDP.from_function(dynamics, S, 2, gamma, start=start_at(S, 0), action_names=("keep", "replace"))


def sysadmin(
    machines: int = 8,
    *,
    healthy: float = 0.9,
    shaken: float = 0.5,
    reboot_cost: float = 0.0,
    gamma: float = 0.95,
) -> MDP:
    """The system administrator: machines in a ring fail, more often beside a failed one; reboot one at a time.

    Bit i of the state says that machine i works. A working machine keeps working with probability `healthy`, or `shaken` when
    its neighbour i - 1 (of the ring) is down; a failed one stays down; the rebooted one works in the next period for sure.
    r = number of working machines - reboot_cost [a reboot]. Action 0 is to do nothing, action i + 1 to reboot machine i.

    Args:
        machines: how many; there are 2^machines states, and about 3^machines (1 + 2/3 machines) transitions.
        healthy: probability of working on when the neighbour works.
        shaken: probability of working on when the neighbour is down.
        reboot_cost: cost of a reboot.
        gamma: discount in [0, 1).

    Guestrin, Koller, Parr, Venkataraman (2003), Efficient solution algorithms for factored MDPs, the ring topology.
    """
    n = validate.positive_integer(machines, "machines")
    if n > 16:
        raise InvalidArgument(f"machines is {n}: about {3.0**n * (1 + 2 * n / 3):.1g} transitions; at most 16 are supported")
    good, poor = validate.unit(healthy, "healthy"), validate.unit(shaken, "shaken")
    price = validate.finite(reboot_cost, "reboot_cost")
    validate.gamma(gamma)
    S = 1 << n
    works = (np.arange(S)[:, None] >> np.arange(n)) & 1 == 1
    stays = np.where(works, np.where(np.roll(works, 1, axis=1), good, poor), 0.0)
    up = np.repeat(stays[:, None, :], n + 1, axis=1)
    up[:, np.arange(1, n + 1), np.arange(n)] = 1.0
    r = np.repeat(works.sum(axis=1, dtype=float)[:, None], n + 1, axis=1)
    r[:, 1:] -= price
    return MDP(
        _independent_bits(up.reshape(S * (n + 1), n)),
        r.ravel(),
        gamma,
        start=start_at(S, S - 1),
        state_names=names(S, lambda s: f"{s:0{n}b}"),
        action_names=["wait", *(f"reboot {i}" for i in range(n))],
    )


def _independent_bits(up: FloatArray) -> sp.csr_array:
    """The distribution over numbers [L, 2^n] whose bit i is 1 with probability up[l, i], independently."""
    L, n = up.shape
    open_bits = (up > 0.0) & (up < 1.0)
    width = open_bits.sum(axis=1)
    indptr = np.concatenate(([0], np.cumsum(1 << width)))
    data, indices = np.empty(indptr[-1]), np.empty(indptr[-1], dtype=np.int32)
    sure = (up == 1.0) @ (1 << np.arange(n))
    for k in np.unique(width):  # rows of one width are a rectangle
        rows = np.flatnonzero(width == k)
        bits = np.nonzero(open_bits[rows])[1].reshape(len(rows), k)
        number, chance = sure[rows, None].astype(np.int32), np.ones((len(rows), 1))
        for i in range(k):  # from the lowest bit up, so that the numbers of a row come out sorted
            bit, p = bits[:, i, None], up[rows, bits[:, i]][:, None]
            number = np.concatenate([number, number + (1 << bit).astype(np.int32)], axis=1)
            chance = np.concatenate([chance * (1.0 - p), chance * p], axis=1)
        places = indptr[rows, None] + np.arange(1 << k)
        data[places], indices[places] = chance, number
    return sp.csr_array((data, indices, indptr), shape=(L, 1 << n))


def _demand(demand: Any, M: int) -> FloatArray:
    """The probabilities of a demand of 0, 1, ...; Poisson when only a mean is given."""
    if np.ndim(demand) > 0:
        return validate.distribution(demand, np.size(demand), "demand", "demand level")
    mean = validate.finite(demand, "demand", low=0.0)
    if mean == 0.0:
        return np.ones(1)
    k = np.arange(max(M, int(mean + 20.0 * np.sqrt(mean) + 40.0)) + 1)
    p = np.exp(k * np.log(mean) - mean - np.concatenate(([0.0], np.cumsum(np.log(k[1:])))))
    p[p < NEGLIGIBLE] = 0.0
    return p / p.sum()


def _left_over(p: FloatArray, M: int) -> sp.csr_array:
    """The distribution of what demand leaves of a stock of u = 0..M [M+1, M+1]: max(u - D, 0)."""
    demand = np.zeros(max(len(p), M + 1))
    demand[: len(p)] = p
    sold_out = np.cumsum(demand[::-1])[::-1][: M + 1]
    u, d = (x.ravel() for x in np.meshgrid(np.arange(M + 1), np.flatnonzero(demand[: M + 1]), indexing="ij"))
    some = d < u
    rows = np.concatenate([u[some], np.arange(M + 1)])
    left = np.concatenate([(u - d)[some], np.zeros(M + 1, dtype=int)])
    return sp.csr_array((np.concatenate([demand[d[some]], sold_out]), (rows, left)), shape=(M + 1, M + 1))
