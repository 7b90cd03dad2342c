"""Puts this folder on the path, so that tests import `reference` and `bridge` whatever the import mode."""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# A shell that starts the tests in the background makes them deaf to Ctrl-C, and their children too; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
