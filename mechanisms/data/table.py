"""The table of a private file of any format, within public limits, and its owner's declarations for reading it."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.errors import DataError, UsageError

MAX_BYTES = 512 * 2**20
"""The most bytes of a file, and of a packed file's content."""
MAX_CELLS = 2**26
MAX_COLUMNS = 1000
MAX_ROWS = 2 * 10**6
"""Without this limit a file with a few bytes per row could take a minute to read."""
MAX_CHARACTERS = MAX_BYTES
"""The most characters of all cells: a packed file may repeat one long text a million times."""
TEXT = pd.StringDtype("python", na_value=np.nan)
"""The type of all columns, with or without Arrow, whose definition of white space differs from Python's."""
UNPACKED = f"The file has more than {MAX_BYTES // 2**20} MB or {MAX_CELLS:,} cells when it is unpacked: split it."
TOO_MANY_ROWS = f"The file has more than {MAX_ROWS:,} rows: split it, or take a sample."
TOO_MANY_COLUMNS = f"The file has more than {MAX_COLUMNS:,} columns: remove those that are not needed."
NO_ROWS = "The file has a header line but no rows: add at least one row."
EXACT = 2.0**53
"""Whole floats up to this bound are exact."""
FLAGS = {
    "header": "--header", "encoding": "--encoding", "separator": "--separator", "escape": "--escape",
    "sheet": "--sheet", "skip": "--skip-lines", "fill_merged": "--fill-merged", "rows": "--rows",
}  # fmt: skip
"""The command line's option for each field of a `Reading`; in Python it is an argument of the field's name."""
BACKSLASH, DOUBLED = "backslash", "doubled"


@dataclass(frozen=True)
class Reading:
    """The owner's declarations on how to read a file; public, like the file's format.

    Attributes:
        header: whether the first line names the columns; without a header they are called "1", "2", ... None: yes, but
            the owner is asked if the first line looks like a row.
        encoding: the encoding of the whole file, a name of `ENCODINGS`, or two as "A+B". None: that of the byte-order
            mark, else UTF-8; the owner is asked about other bytes.
        separator: the separator of cells. None: that of the header; without a header a comma.
        escape: how a quoted cell writes a quote, `DOUBLED` or `BACKSLASH`. None: doubled, but the owner is asked about
            a line that can be read only with backslashes.
        sheet: the name of a workbook's sheet. None: the first that is not hidden.
        skip: the number of omitted lines above the header, such as a title.
        fill_merged: whether each row that a merged cell spans has its value. None: the owner is asked if it matters.
        rows: the dotted name of the list of rows in a JSON document. None: its only list of objects; if there are
            several, the owner is asked.
        labels: the known labels; a first line with one of them looks like a row.
    """

    header: bool | None = None
    encoding: str | None = None
    separator: str | None = None
    escape: str | None = None
    sheet: str | None = None
    skip: int = 0
    fill_merged: bool | None = None
    rows: str | None = None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.skip < 0:
            raise UsageError("The number of lines to skip must not be negative.")
        if self.escape not in (None, DOUBLED, BACKSLASH):
            raise UsageError(f"A quoted cell writes a quote in one of two ways: '{BACKSLASH}' or '{DOUBLED}'.")

    @property
    def declared(self) -> list[str]:
        return [each for each in FLAGS if getattr(self, each) != getattr(USUAL, each)]


USUAL = Reading()


class ReadingQuestion(DataError):
    """A file can be read in several ways, and its owner has to choose one.

    `proposed` is the best guess; `parts` are the choices, if the sheet or the list of rows is ambiguous.
    """

    def __init__(self, question: str, way: str, proposed: Reading, parts: tuple[str, ...] = ()) -> None:
        self.sentence, self.proposed, self.parts = question, proposed, parts
        super().__init__(f"{question} {way}")


class NoRows(DataError):
    """There is nothing below the header, or no header."""


@dataclass(frozen=True, repr=False)
class Table:
    """A parsed file, with remarks for its owner on all choices that `reading` left open.

    Attributes:
        sheets: the names of a workbook's visible sheets.
        class_names: for columns of numbers, the file's names of the labels 0, 1, ...
        unread: the number of unreadable rows.
        nested: columns that are omitted because they contain lists or other values that are not cells.
        shown_so: for columns of a workbook, how many numbers are read as displayed, such as 50% for 0.5.
        shown_otherwise: how many numbers are displayed in another form than they are read.
    """

    frame: pd.DataFrame
    remarks: tuple[str, ...] = ()
    sheets: tuple[str, ...] = ()
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unread: int = 0
    nested: tuple[str, ...] = ()
    shown_so: Mapping[str, int] = field(default_factory=dict)
    shown_otherwise: Mapping[str, int] = field(default_factory=dict)
    reading: Reading = USUAL

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def column(self, name: str) -> pd.Series | None:
        return self.frame.get(name)


def plain_name(name: str) -> str:
    """A column's name for display and lookup: any white space in it, including line ends, is one space."""
    return " ".join(name.split())


def column_names(header: Iterable[str]) -> list[str]:
    """The plain names of a header; empty for a column without a name."""
    names = [plain_name(name) for name in header]
    named = [name for name in names if name]
    if not named or len(set(named)) != len(named):
        raise DataError("The first line must name the columns, each name once.")
    if len(names) > MAX_COLUMNS:
        raise DataError(TOO_MANY_COLUMNS)
    return names


def table_of(names: Sequence[str], rows: Iterable[Sequence[str]], remarks: Iterable[str] = ()) -> Table:
    """The table of rows with one cell for each of `column_names`, without columns of empty names; `remarks` are
    consumed last."""
    named = [name for name in names if name]
    columns: list[list[str]] = [[] for _ in named]
    most, characters = MAX_CELLS // len(names), 0
    for row in rows:  # rows are not stored: a million lists would slow the garbage collector down
        for column, cell in zip(columns, compress(row, names), strict=True):
            column.append(cell)
            characters += len(cell)
        if len(columns[0]) > MAX_ROWS:
            raise DataError(TOO_MANY_ROWS)
        if len(columns[0]) > most or characters > MAX_CHARACTERS:
            raise DataError(UNPACKED)
    if not columns[0]:
        raise NoRows(NO_ROWS)
    nameless = len(names) - len(named)
    told = [f"Columns without a name, which are left out: {nameless}."] if nameless else []
    return Table(pd.DataFrame(dict(zip(named, columns, strict=True)), dtype=TEXT), (*told, *remarks))


def cell_text(value: Any) -> str:
    """A typed cell as text, independently of all other cells.

    None and NaN become empty; whole numbers have no decimal point, and dates no time; booleans and nested values are
    JSON on one line.
    """
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            whole = value.is_integer() and abs(value) < EXACT
            return "" if math.isnan(value) else str(int(value)) if whole else repr(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case datetime.datetime():
            day = value.time() == datetime.time() and value.tzinfo is None
            return value.date().isoformat() if day else value.isoformat(" ")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case int() | Decimal() | datetime.timedelta():
            return str(value)
    return json.dumps(value, ensure_ascii=False)
