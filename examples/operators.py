"""The paper's operators in five lines each: Theorem 1 on the Tightrope, by hand.

    python examples/operators.py

Standing at s0, the hesitant policy never steps on the rope. Looking far enough ahead says: walk. Walk always, and you are better
off. Walk sometimes, and you stop half way and fall.
"""

from __future__ import annotations

import numpy as np

import tightrope as tr

mdp = tr.problems.tightrope(c=2.0, gamma=0.9)
pi = tr.problems.hesitant(mdp)

# Five lines: the value, a κ-greedy policy, and what a soft step towards it does.
v = tr.value(mdp, pi)
ahead = tr.kappa_greedy(mdp, v, kappa=0.9)
print("one step ahead: ", tr.greedy(mdp, v).actions, "   κ = 0.9 ahead:", ahead.actions)
for alpha in (0.5, 0.9, 1.0):
    print(f"alpha = {alpha}: v(s0) goes from {v[0]:.3f} to {tr.value(mdp, tr.mix(pi, ahead, alpha))[0]:.3f}")

# The κ-greedy step is an MDP: discount κγ, reward r + (1-κ)γ P v, and its optimal value is T_κ v.
inner = tr.surrogate(mdp, v, kappa=0.9)
print("discount of the surrogate:", inner.gamma)
print("its optimal value is T_κ v:", np.allclose(tr.solve(inner, tol=1e-12).value, tr.T_kappa(mdp, v, kappa=0.9)))

# T_κ contracts by ξ = γ(1-κ)/(1-γκ), and its fixed point is v*.
best = tr.solve(mdp, tol=1e-12).value
print("v* is its fixed point:", np.allclose(tr.T_kappa(mdp, best, kappa=0.9), best))
print(f"it shrinks the loss to {abs(tr.T_kappa(mdp, v, 0.9) - best).max() / abs(v - best).max():.4f}, ξ = {tr.xi(0.9, 0.9):.4f}")

# The cautious target of Algorithm 1 takes the κ-greedy action only where that does not lose in one step.
target = tr.cautious(mdp, tr.q_value(mdp, pi), tr.q_kappa(mdp, pi, kappa=0.9), pi)
never_worse = all((tr.value(mdp, tr.mix(pi, target, alpha)) >= v - 1e-12).all() for alpha in (0.1, 0.5, 0.9))
print("cautious target:", target.actions, "   never worse:", never_worse)
