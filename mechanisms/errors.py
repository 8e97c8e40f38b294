"""The one exception tree. Each message is a single line that says what to do; none contains private text."""

import traceback
from collections.abc import Iterable
from pathlib import Path


def place_of(defect: Exception) -> str:
    """The place in the code of an error, without its message, which may quote a cell."""
    frame = traceback.extract_tb(defect.__traceback__)[-1]
    return f"{type(defect).__name__} at {frame.name}, line {frame.lineno} of {Path(frame.filename).name}"


def printable(text: str) -> str:
    """Hostile text for one line of a terminal or a log, without line breaks and escapes."""
    return "".join(each if each.isprintable() else "?" for each in text)


class StudioError(Exception):
    """The base of all errors that a user can see; `exit_code` is that of the command line."""

    exit_code = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class UsageError(StudioError):
    """A parameter or an input file cannot be used as given."""

    exit_code = 2


class DataError(UsageError):
    """A file or a data set cannot be used as given."""


class SeveralErrors(DataError):
    """Several things are missing.

    Attributes:
        lines: one message for each.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(map(printable, lines))
        super().__init__(" ".join(self.lines))


def refusal(lines: Iterable[str]) -> UsageError:
    """One error for several problems, one line each."""
    found = list(lines)
    return UsageError(found[0]) if len(found) == 1 else SeveralErrors(found)


class TooLong(UsageError):
    """A run does not fit into a run file; its set is complete all the same."""


class NotWritten(UsageError):
    """The result of a charged run cannot be written to its file.

    Attributes:
        text: the content for the file; releasable.
    """

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class ReservedOtherwise(UsageError):
    """The data set has a reservation for another file or other terms; a new one has to be requested."""


class BudgetRefused(StudioError):
    """The ledger's cap for the data set does not allow the release."""

    exit_code = 3


class AccountingError(StudioError):
    """No accountant bounds the event, no noise meets the target, or one of two accountants must be wrong."""

    exit_code = 3


class ModelUnavailable(StudioError):
    """The language model is not on this machine, or cannot be used."""

    exit_code = 4
