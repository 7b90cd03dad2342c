"""Who computes: everything the one loop of planning asks of the machine, or the machines, that hold a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tightrope.engine.certificate import certify
from tightrope.engine.chain import chain_value, policy_value, sweep_chain
from tightrope.engine.optimal import optimise
from tightrope.engine.outline import outline
from tightrope.engine.sweep import Sweeper

if TYPE_CHECKING:
    from tightrope.engine.certificate import Certificate
    from tightrope.engine.monitor import Monitor, Status, Tally
    from tightrope.engine.sweep import Sweep
    from tightrope.model.policy import Policy
    from tightrope.model.validate import FloatArray


class Start(NamedTuple):
    """A model as the backend holds it, and where to begin: v0 [S] and pi0, either of which may be None."""

    mdp: Any
    v0: Any
    pi0: Policy | None


class Backend(Protocol):
    """Where a model and its vectors live, and who multiplies them.

    A process that holds only some of the states sees a model of those: n_states and the length of every vector are its own
    number of states, P @ v takes its part of v to its part of the pairs. Numbers that decide anything are those of the whole.
    """

    def place(self, mdp: Any, v0: Any, pi0: Policy | None, algorithm: str, monitor: Monitor) -> Start:
        """The model as this backend holds it."""

    def backup(self, mdp: Any, v: FloatArray | None, monitor: Monitor) -> Sweep:
        """T v with its greedy pairs in fresh arrays, and the least and largest change of any state; None is zero everywhere."""

    def certify(self, mdp: Any, sweep: Sweep) -> Certificate:
        """What a backup proves."""

    def chain_value(
        self, P: Any, r: FloatArray, gamma: float, guess: FloatArray | None, goal: float, monitor: Monitor
    ) -> FloatArray:
        """The solution of v = r + γ P v to within `goal`; 0 means as exactly as floats allow."""

    def policy_value(self, mdp: Any, policy: Policy, guess: FloatArray | None, goal: float, monitor: Monitor) -> FloatArray:
        """v^π of a policy of a model, to within `goal`."""

    def is_band(self, mdp: Any) -> bool:
        """Whether all moves are to near states: values take long to get about, and one elimination gives `policy_value`."""

    def sweep_chain(self, P: Any, r: FloatArray, gamma: float, v: FloatArray, m: int, monitor: Monitor) -> FloatArray:
        """(T^π)^m v."""

    def optimise(self, mdp: Any, monitor: Monitor, v0: FloatArray | None, look: Sweep | None = None) -> Status:
        """Solve a model within the limits of the monitor, which has the best that was found; `look` is a backup of v0, if any."""

    def together(self, tally: Tally) -> Tally:
        """The counts of all processes added up, and one clock for all."""

    def keep(self, now: Any, monitor: Monitor) -> None:
        """An iteration is complete: a moment to save where the run stands."""


class Here:
    """This machine: the model in memory, swept by threads."""

    def place(self, mdp: Any, v0: Any, pi0: Policy | None, algorithm: str, monitor: Monitor) -> Start:  # noqa: ARG002  (a protocol)
        """Everything is here already."""
        return Start(mdp, v0, pi0)

    def backup(self, mdp: Any, v: FloatArray | None, monitor: Monitor) -> Sweep:
        """By the fused kernel."""
        return Sweeper(mdp, monitor.threads).backup(v)

    def certify(self, mdp: Any, sweep: Sweep) -> Certificate:
        """From the whole vector."""
        return certify(mdp, sweep.u, sweep.low, sweep.high)

    def chain_value(
        self, P: Any, r: FloatArray, gamma: float, guess: FloatArray | None, goal: float, monitor: Monitor
    ) -> FloatArray:
        """By whatever this chain is made for."""
        return chain_value(P, r, gamma, guess, goal, monitor)

    def policy_value(self, mdp: Any, policy: Policy, guess: FloatArray | None, goal: float, monitor: Monitor) -> FloatArray:
        """By whatever this model is made for."""
        return policy_value(mdp, policy, guess, goal, monitor)

    def is_band(self, mdp: Any) -> bool:
        """Found once for a model."""
        band = outline(mdp).band
        return band is not None and band.hubs == 0

    def sweep_chain(self, P: Any, r: FloatArray, gamma: float, v: FloatArray, m: int, monitor: Monitor) -> FloatArray:
        """By the fused kernel."""
        return sweep_chain(P, r, gamma, v, m, monitor)

    def optimise(self, mdp: Any, monitor: Monitor, v0: FloatArray | None, look: Sweep | None = None) -> Status:
        """By the engine."""
        return optimise(mdp, monitor, v0, look)

    def together(self, tally: Tally) -> Tally:
        """This process is all."""
        return tally

    def keep(self, now: Any, monitor: Monitor) -> None:
        """What is in memory stays there."""


HERE = Here()


def machine(monitor: Monitor) -> Backend:
    """Who computes in the run that a monitor watches: this machine unless it says otherwise."""
    return monitor.backend or HERE
