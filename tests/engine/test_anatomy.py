"""The script that says where a solve's time goes sees what rounds say they did."""

import anatomy
import pytest

import tightrope as tr
from tightrope import problems

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize(
    ("mdp", "algorithm", "loop", "did"),
    [
        (problems.tightrope(), None, "gauss_seidel_round", "Bellman sweeps"),
        (problems.queue(99, gamma=0.99), None, "factor_round", "eliminations"),
        (problems.queue(99, gamma=0.99), tr.kappa_pi(0.9), "factor_round", "eliminations"),
    ],
)
def test_rounds_and_what_they_did_are_seen(mdp, algorithm, loop, did):
    found = anatomy.anatomy(mdp, algorithm, 0.0)
    seen = found["loops"][loop]
    assert 1 <= seen["did"][did] < 100
    assert 0.0 < seen["seconds"] <= anatomy.inside(found["loops"])
