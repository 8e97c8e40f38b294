"""The rows of a CSV file, each read by itself: no row decides how another is decoded or divided.

Properties of the whole file are read off its start alone: byte-order mark, line end, separator, number of columns.
Quotes are read here (RFC 4180): Python's csv reader has a process-wide limit of a cell's size, ends lines at carriage
returns within cells, and does not give back the lines that a stray quote took. Tests compare with it.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from mechanisms.data.file_format import FileFormat
from mechanisms.data.table import MAX_COLUMNS, TOO_MANY_COLUMNS, WINDOWS_1252, Table, column_names, table_of
from mechanisms.errors import DataError

MAX_FURTHER_BYTES = 2**20
"""The most bytes of a quoted cell after its first line; a quote that stays open for longer is stray."""

_DELIMITERS = (b",", b";", b"\t", b"|")
_OPENING_QUOTE = re.compile(rb'(?<![^,;\t|])"')
"""A quote at the beginning of a cell, for any of the separators."""
_SAYS_SEPARATOR = re.compile(rb'"?sep=.?"?', re.IGNORECASE)
_SAID_SEPARATOR = re.compile(rb'"?sep=([!#-/:-@\[-`{-~]|\t)"?\1*', re.IGNORECASE)
"""A first line that tells Excel the separator; some programs pad it to the width of the table."""
_BLOCK = 2**20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_ENDS = b"\r\n"


class Rows:
    """The rows below a header, as lists with one cell for each column.

    An 8-bit record is UTF-8, or else Windows-1252 with undefined bytes replaced. A record with unpaired quotes is its
    first line, taken literally; the lines after it are records of their own.

    Args:
        opened: opens the file at its start.
        delimiter: the separator, unless a first line `sep=X` gives it; by default the most frequent one in the header
            outside quoted cells.

    Attributes:
        header: the header's cells.
        utf16: the file is UTF-16.
        windows_1252: records so far, header included, that are not UTF-8.
        as_they_stand: records so far with unpaired quotes.

    Raises:
        DataError: binary, empty, a header with unpaired quotes; while iterating, a row longer than the header.
    """

    def __init__(self, opened: Callable[[], BinaryIO], delimiter: bytes | None = None) -> None:
        self.windows_1252 = self.as_they_stand = 0
        with opened() as file:
            mark = _mark(file)
        self.utf16 = mark in _UTF16
        self._lines = _Lines(_physical_lines(opened, mark))
        first = self._next_line()
        if said := _SAID_SEPARATOR.fullmatch(first.rstrip(_ENDS)):
            delimiter, first = said[1], self._next_line()
        elif _SAYS_SEPARATOR.fullmatch(first.rstrip(_ENDS)):
            raise DataError("The first line begins with 'sep=' but gives no known separator: remove that line.")
        self._delimiter = delimiter or max(_DELIMITERS, key=_unquoted(first, self._lines).count)
        cells = _record(first, self._lines, self._delimiter, MAX_COLUMNS + 1)
        if cells is None and first.count(self._delimiter) > MAX_COLUMNS:
            raise DataError(TOO_MANY_COLUMNS)
        if cells is None:
            raise DataError("The header line has an unpaired quote: correct the line and try again.")
        self._width = len(cells)
        self.header = self._decoded(cells)

    def __iter__(self) -> Iterator[list[str]]:
        for line in self._lines:
            if line.isspace() and self._delimiter not in line:
                continue
            cells = _record(line, self._lines, self._delimiter, self._width) if b'"' in line else None
            if cells is None:
                cells = self._as_it_stands(line)
            row = self._decoded(cells)
            yield row if len(row) == self._width else row + [""] * (self._width - len(row))

    def _next_line(self) -> bytes:
        line = next((line for line in self._lines if not line.isspace()), None)
        if line is None:
            raise DataError("The file is empty: it needs a header line and one row for each record.")
        return line

    def _as_it_stands(self, line: bytes) -> list[bytes]:
        cells = line.rstrip(_ENDS).split(self._delimiter)
        if len(cells) > self._width:
            raise DataError(
                f"Line {self._lines.number} does not fit the header: check for unbalanced quotes, or cells with "
                "unquoted separators."
            )
        self.as_they_stand += b'"' in line
        return cells

    def _decoded(self, cells: list[bytes]) -> list[str]:
        texts, windows_1252 = decoded(cells)
        self.windows_1252 += windows_1252
        return texts


def decoded(cells: list[bytes]) -> tuple[list[str], bool]:
    """The cells of an 8-bit record as text, and whether they were read as Windows-1252."""
    try:
        return [cell.decode() for cell in cells], False
    except UnicodeDecodeError:
        return [cell.decode("cp1252", "replace") for cell in cells], True


class _Lines:
    """Physical lines with their ends, counted; lines that a record took can be given back."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self.number = 0
        self._source = source
        self._waiting: deque[bytes] = deque()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        line = self._waiting.popleft() if self._waiting else next(self._source)
        self.number += 1
        return line

    def give_back(self, lines: list[bytes]) -> None:
        """Return the last lines taken, to be read again."""
        self._waiting.extendleft(reversed(lines))
        self.number -= len(lines)


