"""What rounding does to the Bellman backups of a model."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from tightrope.kernels.bounds import EPS


class Rounding(NamedTuple):
    """What a certificate has to allow for."""

    #: max |r|.
    reward_size: float
    #: The error of a backup as a share of the size of the values it takes.
    of_values: float
    #: γ times the largest |row sum - 1|.
    leak: float
    #: γσ/(1-γσ) with the row sum σ that makes it largest, and with the one that makes it smallest.
    grown: float
    shrunk: float

    @classmethod
    def of(cls, reward_size: float, gamma: float, slack: float, width: int) -> Rounding:
        """For rows of at most `width` numbers that sum to one up to `slack`."""
        leak, room = gamma * (slack + (width + 1) * EPS), 1.0 - gamma
        grown = (gamma + leak) / (room - leak) if room > leak else inf
        return cls(reward_size, 1.1 * EPS * (width + 3) * gamma, leak, grown, (gamma - leak) / (room + leak))
