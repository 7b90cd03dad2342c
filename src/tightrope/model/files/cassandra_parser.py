"""The grammar of Cassandra's format: tokens, the preamble, and the T, O and R lines, kept sparse."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tightrope.model.validate import FloatArray

RESERVED = frozenset(
    (
        *("discount", "values", "states", "actions", "observations", "start", "include", "exclude"),
        *("T", "O", "R", "uniform", "identity", "reset", "reward", "cost"),
    )
)
_TOKEN = re.compile(r"#[^\n]*|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[A-Za-z][\w-]*|[*:]|\S")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
#: Wildcards and keywords such as `uniform` may stand for this many entries in one file.
_ENTRIES = 20_000_000


@dataclass(frozen=True, slots=True)
class Things:
    """States, actions or observations: how many, and their names where they have any."""

    count: int
    names: list[str] | None = None
    index: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.count


@dataclass(slots=True)
class Model:
    """What a file says. T and O map (action, state) to {entry: probability}; R lists (action, s, s', o, value) in order."""

    path: object
    discount: float | None = None
    costs: bool = False
    states: Things = field(default_factory=lambda: Things(0))
    actions: Things = field(default_factory=lambda: Things(0))
    observations: Things | None = None
    start: FloatArray | None = None
    T: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    O: dict[tuple[int, int], dict[int, float]] = field(default_factory=dict)
    R: list[tuple[int, int, int, int, float]] = field(default_factory=list)

    def transitions(self) -> sp.csr_array:
        """P [S*A, S], row s*A + a."""
        S, A = len(self.states), len(self.actions)
        empty: dict[int, float] = {}
        rows = [self.T.get((a, s), empty) for s in range(S) for a in range(A)]
        indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
        columns = np.fromiter((t for row in rows for t in row), dtype=np.int64)
        p = np.fromiter((x for row in rows for x in row.values()), dtype=np.float64)
        P = sp.csr_array((p, columns, indptr), shape=(S * A, S))
        P.eliminate_zeros()
        P.sort_indices()
        return P

    def rewards(self, P: sp.csr_array) -> FloatArray:
        """Expected rewards [S*A] of the rows of P."""
        S, A = len(self.states), len(self.actions)
        seen = self.observations is not None and any(o >= 0 for *_, o, _ in self.R)
        width = len(self.observations) if seen and self.observations is not None else 1
        if P.nnz * width > 5 * _ENTRIES:
            raise InvalidFile(f"{self.path}: rewards of {P.nnz:,} transitions for {width} observations are too many to expand")
        values = np.zeros((P.nnz, width))
        places, work = _Places(P, A), 0
        for a, s, t, o, value in self.R:
            entries = places.of(a, s, t)
            work += len(range(*entries.indices(P.nnz))) if isinstance(entries, slice) else len(entries)
            if work > 50 * _ENTRIES:
                raise InvalidFile(f"{self.path}: its R lines with wildcards touch too many transitions; use a sparse format")
            values[entries, slice(None) if o < 0 else o] = value
        weights = np.ones((P.nnz, 1)) if width == 1 else self._seen(P, A, width)
        row = np.repeat(np.arange(S * A), np.diff(P.indptr))
        low, high = np.full(S * A, np.inf), np.full(S * A, -np.inf)
        np.minimum.at(low, row, values.min(axis=1, initial=np.inf))
        np.maximum.at(high, row, values.max(axis=1, initial=-np.inf))
        mean = np.bincount(row, P.data * (weights * values).sum(axis=1), minlength=S * A)
        return np.where(low == high, low, mean)

    def _seen(self, P: sp.csr_array, A: int, width: int) -> FloatArray:
        """O(o|a,s') for every transition [nnz, O]."""
        weights = np.zeros((P.nnz, width))
        row = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        for k, (l, t) in enumerate(zip(row.tolist(), P.indices.tolist(), strict=True)):
            given = self.O.get((l % A, t), {})
            weights[k, list(given)] = list(given.values())
        off = np.flatnonzero(np.abs(weights.sum(axis=1) - 1.0) > 1e-5)
        if len(off):
            a, t = int(row[off[0]]) % A, int(P.indices[off[0]])
            raise InvalidFile(
                f"{self.path}: rewards depend on observations, but the probabilities O of action {a}, state {t} "
                f"sum to {weights[off[0]].sum():.6g}"
            )
        return weights


class _Places:
    """Finds the transitions (entries of P) that an R line speaks of; -1 stands for any action, state or next state."""

    def __init__(self, P: sp.csr_array, A: int) -> None:
        self.P, self.A = P, A
        row = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        self.state, self.action = np.divmod(row, A)
        self.by_target = np.argsort(P.indices, kind="stable")
        self.targets = np.concatenate(([0], np.cumsum(np.bincount(P.indices, minlength=P.shape[1]))))
        self.by_action = np.argsort(self.action, kind="stable")
        self.actions = np.concatenate(([0], np.cumsum(np.bincount(self.action, minlength=A))))

    def of(self, a: int, s: int, t: int) -> Any:
        """An index into the entries."""
        indptr, A = self.P.indptr, self.A
        if t >= 0:
            found = self.by_target[self.targets[t] : self.targets[t + 1]]
            found = found if a < 0 else found[self.action[found] == a]
            return found if s < 0 else found[self.state[found] == s]
        if s >= 0:
            return slice(indptr[s * A + max(a, 0)], indptr[(s + 1) * A if a < 0 else s * A + a + 1])
        return slice(None) if a < 0 else self.by_action[self.actions[a] : self.actions[a + 1]]


class Parser:
    """Reads a file from left to right; errors name the line."""

    def __init__(self, path: object, content: str) -> None:
        self.path, self.content = path, content
        self.tokens = [token for token in _TOKEN.findall(content) if token[0] != "#"]
        self.at = self.spent = 0
        self.model = Model(path)

    def parse(self) -> Model:
        """The model of the whole file."""
        handlers = {"T": self._transition, "O": self._observation, "R": self._reward}
        while self.at < len(self.tokens):
            word = self._next()
            if word in handlers:
                if not (len(self.model.states) and len(self.model.actions)):
                    raise self._error("states and actions must be declared before the first T, O or R", back=1)
                if not self._run(word):
                    self._expect(":")
                    handlers[word]()
            else:
                self._preamble(word)
        if not (len(self.model.states) and len(self.model.actions)):
            raise InvalidFile(f"{self.path}: it declares no {'states' if not len(self.model.states) else 'actions'}")
        return self.model

    def _run(self, word: str) -> bool:
        """Lines `T: a : s : t p`, and `R: a : s : t v` of an MDP, all by number: the bulk of a large file, without detours."""
        if word == "O" or (word == "R" and self.model.observations is not None):
            return False
        tokens, begin, T, R = self.tokens, self.at - 1, self.model.T, self.model.R
        at, S, A = begin, len(self.model.states), len(self.model.actions)
        while tokens[at : at + 1] == [word] and tokens[at + 1 : at + 6 : 2] == [":", ":", ":"] and at + 7 < len(tokens):
            a, s, t, x = tokens[at + 2], tokens[at + 4], tokens[at + 6], tokens[at + 7]
            anywhere = t == "*" and word == "R"
            if not (
                a.isdecimal() and s.isdecimal() and (anywhere or t.isdecimal()) and len(a + s + t) < 27 and _NUMBER.fullmatch(x)
            ):
                break
            i, j, k, number = int(a), int(s), -1 if anywhere else int(t), float(x)
            if not (i < A and j < S and k < S and abs(number) < np.inf):
                break
            if word == "R":
                R.append((i, j, k, -1, number))
            else:
                T.setdefault((i, j), {})[k] = number
            at += 8
        self.at = at if at > begin else self.at
        return at > begin

    def _preamble(self, word: str) -> None:
        model = self.model
        if word == "start":
            self._start()
            return
        if word not in ("discount", "values", "states", "actions", "observations"):
            raise self._error("a declaration or one of T, O, R expected", back=1)
        self._expect(":")
        if word == "discount":
            model.discount = self._number()
        elif word == "values":
            kind = self._next()
            if kind not in ("reward", "cost"):
                raise self._error("'reward' or 'cost' expected", back=1)
            model.costs = kind == "cost"
        elif len(getattr(model, word) or ()):
            raise self._error(f"{word} declared twice", back=2)
        else:
            setattr(model, word, self._things(word))

    def _things(self, word: str) -> Things:
        names: list[str] = []
        if self._peek().isdecimal():
            count = self._next()
            if len(count) > 9 or int(count) < 1:
                raise self._error(f"a number of {word} from 1 to 999999999 expected", back=1)
            if int(count) > len(self.content) + 1000:
                raise self._error(f"{word} that the rest of the file could describe expected", back=1)
            return Things(int(count))
        while self._peek() and self._peek() not in RESERVED and re.match(r"[A-Za-z]", self._peek()):
            names.append(self._next())
        if not names:
            raise self._error(f"a number of {word} or their names expected")
        if len(set(names)) < len(names):
            raise self._error(f"distinct names of {word} expected", back=1)
        return Things(len(names), names, {name: i for i, name in enumerate(names)})

    def _start(self) -> None:
        states = self.model.states
        if not len(states):
            raise self._error("states must be declared before start", back=1)
        kind = self._next() if self._peek() in ("include", "exclude") else ""
        self._expect(":")
        chosen = np.zeros(len(states))
        if kind:
            while self._peek() and (self._peek() in states.index or self._peek().isdecimal()):
                chosen[self._one(states, "a state")] = 1.0
            chosen = chosen if kind == "include" else 1.0 - chosen
            if not chosen.any():
                raise self._error("at least one starting state expected", back=1)
            self.model.start = chosen / chosen.sum()
        elif self._peek() == "uniform":
            self._next()
            self.model.start = np.full(len(states), 1.0 / len(states))
        else:
            numbers = self._numbers(len(states), "start") if self._looks_like_list() else None
            if numbers is None:
                chosen[self._one(states, "a state")] = 1.0
            self.model.start = chosen if numbers is None else np.array(numbers)

    def _looks_like_list(self) -> bool:
        """Whether a list of probabilities follows, rather than one state by name or number."""
        if not _NUMBER.fullmatch(self._peek()):
            return False
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        return bool(_NUMBER.fullmatch(following)) or not self._peek().isdecimal()

    def _transition(self) -> None:
        states = self.model.states
        actions, froms, tos = self._places([self.model.actions, states, states], ["an action", "a state", "a state"])
        self._fill(self.model.T, actions, froms, tos, len(states), square=True)

    def _observation(self) -> None:
        if self.model.observations is None:
            raise self._error("observations must be declared before O", back=2)
        seen = self.model.observations
        actions, tos, which = self._places(
            [self.model.actions, self.model.states, seen], ["an action", "a state", "an observation"]
        )
        self._fill(self.model.O, actions, tos, which, len(seen), square=False)

    def _fill(
        self,
        table: dict[tuple[int, int], dict[int, float]],
        actions: Sequence[int],
        rows: Sequence[int] | None,
        columns: Sequence[int] | None,
        width: int,
        *,
        square: bool,
    ) -> None:
        """The probabilities that follow: one number, a row, a matrix, or a keyword for either."""
        S = len(self.model.states)
        if columns is not None and rows is not None:
            p = self._number()
            self._spend(len(actions) * len(rows) * len(columns))
            for key in product(actions, rows):
                table.setdefault(key, {}).update(dict.fromkeys(columns, p))
            return
        several = rows is None
        targets: Sequence[int] = range(S) if rows is None else rows
        word = self._peek()
        if word == "uniform":
            self._next()
            self._spend(len(actions) * len(targets) * width)
            for key in product(actions, targets):
                table[key] = dict.fromkeys(range(width), 1.0 / width)
        elif word == "identity" and several and square:
            self._next()
            self._spend(len(actions) * S)
            table.update({(a, s): {s: 1.0} for a, s in product(actions, targets)})
        elif word == "reset" and not several and square:
            self._next()
            start = self.model.start if self.model.start is not None else np.full(S, 1.0 / S)
            self._spend(len(actions) * len(targets) * int((start > 0).sum()))
            entries = {int(s): float(start[s]) for s in np.flatnonzero(start)}
            table.update({key: dict(entries) for key in product(actions, targets)})
        else:
            numbers = self._numbers(width * (S if several else 1), "a row or matrix")
            self._spend(len(actions) * len(targets) * width)
            for a, (i, s) in product(actions, enumerate(targets)):
                row = numbers[i * width : (i + 1) * width] if several else numbers
                table[a, s] = {j: p for j, p in enumerate(row) if p != 0.0}

    def _reward(self) -> None:
        model = self.model
        seen = model.observations
        kinds = [model.actions, model.states, model.states, *([seen] if seen is not None else [])]
        names = ["an action", "a state", "a state", "an observation"]
        given: list[int] = [self._one(kinds[0], names[0], wild=True)]
        while self._peek() == ":" and len(given) < len(kinds):
            self._next()
            given.append(self._one(kinds[len(given)], names[len(given)], wild=True))
        if len(given) < (2 if seen is not None else 1):
            raise self._error("a state expected: in a POMDP, R needs an action and a state")
        shape = [len(kind) for kind in kinds[len(given) :]]
        total = int(np.prod(shape)) if shape else 1
        values = [self._number()] if not shape else self._numbers(total, "rewards")
        self._spend(total)
        for place, value in zip(np.ndindex(*shape), values, strict=True):
            a, s, t, o = [*given, *place, -1][:4]
            model.R.append((a, s, t, o, value))

    def _places(self, kinds: list[Things], names: list[str]) -> tuple[Any, Any, Any]:
        """Up to three places separated by colons, each a list of numbers (a wildcard: all of them) or None when not given."""
        found: list[Any] = []
        while len(found) < 3 and (not found or self._peek() == ":"):
            if found:
                self._next()
            kind, name = kinds[len(found)], names[len(found)]
            one = self._one(kind, name, wild=True)
            found.append(range(len(kind)) if one < 0 else (one,))
        return tuple(found + [None] * (3 - len(found)))

    def _one(self, kind: Things, name: str, *, wild: bool = False) -> int:
        word = self._next()
        if wild and word == "*":
            return -1
        number = kind.index.get(word, int(word) if word.isdecimal() and len(word) < 10 else -1)
        if not 0 <= number < len(kind):
            raise self._error(f"{name} expected", back=1)
        return number

    def _number(self) -> float:
        word = self._next()
        if word in ("+", "-"):
            word += self._next()
        if not _NUMBER.fullmatch(word) or not np.isfinite(float(word)):
            raise self._error("a number expected", back=1)
        return float(word)

    def _numbers(self, count: int, what: str) -> list[float]:
        part = self.tokens[self.at : self.at + count]
        if len(part) == count and all(map(_NUMBER.fullmatch, part)):
            self.at += count
            numbers = list(map(float, part))
            if np.isfinite(numbers).all():
                return numbers
        bad = next((i for i, word in enumerate(part) if not _NUMBER.fullmatch(word)), len(part))
        self.at += bad if len(part) <= count else 0
        raise self._error(f"{count} numbers for {what} expected, {bad} there")

    def _spend(self, entries: int) -> None:
        self.spent += entries
        if self.spent > _ENTRIES:
            raise self._error(f"the file expands to more than {_ENTRIES:,} entries; use a sparse format", back=1)

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        if self.at >= len(self.tokens):
            raise self._error("more expected")
        self.at += 1
        return self.tokens[self.at - 1]

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise self._error(f"{mark!r} expected", back=1)

    def _error(self, message: str, back: int = 0) -> InvalidFile:
        at = min(max(self.at - back, 0), len(self.tokens))
        if at == len(self.tokens):
            return InvalidFile(f"{self.path}, line {self.content.count(chr(10)) + 1}: {message}; the file ends")
        words = (match for match in _TOKEN.finditer(self.content) if match[0][0] != "#")
        line = self.content.count("\n", 0, next(islice(words, at, None)).start()) + 1
        return InvalidFile(f"{self.path}, line {line}: {message}; found {self.tokens[at][:60]!r}")
