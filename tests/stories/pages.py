"""Run what the pages show; as a program, write what is printed into them: python tests/stories/pages.py [--all] [PAGE ...].

Without --all only what is no longer true is written anew; with it also times and other effort.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from prose import Command, Program, alike, shown
from typer.testing import CliRunner

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
#: Pages whose programs run elsewhere: experiments have tests of their own, and the ranks of an MPI job those in tests/cluster.
ELSEWHERE = {ROOT / "docs" / "results.md", ROOT / "docs" / "scaling.md"}
PAGES = [
    ROOT / "README.md",
    *sorted(set((ROOT / "docs").glob("**/*.md")) - ELSEWHERE),
    ROOT / "examples" / "README.md",
]


def run(page: Path) -> Iterator[tuple[Program | Command, str, int]]:
    """Each part of a page in order, with what it printed and its exit code, in one namespace and the present folder."""
    from tightrope.cli import app

    namespace = {"__name__": "__main__"}
    for part in shown(page.read_text(encoding="utf-8")):
        if isinstance(part, Program):
            # Newlines keep the line numbers of a traceback those of the page.
            code = compile("\n" * (part.line - 1) + part.source, str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, namespace)  # noqa: S102  (our own documentation)
            yield part, printed.getvalue(), 0
        else:
            result = CliRunner().invoke(app, list(part.arguments), catch_exceptions=False)
            yield part, result.output, result.exit_code


def refresh(page: Path, *, effort: bool) -> int:
    """Replace what a page says by what is printed wherever the two differ; blocks with `...` are left to a person."""
    text, moved, changes = page.read_text(encoding="utf-8"), 0, 0
    for part, printed, _ in run(page):
        said = part.said
        if said is None or (alike(said.text, printed) and (not effort or "..." in said.text)):
            continue
        if "..." in said.text:
            sys.stderr.write(f"{page.name}:{part.line} is written by hand and differs:\n{printed}\n")
            continue
        clean = "".join(f"{line.rstrip()}\n" for line in printed.rstrip("\n").splitlines())
        text = text[: said.begin + moved] + clean + text[said.end + moved :]
        moved += len(clean) - (said.end - said.begin)
        changes += 1
    page.write_text(text, encoding="utf-8")
    return changes


if __name__ == "__main__":
    import matplotlib as mpl

    mpl.use("Agg")
    names = [name for name in sys.argv[1:] if name != "--all"]
    for chosen in [Path(name).resolve() for name in names] or PAGES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.stdout.write(f"{chosen.relative_to(ROOT)}: {refresh(chosen, effort='--all' in sys.argv)} changed\n")
