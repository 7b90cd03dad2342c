"""The examples of the documentation run, quickly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "said"),
    [("online_tightrope", "cautious runs of all kappas are the same: True"), ("online_gymnasium", "Garnet 4")],
)
def test_examples_run_and_draw(name, said, tmp_path):
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), str(tmp_path), "--quick"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert said in result.stdout
