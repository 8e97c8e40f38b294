"""Reading an Excel workbook (.xlsx); its unpacked size is bounded first, since an archive of XML can grow a lot."""

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
"""The most bytes of all parts: fewer than for other files, since reading XML takes many times its size in memory."""
MAX_ELEMENTS = 2**23
"""The most elements of all parts: some readers keep every one. 128 MiB of ordinary cells have about 7 million."""
MAX_IN_A_ROW = 2**18
"""The most elements in a row, which is held whole while it is read: Excel allows 16,384 cells."""
BROKEN = (
    "The Excel file is damaged or protected: open it in Excel, save it again as .xlsx or CSV (UTF-8), and try again."
)
_WORKBOOK = "xl/workbook"
_ROW = 3
"""The depth of a row element: worksheet, its data, a row."""
_BLOCK = 2**16


def check_parts(path: Path) -> None:
    """Check that a workbook can be read within bounds, one block of a part at a time.

    Raises:
        DataError: no workbook, damaged, or too large when it is unpacked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if not any(part.filename.startswith(_WORKBOOK) for part in parts):
                raise DataError("This is a zip archive, not a workbook: unpack it and choose the table in it.")
            if sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise _too_large(f"{MAX_UNPACKED // 2**20} MB")
            counted = 0
            for part in parts:
                with archive.open(part) as file:  # yields no more bytes than the part states
                    counted = _counted(file, counted)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(BROKEN) from error


def _counted(file: IO[bytes], before: int) -> int:
    """`before` plus the number of elements of a part, up to the first place that is no XML."""
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
        pass  # openpyxl stops there too
    return count


def _refuse(*_: Any) -> None:
    raise DataError(BROKEN)


def _too_large(most: str) -> DataError:
    return DataError(f"The Excel file holds more than {most} when it is unpacked: save the sheet as CSV (UTF-8).")


# Reading a private workbook: the first sheet that is not hidden, with the saved values of formulas.

_MAX_ROWS = 2**20
"""Excel's limit of a sheet; the row numbers in a file may be arbitrary."""
_HEADER_ROWS = 1000
"""The first rows, which are searched for the header."""
_EMPTY = (None, "")


def read_excel(path: Path) -> Table:
    """The first visible sheet of a workbook: its first row that is not empty names the columns.

    Empty rows and cells outside the named columns are left out, with a remark on unnamed columns before or between
    named ones. Cells become text by `cell_text`; a formula is its saved value.

    Raises:
        DataError: no workbook, damaged, empty, without rows, or too large when it is unpacked.
    """
    check_parts(path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"openpyxl\.")  # some quote cells, which must reach no log
        try:
            return _first_sheet(path)
        except DataError:
            raise
        except Exception as error:  # openpyxl documents no errors for broken parts, and some quote a cell
            raise DataError(BROKEN) from error


def _first_sheet(path: Path) -> Table:
    with path.open("rb") as file:
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        shown = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
        if not shown:
            raise DataError("All sheets of the Excel file are hidden: unhide the one to read.")
        shown[0].reset_dimensions()  # the dimensions that a file states may be wrong
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
    """The rows with a value in a named column."""
    for number, row in enumerate(rows):
        if number >= _MAX_ROWS:
            raise DataError(BROKEN)
        if any(cell not in _EMPTY for cell in compress(row, names)):
            yield row


READER = FileFormat("excel", "Excel (.xlsx)", (), read_excel, starts=b"PK\x03\x04", doubtful=(".xlsx",))
