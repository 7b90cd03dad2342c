"""The fastest certified way to the optimum of one MDP, on arrays."""

from tightrope.engine.certificate import Certificate, certify
from tightrope.engine.evaluate import evaluate
from tightrope.engine.optimal import Optimum, optimal

__all__ = ["Certificate", "Optimum", "certify", "evaluate", "optimal"]
