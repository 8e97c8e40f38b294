"""The one exception tree. Each message is a single line that says what to do; none holds private text."""

import traceback
from collections.abc import Iterable
from pathlib import Path


def place_of(defect: Exception) -> str:
    """Where an error occurred, without its message, which may quote a cell."""
    frame = traceback.extract_tb(defect.__traceback__)[-1]
    return f"{type(defect).__name__} at {frame.name}, line {frame.lineno} of {Path(frame.filename).name}"


def printable(text: str) -> str:
    """Hostile text for one line of a terminal or a log: no line break and no escape comes through."""
    return "".join(each if each.isprintable() else "?" for each in text)


class StudioError(Exception):
    """Base of every error that a user can meet; `exit_code` is what the command line returns."""

    exit_code = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class UsageError(StudioError):
    """A parameter or an input file is not usable as given."""

    exit_code = 2


class DataError(UsageError):
    """A file or a data set cannot be used as given."""


class SeveralErrors(DataError):
    """More than one thing is missing.

    Attributes:
        lines: one message for each.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(map(printable, lines))
        super().__init__(" ".join(self.lines))


def refusal(lines: Iterable[str]) -> UsageError:
    """One error for all that is wrong, a line each."""
    found = list(lines)
    return UsageError(found[0]) if len(found) == 1 else SeveralErrors(found)


class TooLong(UsageError):
    """A run does not fit into a run file; what it made is whole all the same."""


class NotWritten(UsageError):
    """What a run was charged for cannot be written where it was to go.

    Attributes:
        text: what the file was to hold; releasable.
    """

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class ReservedOtherwise(UsageError):
    """The data set has a reservation for another file or other terms; a new one has to be asked for."""


class BudgetRefused(StudioError):
    """The ledger's cap for the data set does not allow the release."""

    exit_code = 3


class AccountingError(StudioError):
    """No accountant bounds the event, no noise meets the target, or one of two accountants must be wrong."""

    exit_code = 3


class ModelUnavailable(StudioError):
    """The language model is not on this machine, or cannot be used."""

    exit_code = 4
