"""σ_{κ,k}: the non-stationary policy of κ-PSDP, which runs its policies last to first, each for a geometric number of steps."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tightrope import archive, kernels
from tightrope.approximate.problem import beginning
from tightrope.approximate.stored import pack, unpack
from tightrope.errors import InvalidArgument, InvalidPolicy
from tightrope.kernels import unsigned
from tightrope.model import validate
from tightrope.model.policy import Policy
from tightrope.model.sampler import alias_table
from tightrope.operators import T_kappa_pi, value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.model.mdp import MDP
    from tightrope.model.pairs import Pairs
    from tightrope.model.validate import FloatArray

#: Walks simulated with one random stream; streams, not threads, decide the result.
STREAM = 4096
#: Rewards later than this, relative to the value scale, are not simulated.
FORGOTTEN = 1e-9


class Estimate(NamedTuple):
    """A Monte Carlo mean and its standard error."""

    mean: float
    standard_error: float


@dataclass(frozen=True, eq=False, repr=False)
class SwitchingPolicy:
    """σ_{κ,k}: run Π[k], after each step switch to the policy before it with probability 1-κ, and end with π_0 for ever.

    v^σ = T_κ^{Π[k]} ... T_κ^{Π[1]} v^{π_0}. The number of steps N_i of each policy is geometric on {1, 2, ...},
    P(N = n) = (1-κ) κ^{n-1}; with κ = 0 every policy is used once, with κ = 1 the last one for ever.

    To act, keep the stage beside the environment's state: `stage = sigma.reset()`, then
    `action, stage = sigma.act(state, stage, rng)` for every step. Both work on arrays, one entry per environment.

    Args:
        kappa: in [0, 1].
        policies: Π[1], ..., Π[k], first to last.
        pi0: the policy run at the end.
        repeats: how often each policy stands in the sequence; once each by default (`prune` makes use of it).
    """

    kappa: float
    policies: tuple[Policy, ...]
    pi0: Policy
    repeats: tuple[int, ...]

    def __init__(self, kappa: float, policies: Sequence[Policy], pi0: Policy, repeats: Sequence[int] | None = None) -> None:
        times = (1,) * len(policies) if repeats is None else tuple(repeats)
        if len(times) != len(policies):
            raise InvalidArgument(f"repeats has {len(times)} entries for {len(policies)} policies")
        for n in times:
            validate.positive_integer(n, "repeats")
        for i, pi in enumerate((pi0, *policies)):
            if not isinstance(pi, Policy):
                raise InvalidPolicy(f"{'pi0' if i == 0 else f'policy {i} of the sequence'} is {pi!r}, not a Policy")
            if not pi.pairs.same(pi0.pairs):
                raise InvalidPolicy(f"policy {i} of the sequence is for another model than pi0")
        for name, given in zip(
            ("kappa", "policies", "pi0", "repeats"), (validate.kappa(kappa), tuple(policies), pi0, times), strict=True
        ):
            object.__setattr__(self, name, given)

    @property
    def pairs(self) -> Pairs:
        """The feasible pairs of the model it is for."""
        return self.pi0.pairs

    @property
    def k(self) -> int:
        """The number of stages before π_0."""
        return sum(self.repeats)

    def reset(self, n: int | None = None) -> Any:
        """The stage to begin with: k, or an array of n of them."""
        return self.k if n is None else np.full(validate.positive_integer(n, "n"), self.k)

    def act(self, states: Any, stage: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        """An action for each state at the given stage, and the stage of the next step."""
        s, now = np.atleast_1d(np.asarray(states)), np.atleast_1d(np.asarray(stage))
        s, now = np.broadcast_arrays(s, now)
        if now.min() < 0 or now.max() > self.k:
            raise InvalidArgument(f"stages run from {self.k} (the start) to 0 (pi_0 for ever); found {now.min()} to {now.max()}")
        which = self._which(now)
        actions = np.empty(len(s), dtype=np.int64)
        for i in np.unique(which):
            here = which == i
            actions[here] = (self.pi0 if i == 0 else self.policies[i - 1]).sample(s[here], rng)
        after = now - ((now > 0) & (rng.random(len(now)) >= self.kappa))
        if np.ndim(states) == 0 and np.ndim(stage) == 0:
            return int(actions[0]), int(after[0])
        return actions, after

    def _which(self, stage: Any) -> Any:
        """The number of the policy that runs at a stage: 0 for π_0, i for policies[i-1]."""
        return np.searchsorted(np.cumsum((0, *self.repeats)), stage, side="left")

    def value(self, mdp: MDP) -> FloatArray:
        """v^σ [S] by the product of operators T_κ^{Π[k]} ... T_κ^{Π[1]} v^{π_0}."""
        v = value(mdp, self.pi0)
        for pi, n in zip(self.policies, self.repeats, strict=True):
            for _ in range(n):
                v = T_kappa_pi(mdp, pi, v, self.kappa)
        return v

    def monte_carlo(self, mdp: MDP, walks: int, *, start: Any = None, seed: int = 0) -> Estimate:
        """The mean discounted reward of simulated walks from `start` (a distribution [S]; the model's own by default).

        Walks are cut when what may still come is below 1e-9 of the value scale. The result depends on the seed alone,
        not on the number of cores.
        """
        self.pi0.check(mdp)
        n = validate.positive_integer(walks, "walks")
        root = validate.positive_integer(seed, "seed", low=0)
        begin = alias_table(sp.csr_array(beginning(start, mdp, "start")[None, :]))
        tables = alias_table(mdp.P)
        horizon = 1 if mdp.gamma == 0.0 else int(np.ceil(np.log(FORGOTTEN * (1.0 - mdp.gamma)) / np.log(mdp.gamma)))
        chain = self.pi0, *self.policies
        if all(pi.is_deterministic for pi in chain):
            rows, mass = np.stack([np.asarray(pi.rows) for pi in chain]), np.zeros((1, 1))
        else:
            rows, mass = np.zeros((1, 1), dtype=mdp.first.dtype), np.stack([_cumulative(pi) for pi in chain])
        which = self._which(np.arange(self.k + 1))

        def simulate(stream: int) -> tuple[float, float]:
            words = np.random.SeedSequence(root, spawn_key=(stream,)).generate_state(4, np.uint64)
            count = min(STREAM, n - stream * STREAM)
            return tuple(
                kernels.approximate.switching_walks(
                    *tables, mdp.r, mdp.gamma, unsigned(mdp.first), *begin, rows, mass, which, self.kappa, horizon, count, words
                )
            )

        streams = range(-(-n // STREAM))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            sums = np.array(list(pool.map(simulate, streams)))
        total, squares = sums.sum(axis=0)
        mean = total / n
        spread = np.sqrt(max(0.0, squares / n - mean * mean))
        return Estimate(float(mean), float(spread / np.sqrt(max(1, n - 1))))

    def prune(self) -> SwitchingPolicy:
        """The same policy with less memory: equal neighbours are stored once with a count, those equal to π_0 not at all.

        With κ = 1 only the last policy is ever run, and only it is kept. Values and actions do not change.
        """
        if self.kappa == 1.0 and self.policies:
            return SwitchingPolicy(1.0, self.policies[-1:], self.pi0)
        kept: list[Policy] = []
        times: list[int] = []
        for pi, n in zip(self.policies, self.repeats, strict=True):
            if not kept and pi == self.pi0:
                continue
            if kept and pi == kept[-1]:
                times[-1] += n
            else:
                kept.append(pi)
                times.append(n)
        return SwitchingPolicy(self.kappa, kept, self.pi0, times)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one .npz file, whole or not at all, without pickle."""
        archive.save(path, "switching policy", {"kappa": self.kappa, "repeats": self.repeats}, pack((self.pi0, *self.policies)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SwitchingPolicy:
        """Read a saved policy."""
        header, arrays = archive.load(path, "switching policy")
        pi0, *policies = unpack(arrays)
        return cls(header["kappa"], policies, pi0, header["repeats"])

    def __repr__(self) -> str:
        stored = f", {len(self.policies)} stored" if len(self.policies) < self.k else ""
        return f"SwitchingPolicy(kappa={self.kappa:g}, k={self.k}{stored}, {self.pairs.n_states:,} states)"


def _cumulative(pi: Policy) -> FloatArray:
    """π(a|s) summed up within each state [L], the last pair of a state at infinity so that rounding cannot fall through."""
    pairs = pi.pairs
    sums = np.cumsum(pi.weights)
    before = np.concatenate(([0.0], sums))[pairs.first[:-1]]
    within = sums - np.repeat(before, pairs.counts)
    within[pairs.first[1:] - 1] = np.inf
    return within
