"""The grammar of Cassandra's format: tokens, the preamble, and the T, O and R lines, kept sparse."""

from __future__ import annotations

import re
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidFile
from tightrope.model.files.cassandra_model import ENTRIES, Model, Things

if TYPE_CHECKING:
    from collections.abc import Sequence


RESERVED = frozenset(
    (
        *("discount", "values", "states", "actions", "observations", "start", "include", "exclude"),
        *("T", "O", "R", "uniform", "identity", "reset", "reward", "cost"),
    )
)
_TOKEN = re.compile(r"#[^\n]*|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[A-Za-z][\w-]*|[*:]|\S")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


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
        if self.spent > ENTRIES:
            raise self._error(f"the file expands to more than {ENTRIES:,} entries; use a sparse format", back=1)

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
