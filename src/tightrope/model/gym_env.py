"""A model as a Gymnasium environment; loaded by `as_gymnasium` only, because it needs Gymnasium to be defined."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from tightrope.errors import InvalidArgument

if TYPE_CHECKING:
    from tightrope.model.mdp import MDP


class MDPEnv(gymnasium.Env):  # type: ignore[misc]  # gymnasium ships partial types
    """The model `mdp`: observations are states, actions are action numbers; see `as_gymnasium`."""

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  (the name and form Gymnasium looks for)

    def __init__(self, mdp: MDP, render_mode: str | None = None) -> None:
        self.mdp = mdp
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Discrete(mdp.n_states)
        self.action_space = gymnasium.spaces.Discrete(mdp.pairs.n_actions)
        self.spec = EnvSpec("tightrope/MDP-v0", entry_point=MDPEnv, kwargs={"mdp": mdp}, disable_env_checker=True)
        self._begin = np.cumsum(mdp.start)
        self._state = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode in a state drawn from the model's start."""
        super().reset(seed=seed, options=options)
        self._state = self._draw(self._begin)
        return self._state, self._info()

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action: successor, expected reward of the pair, terminated, truncated (never), the action mask."""
        mdp, s, a = self.mdp, self._state, int(action)
        if not self.action_space.contains(a):
            raise InvalidArgument(f"action {action} is not one of 0 to {self.action_space.n - 1}")
        found = np.flatnonzero(self._offers(s) == a)
        if not len(found):
            return s, mdp.reward_range[0], False, False, self._info()
        row = int(mdp.first[s]) + int(found[0])
        begin, end = mdp.P.indptr[row], mdp.P.indptr[row + 1]
        self._state = int(mdp.P.indices[begin + self._draw(np.cumsum(mdp.P.data[begin:end]))])
        return self._state, float(mdp.r[row]), bool(mdp.terminal[self._state]), False, self._info()

    def render(self) -> str | None:
        """The state's name, where render_mode is "ansi"."""
        return self.mdp.pairs.state(self._state) if self.render_mode == "ansi" else None

    def action_mask(self, state: int) -> Any:
        """Which actions a state offers, as an int8 vector (what Gymnasium's own environments return)."""
        mask = np.zeros(self.action_space.n, dtype=np.int8)
        mask[self._offers(state)] = 1
        return mask

    @cached_property
    def P(self) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
        """The table P[s][a] = [(p, s', r, terminated), ...] that `MDP.from_gymnasium` reads; for small models."""
        mdp = self.mdp
        table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
        for s in range(mdp.n_states):
            stay = [(1.0, s, mdp.reward_range[0], False)]
            table[s] = dict.fromkeys(range(self.action_space.n), stay)
            for row, a in enumerate(self._offers(s).tolist(), start=int(mdp.first[s])):
                part = slice(mdp.P.indptr[row], mdp.P.indptr[row + 1])
                successors = zip(mdp.P.data[part].tolist(), mdp.P.indices[part].tolist(), strict=True)
                table[s][a] = [(p, t, float(mdp.r[row]), bool(mdp.terminal[t])) for p, t in successors]
        return table

    @property
    def initial_state_distrib(self) -> Any:
        """The model's start [S]."""
        return self.mdp.start

    def _offers(self, s: int) -> Any:
        pairs = self.mdp.pairs
        begin, end = int(pairs.first[s]), int(pairs.first[s + 1])
        return np.arange(end - begin) if pairs.ids is None else pairs.ids[begin:end]

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_mask(self._state)}

    def _draw(self, ends: Any) -> int:
        """An index drawn with the given cumulative weights."""
        return min(int(np.searchsorted(ends, self.np_random.random() * ends[-1], side="right")), len(ends) - 1)
