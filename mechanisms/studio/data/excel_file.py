"""Reading a private Excel workbook (.xlsx): the first sheet that is not hidden, the values of formulas."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import openpyxl

from mechanisms.errors import DataError
from mechanisms.studio.data.excel_parts import BROKEN, check_parts
from mechanisms.studio.data.table import MAX_COLUMNS, Table, cell_text, column_names, table_of

_MAX_ROWS = 2**20
"""Of a sheet, by Excel; a file may number its rows as it likes."""
_HEADER_ROWS = 1000
"""Where the header is looked for."""
_EMPTY = (None, "")


def read_excel(path: Path) -> Table:
    """The first visible sheet of a workbook: its first row that is not empty names the columns.

    Empty rows are left out, and so is what stands beside the named columns; that a column before or between them has
    no name is remarked. Each cell is text by `cell_text`; a formula is the value that was saved with it.

    Raises:
        DataError: no workbook, damaged, empty, without rows, or too large when it is unpacked.
    """
    check_parts(path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"openpyxl\.")  # some quote cells, and would end up in a log
        try:
            return _first_sheet(path)
        except DataError:
            raise
        except Exception as error:  # what a broken part raises in there is written nowhere, and may quote a cell
            raise DataError(BROKEN) from error


def _first_sheet(path: Path) -> Table:
    with path.open("rb") as file:
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        shown = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
        if not shown:
            raise DataError("The Excel file has no sheet that is not hidden.")
        shown[0].reset_dimensions()  # which a file may state as it likes
        at, header = _header(shown[0])
        names = column_names(map(cell_text, header))
        rows = _filled_rows(shown[0].iter_rows(min_row=at + 1, max_col=len(names), values_only=True), names)
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


def _filled_rows(rows: Iterator[Sequence[Any]], names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Those with anything in a column that has a name."""
    for number, row in enumerate(rows):
        if number >= _MAX_ROWS:
            raise DataError(BROKEN)
        if any(cell not in _EMPTY for cell in compress(row, names)):
            yield row
