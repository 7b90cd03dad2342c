"""Text files in bulk: blocks of whole lines, their tokens found by array operations, and numbers parsed by the million.

No Python loop runs per line. An error names the file, the line and what stood there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope import progress
from tightrope.errors import InvalidFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tightrope.model.validate import BoolArray, FloatArray, IntArray

#: Bytes parsed at a time: as much as the caches hold.
BLOCK = 1 << 19
#: The longest line that is still taken for one.
LINE = 1 << 24
#: Files from this size on are read with a progress bar.
LARGE = 50 << 20

_NEWLINE, _SPACE, _SLASH = 10, 32, ord("/")


def _table(characters: bytes) -> BoolArray:
    table = np.zeros(256, dtype=bool)
    table[list(characters)] = True
    return table


_WHITE = _table(b" \t\r\n\x0b\x0c")
_REAL = _table(b"0123456789+-.eE \t\r")
_RATIONAL = _table(b"0123456789+-.eE/")


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Whole lines of a file: their bytes, each line ending in a newline, and their numbers in the file, counted from 1."""

    path: object
    data: Any
    numbers: IntArray

    def lines(self) -> tuple[IntArray, IntArray]:
        """Where each line begins and ends (before its newline)."""
        ends = np.flatnonzero(self.data == _NEWLINE)
        return np.concatenate(([0], ends[:-1] + 1)), ends

    def only(self, lines: BoolArray) -> Block:
        """The given lines (a boolean for each) and no others."""
        begin, end = self.lines()
        return Block(self.path, self.data[np.repeat(lines, end + 1 - begin)], self.numbers[lines])

    def blanked(self, blank: BoolArray) -> Block:
        """The same lines with the given bytes (a boolean for each) turned into spaces; newlines stay."""
        return Block(self.path, np.where(blank & (self.data != _NEWLINE), np.uint8(_SPACE), self.data), self.numbers)


def blocks(path: Path, offset: int = 0, line: int = 1) -> Iterator[Block]:
    """The file, from byte `offset` in line `line` on, in blocks of whole lines, each ending in a newline."""
    total, rest = path.stat().st_size, b""
    with path.open("rb") as file, progress.bar(path.name, total, show=None if total >= LARGE else False) as bar:
        file.seek(offset)
        while True:
            chunk = file.read(BLOCK)
            bar.advance(len(chunk))
            rest += chunk
            cut = len(rest) if not chunk else rest.rfind(b"\n") + 1
            if not cut and len(rest) > LINE:
                raise InvalidFile(f"{path}, line {line}: longer than {LINE:,} bytes; this is not a text file of lines")
            text, rest = rest[:cut], rest[cut:]
            if text:
                text += b"" if text.endswith(b"\n") else b"\n"
                if b"\0" in text:
                    raise InvalidFile(f"{path}, line {line + text[: text.index(0)].count(10)}: a zero byte in a text file")
                count = text.count(b"\n")
                yield Block(path, np.frombuffer(text, dtype=np.uint8), np.arange(line, line + count))
                line += count
            if not chunk:
                return


