"""Thousands of tiny models at once: every policy of each is tabulated, so that κ-greedy steps are a few array operations."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tightrope.model.validate import BoolArray, FloatArray, IntArray

#: A run has converged when it loses less than this part of what is at stake.
CONVERGED = 1e-6
#: Runs that have converged are put away this often.
PUT_AWAY = 25


@dataclass(frozen=True, eq=False)
class Batch:
    """B models of S states and A actions, each with a κ, a policy to start from and a step size per state."""

    P: FloatArray  # [B, S, A, S]
    r: FloatArray  # [B, S, A]
    gamma: FloatArray  # [B]
    kappa: FloatArray  # [B]
    start: FloatArray  # [B, S, A]
    step: FloatArray  # [B, S]

    def take(self, index: Any) -> Batch:
        """Some of them."""
        return Batch(*(getattr(self, field.name)[index] for field in fields(self)))

    def replaced(self, where: BoolArray, other: Batch) -> Batch:
        """With those of another batch put in where it says so."""

        def choose(new: FloatArray, old: FloatArray) -> FloatArray:
            return np.where(where.reshape(-1, *[1] * (old.ndim - 1)), new, old)

        return Batch(*(choose(getattr(other, field.name), getattr(self, field.name)) for field in fields(self)))

    @cached_property
    def actions(self) -> IntArray:
        """Every deterministic policy [N, S]."""
        _, S, A = self.r.shape
        return np.array(list(product(range(A), repeat=S)))

    @cached_property
    def chains(self) -> tuple[FloatArray, FloatArray]:
        """P^π [B, N, S, S] and r^π [B, N, S] of every one of them."""
        states = np.arange(self.r.shape[1])
        return self.P[:, states, self.actions], self.r[:, states, self.actions]

    @cached_property
    def values(self) -> FloatArray:
        """v^π of every deterministic policy [B, N, S]."""
        P, r = self.chains
        return _solved(P, r, self.gamma[:, None])

    @cached_property
    def best(self) -> FloatArray:
        """v* [B, S]."""
        return self.values.max(axis=1)

    @cached_property
    def stake(self) -> FloatArray:
        """max_s v*(s) - min_π v^π(s) [B], the most that a policy can lose."""
        return np.maximum((self.best - self.values.min(axis=1)).max(axis=1), 1e-300)

    @cached_property
    def _ahead(self) -> tuple[FloatArray, FloatArray]:
        """a [B, N, S] and X [B, N, S, S] with T_κ^π v = a + X v."""
        P, r = self.chains
        inverse = np.linalg.inv(np.eye(P.shape[-1]) - (self.kappa * self.gamma)[:, None, None, None] * P)
        return (inverse @ r[..., None])[..., 0], ((1.0 - self.kappa) * self.gamma)[:, None, None, None] * (inverse @ P)

    def value(self, pi: FloatArray) -> FloatArray:
        """v^π of one policy [B, S, A] of each model [B, S]."""
        P = (pi[:, :, None, :] @ self.P)[:, :, 0]
        return _solved(P, (pi * self.r).sum(axis=2), self.gamma)

    def kappa_greedy(self, v: FloatArray) -> IntArray:
        """The κ-greedy action of every state [B, S]: one policy is best everywhere at once, so that of the largest sum is."""
        a, X = self._ahead
        return self.actions[(a + (X @ v[:, None, :, None])[..., 0]).sum(axis=2).argmax(axis=1)]

    def cautious(self, v: FloatArray) -> IntArray:
        """The target b_s of Algorithm 1 [B, S]: the κ-greedy action where it improves on v by itself, else the greedy one."""
        q = self.r + self.gamma[:, None, None] * (self.P @ v[:, None, :, None])[..., 0]
        ahead = self.kappa_greedy(v)
        there = np.take_along_axis(q, ahead[..., None], axis=2)[..., 0]
        return np.where(there >= v - 1e-12 * np.abs(v).max(axis=1, keepdims=True), ahead, q.argmax(axis=2))


class Followed(NamedTuple):
    """What came of following the target: one number per model."""

    #: max_s (v* - v) at the end, as a part of the stake; less than CONVERGED where it converged.
    loss: FloatArray
    #: The deepest fall of any state below a value it had before, as a part of the stake.
    fall: FloatArray
    #: The mean loss of the first `early` steps: what an adversary maximises.
    area: FloatArray


def follow(batch: Batch, steps: int, early: int, *, cautious: bool = False, vanishing: bool = False) -> Followed:
    """π(s) <- π(s) + α(s)(target(s) - π(s)) in every state at once, until v is v* or `steps` are over.

    `vanishing` divides step sizes by 1 + n/10 at step n. Models that have converged are put away as it goes.
    """
    B = len(batch.r)
    loss, fall, area = np.zeros((3, B))
    here, now, pi, top = np.arange(B), batch, batch.start, np.full(batch.r.shape[:2], -np.inf)
    eye = np.eye(batch.r.shape[2])
    for n in range(steps):
        v = now.value(pi)
        top = np.maximum(top, v)
        loss[here] = (now.best - v).max(axis=1) / now.stake
        fall[here] = np.maximum(fall[here], (top - v).max(axis=1) / now.stake)
        if n < early:
            area[here] += loss[here] / early
        if n % PUT_AWAY == PUT_AWAY - 1 and (left := loss[here] >= CONVERGED).mean() < 0.9:
            here, now, pi, top, v = here[left], now.take(left), pi[left], top[left], v[left]
            if not len(here):
                break
        target = now.cautious(v) if cautious else now.kappa_greedy(v)
        pi = pi + (now.step / (1.0 + 0.1 * n * vanishing))[..., None] * (eye[target] - pi)
    return Followed(loss, fall, area)


def fair_cycles(batch: Batch, *, cautious: bool = False) -> FloatArray:
    """The loss of the best policy on a fair cycle of updates one state at a time [B]; 0 where there is no such cycle.

    An update gives one state the action of its target, whole. A cycle of them is fair if it can update every state, be it to
    the action that it has: round and round it goes, updating every state infinitely often.
    """
    B, S, A = batch.r.shape
    N = len(batch.actions)
    choose = batch.cautious if cautious else batch.kappa_greedy
    targets = np.stack([choose(batch.values[:, n]) for n in range(N)], axis=1)
    place = A ** np.arange(S - 1, -1, -1)
    after = np.arange(N)[:, None] + (targets - batch.actions) * place  # [B, N, S]: the policy that updating state s leads to
    reach = np.zeros((B, N, N), dtype=bool)
    np.put_along_axis(reach, after, values=True, axis=2)
    reach[:, np.arange(N), np.arange(N)] = False
    for middle in range(N):
        reach |= reach[:, :, middle, None] & reach[:, None, middle, :]
    both = reach & reach.swapaxes(1, 2)
    updates = np.stack(
        [np.take_along_axis(both, np.broadcast_to(after[:, None, :, s], both.shape), axis=2) for s in range(S)], axis=3
    )
    fair = np.all(np.any(both[..., None] & updates, axis=2), axis=2)  # [B, N]: of the cycles through each policy
    loss = (batch.best[:, None] - batch.values).max(axis=2) / batch.stake[:, None]
    least = np.where(both, loss[:, None, :], np.inf).min(axis=2)
    return np.where(fair, least, 0.0).max(axis=1)


def _solved(P: FloatArray, r: FloatArray, gamma: FloatArray) -> FloatArray:
    """(I - γP)^-1 r over leading axes."""
    solved: Any = np.linalg.solve(np.eye(P.shape[-1]) - gamma[..., None, None] * P, r[..., None])[..., 0]
    return np.asarray(solved, dtype=np.float64)
