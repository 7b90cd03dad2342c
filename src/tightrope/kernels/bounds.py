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


@loop
def span_goal(least, largest, low, high, gamma, tol, atol, floor):
    """The span of T v - v, which is from low to high, at which bounds around least <= T v <= largest are close enough."""
    reach = gamma / (1.0 - gamma)
    centre = 0.5 * reach * (low + high)
    scale = max(abs(least + centre), abs(largest + centre))
    return 0.9 * max(atol if atol >= 0.0 else tol * scale, floor) / max(reach, 0.5)


@loop
def sweep_goal(size, gamma, tol, atol, floor):
    """The largest change of a Bellman sweep in place after which bounds are close enough, where values are of this size.

    The residual is at most gamma times as large then.
    """
    return 0.9 * max(atol if atol >= 0.0 else tol * size, floor) * (1.0 - gamma) / max(gamma * gamma, 0.5)
