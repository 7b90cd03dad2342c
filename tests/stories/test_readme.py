"""Everything that README.md and docs/*.md show is run, in order, one folder and one namespace a file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tightrope.cli import app

sys.path.insert(0, str(Path(__file__).parent))
from prose import Command, Program, shown

ROOT = Path(__file__).parents[2]
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))] if path.exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_shows_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for part in shown(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{part.line}"
        if isinstance(part, Program):
            # Newlines keep the line numbers of a traceback those of the page.
            code = compile("\n" * (part.line - 1) + part.source, str(page), "exec")
            exec(code, namespace)  # noqa: S102  (our own documentation)
        else:
            result = CliRunner().invoke(app, list(part.arguments), catch_exceptions=False)
            assert result.exit_code == part.code, f"{where}: exit code {result.exit_code}\n{result.output}"


def test_the_reader_of_pages_finds_what_is_shown():
    text = """
# Title

```python
x = 1
```

```python notest
raise SystemExit
```

1. In a list:

   ```pycon
   >>> y = x + 1
   >>> y
   2
   ```

```console
$ pip install tightrope
$ tightrope solve tightrope --kappa 0.5   # exit 1
$ tightrope demo                          # slow
tightrope problems \\
    garnet
status  converged
```

```
not a program
```
"""
    found = shown(text)
    assert found[0] == Program(5, "x = 1\n")
    assert found[1] == Program(15, "y = x + 1\ny\n")
    assert found[2] == Command(22, ("solve", "tightrope", "--kappa", "0.5"), 1)
    assert found[3].arguments == ("problems", "garnet")
    assert len(found) == 4
