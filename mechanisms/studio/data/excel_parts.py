"""What an Excel workbook (.xlsx) unpacks to, bounded before any of it is built: an archive of XML can grow a lot."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

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
