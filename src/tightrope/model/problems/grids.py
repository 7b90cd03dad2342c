"""Grids: a map that knows which state is which cell, the gridworld on it, and the cliff."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.errors import InvalidArgument
from tightrope.model import validate
from tightrope.model.mdp import MDP
from tightrope.model.problems.cells import Cell, check_inside, drawn, listed, mask, payoffs, where
from tightrope.model.problems.decoration import names, start_at
from tightrope.model.validate import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tightrope.model.function import Dynamics
    from tightrope.model.validate import BoolArray, FloatArray, IntArray

#: The moves, clockwise: the neighbours of a direction in this list are the two perpendicular to it.
ACTIONS = ("up", "right", "down", "left")
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Grid:
    """A rectangular map; its free cells, row by row, are the states 0, 1, ... of `grid.mdp()`.

    Args:
        height: number of rows.
        width: number of columns.
        walls: cells (row, column) that cannot be entered, or a boolean mask [height, width]; none by default.
        goals: terminal cells: a mapping from cell to the reward of entering it, or a cell or list of cells that pay
            `goal_reward` each; by default the last free cell.
        start: the cell, or a list of equally likely cells, where one begins; by default the first free cell.
        goal_reward: what entering a goal pays where `goals` does not say.
    """

    height: int
    width: int
    walls: BoolArray
    goals: Mapping[Cell, float]
    start: tuple[Cell, ...]

    def __init__(
        self,
        height: int,
        width: int,
        walls: Any = None,
        goals: Any = None,
        start: Any = None,
        *,
        goal_reward: float = 1.0,
    ) -> None:
        H, W = validate.positive_integer(height, "height"), validate.positive_integer(width, "width")
        blocked = mask(walls, H, W)
        if blocked.all():
            raise InvalidArgument("every cell of the grid is a wall; leave at least one free")
        flat = ~blocked.ravel()
        first, last = divmod(int(flat.argmax()), W), divmod(flat.size - 1 - int(flat[::-1].argmax()), W)
        terminal = payoffs((last,) if goals is None else goals, goal_reward)
        begin = (first,) if start is None else listed(start, "start")
        if not begin:
            raise InvalidArgument("start lists no cell; give at least one, or leave it out for the first free cell")
        for what, cells in (("goals", tuple(terminal)), ("start", begin)):
            for cell in cells:
                check_inside(cell, H, W, what)
                if blocked[cell]:
                    raise InvalidArgument(f"{what} names cell {cell}, which is a wall; choose a free cell")
        values = (H, W, frozen(blocked), MappingProxyType(terminal), begin)
        for name, value in zip(("height", "width", "walls", "goals", "start"), values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def from_text(cls, text: str, *, goal_reward: float = 1.0, trap_reward: float = -1.0) -> Grid:
        """The map drawn in `text`, one line a row: '#' wall, 'S' start, 'G' goal, 'X' trap, '.' or ' ' free.

        Goals and traps are terminal and pay their reward on entering. Blank lines around the map and indentation common
        to all lines are removed. Without an S one begins in the first free cell; without a G or X nothing is terminal.
        """
        board = drawn(text)
        goal, trap = validate.finite(goal_reward, "goal_reward"), validate.finite(trap_reward, "trap_reward")
        goals = dict.fromkeys(where(board == "G"), goal) | dict.fromkeys(where(board == "X"), trap)
        height, width = board.shape
        return cls(height, width, walls=board == "#", goals=goals, start=where(board == "S") or None)

    @property
    def n_states(self) -> int:
        """Number of free cells, S."""
        return len(self._places)

    @cached_property
    def _board(self) -> IntArray:
        """The state of each cell [height + 2, width + 2], -1 at walls and in the frame of one cell around the map."""
        board = np.full((self.height + 2, self.width + 2), -1, dtype=np.int32 if self.walls.size < 2**31 else np.int64)
        inside = board[1:-1, 1:-1]
        inside[~self.walls] = np.arange(self.walls.size - np.count_nonzero(self.walls), dtype=board.dtype)
        return frozen(board)

    @cached_property
    def _places(self) -> IntArray:
        """Where each state is in the flattened board [S]."""
        return frozen(np.flatnonzero(self._board.ravel() >= 0).astype(self._board.dtype))

    @property
    def states(self) -> IntArray:
        """The state of each cell [height, width], -1 at walls."""
        return self._board[1:-1, 1:-1]

    @property
    def cells(self) -> IntArray:
        """The row and column of each state [S, 2]."""
        return np.stack(np.divmod(self._places, self.width + 2), axis=1) - 1

    def cell(self, state: int) -> Cell:
        """The row and column of one state."""
        row, column = divmod(int(self._places[state]), self.width + 2)
        return row - 1, column - 1

    def move(self, states: IntArray, direction: int) -> IntArray:
        """The state one step up, right, down or left (0 to 3) of each state; -1 where a wall or the edge is in the way."""
        down, right = STEPS[direction]
        return self._board.ravel()[self._places[states] + (down * (self.width + 2) + right)]

    def image(self, x: Any) -> FloatArray:
        """A vector over states [S] laid out on the map [height, width], nan at walls."""
        picture = np.full((self.height, self.width), np.nan)
        picture[~self.walls] = validate.vector(x, self.n_states, "x", "free cell")
        return picture

    @property
    def text(self) -> str:
        """The map as `from_text` reads it; a goal with a negative reward is drawn as a trap."""
        board = np.where(self.walls, "#", ".")
        for cell in self.start:
            board[cell] = "S"
        for cell, reward in self.goals.items():
            board[cell] = "X" if reward < 0 else "G"
        return "\n".join("".join(row) for row in board)

    def mdp(self, *, slip: float = 0.1, gamma: float = 0.99, step_reward: float = 0.0) -> MDP:
        """The gridworld on this map; see `gridworld`."""
        step = validate.finite(step_reward, "step_reward")
        goals = [int(self.states[cell]) for cell in self.goals]
        payoff = np.zeros(self.n_states)
        payoff[goals] = list(self.goals.values())

        def outcome(states: IntArray, direction: int) -> tuple[IntArray, FloatArray]:
            there = self.move(states, direction)
            there = np.where(there < 0, states, there)
            return there, step + payoff[there]

        return self._mdp(_slipping(outcome, slip), gamma, goals)

    def _mdp(self, dynamics: Dynamics, gamma: float, terminal: Any) -> MDP:
        return MDP.from_function(
            dynamics,
            self.n_states,
            len(ACTIONS),
            gamma,
            terminal=terminal,
            start=start_at(self.n_states, (int(self.states[cell]) for cell in self.start)),
            state_names=names(self.n_states, lambda s: str(self.cell(s))),
            action_names=ACTIONS,
        )

    def __repr__(self) -> str:
        return f"Grid({self.height} x {self.width}, {self.n_states:,} free cells, {len(self.goals)} terminal)"


def gridworld(
    height: int = 10,
    width: int = 10,
    *,
    slip: float = 0.1,
    gamma: float = 0.99,
    walls: Any = None,
    goals: Any = None,
    start: Any = None,
    text: str | None = None,
    step_reward: float = 0.0,
    goal_reward: float = 1.0,
    trap_reward: float = -1.0,
) -> MDP:
    """A gridworld: walk to a goal over cells on which a move slips sideways.

    A move (up, right, down, left) goes where it is meant to with probability 1 - slip, and in each of the two
    perpendicular directions with probability slip/2. Where a wall or the edge is in the way one stays. Every move pays
    `step_reward`; entering a terminal cell pays its reward as well. States are the free cells, row by row: for the
    way back from states to cells, and pictures, make the `Grid` first and then `grid.mdp(...)`.

    Args:
        height: number of rows.
        width: number of columns.
        slip: probability of a sideways move.
        gamma: discount in [0, 1).
        walls: cells (row, column), or a boolean mask [height, width].
        goals: terminal cells, or a mapping from cell to the reward of entering; by default the last free cell.
        start: where one begins, a cell or a list of cells; by default the first free cell.
        text: a map in place of height, width, walls, goals and start: '#' wall, 'S' start, 'G' goal, 'X' trap, '.' free.
        step_reward: reward of every move.
        goal_reward: reward of entering a goal, where `goals` does not say.
        trap_reward: reward of entering a trap of the text map.

    Russell, Norvig (1995), Artificial Intelligence, section 17.1: the 4 x 3 world, which has slip 0.2.
    """
    if text is None:
        grid = Grid(height, width, walls, goals, start, goal_reward=goal_reward)
    elif walls is None and goals is None and start is None:
        grid = Grid.from_text(text, goal_reward=goal_reward, trap_reward=trap_reward)
    else:
        raise InvalidArgument("give either text or walls, goals and start: the map already says where they are")
    return grid.mdp(slip=slip, gamma=gamma, step_reward=step_reward)


def cliff(height: int = 4, width: int = 12, *, slip: float = 0.0, fall: float = -100.0, gamma: float = 0.99) -> MDP:
    """The cliff walk: every step costs 1; along the lower edge, between start and goal, is a cliff.

    Stepping off pays `fall` and leads back to the start. The shortest way (for height >= 2) is up, along
    the edge, and down: width + 1 steps.

    Args:
        height: number of rows, >= 2.
        width: number of columns, >= 2; the cliff is the lower row without its two corners.
        slip: probability of a sideways move, as in `gridworld`.
        fall: reward of stepping off.
        gamma: discount in [0, 1).

    Sutton, Barto (2018), Reinforcement Learning, Example 6.6.
    """
    H, W = validate.positive_integer(height, "height", low=2), validate.positive_integer(width, "width", low=2)
    pain = validate.finite(fall, "fall")
    edge = np.zeros((H, W), dtype=bool)
    edge[-1, 1:-1] = True
    grid = Grid(H, W, edge, goals=[(H - 1, W - 1)], start=[(H - 1, 0)])
    begin = int(grid.states[H - 1, 0])
    cells = grid.cells

    def outcome(states: IntArray, direction: int) -> tuple[IntArray, FloatArray]:
        there = grid.move(states, direction)
        row, column = (cells[states] + STEPS[direction]).T
        falls = (row == H - 1) & (column > 0) & (column < W - 1)
        there = np.where(falls, begin, np.where(there < 0, states, there))
        return there, np.where(falls, pain, -1.0)

    return grid._mdp(_slipping(outcome, slip), gamma, [int(grid.states[H - 1, W - 1])])  # noqa: SLF001  (its own file)


def _slipping(outcome: Callable[[IntArray, int], tuple[IntArray, FloatArray]], slip: float) -> Dynamics:
    """The dynamics of moves that go in a perpendicular direction with probability slip/2 each."""
    p = validate.unit(slip, "slip")
    chances = {0: 1.0 - p, -1: p / 2.0, 1: p / 2.0}

    def dynamics(states: IntArray, action: int) -> tuple[IntArray, FloatArray, FloatArray]:
        ways = [outcome(states, (action + turn) % 4) for turn, chance in chances.items() if chance > 0.0]
        successors, rewards = (np.stack(part, axis=1) for part in zip(*ways, strict=True))
        return successors, np.array([chance for chance in chances.values() if chance > 0.0]), rewards

    return dynamics
