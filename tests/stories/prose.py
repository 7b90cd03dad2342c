"""The commands and programs that a Markdown file shows, in order, ready to be run, with what they are said to print."""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass
from itertools import zip_longest

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```\s*?$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
#: What differs from run to run or with every tuning of the engine: times, rates, iterations, backups, and how small a gap became.
EFFORT = re.compile(
    r"[\d.,]+(?:e[-+]?\d+)?[kMGT]?(?=\s*(?:s|ms|seconds|backups|backups/s|samples/s)\b)"
    r"|[\d,]+ iterations?\b|^iterations +[\d,]+"
    r"|(?<=<= )[\d.,]+(?:e[-+]?\d+)?(?= \(| everywhere)"
    r"|(?<=\()[\d.,]+(?:e[-+]?\d+)?(?= of the value scale)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Said:
    """What a page claims is printed, and where in its text, for whoever wants to write it anew."""

    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class Program:
    """A block of Python; a block of text right after it is what it prints."""

    line: int
    source: str
    said: Said | None = None


@dataclass(frozen=True)
class Command:
    """One `tightrope ...` line, with the exit code that a comment `# exit N` announces and the lines below as its output."""

    line: int
    arguments: tuple[str, ...]
    code: int
    said: Said | None = None


def shown(text: str) -> list[Program | Command]:
    """Python blocks, and the tightrope lines of console blocks; `python notest` and lines with `# slow` are left out."""
    found: list[Program | Command] = []
    blocks = list(FENCE.finditer(text))
    for block, following in zip_longest(blocks, blocks[1:]):
        language, *words = block["info"].split() or [""]
        line = text.count("\n", 0, block.start()) + 2
        if "notest" in words:
            continue
        if language in {"python", "py", "pycon"}:
            found.append(Program(line, _source(_outdented(block)), _printed(text, block, following)))
        elif language in {"console", "bash", "sh", "shell"}:
            found += _commands(_outdented(block), line, block.start("body"))
    return found


def alike(said: str, printed: str) -> bool:
    """Whether a page tells the truth: token by token, `...` for anything, numbers to four digits, effort not compared."""
    return _match(EFFORT.sub("#", said).split(), EFFORT.sub("#", printed).split())


def _match(said: list[str], printed: list[str]) -> bool:
    if "..." not in said:
        return len(said) == len(printed) and all(map(_same, said, printed))
    cut = said.index("...")
    head, rest = said[:cut], said[cut + 1 :]
    if len(printed) < cut or not all(map(_same, head, printed)):
        return False
    return not rest or any(_match(rest, printed[start:]) for start in range(cut, len(printed) + 1))


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    a, b = NUMBER.findall(one), NUMBER.findall(other)
    if NUMBER.sub("#", one) != NUMBER.sub("#", other) or len(a) != len(b):
        return False
    return all(map(_close, a, b))


def _close(one: str, other: str) -> bool:
    x, y = float(one.replace(",", "")), float(other.replace(",", ""))
    whole = one.replace(",", "").lstrip("+-").isdigit() and other.replace(",", "").lstrip("+-").isdigit()
    return x == y if whole else abs(x - y) <= 1e-4 * max(abs(x), abs(y)) + 1e-6


def _outdented(block: re.Match[str]) -> str:
    indent = len(block["indent"])
    return "".join(row[indent:] if row.strip() else "\n" for row in block["body"].splitlines(keepends=True))


def _source(body: str) -> str:
    """The program; of a session with prompts, what was typed."""
    if ">>> " not in body:
        return body
    return "".join(example.source for example in doctest.DocTestParser().get_examples(body))


def _printed(text: str, block: re.Match[str], following: re.Match[str] | None) -> Said | None:
    """The block of text that follows with nothing between."""
    if following is None or following["info"].strip() != "text" or text[block.end() : following.start()].strip():
        return None
    return Said(_outdented(following), following.start("body"), following.end("body"))


def _commands(body: str, line: int, begin: int) -> list[Command]:
    """The commands of a block without indentation, each with the lines below it up to the next."""
    found: list[Command] = []
    prompt = r"\$ " if re.search(r"^\$ ", body, re.MULTILINE) else r"(?=tightrope )"
    heads = list(re.finditer(rf"^{prompt}(?P<text>(?:[^\n]*\\\n)*[^\n]*)\n?", body, re.MULTILINE))
    for head, following in zip_longest(heads, heads[1:]):
        text, _, comment = head["text"].replace("\\\n", " ").strip().partition(" #")
        if not text.startswith("tightrope ") or "slow" in comment:
            continue
        end = len(body) if following is None else following.start()
        output = body[head.end() : end]
        said = Said(output, begin + head.end(), begin + end) if output.strip() else None
        announced = re.search(r"exit (\d+)", comment)
        number = line + body.count("\n", 0, head.start())
        found.append(Command(number, tuple(shlex.split(text)[1:]), int(announced[1]) if announced else 0, said))
    return found
