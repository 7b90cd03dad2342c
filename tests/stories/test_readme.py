"""Everything that README.md, docs/**/*.md and examples/README.md show is run, in order, one folder and one namespace a file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from pages import PAGES, ROOT, run
from prose import Command, Program, alike, shown

SHOWING = [page for page in PAGES if shown(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", SHOWING, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_shows_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    for part, printed, code in run(page):
        where = f"{page.name}:{part.line}"
        if isinstance(part, Command):
            assert code == part.code, f"{where}: exit code {code}\n{printed}"
        if part.said is not None:
            remedy = f"python tests/stories/pages.py {page.relative_to(ROOT)} writes it anew"
            assert alike(part.said.text, printed), f"{where} says\n{part.said.text}\nbut prints\n{printed}\n({remedy})"


def test_the_reader_of_pages_finds_what_is_shown():
    text = """
# Title

```python
x = 1
print(x)
```

```text
1
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

```text
not what it prints: a paragraph is between
```

```console
$ pip install tightrope
$ tightrope solve tightrope --kappa 0.5   # exit 1
$ tightrope demo                          # slow
$ tightrope problems \\
    garnet
tightrope  4 states
```

```
not a program
```
""".replace("   ```\n\n```text", "   ```\n\nBetween.\n\n```text")
    found = shown(text)
    assert found[0].source == "x = 1\nprint(x)\n"
    assert text[found[0].said.begin : found[0].said.end] == found[0].said.text == "1\n"
    assert found[1] == Program(20, "y = x + 1\ny\n")
    assert found[2] == Command(33, ("solve", "tightrope", "--kappa", "0.5"), 1)
    assert found[3].arguments == ("problems", "garnet")
    assert text[found[3].said.begin : found[3].said.end] == "tightrope  4 states\n"
    assert len(found) == 4


@pytest.mark.parametrize(
    ("said", "printed", "true"),
    [
        ("one  line\nand two", "one line\nand two\n", True),
        ("one line", "one other line", False),
        ("converged in 5 iterations, 3M backups, 0.2 s", "converged in 5 iterations, 14.1k backups, 13 s", True),
        ("converged in 5 iterations", "converged in 1 iteration", True),
        ("converged in 5 iterations", "stopped in 5 iterations", False),
        ("iterations  5\ngap  2", "iterations  12\ngap  2", True),
        ("gap <= 3e-08 (1.1e-07 of the value scale)", "gap <= 9.1e-07 (2e-06 of the value scale)", True),
        ("v* in [0.12345, 9]", "v* in [0.12346, 9]", True),
        ("v* in [0.12345, 9]", "v* in [0.1244, 9]", False),
        ("v* in [0.1, 81]", "v* in [0.1, 82]", False),
        ("a ... z", "a b c z", True),
        ("a ... z", "a b c", False),
        ("a ...", "a", True),
    ],
)
def test_what_counts_as_true(said, printed, true):
    assert alike(said, printed) is true
