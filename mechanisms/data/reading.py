"""What a file's owner says of how it is read, and the question where it can be read in more than one way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.errors import DataError, UsageError


@dataclass(frozen=True)
class Reading:
    """How a file is read, as far as its owner says so; public, like the file's format.

    Attributes:
        header: whether the first line names the columns; without a header they are called "1", "2", ... None: it does,
            and a first line that looks like a row is asked about.
        encoding: of the whole file, see `mechanisms.data.encodings`. None: as its mark says, or UTF-8, and what is
            neither is asked about.
        separator: of cells. None: read off the header; a comma where there is none.
        sheet: the name of a workbook's sheet. None: the first that is not hidden.
        skip: lines above the header, such as a title, that are left out.
        labels: those that are known; a first line that has one of them looks like a row.
    """

    header: bool | None = None
    encoding: str | None = None
    separator: str | None = None
    sheet: str | None = None
    skip: int = 0
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.skip < 0:
            raise UsageError("The number of lines to skip must not be negative.")

    @property
    def said(self) -> list[str]:
        """The names of what its owner said."""
        return [each for each in FLAGS if getattr(self, each) != getattr(USUAL, each)]


USUAL = Reading()
"""Nothing was said."""
FLAGS = {
    "header": "--header", "encoding": "--encoding", "separator": "--separator", "sheet": "--sheet",
    "skip": "--skip-lines",
}  # fmt: skip
"""The command line's option for each field of a `Reading`; in Python it is an argument of the field's name."""


def reading_of(said: Mapping[str, Any], labels: Sequence[str]) -> Reading:
    """What a program says of a file, by the names of a `Reading`.

    Raises:
        UsageError: a name is unknown.
    """
    if unknown := sorted(set(said) - set(FLAGS)):
        raise UsageError(f"A file has no '{unknown[0]}' to say.")
    return Reading(**said, labels=tuple(labels))


class ReadingAsked(DataError):
    """A file that can be read in more than one way: its owner has to say which.

    Attributes:
        question: what is unclear, for whoever sees the choices.
        proposed: how it would be read as far as it can be told.
        sheets: names to choose from, where the sheet is unclear.
    """

    def __init__(self, question: str, way: str, proposed: Reading, sheets: tuple[str, ...] = ()) -> None:
        self.question, self.proposed, self.sheets = question, proposed, sheets
        super().__init__(f"{question} {way}")
