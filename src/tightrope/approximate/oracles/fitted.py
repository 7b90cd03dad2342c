"""Fitted Q iteration with any regressor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.approximate import features as kinds
from tightrope.approximate.walk import explore
from tightrope.errors import InvalidArgument, MissingExtra
from tightrope.model import validate
from tightrope.operators.bellman import best, greedy_in

if TYPE_CHECKING:
    from tightrope.approximate.problem import Problem
    from tightrope.model.pairs import Pairs
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray

#: Trees of the forest that is used by default; they agree on every pair that was seen, more would only smooth the others.
TREES = 20
#: Rows from which on it is worth growing trees on every core.
MANY = 5_000


@dataclass(frozen=True, eq=False)
class FittedQ:
    """Regress q <- r + κγ max_a q(s', a) on a batch of transitions, again and again; then act greedily.

    Use it when states have features and a regressor can generalise over them. The batch is drawn once a call, by walkers from ν
    that act at random; samples of one pair are averaged and weighted by their number, which for a least-squares regressor is the
    same regression and many times faster. (A regressor without `sample_weight` gets each pair repeated as often as it was seen.)

    Args:
        regressor: any scikit-learn regressor; a forest of 20 extremely randomised trees by default. It is cloned, and
            seeded if it has a `random_state`.
        samples: transitions in the batch.
        rounds: regressions; by default as many as the horizon of the surrogate asks for, at most 50.
        features: one row per pair [L, d] or per state [S, d] (then copied per action); by default the number of the state and
            an indicator per action.
    """

    regressor: Any = None
    samples: int = 10_000
    rounds: int | None = None
    features: Any = None

    def __post_init__(self) -> None:
        validate.positive_integer(self.samples, "samples")
        if self.rounds is not None:
            validate.positive_integer(self.rounds, "rounds")
        if self.regressor is not None and not (hasattr(self.regressor, "fit") and hasattr(self.regressor, "predict")):
            raise InvalidArgument(f"regressor must have fit and predict, as in scikit-learn; found {self.regressor!r}")

    def __call__(self, problem: Problem, nu: FloatArray, rng: np.random.Generator) -> Policy:
        """The policy greedy in the last regression."""
        pairs = problem.pairs
        batch = explore(problem, nu, self.samples, rng)
        seen, often = batch.seen, batch.counts[batch.seen]
        given = self.features
        X = kinds.numbered(pairs) if given is None else _dense(kinds.of_pairs(given, pairs))
        P, r, known = batch.P[seen], batch.r[seen], X[seen]
        q = np.zeros(pairs.n_pairs)
        for n in range(self.rounds or min(50, backups(problem.gamma, 0.01))):
            y = r + problem.gamma * (P @ np.where(problem.terminal, 0.0, best(q, pairs)[0]))
            model = _fresh(self.regressor, len(X), rng)
            _fit(model, known, y, often)
            q = _predict(model, X, pairs, n)
        return greedy_in(q, pairs)

    def __repr__(self) -> str:
        learner = "ExtraTrees" if self.regressor is None else type(self.regressor).__name__
        rounds = "" if self.rounds is None else f", rounds={self.rounds}"
        return f"FittedQ({learner}, samples={self.samples}{rounds})"


def backups(g: float, rest: float) -> int:
    """The number of backups, at least 1, after which what is still missing has shrunk to `rest`."""
    return 1 if g == 0.0 else max(1, math.ceil(math.log(rest) / math.log(g)))


def _fresh(regressor: Any, n: int, rng: np.random.Generator) -> Any:
    """An unfitted copy, seeded; our own forest uses every core when there are enough rows to share."""
    try:
        from sklearn.base import clone  # noqa: PLC0415  (optional, and a second to load)
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("scikit-learn", "sklearn") from None
    model = ExtraTreesRegressor(TREES, n_jobs=-1 if n > MANY else None) if regressor is None else clone(regressor)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=int(rng.integers(2**31)))
    return model


def _fit(model: Any, X: Any, y: FloatArray, often: Any) -> None:
    from sklearn.utils.validation import has_fit_parameter  # noqa: PLC0415  (loaded by _fresh already)

    if has_fit_parameter(model, "sample_weight"):
        model.fit(X, y, sample_weight=often.astype(np.float64))
    else:
        model.fit(np.repeat(X, often, axis=0), np.repeat(y, often))


def _predict(model: Any, X: Any, pairs: Pairs, n: int) -> FloatArray:
    q = np.asarray(model.predict(X), dtype=np.float64)
    name = type(model).__name__
    if q.shape != (pairs.n_pairs,):
        raise InvalidArgument(f"{name} predicted an array of shape {q.shape} for {pairs.n_pairs} pairs")
    if not np.isfinite(q).all():
        at = int(np.flatnonzero(~np.isfinite(q))[0])
        raise InvalidArgument(
            f"{name} predicted {q[at]} for {pairs.describe(at)} in regression {n + 1}; check its settings and the features"
        )
    return q


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sp.issparse(matrix) else matrix
