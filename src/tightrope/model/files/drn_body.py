"""The body of a DRN file: states, their actions and transitions, taken block by block."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from tightrope.errors import InvalidFile
from tightrope.model.files import text
from tightrope.model.files.actions import number_actions
from tightrope.model.files.reading import Reading, Wishes, assemble, choose_reward, firsts, in_range, initial, with_deadlocks
from tightrope.model.files.text import Block, Names, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tightrope.model.files.drn import Header
    from tightrope.model.validate import BoolArray, FloatArray, IntArray

NAME = "Storm DRN"
UNNAMED = "__NOLABEL__"
_LATE = "rewards expected directly after the number of the state"
_LABEL = re.compile(r'"([^"]+)"|([^\s"]+)')
_OPEN, _CLOSE, _COMMA, _COLON, _QUOTE = (np.uint8(ord(mark)) for mark in '[],:"')


class Body:
    """The states of a file, gathered block by block."""

    def __init__(self, path: Path, header: Header, wishes: Wishes) -> None:
        self.path, self.header = path, header
        names = header.rewards
        self.reward = names.index(wishes.reward) if wishes.reward in names else 0
        self.models = 0
        self.names = Names()
        self.labels: dict[str, list[Any]] = {}
        self.comments: dict[int, str] = {}
        self.states = self.rows = 0
        self.owner = -1
        self.parts: dict[str, list[Any]] = {
            key: [] for key in ("state_reward", "row_state", "row_reward", "row_name", "row", "target", "p", "line")
        }

    def take(self, block: Block) -> None:
        """Add the lines of one block."""
        tokens = Tokens.of(block)
        first, _ = tokens.by_line()
        if not len(first):
            return
        lead = tokens[first]
        mark = block.data[lead.begin]
        digit, comment = (mark >= ord("0")) & (mark <= ord("9")), mark == ord("/")
        state, action = _is_word(lead, b"state"), _is_word(lead, b"action")
        strange = np.flatnonzero(~(digit | comment | state | action))
        if len(strange):
            raise lead.fail(int(strange[0]), "a state, an action or a transition 'target : probability' expected")
        state_at, row_at = self.states + np.cumsum(state) - 1, self.rows + np.cumsum(action) - 1
        self._states(block, lead.line[state])
        self._actions(block, lead.line[action], state_at[action])
        owner = np.append(state_at[action], self.owner)[row_at[digit] - self.rows]  # -1, the last, is the row before this block
        self._transitions(block, lead[digit], row_at[digit], owner == state_at[digit])
        self._comments(block, lead.begin[comment], state_at[comment])
        self.owner = int(np.append(self.owner, state_at[action])[-1])
        self.states, self.rows = int(state_at[-1]) + 1, int(row_at[-1]) + 1

    def _comments(self, block: Block, begin: IntArray, state: IntArray) -> None:
        """The valuation of a state stands in a comment after it: `//[x=1 & y=2]`."""
        ends = block.lines()[1]
        for s, at, end in zip(state.tolist(), begin.tolist(), ends[np.searchsorted(ends, begin)].tolist(), strict=True):
            words = block.data[at:end].tobytes().decode("utf-8", "replace").rstrip()
            if words.startswith("//[") and words.endswith("]") and s >= 0:
                self.comments.setdefault(s, words[3:-1])

    def _states(self, block: Block, lines: IntArray) -> None:
        if not len(lines):
            return
        part = _only(block, lines)
        if self.header.kind == "POMDP":
            part = part.blanked(_spans(part, b"{}"))
        entries = _Entries.of(part, _spans(part, b"[]"))
        number = entries.second("a state number").whole("a state number")
        wrong = np.flatnonzero(number != self.states + np.arange(len(number)))
        if len(wrong):
            raise entries.fail(int(wrong[0]), f"state {self.states + int(wrong[0])} expected: states are numbered in order")
        self.parts["state_reward"].append(self._rewards(entries))
        for at, label in entries.labels():
            self.labels.setdefault(label, []).append(self.states + at)

    def _actions(self, block: Block, lines: IntArray, state: IntArray) -> None:
        if not len(lines):
            return
        part = _only(block, lines)
        entries = _Entries.of(part, _last_spans(part))
        if state[0] < 0:
            raise entries.fail(0, "a state expected before its first action")
        self.parts["row_state"].append(state)
        self.parts["row_name"].append(self.names(*entries.rest("an action's name").words()))
        self.parts["row_reward"].append(self._rewards(entries))

    def _transitions(self, block: Block, lead: Tokens, row: IntArray, owned: BoolArray) -> None:
        if not len(lead):
            return
        if not owned.all() or row[0] < 0:
            raise lead.fail(int(np.flatnonzero(~owned | (row < 0))[0]), "an action expected before its first transition")
        part = _only(block, lead.line)
        colon = part.data == _COLON
        tokens = Tokens.of(part.blanked(colon))
        first, counts = tokens.by_line()
        colons = np.diff(np.searchsorted(np.flatnonzero(colon), part.lines()[1]), prepend=0)
        bad = np.flatnonzero((counts != 2) | (colons != 1))
        if len(bad):
            raise tokens.fail(int(first[bad[0]]), "'target : probability' expected")
        for key, column in (
            ("row", row),
            ("target", tokens[first].whole("a state")),
            ("p", tokens[first + 1].real("a probability")),
            ("line", tokens.line[first]),
        ):
            self.parts[key].append(column)

    def _rewards(self, entries: _Entries) -> FloatArray:
        rewards, models = entries.rewards(self.reward)
        self.models = max(self.models, models)
        return rewards

    def finish(self, wishes: Wishes) -> Reading:
        """The model of everything taken."""
        path, header = self.path, self.header
        join: dict[str, Any] = {
            key: np.concatenate(part) if part else np.empty(0, dtype=np.int64) for key, part in self.parts.items()
        }
        for what, declared, found in (("states", header.states, self.states), ("choices", header.choices, self.rows)):
            if declared != found and (declared or what == "states"):
                raise InvalidFile(f"{path} declares {declared} {what} but lists {found}; it is damaged or truncated")
        S = self.states
        text.plausible(path, S, len(join["p"]) + S)
        names = header.rewards + [f"rew{i}" for i in range(len(header.rewards), self.models)]
        choose_reward(path, wishes, names)
        in_range(path, "target state", join["target"], S, lambda at: f"line {join['line'][at]}")
        order = np.argsort(join["row"], kind="stable")
        indptr = np.concatenate(([0], np.cumsum(np.bincount(join["row"], minlength=self.rows))))
        index = np.int32 if max(len(order), S) < 2**31 else np.int64
        data = join["p"][order].astype(np.float64), join["target"][order].astype(index), indptr.astype(index)
        P, states, kept, added = with_deadlocks(
            sp.csr_array(data, shape=(self.rows, S)), join["row_state"], np.arange(self.rows), S
        )
        real = np.ones(len(states), dtype=bool)
        real[added] = False
        r: FloatArray = np.where(real, join["row_reward"][kept] if self.rows else 0.0, 0.0) + join["state_reward"][states]
        notes = [f"{len(added)} states without actions (deadlocks) stay where they are"] if len(added) else []
        if header.kind != "MDP":
            said = "a Markov chain: every state has one action"
            notes.append(said if header.kind == "DTMC" else "the underlying MDP of a POMDP: observations are ignored")
        first = firsts(states, S)
        known = ["" if name == UNNAMED else name for name in self.names.names]
        codes = np.where(real, join["row_name"][kept] if self.rows else -1, -1)
        ids, action_names = number_actions(known, codes, first, notes)
        labels = {name: np.unique(np.concatenate(found)) for name, found in self.labels.items()}
        start = initial(labels, "init", S)
        labels.pop("init", None)
        named = len(self.comments) == S
        return assemble(
            path,
            NAME,
            wishes,
            gamma=header.gamma,
            P=P,
            r=r,
            first=first,
            actions=ids,
            start=start,
            state_names=[self.comments[s] for s in range(S)] if named else None,
            action_names=action_names,
            labels=labels,
            notes=notes,
        )


@dataclass(frozen=True, eq=False, slots=True)
class _Entries:
    """Lines `word name {observation} [rewards] labels`: their tokens, with what stands in brackets taken out."""

    tokens: Tokens
    first: IntArray
    counts: IntArray
    inside: Block
    quoted: bool

    @classmethod
    def of(cls, block: Block, rewards: BoolArray) -> _Entries:
        tokens = Tokens.of(block.blanked(rewards))
        marks = (block.data == _COMMA) | (block.data == _OPEN) | (block.data == _CLOSE)
        inside = block.blanked(~rewards | marks)
        return cls(tokens, *tokens.by_line(), inside, bool((block.data == _QUOTE).any()))

    def fail(self, i: int, message: str) -> InvalidFile:
        return self.tokens.fail(int(self.first[i]), message)

    def second(self, what: str) -> Tokens:
        """The second word of every line."""
        short = np.flatnonzero(self.counts < 2)
        if len(short):
            raise self.fail(int(short[0]), f"{what} expected after the word")
        return self.tokens[self.first + 1]

    def rest(self, what: str) -> Tokens:
        """What follows the first word of every line, which may contain spaces, as one token."""
        begin, last = self.second(what), self.tokens[self.first + self.counts - 1]
        return Tokens(begin.path, begin.data, begin.begin, last.end, begin.line)

    def rewards(self, which: int) -> tuple[FloatArray, int]:
        """The reward of the given model on every line (0 where there is none), and how many models appear."""
        rewards = np.zeros(len(self.first))
        tokens = Tokens.of(self.inside)
        if not len(tokens):
            return rewards, 0
        first, counts = tokens.by_line()
        at = np.searchsorted(self.tokens.line[self.first], tokens.line[first])
        has = counts > which
        rewards[at[has]] = tokens[first[has] + which].real("a reward")
        return rewards, int(counts.max())

    def labels(self) -> Iterator[tuple[IntArray, str]]:
        """Each label, with the positions of the lines that carry it."""
        rest = np.ones(len(self.tokens), dtype=bool)
        rest[self.first] = rest[self.first + 1] = False
        owner = np.repeat(np.arange(len(self.first)), self.counts)[rest]
        tokens = self.tokens[rest]
        if not self.quoted:
            late = np.flatnonzero(tokens.data[tokens.begin] == _OPEN)
            if len(late):
                raise tokens.fail(int(late[0]), _LATE)
            codes, names = tokens.words()
            yield from ((owner[codes == code], name) for code, name in enumerate(names))
            return
        for at in np.unique(owner).tolist():
            mine = np.flatnonzero(owner == at)
            span = tokens.data[tokens.begin[mine[0]] : tokens.end[mine[-1]]].tobytes().decode("utf-8", "replace")
            for quoted, plain in _LABEL.findall(span):
                if plain.startswith("["):
                    raise tokens.fail(int(mine[0]), _LATE)
                yield np.array([at]), quoted or plain


def _spans(block: Block, brackets: bytes) -> BoolArray:
    """Which bytes lie in brackets that open as the third word of a line."""
    tokens, data = Tokens.of(block), block.data
    first, counts = tokens.by_line()
    third = first[counts > 2] + 2
    return _between(block, tokens, third[data[tokens.begin[third]] == brackets[0]], brackets)[0]


def _last_spans(block: Block) -> BoolArray:
    """Which bytes lie in the square brackets that end a line: the name before them may contain anything."""
    tokens = Tokens.of(block)
    first, counts = tokens.by_line()
    opens = np.flatnonzero(block.data[tokens.begin] == _OPEN)
    line = np.searchsorted(first, opens, side="right") - 1
    last = np.append(np.diff(line) != 0, True)[: len(opens)]
    opens, line = opens[last], line[last]
    inside, end = _between(block, tokens, opens, b"[]")
    after = np.flatnonzero(tokens.end[(first + counts - 1)[line]] != end + 1)
    if len(after):
        raise tokens.fail(int(opens[after[0]]), "rewards expected at the end of the line")
    return inside


def _between(block: Block, tokens: Tokens, opens: IntArray, brackets: bytes) -> tuple[BoolArray, IntArray]:
    """Which bytes lie between brackets that open with the given tokens, and where each pair closes on its line."""
    data, begin = block.data, tokens.begin[opens]
    closes, newlines = np.append(np.flatnonzero(data == brackets[1]), len(data)), block.lines()[1]
    end = closes[np.searchsorted(closes, begin)]
    missing = np.flatnonzero(end > newlines[np.searchsorted(newlines, begin)])
    if len(missing):
        raise tokens.fail(int(opens[missing[0]]), f"a closing {chr(brackets[1])} expected on the line")
    depth = np.zeros(len(data) + 1, dtype=np.int8)
    depth[begin] += 1
    depth[end + 1] -= 1
    return np.cumsum(depth[:-1], dtype=np.int8).view(bool), end


def _only(block: Block, lines: IntArray) -> Block:
    """The lines of a block with the given numbers (in the file)."""
    keep = np.zeros(len(block.numbers), dtype=bool)
    keep[lines - block.numbers[0]] = True
    return block.only(keep)


def _is_word(tokens: Tokens, word: bytes) -> BoolArray:
    """Which tokens are exactly the given word."""
    same = tokens.end - tokens.begin == len(word)
    for i, byte in enumerate(word):
        same &= tokens.data[np.minimum(tokens.begin + i, len(tokens.data) - 1)] == byte
    return same
