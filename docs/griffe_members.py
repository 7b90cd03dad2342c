"""What the reference needs to know of our style: `classmethod(function)` constructors, fields with a `#:`, and the * of v*."""
# ruff: noqa: INP001  (loaded by mkdocstrings by its path)

from __future__ import annotations

import re
from typing import Any

import griffe


class Members(griffe.Extension):
    """Gives classes their borrowed constructors and fields their comments."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Once everything is loaded, walk all classes."""
        _walk(pkg, pkg)


def _walk(part: griffe.Object, package: griffe.Module) -> None:
    for member in list(part.members.values()):
        if member.is_alias:
            continue
        if member.docstring is not None:
            member.docstring.value = _starred(member.docstring.value)
        if member.is_class:
            _mend(member, package)
        if member.is_class or member.is_module:
            _walk(member, package)


def _mend(cls: Any, package: griffe.Module) -> None:
    for name, member in list(cls.members.items()):
        if member.is_alias or not member.is_attribute:
            continue
        borrowed = re.fullmatch(r"classmethod\((\w+)\.(\w+)\)", str(member.value or ""))
        if borrowed:
            cls.set_member(name, _constructor(package[f"model.{borrowed[1]}.{borrowed[2]}"], member))
        elif member.docstring is None and member.lineno:
            comment = _comment(member)
            if comment:
                member.docstring = griffe.Docstring(comment, parent=member)


def _constructor(function: Any, member: Any) -> griffe.Function:
    """The function as a method, in the place of the member: without its first argument, which the class supplies."""
    made = griffe.Function(
        member.name,
        parameters=griffe.Parameters(*list(function.parameters)[1:]),
        returns=function.returns,
        decorators=[],
        lineno=member.lineno,
        endlineno=member.endlineno,
    )
    made.labels.add("classmethod")
    text = re.sub(r"^ *cls: the class\.\n", "", function.docstring.value, flags=re.MULTILINE)
    made.docstring = griffe.Docstring(text, parent=made, parser="google")
    return made


def _starred(text: str) -> str:
    """The stars of v*, π*, q* and α* as stars: Markdown would take two of them for emphasis. Code keeps its own."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"(?<=[vqπα])\*", r"\\*", part) for part in parts[::2]]
    return "`".join(parts)


def _comment(member: Any) -> str:
    """The `#:` lines right above a field."""
    lines, said = member.lines_collection[member.filepath], []
    for line in reversed(lines[: member.lineno - 1]):
        if not line.strip().startswith("#:"):
            break
        said.insert(0, line.strip().removeprefix("#:").strip())
    return " ".join(said)
