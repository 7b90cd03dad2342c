"""Models to write: hypothesis strategies, and what it means that two are the same."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import tightrope as tr

#: The formats that hold any model, and those that need the same actions in every state.
RAGGED = (".npz", ".drn", ".tra", ".umb", ".csv")
RECTANGULAR = (".MDP", ".mat", ".bin")


def random_model(S, seed, *, ragged=True, ids=False, names=False, start=None, gamma=0.9, width=3):
    """A random model of S states; up to 3 actions a state, or exactly 3."""
    g = np.random.default_rng(seed)
    counts = g.integers(1, 4, S) if ragged else np.full(S, 3)
    L = int(counts.sum())
    widths = g.integers(1, width + 1, L)
    rows = np.repeat(np.arange(L), widths)
    P = sp.csr_array((g.random(len(rows)) + 0.05, (rows, g.integers(0, S, len(rows)))), shape=(L, S))
    P = sp.csr_array(sp.diags_array(1.0 / (P @ np.ones(S))) @ P)
    r = np.where(g.random(L) < 0.3, 0.0, g.normal(size=L) * 10.0 ** g.integers(-6, 6, L))
    actions = np.concatenate([np.sort(g.choice(6, n, replace=False)) for n in counts]) if ids else None
    begin = None
    if start == "some":
        begin = np.zeros(S)
        begin[g.choice(S, max(1, S // 2), replace=False)] = 1.0
        begin /= begin.sum()
    elif start == "any":
        begin = g.random(S)
        begin /= begin.sum()
    return tr.MDP(
        P,
        r,
        gamma,
        np.concatenate(([0], np.cumsum(counts))),
        begin,
        actions=actions,
        state_names=[f"s{i}" for i in range(S)] if names else None,
        action_names=["north", "east", "south", "west", "up", "down"][: 6 if ids else 3] if names else None,
    )


@st.composite
def models(draw, *, ragged=True, start=("uniform", "some")):
    return random_model(
        draw(st.integers(1, 12)),
        draw(st.integers(0, 2**32 - 1)),
        ragged=ragged,
        ids=ragged and draw(st.booleans()),
        names=draw(st.booleans()),
        start=draw(st.sampled_from(start)),
        gamma=draw(st.floats(0.0, 0.999)),
    )


def assert_same(a, b, *, start=True):
    """The same arrays, bit for bit."""
    assert a.P.shape == b.P.shape
    for x, y in ((a.P.indptr, b.P.indptr), (a.P.indices, b.P.indices), (a.first, b.first), (a.pairs.actions, b.pairs.actions)):
        np.testing.assert_array_equal(x, y)
    assert a.P.data.tobytes() == b.P.data.tobytes()
    np.testing.assert_array_equal(a.r, b.r)
    assert a.gamma == b.gamma
    if start:
        np.testing.assert_array_equal(a.start, b.start)
