"""Public checks for other people's oracles and models: run yours through them before you trust its numbers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tightrope.approximate.problem import Problem, ask, described, realised_delta
from tightrope.errors import TightropeError
from tightrope.model.mdp import MDP
from tightrope.model.sampler import source_of
from tightrope.operators import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tightrope.approximate.problem import Oracle
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray

#: Standard errors by which a sampled mean may miss; a right source fails about once in 10^9 comparisons.
FAR = 6.0


class CheckFailed(TightropeError, AssertionError):
    """What was checked does not keep its promises; every broken one is listed."""

    def __init__(self, what: str, broken: Sequence[str]) -> None:
        super().__init__(f"{what} fails {len(broken)} check{'' if len(broken) == 1 else 's'}:\n- " + "\n- ".join(broken))
        self.broken = tuple(broken)


class OracleRow(NamedTuple):
    """One surrogate: the oracle's δ beside that of acting at random, and what the answer cost."""

    model: str
    kappa: float
    nu: str
    delta: float
    at_random: float
    samples: int
    seconds: float


@dataclass(frozen=True, repr=False)
class OracleReport:
    """Every surrogate an oracle was tried on; all checks passed."""

    oracle: str
    rows: tuple[OracleRow, ...]

    def __repr__(self) -> str:
        lines = [f"{self.oracle}: all checks passed", "  model     kappa  nu            delta  at random   samples  seconds"]
        lines += [
            f"  {r.model:8} {r.kappa:6g}  {r.nu:8} {r.delta:10.3g} {r.at_random:10.3g} {r.samples:9,} {r.seconds:8.3f}"
            for r in self.rows
        ]
        return "\n".join(lines)


def check_oracle(
    oracle: Oracle, mdp: MDP | None = None, *, kappas: Iterable[float] = (0.0, 0.5, 0.9), seed: int = 0
) -> OracleReport:
    """Whether an oracle keeps the promises of the `Oracle` protocol, on small models or on one of your own.

    Every answer must be a policy of the model; the same generator must give the same policy, whatever NumPy's global state; ν and
    v must be left as they were; and the policy must be better than acting at random under each ν it is asked about, among
    them measures that sit on one half of a model whose halves never meet (an oracle that looks elsewhere has learned
    nothing there). An oracle with an attribute `delta` must keep within it. The report holds the realised δ of each surrogate.

    Raises:
        CheckFailed: with every promise that was broken.
    """
    broken: list[str] = []
    rows: list[OracleRow] = []
    for name, model, measures in _trials(mdp, seed):
        v = value(model, Problem.original(model).uniform())
        for kappa in kappas:
            for nu_name, nu in measures.items():
                where = f"on {name} with kappa={kappa:g} and nu {nu_name}"
                problem = Problem.original(model).surrogate(v, kappa)
                row = _try(oracle, problem, nu, seed, where, broken)
                if row is not None:
                    rows.append(OracleRow(name, kappa, nu_name, *row))
    if broken:
        raise CheckFailed(described(oracle), list(dict.fromkeys(broken)))
    return OracleReport(described(oracle), tuple(rows))


def _try(
    oracle: Oracle, problem: Problem, nu: FloatArray, seed: int, where: str, broken: list[str]
) -> tuple[float, float, int, float] | None:
    """One surrogate asked twice; broken promises are added to the list."""
    given = nu.copy()
    policies: list[Policy] = []
    state = np.random.get_state()  # noqa: NPY002  (to find out who uses it)
    begin = time.perf_counter()
    try:
        for other in (1, 2):
            np.random.seed(other)  # noqa: NPY002  (an oracle that listens to this is not seeded by rng)
            policies.append(ask(oracle, problem, given, np.random.default_rng(seed)))
    except Exception as error:  # noqa: BLE001  (a check reports whatever happens)
        broken.append(f"{where} it raised {type(error).__name__}: {error}")
        return None
    finally:
        np.random.set_state(state)  # noqa: NPY002
    seconds = (time.perf_counter() - begin) / 2
    if policies[0] != policies[1]:
        broken.append(f"{where} the same rng gave two different policies: take all randomness from rng")
    if not np.array_equal(given, nu):
        broken.append(f"{where} it changed nu: copy before you write")
    delta = realised_delta(problem, policies[0], nu)
    random = realised_delta(problem, problem.uniform(), nu)
    if delta > random > 1e-12:
        broken.append(f"{where} its policy loses {delta:.3g}, more than acting at random ({random:.3g})")
    promised = getattr(oracle, "delta", None)
    if promised is not None and delta > promised + 1e-9 * (1.0 + abs(promised)):
        broken.append(f"{where} delta is {delta:.6g}, more than the {promised:.6g} it promises")
    return delta, random, problem.meter.samples // 2, seconds


