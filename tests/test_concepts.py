"""docs/concepts.md tells the truth: every file and every test it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROWS = re.findall(r"^\| (.+?) \| `(.+?)` \| `(.+?)` \|$", (ROOT / "docs" / "concepts.md").read_text(), re.MULTILINE)


def test_the_page_has_rows():
    assert len(ROWS) > 20


@pytest.mark.parametrize(("statement", "code", "test"), ROWS, ids=[row[0] for row in ROWS])
def test_row(statement, code, test):
    assert (ROOT / "src" / "tightrope" / code).is_file(), f"{statement}: {code} is missing"
    path, _, name = test.partition("::")
    source = (ROOT / "tests" / path).read_text()
    assert not name or re.search(rf"^def {name}\(", source, re.MULTILINE), f"{statement}: {test} is missing"
