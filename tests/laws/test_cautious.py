"""Section 5's improvement step: mixing with b_s improves for every α in (0, 1], with equality only at v* (notes, B12)."""

import itertools

import numpy as np

import reference
import tightrope as tr
from bridge import mdp_of, policy_of, pool, value_of, weights_of


def target_of(case, mdp, weights, kappa):
    """b_s at the exact q^π and q_κ^π."""
    q = reference.q_of(case, reference.value(case, weights))
    return tr.cautious(mdp, q, reference.q_kappa(case, weights, kappa), policy_of(mdp, weights))


def test_cautious_updates_improve_for_every_alpha():
    rng = np.random.default_rng(10)
    strict = 0
    for case, mdp in pool():
        for weights in (case.pi, case.pi_2) if case.kind == "deterministic" else (case.pi,):
            pi, v = policy_of(mdp, weights), reference.value(case, weights)
            target, slack = target_of(case, mdp, weights, case.kappa), case.slack(v, case.v_star)
            assert (tr.T_pi(mdp, target, v) >= v - slack).all()  # why it works: b_s never loses one step ahead
            for alpha in (10.0 ** rng.uniform(-3, 0), 1.0):
                new = value_of(case, tr.mix(pi, target, alpha))
                assert (new >= v - slack).all()
                if (case.v_star - v).max() > 1e4 * slack:
                    assert (new > v).any()
                    strict += 1
    assert strict > 1_000


def test_at_the_optimum_nothing_changes():
    for case, mdp in pool()[:200]:
        best = tr.kappa_greedy(mdp, case.v, 1.0)
        new = value_of(case, tr.mix(best, target_of(case, mdp, weights_of(case, best), case.kappa), 0.5))
        np.testing.assert_allclose(new, case.v_star, rtol=0, atol=case.slack(case.v_star))


def test_where_the_kappa_greedy_target_loses_the_cautious_one_gains():
    """The negative twin: the same models, policies and steps without caution."""
    failed = 0
    for case, mdp in pool(1_000, 7, kappa=1.0):
        v, pi = reference.value(case, case.pi_2), policy_of(mdp, case.pi_2)
        slack = case.slack(v, case.v_star)
        bold = value_of(case, tr.mix(pi, tr.kappa_greedy(mdp, v, 1.0), 0.05))
        if (bold < v - slack).any():
            failed += 1
            careful = value_of(case, tr.mix(pi, target_of(case, mdp, case.pi_2, 1.0), 0.05))
            assert (careful >= v - slack).all()
            assert (careful > v + slack).any()
    assert failed >= 5


def test_on_the_tightrope_caution_costs_nothing_and_boldness_dips():
    """c = 20, α = .05: bold steps fall off the rope first (v(s0) < 0), cautious ones never lose; both arrive."""
    case = reference.tightrope(20.0, 0.9)
    mdp = mdp_of(case)
    lowest = {}
    for name, improve in (
        ("bold", lambda _: policy_of(mdp, case.pi_2)),
        ("cautious", lambda pi: target_of(case, mdp, weights_of(case, pi), 1.0)),
    ):
        pi = tr.Policy.deterministic(mdp, 0)
        values = [value_of(case, pi)]
        for _ in range(400):
            pi = tr.mix(pi, improve(pi), 0.05)
            values.append(value_of(case, pi))
        lowest[name] = min(v[0] for v in values)
        np.testing.assert_allclose(values[-1], case.v_star, rtol=1e-6)
        rising = all((b >= a - 1e-9).all() for a, b in itertools.pairwise(values))
        assert rising == (name == "cautious")
    assert lowest["cautious"] == 0.0
    assert lowest["bold"] < -30.0
