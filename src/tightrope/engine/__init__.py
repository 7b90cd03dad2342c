"""The fastest certified way to the optimum of one MDP, on arrays."""

from tightrope.engine.backend import Backend, machine
from tightrope.engine.certificate import Certificate, certify
from tightrope.engine.chain import chain_flow, chain_value, sweep_chain
from tightrope.engine.monitor import Limits, Monitor, Row, Status
from tightrope.engine.opening import ENGINE, again, remember
from tightrope.engine.optimal import Optimum, optimal
from tightrope.engine.room import Room
from tightrope.engine.sweep import Sweep, Sweeper

__all__ = [
    "ENGINE",
    "Backend",
    "Certificate",
    "Limits",
    "Monitor",
    "Optimum",
    "Room",
    "Row",
    "Status",
    "Sweep",
    "Sweeper",
    "again",
    "certify",
    "chain_flow",
    "chain_value",
    "machine",
    "optimal",
    "remember",
    "sweep_chain",
]
