"""Reading a private Excel workbook (.xlsx): the first sheet that is not hidden, the values of formulas."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import openpyxl

from mechanisms.errors import DataError
from mechanisms.studio.data.table import MAX_COLUMNS, Table, cell_text, column_names, table_of

MAX_UNPACKED = 128 * 2**20
"""Bytes of all parts of a workbook: less than of other files, since XML takes many times its size while it is read."""
_MAX_ROWS = 2**20
"""Of a sheet, by Excel; a file may number its rows as it likes."""
_HEADER_ROWS = 1000
"""Where the header is looked for."""
_EMPTY = (None, "")
_WORKBOOK = "xl/workbook"
_BROKEN = (
    "The Excel file is damaged or protected: open it in Excel, save it again as .xlsx or CSV (UTF-8), and try again."
)


def read_excel(path: Path) -> Table:
    """The first visible sheet of a workbook: its first row that is not empty names the columns.

    Empty rows are left out, and so is what stands beside the named columns. Each cell is text by `cell_text`; a formula
    is the value that was saved with it.

    Raises:
        DataError: no workbook, damaged, empty, without rows, or too large when it is unpacked.
    """
    _check_parts(path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"openpyxl\.")  # some quote cells, and would end up in a log
        try:
            return _first_sheet(path)
        except DataError:
            raise
        except Exception as error:  # what a broken part raises in there is written nowhere, and may quote a cell
            raise DataError(_BROKEN) from error


def _check_parts(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(_BROKEN) from error
    if not any(part.filename.startswith(_WORKBOOK) for part in parts):
        raise DataError("This is an archive: unpack it, and give the table in it.")
    if sum(part.file_size for part in parts) > MAX_UNPACKED:
        most = f"{MAX_UNPACKED // 2**20} MB"
        raise DataError(f"The Excel file holds more than {most} when it is unpacked: save the sheet as CSV (UTF-8).")


def _first_sheet(path: Path) -> Table:
    with path.open("rb") as file:
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        shown = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
        if not shown:
            raise DataError("The Excel file has no sheet that is not hidden.")
        shown[0].reset_dimensions()  # which a file may state as it likes
        at, header = _header(shown[0])
        names = column_names(map(cell_text, header))
        rows = _filled_rows(shown[0].iter_rows(min_row=at + 1, max_col=len(names), values_only=True))
        remarks = [f"Read the first of {len(shown)} sheets."] if len(shown) > 1 else []
        return table_of(names, (tuple(map(cell_text, row)) for row in rows), remarks)


def _header(sheet: Any) -> tuple[int, Sequence[Any]]:
    """The number of the first row that is not empty, and its cells up to the last one that is not."""
    rows = sheet.iter_rows(max_row=_HEADER_ROWS, max_col=MAX_COLUMNS + 1, values_only=True)
    for number, row in enumerate(rows, start=1):
        filled = [i for i, cell in enumerate(row) if cell not in _EMPTY]
        if filled:
            return number, row[: filled[-1] + 1]
    raise DataError("The sheet is empty: it needs a header line and one row for each record.")


def _filled_rows(rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    for number, row in enumerate(rows):
        if number >= _MAX_ROWS:
            raise DataError(_BROKEN)
        if any(cell not in _EMPTY for cell in row):
            yield row
