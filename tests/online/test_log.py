"""A log of transitions: what it refuses, and how it prints."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.errors import InvalidArgument
from tightrope.model.sampler import sizes
from tightrope.online import Log


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0, 9], [0, 0], [0, 0], [0, 0]), r"transition 1 of the log has states\[1\] = 9"),
        (([0, 1], [0, 0], [0, 0], [0, -1]), r"next_states\[1\] = -1"),
        (([0, 1], [0, 5], [0, 0], [0, 0]), "transition 1 of the log takes action 5 in state 1, which offers 0, 1, 2"),
        (([0, 1], [0, 0], [0, float("nan")], [0, 0]), r"rewards\[1\] is nan"),
        (([0, 1], [0, 0], [0], [0, 0]), r"rewards must have shape \(2,\)"),
        (([0, 1], [0], [0, 0], [0, 0]), "actions has 1 entries for 2 transitions"),
        (([], [], [], []), "the log is empty"),
    ],
)
def test_a_bad_log_is_refused(columns, message):
    with pytest.raises(InvalidArgument, match=message):
        Log(sizes(8, 3), 0.9, *(np.array(c, dtype=float if i == 2 else int) for i, c in enumerate(columns)))


def test_a_log_describes_itself():
    log = Log(sizes(3, 2), 0.9, [0, 0, 2], [1, 1, 0], [1.0, 2.0, 3.0], [1, 2, 2])
    assert repr(log) == "Log(3 transitions, 2 of 6 pairs seen, gamma=0.9)"
    assert len(log) == 3
