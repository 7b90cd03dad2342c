"""Approximate: κ-API and κ-PSDP (Algorithms 2 and 3) with any oracle for the κ-greedy step."""

from tightrope.approximate import experimental, features
from tightrope.approximate.algorithms import Algorithm, KappaAPI, KappaPSDP
from tightrope.approximate.evaluation import ExactValue, LSTDValue, MonteCarloValue
from tightrope.approximate.oracles import (
    LSPI,
    ApproximateVI,
    ConservativePI,
    Exact,
    FittedQ,
    Noisy,
    PolicySearch,
    SampledModel,
    WorstCase,
)
from tightrope.approximate.problem import Evaluator, Oracle, Problem, realised_delta
from tightrope.approximate.result import Row, Run, Status
from tightrope.approximate.run import run
from tightrope.approximate.switching import Estimate, SwitchingPolicy

__all__ = [
    "LSPI",
    "Algorithm",
    "ApproximateVI",
    "ConservativePI",
    "Estimate",
    "Evaluator",
    "Exact",
    "ExactValue",
    "FittedQ",
    "KappaAPI",
    "KappaPSDP",
    "LSTDValue",
    "MonteCarloValue",
    "Noisy",
    "Oracle",
    "PolicySearch",
    "Problem",
    "Row",
    "Run",
    "SampledModel",
    "Status",
    "SwitchingPolicy",
    "WorstCase",
    "experimental",
    "features",
    "realised_delta",
    "run",
]
