"""Reading an Excel workbook (.xlsx); its unpacked size is bounded first, since an archive of XML can grow a lot."""

from __future__ import annotations

import lzma
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO, Any
from xml.parsers import expat

import openpyxl

from mechanisms.data.headers import BEGINNING, check_no_title, headed
from mechanisms.data.sources import FileFormat, RawFile
from mechanisms.data.table import MAX_COLUMNS, NoRows, Reading, ReadingAsked, Table, cell_text
from mechanisms.errors import DataError

MAX_UNPACKED = 128 * 2**20
"""The most bytes of all parts: fewer than for other files, since reading XML takes many times its size in memory."""
_MAX_ELEMENTS = 2**23
"""The most elements of all parts: some readers keep every one. 128 MiB of ordinary cells have about 7 million."""
_MAX_IN_A_ROW = 2**18
"""The most elements in a row, which is held whole while it is read: Excel allows 16,384 cells."""
_BROKEN = (
    "The Excel file is damaged or protected: open it in Excel, save it again as .xlsx or CSV (UTF-8), and try again."
)
_ROW = 3
"""The depth of a row element: worksheet, its data, a row."""
_BLOCK = 2**16
_MAX_ROWS = 2**20
"""Excel's limit of a sheet; the row numbers in a file may be arbitrary."""
_HEADER_ROWS = 1000
"""The first rows, which are searched for the header."""


def _check_parts(file: IO[bytes]) -> None:
    """Check that a workbook can be read within bounds, one block of a part at a time."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            if not any(part.filename.startswith("xl/workbook") for part in parts):
                raise DataError("This is a zip archive, not a workbook: unpack it and choose the table in it.")
            if sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise _too_large(f"{MAX_UNPACKED // 2**20} MB")
            counted = 0
            for part in parts:
                with archive.open(part) as opened:  # yields no more bytes than the part states
                    counted = _counted(opened, counted)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(_BROKEN) from error


def _counted(file: IO[bytes], before: int) -> int:
    """`before` plus the number of elements of a part, up to the first place that is no XML."""
    depth = in_row = 0
    count = before

    def begins(_name: str, _attributes: Any) -> None:
        nonlocal depth, in_row, count
        depth += 1
        count += 1
        in_row = in_row + 1 if depth > _ROW else 0
        if count > _MAX_ELEMENTS or in_row > _MAX_IN_A_ROW:
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
    """No workbook declares entities, which can grow without end."""
    raise DataError(_BROKEN)


def _too_large(most: str) -> DataError:
    return DataError(f"The Excel file holds more than {most} when it is unpacked: save the sheet as CSV (UTF-8).")


def read_excel(raw: RawFile, reading: Reading) -> Table:
    """A visible sheet of a workbook, the first if none is named: its first row that is not empty names the columns.

    Empty rows and cells outside the named columns are left out, with a remark on unnamed columns before or between
    named ones. Cells become text by `cell_text`; a formula is its saved value.

    Raises:
        DataError: no workbook, damaged, empty, without rows, or too large when it is unpacked.
        ReadingAsked: the first sheet has no rows, and there are others; or see `headed`.
    """
    with raw.opened() as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"openpyxl\.")  # some quote cells, which must reach no log
        _check_parts(file)
        try:
            return _sheet_of(openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False), reading)
        except DataError:
            raise
        except Exception as error:  # openpyxl documents no errors for broken parts, and some quote a cell
            raise DataError(_BROKEN) from error


def _sheet_of(workbook: Any, reading: Reading) -> Table:
    shown = {str(sheet.title): sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"}
    if not shown:
        raise DataError("All sheets of the Excel file are hidden: unhide the one to read.")
    names = ", ".join(f"'{name}'" for name in shown)
    chosen = next(iter(shown)) if reading.sheet is None else reading.sheet
    if chosen not in shown:
        raise DataError(f"The Excel file has no visible sheet '{chosen}': choose one of {names}.")
    several = len(shown) > 1 and reading.sheet is None
    remarks = [f"Read the sheet '{chosen}', the first of {names}: --sheet names another."] if several else []
    try:
        return replace(_read(shown[chosen], reading, remarks), sheets=tuple(shown))
    except NoRows as error:
        if not several:
            raise
        question = f"The sheet '{chosen}' has no rows, and the file has others: {names}."
        way = "Give --sheet NAME (in Python sheet='NAME')."
        raise ReadingAsked(question, way, replace(reading, sheet=[*shown][1]), tuple(shown)) from error


def _read(sheet: Any, reading: Reading, remarks: list[str]) -> Table:
    sheet.reset_dimensions()  # the dimensions that a file states may be wrong
    beginning = enumerate(sheet.iter_rows(max_row=BEGINNING, max_col=MAX_COLUMNS, values_only=True), start=1)
    check_no_title([(number, [*map(cell_text, row)]) for number, row in beginning], reading)
    at, header = _header(sheet, reading.skip)
    if reading.header is False:
        rows = list(_filled_rows(sheet.iter_rows(min_row=at, max_col=MAX_COLUMNS + 1, values_only=True), None))
        width = max(map(len, rows))
        first, *others = ([*map(cell_text, row), *[""] * (width - len(row))] for row in rows)
        return headed(first, others, reading, remarks)
    names = [*map(cell_text, header)]
    below = _filled_rows(sheet.iter_rows(min_row=at + 1, max_col=len(names), values_only=True), names)
    return headed(names, ([*map(cell_text, row)] for row in below), reading, remarks)


def _header(sheet: Any, skip: int) -> tuple[int, Sequence[Any]]:
    """The number of the first row that is not empty, and its cells up to the last one that is not."""
    rows = sheet.iter_rows(min_row=skip + 1, max_row=skip + _HEADER_ROWS, max_col=MAX_COLUMNS + 1, values_only=True)
    for number, row in enumerate(rows, start=skip + 1):
        if filled := _filled(row):
            return number, row[: filled[-1] + 1]
    raise NoRows("The sheet is empty: it needs a header line and one row for each record.")


def _filled(row: Sequence[Any]) -> list[int]:
    return [place for place, cell in enumerate(row) if cell not in (None, "")]


def _filled_rows(rows: Iterator[Sequence[Any]], names: Sequence[str] | None) -> Iterator[Sequence[Any]]:
    """The rows with a value in a named column; without names those with a value, up to the last one."""
    for number, row in enumerate(rows):
        if number >= _MAX_ROWS:
            raise DataError(_BROKEN)
        filled = _filled(row)
        if names is None and filled:
            yield row[: filled[-1] + 1]
        elif names is not None and any(names[place].strip() for place in filled):
            yield row


READER = FileFormat(
    "excel", "Excel (.xlsx)", (".xlsx",), read_excel, takes=("header", "sheet", "skip"), starts=b"PK\x03\x04"
)
