"""Oracles: devices that solve a surrogate problem, from exact to badly."""

from tightrope.approximate.oracles.conservative import ConservativePI
from tightrope.approximate.oracles.fitted import FittedQ
from tightrope.approximate.oracles.known import ApproximateVI, Exact, Noisy
from tightrope.approximate.oracles.lspi import LSPI
from tightrope.approximate.oracles.sampled import SampledModel
from tightrope.approximate.oracles.search import PolicySearch
from tightrope.approximate.oracles.worst import WorstCase

__all__ = [
    "LSPI",
    "ApproximateVI",
    "ConservativePI",
    "Exact",
    "FittedQ",
    "Noisy",
    "PolicySearch",
    "SampledModel",
    "WorstCase",
]
