"""Puts this folder on the path, so that tests import `reference` and `bridge` whatever the import mode; fixtures of all rooms."""

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# A shell that starts the tests in the background makes them deaf to Ctrl-C, and their children too; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def compiled():
    """Loops as users of large models run them: indices are unsigned there, and memory is not asked whether it was written."""
    from tightrope.kernels import tiers

    tiers.compile_loops()
