"""The errors a user can meet: each names the place, what was found, what was expected and the remedy."""

from __future__ import annotations

from typing import Any


class TightropeError(Exception):
    """Everything this library raises on purpose."""


class InvalidModel(TightropeError, ValueError):
    """The arrays given do not describe a Markov decision process."""


class InvalidPolicy(TightropeError, ValueError):
    """The actions or weights given are not a policy of this model."""


class InvalidArgument(TightropeError, ValueError):
    """A number outside its range, or an array of the wrong shape."""


class InvalidFile(TightropeError, ValueError):
    """A file that cannot be read as what it claims to be."""


class MissingDiscount(InvalidFile):
    """A model that states no discount in [0, 1), read without one being given."""


class UnsafeUpdate(InvalidArgument):
    """A soft update that Theorem 1 does not cover, asked for without saying so."""


class OracleFailed(TightropeError, RuntimeError):
    """An oracle or an evaluation raised, or answered what is not a policy; `run` holds the iterates made before."""

    def __init__(self, iteration: int, reason: Exception, run: Any) -> None:
        super().__init__(
            f"iteration {iteration} failed: {type(reason).__name__}: {reason}\n"
            f"The {iteration - 1} iterations before it are in .run of this error; run(..., resume=error.run) goes on from there."
        )
        self.run = run


class TaskFailed(TightropeError, RuntimeError):
    """Something that ran elsewhere raised or died; `trace` is its traceback, as text."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


class NoWorkers(TightropeError, RuntimeError):
    """There is nobody, or nobody any more, to run tasks."""


class OtherVersion(InvalidFile):
    """Records made by other code than this: they are not mixed with new ones unless that is asked for."""


class MissingExtra(TightropeError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, otherwise: str = "") -> None:
        super().__init__(f"this needs {package}, which is not installed: pip install 'tightrope[{extra}]'{otherwise}")


class MissingProgram(TightropeError, RuntimeError):
    """Another program that this needs is not installed, or does not do its part; the message says what to do."""


class RowsRenormalised(UserWarning):
    """Rows of P were off by rounding and have been divided by their sums."""


class NotStored(UserWarning):
    """A file format has no place for part of a model; the message says what was left out."""
