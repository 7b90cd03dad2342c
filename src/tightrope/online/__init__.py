"""Algorithm 1, online: step sizes, learners, and learning from a model, a simulator or a log."""

from tightrope.online.learn import learn, learn_seeds, resume
from tightrope.online.learner import ExpectedSarsa, OnlineKappaPI, OnlineState, QLearning
from tightrope.online.log import Log
from tightrope.online.run import Run, Runs
from tightrope.online.schedule import MayGetStuck, StepSchedule, check_two_timescale

__all__ = [
    "ExpectedSarsa",
    "Log",
    "MayGetStuck",
    "OnlineKappaPI",
    "OnlineState",
    "QLearning",
    "Run",
    "Runs",
    "StepSchedule",
    "check_two_timescale",
    "learn",
    "learn_seeds",
    "resume",
]