@dataclass(frozen=True, eq=False, slots=True)
class Tokens:
    """Tokens of a block: where each begins and ends, and its line number [n each]."""

    path: object
    data: Any
    begin: IntArray
    end: IntArray
    line: IntArray

    @classmethod
    def of(cls, block: Block) -> Tokens:
        """Tokens between white space."""
        white = _WHITE[block.data]
        before = np.concatenate(([True], white[:-1]))
        begin, end = np.flatnonzero(before & ~white), np.flatnonzero(~before & white)
        newlines = np.flatnonzero(block.data == _NEWLINE)
        counts = np.diff(np.searchsorted(begin, newlines), prepend=0)
        return cls(block.path, block.data, begin, end, np.repeat(block.numbers, counts))

    @classmethod
    def fields(cls, block: Block, separator: bytes) -> Tokens:
        """Fields between separators and line ends, possibly empty; lines of white space only have none."""
        breaks = np.flatnonzero((block.data == _NEWLINE) | (block.data == separator[0]))
        begin = np.concatenate(([0], breaks[:-1] + 1))
        newline = block.data[breaks] == _NEWLINE
        line = np.cumsum(newline) - newline
        first = np.concatenate(([0], np.flatnonzero(newline)[:-1] + 1))
        alone = np.diff(np.append(first, len(breaks))) == 1
        solid = np.ones(len(first), dtype=bool)
        solid[alone] = [bool(block.data[begin[i] : breaks[i]].tobytes().strip()) for i in first[alone].tolist()]
        keep = solid[line]
        return cls(block.path, block.data, begin[keep], breaks[keep], block.numbers[line[keep]])

    def __len__(self) -> int:
        return len(self.begin)

    def __getitem__(self, which: Any) -> Tokens:
        return Tokens(self.path, self.data, self.begin[which], self.end[which], self.line[which])

    def text(self, i: int) -> str:
        """Token i as text."""
        return str(self.data[self.begin[i] : self.end[i]].tobytes().decode("utf-8", "replace"))

    def fail(self, i: int, message: str) -> InvalidFile:
        """The error that says `message` about token i."""
        shown = self.text(i)
        return InvalidFile(f"{self.path}, line {self.line[i]}: {message}; found {shown[:60]!r}")

    def by_line(self) -> tuple[IntArray, IntArray]:
        """The first token of each line that has any, and how many it has."""
        first = np.flatnonzero(np.concatenate(([True], np.diff(self.line) != 0))) if len(self) else np.empty(0, dtype=np.int64)
        return first, np.diff(np.append(first, len(self)))

    def _joined(self) -> Any:
        """The tokens' bytes, each followed by one space."""
        sizes = self.end - self.begin + 1
        ends = np.cumsum(sizes)
        joined = self.data[np.arange(ends[-1], dtype=np.int32) + np.repeat((self.begin - ends + sizes).astype(np.int32), sizes)]
        joined[ends - 1] = _SPACE
        return joined

    def whole(self, what: str) -> IntArray:
        """The tokens as whole numbers >= 0, of at most 18 digits."""
        sizes = self.end - self.begin
        numbers, good = np.zeros(len(self), dtype=np.int64), (sizes > 0) & (sizes <= 18)
        for place in range(min(int(sizes.max(initial=0)), 18)):
            digit = self.data[np.maximum(self.end - 1 - place, self.begin)] - np.uint8(48)
            inside = sizes > place
            good &= ~inside | (digit <= 9)
            numbers += np.where(inside, digit, 0) * np.int64(10**place)
        if not good.all():
            raise self.fail(int(np.flatnonzero(~good)[0]), f"{what}, a whole number, expected")
        return numbers

    def numbers(self) -> IntArray | None:
        """The tokens as whole numbers below 10⁹, if they all are such and written without leading zeros."""
        sizes = self.end - self.begin
        if not len(self) or sizes.min() < 1 or sizes.max() > 9 or ((self.data[self.begin] == ord("0")) & (sizes > 1)).any():
            return None
        try:
            return self.whole("")
        except InvalidFile:
            return None

    def _decimal(self, what: str) -> FloatArray:
        """The tokens as floats in one pass of C; the slow search for the bad one runs only when there is one."""
        if not len(self):
            return np.empty(0)
        joined = self._joined()
        if _REAL[joined].all():
            try:
                numbers = np.fromstring(joined.tobytes(), sep=" ")
            except ValueError:
                numbers = np.empty(0)
            if len(numbers) == len(self):
                return numbers
        for i in range(len(self)):
            try:
                if not all(_REAL[byte] for byte in self.text(i).encode()):
                    raise ValueError  # noqa: TRY301  (one way out for every bad number)
                float(self.text(i))
            except ValueError:
                raise self.fail(i, f"{what} expected") from None
        raise InvalidFile(f"{self.path}: {what} expected")

    def real(self, what: str) -> FloatArray:
        """The tokens as finite floats, decimal or rational (p/q)."""
        numbers = self._rational(what) if (self.data == _SLASH).any() else self._decimal(what)
        if not np.isfinite(numbers).all():
            raise self.fail(int(np.flatnonzero(~np.isfinite(numbers))[0]), f"{what}, a finite number, expected")
        return numbers

    def _rational(self, what: str) -> FloatArray:
        slashes = np.concatenate(([0], np.cumsum(self.data == _SLASH)))
        rational = slashes[self.end] > slashes[self.begin]
        numbers = np.empty(len(self))
        numbers[~rational] = self[~rational]._decimal(what)  # noqa: SLF001  (its own class)
        rows = np.flatnonzero(rational)
        codes, names = self[rational].words()
        values = np.empty(len(names))
        for code, name in enumerate(names):
            try:
                if len(name) > 400 or not all(_RATIONAL[byte] for byte in name.encode()):
                    raise ValueError(name)  # noqa: TRY301  (one way out for every bad number)
                values[code] = float(Fraction(name))
            except (ValueError, ZeroDivisionError, OverflowError):
                raise self.fail(int(rows[np.flatnonzero(codes == code)[0]]), f"{what} expected") from None
        numbers[rows] = values[codes]
        return numbers

    def words(self) -> tuple[IntArray, list[str]]:
        """The tokens as distinct texts in order of first appearance, and the text number of each token."""
        sizes = self.end - self.begin
        codes = np.empty(len(self), dtype=np.int64)
        seen: list[Any] = []
        for groups in np.unique(-(-sizes // 8)).tolist():
            rows = np.flatnonzero(-(-sizes // 8) == groups)
            at, inverse = _distinct(self._packed(rows, groups))
            codes[rows] = sum(map(len, seen)) + inverse
            seen.append(rows[at])
        places = np.concatenate(seen) if seen else codes
        order = np.argsort(places, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        raw = (self.data[self.begin[i] : self.end[i]].tobytes() for i in places[order].tolist())
        try:
            return rank[codes] if len(codes) else codes, [name.decode("utf-8") for name in raw]
        except UnicodeDecodeError as error:
            raise InvalidFile(f"{self.path}: a name is not UTF-8 text ({error})") from None

    def _packed(self, rows: IntArray, groups: int) -> Any:
        """The given tokens, of at most 8 * groups bytes, as unsigned words [n, groups], zeros after the end."""
        letters = np.zeros((len(rows), 8 * groups), dtype=np.uint8)
        begin, end = self.begin[rows], self.end[rows]
        for place in range(8 * groups):
            at = begin + place
            letters[:, place] = np.where(at < end, self.data[np.minimum(at, len(self.data) - 1)], 0)
        return letters.view(np.uint64)


def _distinct(words: Any) -> tuple[IntArray, IntArray]:
    """The first row of each distinct row, and which of them every row equals: by hash, and exactly if hashes collide."""
    if not words.shape[1]:
        return np.array([0]), np.zeros(len(words), dtype=np.int64)
    keys = words[:, 0].copy()
    for column in range(1, words.shape[1]):
        keys = keys * np.uint64(0x9E3779B97F4A7C15) ^ (keys >> np.uint64(29)) ^ words[:, column]
    _, at, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if words.shape[1] > 1 and not (words == words[at[inverse]]).all():
        _, at, inverse = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return at, inverse.ravel()


class Names:
    """Texts numbered in order of first appearance across the blocks of a file."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def __call__(self, codes: IntArray, names: list[str]) -> IntArray:
        """Numbers that hold for the whole file, from those of one block."""
        known = np.array([self.index.setdefault(name, len(self.index)) for name in names], dtype=np.int64)
        return known[codes] if len(codes) else codes

    @property
    def names(self) -> list[str]:
        """The texts in order."""
        return list(self.index)


def written(numbers: FloatArray) -> list[str]:
    """Floats as the shortest texts that read back as the same floats."""
    return list(map(repr, numbers.tolist()))


def plausible(path: object, n_states: int, evidence: int) -> None:
    """Refuse a number of states that the file's own length does not support, before memory is asked for."""
    if n_states < 1:
        raise InvalidFile(f"{path} declares no states")
    if n_states > 10 * evidence + 100_000:
        raise InvalidFile(
            f"{path} speaks of {n_states:,} states but has only {evidence:,} transitions; it is damaged or truncated"
        )
