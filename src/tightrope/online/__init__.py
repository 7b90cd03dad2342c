"""Algorithm 1, online: step sizes, learners, and learning from a model, a simulator or a log."""

from tightrope.model.sampler import ModelSource, Simulator, Source, gymnasium_source, sizes
from tightrope.online.learner import ExpectedSarsa, OnlineKappaPI, QLearning
from tightrope.online.learning import learn, learn_seeds, resume
from tightrope.online.log import Log
from tightrope.online.run import Run, Runs
from tightrope.online.schedule import StepSchedule
from tightrope.online.state import OnlineState
from tightrope.online.timescales import MayGetStuck, check_two_timescale

__all__ = [
    "ExpectedSarsa",
    "Log",
    "MayGetStuck",
    "ModelSource",
    "OnlineKappaPI",
    "OnlineState",
    "QLearning",
    "Run",
    "Runs",
    "Simulator",
    "Source",
    "StepSchedule",
    "check_two_timescale",
    "gymnasium_source",
    "learn",
    "learn_seeds",
    "resume",
    "sizes",
]