def _trials(mdp: MDP | None, seed: int) -> list[tuple[str, MDP, dict[str, FloatArray]]]:
    """Models with the measures to try: a user's own, or two halves that never meet and a short corridor with an end."""
    if mdp is not None:
        far = np.zeros(mdp.n_states)
        far[-1] = 1.0
        return [("model", mdp, {"uniform": np.full(mdp.n_states, 1.0 / mdp.n_states), "start": np.array(mdp.start), "last": far})]
    rng = np.random.default_rng(seed)
    half = 8
    blocks = [sp.csr_array(rng.dirichlet(np.full(half, 0.3), size=half * 3)) for _ in range(2)]
    halves = MDP(sp.block_diag(blocks, format="csr"), rng.normal(size=2 * half * 3), 0.9)
    both = np.full(2 * half, 0.5 / half)
    left, right = both * 2 * (np.arange(2 * half) < half), both * 2 * (np.arange(2 * half) >= half)
    return [
        ("halves", halves, {"uniform": both, "left": left, "right": right}),
        ("corridor", _corridor(6), {"uniform": np.full(6, 1 / 6)}),
    ]


def _corridor(n: int) -> MDP:
    """States in a row with a prize at the end: forward (slipping one time in ten) or stay; ragged, with a terminal state."""
    states = np.arange(n)
    ahead = np.zeros((n, 2, n))
    ahead[states, 0, states] = 1.0
    ahead[states[:-1], 1, states[:-1]], ahead[states[:-1], 1, states[1:]] = 0.1, 0.9
    r = np.zeros((n, 2))
    r[n - 2, 1] = 1.0
    feasible = np.ones((n, 2), dtype=bool)
    feasible[-1, 1] = False
    return MDP.from_dense(ahead, r, 0.9, feasible=feasible, terminal=[n - 1])


@dataclass(frozen=True)
class ModelReport:
    """What was found out about a model or a source of samples; all checks passed."""

    states: int
    pairs: int
    terminal: int
    #: States that cannot be reached from the start distribution; None for a source.
    unreachable: int | None
    samples: int


