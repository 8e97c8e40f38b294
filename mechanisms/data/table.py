"""The table of a private file of any format: named columns of text cells, within public limits."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.data.reading import USUAL, Reading
from mechanisms.errors import DataError

MAX_BYTES = 512 * 2**20
"""The most bytes of a file, and of a packed file's content."""
MAX_CELLS = 2**26
MAX_COLUMNS = 1000
MAX_ROWS = 2 * 10**6
"""Without this limit a file with a few bytes per row could take a minute to read."""
MAX_CHARACTERS = MAX_BYTES
"""The most characters of all cells: a packed file may repeat one long text a million times."""
TEXT = pd.StringDtype("python", na_value=np.nan)
"""The type of all columns, with or without Arrow installed, whose definition of white space differs from Python's."""
TOO_LARGE = f"The file is larger than {MAX_BYTES // 2**20} MB: split it."
UNPACKED = f"The file holds more than {MAX_BYTES // 2**20} MB or {MAX_CELLS:,} cells when it is unpacked: split it."
TOO_MANY_ROWS = f"The file has more than {MAX_ROWS:,} rows: split it, or take a sample."
TOO_MANY_COLUMNS = f"The file has more than {MAX_COLUMNS:,} columns: remove those that are not needed."
NO_ROWS = "The file has a header line but no rows: add at least one row."
_EXACT = 2.0**53


class NoRows(DataError):
    """There is nothing below the header, or no header."""


@dataclass(frozen=True, repr=False)
class Table:
    """A parsed file.

    Attributes:
        remarks: how it was read, for its owner.
        sheets: the names of a workbook's sheets that are not hidden.
        class_names: for columns of numbers, the labels' names that the file has, from 0 on.
        unread: rows of the file that could not be read as one.
        reading: what its owner said of it.
    """

    frame: pd.DataFrame
    remarks: tuple[str, ...] = ()
    sheets: tuple[str, ...] = ()
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unread: int = 0
    reading: Reading = USUAL

    @property
    def columns(self) -> list[str]:
        """The column names, in order."""
        return list(self.frame.columns)

    def column(self, name: str) -> pd.Series | None:
        """The cells under a name; None where the file has no such column."""
        return self.frame.get(name)

    def has_only(self, names: Iterable[str | None]) -> bool:
        """Whether the header has no other names; public, since the header is no row."""
        return set(names).issuperset(self.columns)

    def beside(self, columns: Mapping[str, Sequence[str]]) -> Table:
        """The table with columns added, or replaced where the names are equal."""
        more = {name: pd.Series(cells, index=self.frame.index, dtype=TEXT) for name, cells in columns.items()}
        return replace(self, frame=self.frame.assign(**more))


def checked_size(path: Path) -> int:
    """A file's size in bytes.

    Raises:
        DataError: not accessible, or too large.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be opened: check its path and its permissions.") from error
    if size > MAX_BYTES:
        raise DataError(TOO_LARGE)
    return size


def column_names(header: Iterable[str]) -> list[str]:
    """The names of a header with normalised white space; empty for a column without a name.

    Raises:
        DataError: no name at all, a repeated name, or too many columns.
    """
    names = [" ".join(name.split()) for name in header]
    named = [name for name in names if name]
    if not named or len(set(named)) != len(named):
        raise DataError("The first line must name the columns, each name once.")
    if len(names) > MAX_COLUMNS:
        raise DataError(TOO_MANY_COLUMNS)
    return names


def numbered_names(columns: int) -> list[str]:
    """The names of columns without a header: "1", "2", ...

    Raises:
        DataError: too many columns.
    """
    if columns > MAX_COLUMNS:
        raise DataError(TOO_MANY_COLUMNS)
    return [str(number + 1) for number in range(columns)]


def table_of(names: Sequence[str], rows: Iterable[Sequence[str]], remarks: Iterable[str] = ()) -> Table:
    """The table of rows with one cell for each name; columns with an empty name are left out.

    Args:
        names: from `column_names`.
        remarks: consumed after all rows.

    Raises:
        DataError: no rows, or too many.
    """
    named = [name for name in names if name]
    columns: list[list[str]] = [[] for _ in named]
    most, characters = MAX_CELLS // len(names), 0
    for row in rows:  # rows are not kept: a million lists would slow the garbage collector down
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

    None and NaN become empty; whole numbers have no decimal point, and dates no time; truth values and nested values
    are JSON.
    """
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return _number(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case datetime.date() | datetime.time():
            return _moment(value)
        case int() | Decimal() | datetime.timedelta():
            return str(value)
    return dumps(value)


def dumps(value: Any) -> str:
    """A nested value as JSON on one line, without escapes for letters."""
    return json.dumps(value, ensure_ascii=False)


def _moment(value: datetime.date | datetime.time) -> str:
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    day = value.time() == datetime.time() and value.tzinfo is None
    return value.date().isoformat() if day else value.isoformat(" ")


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
