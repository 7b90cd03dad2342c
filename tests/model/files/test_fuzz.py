"""Broken files of every format: an InvalidFile that names the file, or a valid model; never a crash, a hang or a flood of memory.

`python tests/model/files/test_fuzz.py SECONDS` goes on for as long as asked.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings

sys.path.insert(0, str(Path(__file__).parent))
from corpus import MEMORY, SEEDS, attempt, broken

EXAMPLES = 40


def fuzz(name, examples, at):
    @seed(at)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(contents=broken(name))
    def run(contents):
        begin = time.monotonic()
        peak = attempt(contents, measure=True)
        assert peak < MEMORY
        assert time.monotonic() - begin < 20.0  # a hang, not a benchmark: such files take milliseconds

    run()


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_the_seed_itself_is_read(name):
    attempt(SEEDS[name])


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_broken_files_are_refused_or_valid(name):
    fuzz(name, EXAMPLES, 1)


def main():
    end = time.monotonic() + float(sys.argv[1])
    rounds = 0
    while time.monotonic() < end:
        for name in sorted(SEEDS):
            if time.monotonic() > end:
                break
            fuzz(name, 200, random.SystemRandom().randrange(2**32))
            rounds += 1
    print(f"{rounds} rounds of 200 broken files over {len(SEEDS)} seeds: no crash, hang or flood of memory")  # noqa: T201


if __name__ == "__main__":
    main()