def check_mdp(model: Any, *, like: MDP | None = None, samples: int = 100_000, seed: int = 0) -> ModelReport:
    """Whether a model, or anything that claims to be a source of samples, is what algorithms here rely on.

    A source must answer with a finite reward and an existing state for every pair asked, in order, the same ones for the
    same generator, one at a time as well as many. Samples of a model must follow its own P and r; those of any source can be
    compared with a model that is believed to be the truth with `like`. Terminal states of a model must stay and earn nothing.

    Raises:
        CheckFailed: with everything that was found wrong.
    """
    source = source_of(model)
    truth = model if isinstance(model, MDP) else like
    broken: list[str] = []
    pairs, terminal = source.pairs, np.asarray(source.terminal)
    if terminal.dtype != bool or terminal.shape != (pairs.n_states,):
        broken.append(f"terminal must be a boolean per state, shape ({pairs.n_states},); found {terminal.dtype} {terminal.shape}")
        terminal = np.zeros(pairs.n_states, dtype=bool)
    if not 0.0 <= source.gamma < 1.0:
        broken.append(f"gamma must lie in [0, 1); found {source.gamma!r}")
    live = np.flatnonzero(~terminal[pairs.states])
    each = max(2, samples // max(1, len(live)))
    rows = np.repeat(live, each)
    drawn = _answers(lambda rng: source.sample(rows, rng), len(rows), pairs.n_states, seed, broken)
    if drawn is not None and len(live):
        _one_at_a_time(source, live[: min(50, len(live))], seed, broken)
        if truth is not None:
            _follows(truth, live, each, *drawn, broken)
    if broken:
        raise CheckFailed(repr(model), broken)
    unreachable = None if not isinstance(model, MDP) else int(pairs.n_states - _reached(model).sum())
    return ModelReport(pairs.n_states, pairs.n_pairs, int(terminal.sum()), unreachable, 2 * len(rows))


def _answers(
    draw: Callable[[np.random.Generator], tuple[Any, Any]], n: int, n_states: int, seed: int, broken: list[str]
) -> tuple[FloatArray, Any] | None:
    """Two draws with the same seed, checked for form; None when they have none."""
    try:
        (r, following), (r_2, following_2) = (draw(np.random.default_rng(seed)) for _ in range(2))
    except Exception as error:  # noqa: BLE001  (a check reports whatever happens)
        broken.append(f"sample raised {type(error).__name__}: {error}")
        return None
    r, following = np.asarray(r), np.asarray(following)
    if r.shape != (n,) or following.shape != (n,):
        broken.append(f"sample must answer with two arrays of shape ({n},); found {r.shape} and {following.shape}")
        return None
    if not np.isfinite(r).all():
        broken.append(f"sample answered with a reward of {r[~np.isfinite(r)][0]}; rewards must be finite")
        return None
    if following.dtype.kind not in "iu" or following.min(initial=0) < 0 or following.max(initial=0) >= n_states:
        broken.append(
            f"sample must answer with states 0 to {n_states - 1}; found {following.dtype} {following.min()} to {following.max()}"
        )
        return None
    if not (np.array_equal(r, r_2) and np.array_equal(following, following_2)):
        broken.append("the same rng gave two different samples: take all randomness from rng")
    return r, following


def _one_at_a_time(source: Any, rows: Any, seed: int, broken: list[str]) -> None:
    rng = np.random.default_rng(seed)
    states, actions = source.pairs.states, source.pairs.actions
    for row in rows:
        r, following = source.sample_one(int(states[row]), int(actions[row]), rng)
        if not (np.isfinite(r) and 0 <= following < source.pairs.n_states):
            broken.append(f"sample_one at {source.pairs.describe(int(row))} answered with reward {r} and state {following}")
            return


def _follows(truth: MDP, live: Any, each: int, r: FloatArray, following: Any, broken: list[str]) -> None:
    """Compare frequencies and mean rewards with a model, each within a few standard errors."""
    n, S = len(live), truth.n_states
    often = sp.csr_array((np.full(len(r), 1.0 / each), (np.repeat(np.arange(n), each), following)), shape=(n, S)).toarray()
    expected = truth.P[live].toarray()
    error = np.sqrt(np.maximum(expected * (1.0 - expected), 1.0 / each) / each)
    off = np.abs(often - expected) / error
    if off.max() > FAR:
        at, to = (int(i) for i in np.unravel_index(int(off.argmax()), off.shape))
        broken.append(
            f"samples do not follow P: {truth.pairs.describe(int(live[at]))} led to state {to} in {often[at, to]:.4f} of "
            f"{each} samples, P says {expected[at, to]:.4f}"
        )
    mean, spread = r.reshape(n, each).mean(axis=1), r.reshape(n, each).std(axis=1)
    wrong = np.abs(mean - truth.r[live]) > FAR * spread / np.sqrt(each) + 1e-9 * (1.0 + np.abs(truth.r[live]))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        broken.append(
            f"samples do not follow r: the mean reward at {truth.pairs.describe(int(live[at]))} is {mean[at]:.6g}, "
            f"r says {truth.r[live[at]]:.6g}"
        )


def _reached(mdp: MDP) -> Any:
    """Which states can be reached from where the model starts [S]."""
    seen = np.asarray(mdp.start > 0)
    into = sp.csr_array(mdp.P != 0)
    while True:
        on = seen[mdp.pairs.states]
        new = np.zeros(mdp.n_states, dtype=bool)
        new[into[np.flatnonzero(on)].indices] = True
        if not (new & ~seen).any():
            return seen
        seen = seen | new