def _mark(file: BinaryIO) -> bytes:
    """The byte-order mark that a text file begins with, if any."""
    start = file.read(4)
    if start in _UTF32:
        raise DataError("This file is UTF-32: save the table as CSV (UTF-8) and try again.")
    mark = next((each for each in (*_UTF16, codecs.BOM_UTF8) if start.startswith(each)), b"")
    if mark not in _UTF16:
        file.seek(0)
        if any(b"\x00" in block for block in iter(lambda: file.read(_BLOCK), b"")):
            raise DataError("This is not a text file: save the table as CSV (UTF-8) and try again.")
    return mark


def _physical_lines(opened: Callable[[], BinaryIO], mark: bytes) -> Iterator[bytes]:
    """The lines of a file, with their ends: UTF-16 recoded as UTF-8, any other encoding byte for byte."""
    utf16 = mark in _UTF16
    encoding, again = ("utf-16", "utf-8") if utf16 else ("latin-1", "latin-1")
    end = _line_end(opened, encoding)
    with opened() as file:
        file.seek(0 if utf16 else len(mark))
        if not utf16 and end == "\n":
            yield from file
            return
        number = 0
        try:
            with io.TextIOWrapper(file, encoding, newline=end) as text:
                for line in text:
                    yield line.encode(again)
                    number += 1
        except UnicodeDecodeError as error:
            raise DataError(
                f"This is not a text file: it stops being UTF-16 after line {number}. Save the table as CSV (UTF-8) "
                "and try again."
            ) from error


def _line_end(opened: Callable[[], BinaryIO], encoding: str) -> str:
    """The line end: a lone carriage return only if it ends the header line; otherwise it belongs to its cell."""
    with io.TextIOWrapper(opened(), encoding, "replace", newline="") as text:
        header = next((line for line in text if line.strip()), "")
    return "\r" if header.endswith("\r") else "\n"


def _unquoted(line: bytes, lines: _Lines) -> bytes:
    """The record that begins with a line, without its quoted cells; lines taken on the way are given back.

    The rest of the line is literal after a quote that stays open, or after the most quoted cells a header may have.
    """
    taken: list[bytes] = []
    parts: list[bytes] = []
    at = 0
    while len(parts) < MAX_COLUMNS and (opening := _OPENING_QUOTE.search(line, at)):
        parts.append(line[at : opening.start()])
        at = opening.start()
        found = _quoted_cell(line, opening.end(), lines, taken)
        if found is None:
            break
        _, line, at = found
    lines.give_back(taken)
    return b"".join([*parts, line[at:]])


def _record(line: bytes, lines: _Lines, delimiter: bytes, most: int) -> list[bytes] | None:
    """The cells of the record that begins with a line; None, with all further lines given back, if it is malformed.

    A record is malformed if a closing quote is followed by anything but the separator or the line's end, if a quote
    stays open, or if there are more than `most` cells. No line is read ahead more than `most` times: a line read ahead
    that leaves a quote open must first have closed a cell, or the reading stops.
    """
    taken: list[bytes] = []
    cells: list[bytes] = []
    at = 0
    while len(cells) < most:
        if line.startswith(b'"', at):
            found = _quoted_cell(line, at + 1, lines, taken)
            if found is None:
                break
            cell, line, at = found
        else:
            end = line.find(delimiter, at)
            end = end if end >= 0 else len(line.rstrip(_ENDS))
            cell, at = line[at:end], end
        cells.append(cell)
        if not line.startswith(delimiter, at):
            if line[at:].strip(_ENDS):
                break
            return cells
        at += 1
    lines.give_back(taken)
    return None


def _quoted_cell(line: bytes, at: int, lines: _Lines, taken: list[bytes]) -> tuple[bytes, bytes, int] | None:
    """The text from an opening quote to the closing one, and the line and place after that; None if it stays open.

    Lines taken on the way are added to `taken`.
    """
    parts: list[bytes] = []
    room = MAX_FURTHER_BYTES
    while (end := _closing_quote(line, at)) < 0:
        parts.append(line[at:])
        more = next(lines, None)
        if more is None:
            return None
        taken.append(more)
        room -= len(more)
        if room < 0:
            return None
        line, at = more, 0
    parts.append(line[at:end])
    return b"".join(parts).replace(b'""', b'"'), line, end + 1


def _closing_quote(line: bytes, at: int) -> int:
    """The place of the first quote that is not one of a doubled pair; -1 if there is none."""
    at = line.find(b'"', at)
    while at >= 0 and line.startswith(b'""', at):
        at = line.find(b'"', at + 2)
    return at


# Reading a private CSV or TSV file: every bad file gets a one-line error.

_TABS = (".tsv", ".tab")


def read_csv(path: Path) -> Table:
    """Parse a CSV file: UTF-8 (with or without BOM), UTF-16 or Windows-1252; comma, semicolon, tab or bar.

    A first line `sep=X` gives the separator, as in Excel; without one, a file named .tsv or .tab has tabs. Columns
    without a name are left out, with a remark.

    Raises:
        DataError: binary, empty, without rows, or with rows that do not fit the header.
    """
    try:
        rows = Rows(_opener(path), b"\t" if path.suffix.lower() in _TABS else None)
        return table_of(column_names(rows.header), rows, _remarks(rows))
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: check its permissions.") from error


def _opener(path: Path) -> Callable[[], BinaryIO]:
    """A function that opens the file at its start, as often as needed: a file is read by lines, never held whole."""
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
        yield f"Rows with unpaired quotes, each read literally as one line: {rows.as_they_stand}."


READER = FileFormat("csv", "CSV, TSV", (".csv", *_TABS), read_csv)
