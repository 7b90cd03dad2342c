"""The commands and programs that a Markdown file shows, in order, ready to be run."""

from __future__ import annotations

import doctest
import re
import shlex
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Program:
    """A block of Python."""

    line: int
    source: str


@dataclass(frozen=True)
class Command:
    """One `tightrope ...` line, with the exit code that a comment `# exit N` announces."""

    line: int
    arguments: tuple[str, ...]
    code: int


def shown(text: str) -> list[Program | Command]:
    """Python blocks, and the tightrope lines of console blocks; `python notest` and lines with `# slow` are left out."""
    found: list[Program | Command] = []
    for block in FENCE.finditer(text):
        language, *words = block["info"].split() or [""]
        line = text.count("\n", 0, block.start()) + 2
        indent = len(block["indent"])
        body = "".join(row[indent:] if row.strip() else "\n" for row in block["body"].splitlines(keepends=True))
        if "notest" in words:
            continue
        if language in {"python", "py", "pycon"}:
            found.append(Program(line, _source(body)))
        elif language in {"console", "bash", "sh", "shell"}:
            found += _commands(body, line)
    return found


def _source(body: str) -> str:
    """The program; of a session with prompts, what was typed."""
    if ">>> " not in body:
        return body
    return "".join(example.source for example in doctest.DocTestParser().get_examples(body))


def _commands(body: str, line: int) -> list[Command]:
    found = []
    for number, row in enumerate(body.replace("\\\n", " ").splitlines(), line):
        text, _, comment = row.strip().removeprefix("$ ").partition(" #")
        if not text.startswith("tightrope ") or "slow" in comment:
            continue
        announced = re.search(r"exit (\d+)", comment)
        found.append(Command(number, tuple(shlex.split(text)[1:]), int(announced[1]) if announced else 0))
    return found
