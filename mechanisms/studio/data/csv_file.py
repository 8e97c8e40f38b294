"""Reading a private CSV, or what is like it: every bad file gets one clear line, none a traceback."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from mechanisms.errors import DataError
from mechanisms.studio.data.csv_rows import Rows
from mechanisms.studio.data.table import WINDOWS_1252, Table, column_names, table_of

_TABS = (".tsv", ".tab")


def read_csv(path: Path) -> Table:
    """Parse a CSV file: UTF-8 (with or without BOM), UTF-16 or Windows-1252; comma, semicolon, tab or bar.

    A file that begins with a line `sep=X`, as Excel reads it, says its separator itself. Else one that calls itself TSV
    has tabs, whatever else stands in its header. Columns without a name are left out, with a remark.

    Raises:
        DataError: binary, empty, without rows, or with rows that do not fit the header.
    """
    try:
        rows = Rows(_opener(path), b"\t" if path.suffix.lower() in _TABS else None)
        return table_of(column_names(rows.header), rows, _remarks(rows))
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: check its permissions.") from error


def _opener(path: Path) -> Callable[[], BinaryIO]:
    """Opens the file at its start, as often as needed: it is read line by line, and never held beside its cells."""
    if path.is_file():
        return lambda: path.open("rb")
    piped = path.read_bytes()
    return lambda: io.BytesIO(piped)


def _remarks(rows: Rows) -> Iterator[str]:
    if rows.utf16:
        yield "Read as UTF-16."
    if rows.windows_1252:
        yield WINDOWS_1252
    if rows.as_they_stand:
        yield f"Rows whose quotes do not pair up, each read as it stands, as one line: {rows.as_they_stand}."
