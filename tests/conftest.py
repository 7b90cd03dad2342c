"""Puts this folder on the path, so that tests import `reference` and `bridge` whatever the import mode."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
