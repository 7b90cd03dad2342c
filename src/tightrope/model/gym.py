"""Gymnasium: environments as models, models as environments, and policies at work in either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope import progress
from tightrope.errors import InvalidModel, MissingExtra
from tightrope.model import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tightrope.model.mdp import MDP
    from tightrope.model.policy import Policy
    from tightrope.model.validate import BoolArray, FloatArray, IntArray


def from_gymnasium(cls: type[MDP], env: Any, gamma: float, *, masks: bool = True) -> MDP:
    """The exact model of an environment that publishes its table `P[s][a] = [(p, s', r, terminated), ...]`.

    A transition marked `terminated` ends the episode: v(s) = max_a Σ p (r + γ (1 - terminated) v(s')). When its target is
    not itself absorbing with reward zero, the episode ends in one extra state, the last, which the environment never shows.
    Duplicate successors are summed; `initial_state_distrib` becomes the start; `action_mask(s)` removes actions.

    Args:
        cls: the class.
        env: the environment, wrapped or not.
        gamma: discount in [0, 1).
        masks: whether to honour `action_mask(s)`, where the environment has one.
    """
    bare = getattr(env, "unwrapped", env)
    table = getattr(bare, "P", None)
    if table is None or not hasattr(table, "__getitem__"):
        raise InvalidModel(
            f"{_name(env)} publishes no transition table P; "
            "estimate one by sampling: tightrope.model.gym.estimate_from_gymnasium(env, gamma, steps=..., seed=...)"
        )
    S, A = _size(env, "observation_space"), _size(env, "action_space")
    allowed = _masks(bare, S, A) if masks else np.ones((S, A), dtype=bool)
    moves = _Moves.of(_entries(env, table, allowed))
    if len(moves.target) and not 0 <= moves.target.min() <= moves.target.max() < S:
        bad = moves.target.min() if moves.target.min() < 0 else moves.target.max()
        raise InvalidModel(f"the table P of {_name(env)} leads to state {bad}; its states are 0 to {S - 1}")
    s, a = np.nonzero(allowed)
    return moves.model(cls, s, a, S, gamma, getattr(bare, "initial_state_distrib", None))


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """A model estimated from experience, and how far it can be trusted.

    `counts` [L] says how often each pair was tried; with probability at least `confidence`, for all pairs at once, the true
    probabilities lie within `radius` [L] of the estimated ones in total (Σ|p̂ - p|, at most 2).
    """

    mdp: MDP
    counts: IntArray
    radius: FloatArray
    confidence: float
    steps: int

    def __str__(self) -> str:
        return (
            f"estimated from {self.steps:,} steps: {self.mdp!r}; "
            f"pairs tried {self.counts.min():,} to {self.counts.max():,} times, "
            f"probabilities within {self.radius.max():.3g} (L1) with confidence {self.confidence:g}"
        )


def estimate_from_gymnasium(env: Any, gamma: float, *, steps: int, seed: int, confidence: float = 0.95) -> Estimate:
    """A model estimated from `steps` uniformly random steps in an environment with Discrete observations and actions.

    p̂(s'|s,a) = n(s,a,s')/n(s,a), with the radius √(2 (ln(2ˢ-2) + ln(L/δ))/n(s,a)) of Weissman et al. (2003), δ = 1 - confidence.
    Actions never tried are left out; a state never left becomes absorbing with reward zero. A truncated episode is not an end.

    Args:
        env: the environment.
        gamma: discount in [0, 1).
        steps: how many steps to take.
        seed: seeds the environment and the actions.
        confidence: of all radii together, in (0, 1).
    """
    from tightrope.model.mdp import MDP  # noqa: PLC0415  (MDP itself offers from_gymnasium of this module)

    S, A = _size(env, "observation_space"), _size(env, "action_space")
    count, delta = validate.positive_integer(steps, "steps"), 1.0 - validate.unit(confidence, "confidence")
    seen, begins = _experience(env, A, count, seed, S)
    s, a = np.divmod(np.unique(seen.pair), A)
    silent = np.setdiff1d(np.arange(S), s)
    s, a = np.append(s, silent), np.append(a, np.zeros_like(silent))
    order = np.argsort(s, kind="stable")
    s, a = s[order], a[order]
    row = np.searchsorted(s * A + a, seen.pair)
    counts = np.bincount(row, minlength=len(s))
    kinds, which, times = np.unique((row * S + seen.target) * 2 + seen.ends, return_inverse=True, return_counts=True)
    loops = np.flatnonzero(counts == 0)
    pair, target = np.divmod(kinds // 2, S)
    moves = _Moves(
        np.append(pair, loops),
        np.append(times / counts[pair], np.ones(len(loops))),
        np.append(target, s[loops]),
        np.append(np.bincount(which, seen.r) / times, np.zeros(len(loops))),
        np.append(kinds % 2 == 1, np.zeros(len(loops), dtype=bool)),
    )
    mdp = moves.model(MDP, s, a, S, gamma, np.bincount(begins, minlength=S) / len(begins))
    counts = np.append(counts, np.zeros(mdp.n_pairs - len(counts), dtype=counts.dtype))
    spread = mdp.n_states * np.log(2.0) + np.log(mdp.n_pairs / max(delta, 1e-300))
    radius = np.minimum(2.0, np.sqrt(2.0 * spread / np.maximum(counts, 1)))
    radius[counts == 0] = 2.0
    return Estimate(mdp, counts, radius, float(confidence), count)


@dataclass(frozen=True, eq=False, slots=True)
class Returns:
    """What a policy earned in an environment: discounted returns and lengths of episodes [episodes]."""

    returns: FloatArray
    lengths: IntArray
    truncated: int

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; nan for a single episode."""
        n = len(self.returns)
        return float(self.returns.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    def __str__(self) -> str:
        cut = f", {self.truncated:,} cut short by a time limit" if self.truncated else ""
        return f"mean return {self.mean:.6g} ± {self.standard_error:.2g} over {len(self.returns):,} episodes{cut}"


def evaluate_in(
    env: Any, policy: Policy, episodes: int, seed: int, *, gamma: float = 1.0, show_progress: bool | None = None
) -> Returns:
    """The returns Σ γᵗ rₜ of a policy acting in an environment, episode after episode.

    Args:
        env: the environment; its observations are state numbers.
        policy: a policy of the environment's model; a stochastic one is sampled.
        episodes: how many.
        seed: seeds the environment and the policy.
        gamma: the discount of the returns; 1, what RL papers report, by default.
        show_progress: draw a progress bar; by default on a terminal only.
    """
    n, discount = validate.positive_integer(episodes, "episodes"), validate.unit(gamma, "gamma")
    act = _actor(policy, np.random.default_rng(seed))
    returns, lengths, truncations = np.zeros(n), np.zeros(n, dtype=np.int64), 0
    observation, _ = env.reset(seed=seed)
    with progress.bar("episodes", n, show=show_progress) as bar:
        for episode in range(n):
            if episode:
                observation, _ = env.reset()
            weight, over = 1.0, False
            while not over:
                observation, reward, terminated, truncated, _ = env.step(act(observation))
                returns[episode] += weight * float(reward)
                lengths[episode] += 1
                weight *= discount
                over = bool(terminated or truncated)
            truncations += bool(truncated and not terminated)
            bar.advance()
    return Returns(returns, lengths, truncations)


def _actor(policy: Policy, rng: np.random.Generator) -> Callable[[Any], Any]:
    """The action for an observation; looked up in a list where the policy is deterministic, since an episode has many steps."""
    if policy.is_deterministic:
        return policy.actions.tolist().__getitem__
    return lambda observation: policy.predict(observation, deterministic=False, rng=rng)[0]


def as_gymnasium(mdp: MDP) -> Any:
    """The model as a `gymnasium.Env`: Discrete observations and actions, terminated on reaching a terminal state.

    An action a state does not offer (`info["action_mask"]` says which) stays put and earns the model's smallest reward:
    r_min + γ v*(s) <= v*(s), so the optimum is the model's own.
    """
    require()
    from tightrope.model.gym_env import MDPEnv  # noqa: PLC0415  (a subclass of gymnasium.Env, importable so that it can be copied)

    return MDPEnv(mdp)


def make(name: str) -> Any:
    """`gymnasium.make(name)`, with an error that says what is wrong with the name."""
    require()
    import gymnasium  # noqa: PLC0415  (optional)

    try:
        return gymnasium.make(name)
    except gymnasium.error.Error as error:
        raise InvalidModel(f"gymnasium cannot make {name!r}: {error}") from None


def require() -> None:
    """Refuse to go on without Gymnasium, naming the extra."""
    try:
        import gymnasium  # noqa: F401, PLC0415  (optional)
    except ImportError:
        raise MissingExtra("gymnasium", "gymnasium") from None


@dataclass(frozen=True, eq=False, slots=True)
class _Moves:
    """Transitions in a list: pair (its row, or s*A + a), probability, target, reward, whether the episode ends [n each]."""

    pair: IntArray
    p: FloatArray
    target: IntArray
    r: FloatArray
    ends: BoolArray

    @classmethod
    def of(cls, entries: Iterator[tuple[int, float, int, float, bool]]) -> _Moves:
        kinds = [("pair", np.int64), ("p", float), ("target", np.int64), ("r", float), ("ends", bool)]
        array = np.fromiter(entries, dtype=kinds)
        return cls(*(np.ascontiguousarray(array[name]) for name, _ in kinds))

    def model(self, cls: type[MDP], s: IntArray, a: IntArray, S: int, gamma: float, start: Any) -> MDP:
        """The MDP over pairs (s, a); transitions that end go to an extra state unless their target is already absorbing."""
        L = len(s)
        r = np.bincount(self.pair, self.p * self.r, minlength=L)
        stays = np.ones(S, dtype=bool)
        stays[s[self.pair[(self.target != s[self.pair]) & (self.p > 0)]]] = False
        stays[s[r != 0.0]] = False
        leave = self.ends & ~stays[self.target]
        target = np.where(leave, S, self.target)
        begin = None if start is None else np.asarray(start, dtype=np.float64)
        if leave.any():
            target = np.append(target, S)
            pair, p, r = np.append(self.pair, L), np.append(self.p, 1.0), np.append(r, 0.0)
            s, a, S = np.append(s, S), np.append(a, 0), S + 1
            begin = None if begin is None else np.append(begin, 0.0)
            if begin is None:
                begin = np.append(np.full(S - 1, 1.0 / (S - 1)), 0.0)
        else:
            pair, p = self.pair, self.p
        return cls.from_pairs(s, a, sp.csr_array((p, (pair, target)), shape=(len(s), S)), r, gamma, start=begin)


def _entries(env: Any, table: Any, allowed: BoolArray) -> Iterator[tuple[int, float, int, float, bool]]:
    """Every (pair, p, s', r, terminated) of a table; an error names the state and action that do not read."""
    for row, (s, a) in enumerate(zip(*map(np.ndarray.tolist, np.nonzero(allowed)), strict=True)):
        try:
            for p, target, r, ends in table[s][a]:
                yield row, p, target, r, ends
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InvalidModel(
                f"the table P of {_name(env)} at state {s}, action {a} is not a list of (probability, next state, reward, "
                f"terminated): {type(error).__name__}: {error}"
            ) from None


def _experience(env: Any, A: int, steps: int, seed: int, S: int) -> tuple[_Moves, IntArray]:
    """Uniformly random steps, and the states episodes began in."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    begins = [int(observation)]

    def walk() -> Iterator[tuple[int, float, int, float, bool]]:
        nonlocal observation, info
        with progress.bar("sampling", steps) as bar:
            for _ in range(steps):
                mask = info.get("action_mask")
                action = int(rng.integers(A)) if mask is None else int(rng.choice(np.flatnonzero(mask)))
                s = int(observation)
                observation, reward, terminated, truncated, info = env.step(action)
                yield s * A + action, 1.0, int(observation), float(reward), bool(terminated)
                if terminated or truncated:
                    observation, info = env.reset()
                    begins.append(int(observation))
                bar.advance()

    moves = _Moves.of(walk())
    if not 0 <= moves.target.min() <= moves.target.max() < S:
        raise InvalidModel(f"{_name(env)} showed an observation outside 0 to {S - 1}")
    return moves, np.array(begins)


def _masks(bare: Any, S: int, A: int) -> BoolArray:
    mask = getattr(bare, "action_mask", None)
    if not callable(mask):
        return np.ones((S, A), dtype=bool)
    allowed = np.array([mask(s) for s in range(S)], dtype=bool)
    if allowed.shape != (S, A):
        raise InvalidModel(f"action_mask(s) must have {A} entries; found shape {allowed.shape[1:]}")
    return allowed


def _size(env: Any, space: str) -> int:
    """The number of elements of a Discrete space that starts at zero."""
    found = getattr(env, space, None)
    n, begin = getattr(found, "n", None), getattr(found, "start", 0)
    if n is None or begin != 0 or np.ndim(n) != 0:
        raise InvalidModel(f"{_name(env)} needs a Discrete {space} that starts at 0; found {found}")
    return int(n)


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(getattr(env, "unwrapped", env)).__name__
