"""The errors a user can meet: each names the place, what was found, what was expected and the remedy."""

from __future__ import annotations


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


class UnsafeUpdate(InvalidArgument):
    """A soft update that Theorem 1 does not cover, asked for without saying so."""


class MissingExtra(TightropeError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}, which is not installed: pip install 'tightrope[{extra}]'")


class RowsRenormalised(UserWarning):
    """Rows of P were off by rounding and have been divided by their sums."""


class NotStored(UserWarning):
    """A file format has no place for part of a model; the message says what was left out."""
