"""What an Excel workbook (.xlsx) unpacks to, bounded before any of it is built: an archive of XML can grow a lot."""

from __future__ import annotations

import lzma
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

import openpyxl

from mechanisms.data.file_format import FileFormat
from mechanisms.data.table import MAX_COLUMNS, Table, cell_text, column_names, table_of
from mechanisms.errors import DataError

MAX_UNPACKED = 128 * 2**20
"""Bytes of all parts of a workbook: less than of other files, since XML takes many times its size while it is read."""
MAX_ELEMENTS = 2**23
"""Of all parts together: some readers keep every one. 128 MiB of ordinary cells have about 7 million."""
MAX_IN_A_ROW = 2**18
"""Elements within one row: Excel has up to 16,384 cells in one, and a row is kept whole while it is read."""
BROKEN = (
    "The Excel file is damaged or protected: open it in Excel, save it again as .xlsx or CSV (UTF-8), and try again."
)
_WORKBOOK = "xl/workbook"
_ROW = 3
"""The depth of a row: worksheet, its data, a row."""
_BLOCK = 2**16


def check_parts(path: Path) -> None:
    """See that a workbook can be read within bounds; what a part says is looked at one block at a time.

    Raises:
        DataError: no workbook, damaged, or too large when it is unpacked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if not any(part.filename.startswith(_WORKBOOK) for part in parts):
                raise DataError("This is an archive: unpack it, and give the table in it.")
            if sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise _too_large(f"{MAX_UNPACKED // 2**20} MB")
            counted = 0
            for part in parts:
                with archive.open(part) as file:  # which gives no more bytes than the part states
                    counted = _counted(file, counted)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(BROKEN) from error


def _counted(file: IO[bytes], before: int) -> int:
    """The number of elements so far, with those of one more part; a part stops counting where it stops being XML."""
    depth = in_row = 0
    count = before

    def begins(_name: str, _attributes: Any) -> None:
        nonlocal depth, in_row, count
        depth += 1
        count += 1
        in_row = in_row + 1 if depth > _ROW else 0
        if count > MAX_ELEMENTS or in_row > MAX_IN_A_ROW:
            raise _too_large("this app can read")

    def ends(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = begins, ends
    parser.EntityDeclHandler = _refuse
    try:
        for block in iter(lambda: file.read(_BLOCK), b""):
            parser.Parse(block)
    except expat.ExpatError:
        pass  # the reader stops there too
    return count


def _refuse(*_: Any) -> None:
    raise DataError(BROKEN)


def _too_large(most: str) -> DataError:
    return DataError(f"The Excel file holds more than {most} when it is unpacked: save the sheet as CSV (UTF-8).")


# Reading a private Excel workbook (.xlsx): the first sheet that is not hidden, the values of formulas.

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


READER = FileFormat("excel", "Excel (.xlsx)", (), read_excel, starts=b"PK\x03\x04", doubtful=(".xlsx",))
