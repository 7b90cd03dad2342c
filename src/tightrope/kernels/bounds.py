"""What one Bellman backup proves, in numbers: `engine.certificate` says it in words."""

from __future__ import annotations

import numpy as np

from tightrope.kernels.tiers import loop

EPS = float(np.finfo(np.float64).eps)
#: Products of tiny numbers round in absolute, not relative, terms; this is far more than a row can lose to that.
UNDERFLOW = 1e-300
#: A value scale below this is zero.
SMALLEST = 1e-280


@loop
def tail(x, grown, shrunk):
    """The sum of what an error of x leaves behind in all later steps, rounded up."""
    if x == 0.0 or shrunk == 0.0:
        return 0.0
    left = x * (grown if x > 0.0 else shrunk)
    return left + 8.0 * EPS * abs(left)


@loop
def bounds(least, most, low, high, reward_size, of_values, leak, grown, shrunk):
    """How far v* may lie below and above u = T v, the value scale, and the part of their distance that is due to rounding.

    From the extent of u and that of the change u - v; the rest is the `Rounding` of the model.
    """
    size = max(-least, most)
    v_size = size + max(-low, high)
    # An action with |r| beyond this is nowhere near the maximum, rounding or not.
    r_size = min(reward_size, size + 2.0 * v_size)
    backup_error = of_values * v_size + 2.2 * EPS * r_size + (UNDERFLOW if v_size > 0.0 else 0.0)
    change_error = backup_error + 1.1 * EPS * (size + v_size)
    below = -(backup_error + tail(change_error - low, grown, shrunk))
    above = backup_error + tail(high + change_error, grown, shrunk)
    floor = 2.0 * (backup_error + tail(change_error + leak * v_size, grown, shrunk))
    return below, above, max(abs(least + below), abs(most + above), SMALLEST), floor
