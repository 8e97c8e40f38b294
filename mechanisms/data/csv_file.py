"""The rows of a CSV file, each read by itself: no row affects how another is decoded or divided.

Properties of the whole file (byte-order mark, line end, separator, number of columns) are read from its start alone.
Without a header, the file's owner declares them, except the number of columns: rows with more than the first are
refused. The owner also declares whether cells double a quote or put a backslash before it: until then, a row that can
be read only with backslashes makes the reader refuse the file. Quotes are parsed here (RFC 4180), because Python's csv
reader has a process-wide limit on a cell's size, ends lines at carriage returns within cells, and does not return the
lines that a stray quote consumed. Tests compare with it.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from mechanisms.data.headers import BEGINNING, check_no_title, headed
from mechanisms.data.sources import FileFormat, RawFile
from mechanisms.data.table import (
    BACKSLASH,
    DOUBLED,
    MAX_COLUMNS,
    TOO_MANY_COLUMNS,
    USUAL,
    Reading,
    ReadingQuestion,
    Table,
)
from mechanisms.data.text_lines import TextLines
from mechanisms.errors import DataError, UsageError

MAX_FURTHER_BYTES = 2**20
"""The most bytes of a quoted cell after its first line; a quote that is open for longer is stray."""

_DELIMITERS = (b",", b";", b"\t", b"|")
_OPENING_QUOTE = re.compile(rb'(?<![^,;\t|]) *"')
"""A quote at the beginning of a cell, for any of the separators."""
_SAYS_SEPARATOR = re.compile(rb'"?sep=.?"?', re.IGNORECASE)
_SAID_SEPARATOR = re.compile(rb'"?sep=([!#-/:-@\[-`{-~]|\t)"?\1*', re.IGNORECASE)
"""A first line that states the separator for Excel; some programs pad it to the width of the table."""
_ENDS = b"\r\n"
_TABS = (".tsv", ".tab")


@dataclass(frozen=True)
class _Form:
    """The form of cells: the separator, and whether a backslash makes a following quote, separator, line end or
    backslash a part of its cell."""

    delimiter: bytes
    backslash: bool = False

    @functools.cached_property
    def quoted(self) -> re.Pattern[bytes]:
        """A quoted cell with surrounding spaces, up to the separator or the line's end."""
        inside = rb'[^"\\\r\n]++|\\[^\r\n]|""' if self.backslash else rb'[^"\r\n]++|""'
        return re.compile(rb' *+"((?:' + inside + rb')*+)" *+(?=' + re.escape(self.delimiter) + rb"|[\r\n]*+$)")

    @functools.cached_property
    def bare(self) -> re.Pattern[bytes]:
        """A cell that does not begin with a quote, if backslashes count."""
        return re.compile(rb"(?:[^\\" + re.escape(self.delimiter) + rb"]++|\\.?)*+")

    @functools.cached_property
    def surplus(self) -> re.Pattern[bytes]:
        """Empty cells, quoted or not, up to the end of the line."""
        return re.compile(b"(?:" + re.escape(self.delimiter) + rb' *+(?:"" *+)?)*+[\r\n]*')

    @functools.cached_property
    def _escaped(self) -> re.Pattern[bytes]:
        return re.compile(rb'(?:\\(?=["\\\r\n' + re.escape(self.delimiter) + rb'])|"(?="))(.)', re.DOTALL)

    def between(self, quotes: bytes) -> bytes:
        """The text of a quoted cell."""
        return self._escaped.sub(rb"\1", quotes) if self.backslash else quotes.replace(b'""', b'"')

    def cell(self, line: bytes, at: int) -> tuple[bytes, int]:
        """The text of a cell that does not begin with a quote, and the position after it."""
        length = len(line.rstrip(_ENDS))
        if not self.backslash:
            end = line.find(self.delimiter, at)
            return (line[at:end], end) if end >= 0 else (line[at:length], max(at, length))
        found = self.bare.match(line, at, length)
        assert found is not None
        return self._escaped.sub(rb"\1", found[0]), found.end()

    def closing_quote(self, line: bytes, at: int) -> int:
        """The position of the first quote that does not belong to the cell; -1 if there is none."""
        if self.backslash:
            inside = _INSIDE.match(line, at)
            return inside.end() if inside and line.startswith(b'"', inside.end()) else -1
        at = line.find(b'"', at)
        while at >= 0 and line.startswith(b'""', at):
            at = line.find(b'"', at + 2)
        return at


_INSIDE = re.compile(rb'(?:[^"\\]++|\\.|"")*+', re.DOTALL)
_forms = functools.cache(_Form)


class Rows:
    """The records of a file, as lists with one cell for each column.

    A record with unpaired quotes is its first line, taken literally; the later lines are separate records. Empty cells
    beyond the last column are ignored.

    Args:
        reading: without a header the first record is an ordinary row, so the separator is a comma and lines end with
            line feeds, unless the owner declares otherwise.
        usual: the separator if neither the owner nor a first line `sep=X` states one; by default the most frequent one
            in the header outside quoted cells.

    Attributes:
        form: the form of cells.
        guessed: the separator, if it was read from the first line and is not a comma.
        as_they_stand: the number of records so far with unpaired quotes.

    Raises:
        DataError: the file is binary or empty, or its header has unpaired quotes; during iteration, a row is longer
            than the first record.
        ReadingQuestion: the form of quotes is not declared, and a record can be read only with backslashes.
    """

    def __init__(self, raw: RawFile, reading: Reading = USUAL, usual: bytes | None = None) -> None:
        self.as_they_stand = 0
        self._reading = reading
        self._returns: list[int] = []
        self.text = TextLines.of(raw, reading.encoding)
        self._lines = _Lines(self.text.lines("\n" if reading.header is False else self.text.line_end()))
        for _ in range(reading.skip):
            next(self._lines, None)
        first = self._next_line()
        if said := _SAID_SEPARATOR.fullmatch(first.rstrip(_ENDS)):
            usual, first = said[1], self._next_line()
        elif _SAYS_SEPARATOR.fullmatch(first.rstrip(_ENDS)):
            raise DataError("The first line begins with 'sep=' but gives no known separator: remove that line.")
        usual = usual or (_DELIMITERS[0] if reading.header is False else None)
        usual = _separator_named(reading.separator) if reading.separator else usual
        backslash = reading.escape == BACKSLASH
        delimiter = usual or max(_DELIMITERS, key=_unquoted(first, self._lines, backslash).count)
        self.form = _forms(delimiter, backslash)
        self.guessed = None if usual or delimiter == _DELIMITERS[0] else delimiter.decode()
        cells = _record(first, self._lines, self.form, MAX_COLUMNS + 1)
        if cells is None and first.count(delimiter) > MAX_COLUMNS:
            raise DataError(TOO_MANY_COLUMNS)
        if cells is None:
            self._ask_about_backslashes(first, MAX_COLUMNS + 1)
            if reading.header is not False:
                raise DataError("The header line has an unpaired quote: correct the line and try again.")
            self.as_they_stand, cells = 1, first.rstrip(_ENDS).split(delimiter)
        self.first = [cell.decode() for cell in cells]

    def __iter__(self) -> Iterator[list[str]]:
        width = len(self.first)
        for line in self._lines:
            if line.isspace() and self.form.delimiter not in line:
                continue
            if b"\r" in line and b"\r" in line.rstrip(_ENDS):
                self._returns.append(self._lines.number)
            marked = b'"' in line or (self.form.backslash and b"\\" in line)
            cells = _record(line, self._lines, self.form, width) if marked else None
            if cells is None:
                cells = self._as_it_stands(line)
            row = [cell.decode() for cell in cells]
            yield row if len(row) == width else row + [""] * (width - len(row))

    def _next_line(self) -> bytes:
        line = next((line for line in self._lines if not line.isspace()), None)
        if line is None:
            raise DataError("The file is empty: it needs a header line and one row for each record.")
        return line

    def _as_it_stands(self, line: bytes) -> list[bytes]:
        cells = line.rstrip(_ENDS).split(self.form.delimiter)
        width = len(self.first)
        longer = any(cell.strip() for cell in cells[width:])
        if longer or b'"' in line:
            self._ask_about_backslashes(line, width)
        if longer:
            reason = (
                "it has a carriage return (CR) without a line feed, which does not end a line: replace or remove it."
                if b"\r" in line.rstrip(_ENDS)
                else "check for unbalanced quotes, or cells with unquoted separators."
            )
            raise DataError(f"Line {self._lines.number} does not fit the header: {reason}")
        self.as_they_stand += b'"' in line
        return cells[:width]

    def _ask_about_backslashes(self, line: bytes, most: int) -> None:
        number = self._lines.number
        if self._reading.escape or not any(b"\\" in each for each in [line, *self._lines.returned]):
            return
        if _record(line, self._lines, _forms(self.form.delimiter, True), most) is None:
            return
        raise ReadingQuestion(
            f'Line {number} fits the header only if a backslash makes the next quote or separator part of a cell: \\".',
            f"Give --escape {BACKSLASH} if it does (in Python escape='{BACKSLASH}'), or --escape {DOUBLED} if the file "
            'writes a quote in a cell twice: "".',
            replace(self._reading, escape=BACKSLASH),
        )

    def remarks(self) -> Iterator[str]:
        """Remarks for the owner on how the records so far were read."""
        yield from self.text.remarks()
        if self.as_they_stand:
            yield f"Rows with unpaired quotes, each read literally as one line: {self.as_they_stand}."
        if self._returns:
            first, count = self._returns[0], len(self._returns)
            yield f"Rows with a carriage return (CR) inside, which does not end a line: {count}, first in line {first}."


def _separator_named(name: str) -> bytes:
    each = "\t" if name.lower() == "tab" else name
    if len(each) != 1 or not each.isascii() or each.isalnum() or each in '"\r\n':
        raise UsageError("A separator is one character, such as ';', or the word tab.")
    return each.encode()


class _Lines:
    """Numbered physical lines with their ends. Consumed lines can be returned; `returned` has the last of these."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self.number = 0
        self._source = source
        self._waiting: deque[bytes] = deque()
        self.returned: list[bytes] = []

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        line = self._waiting.popleft() if self._waiting else next(self._source)
        self.number += 1
        return line

    def give_back(self, lines: list[bytes]) -> None:
        self.returned = lines
        self._waiting.extendleft(reversed(lines))
        self.number -= len(lines)


def _unquoted(line: bytes, lines: _Lines, backslash: bool) -> bytes:
    """The record that begins with a line, without its quoted cells; further consumed lines are returned.

    After an open quote, or after the most quoted cells of a header, the rest of the line is literal.
    """
    taken: list[bytes] = []
    parts: list[bytes] = []
    at = 0
    while len(parts) < MAX_COLUMNS and (opening := _OPENING_QUOTE.search(line, at)):
        parts.append(line[at : opening.start()])
        at = opening.end() - 1
        found = _quoted_cell(line, opening.end(), lines, taken, _forms(_DELIMITERS[0], backslash))
        if found is None:
            break
        _, line, at = found
    lines.give_back(taken)
    return b"".join([*parts, line[at:]])


def _record(line: bytes, lines: _Lines, form: _Form, most: int) -> list[bytes] | None:
    """The cells of the record that begins with a line; None, with all further lines returned, if it is malformed.

    A record is malformed if a closing quote is followed by anything but the separator or the line's end, if a quote is
    not closed, or if there are more than `most` cells. No line is read ahead more than `most` times: a line read ahead
    with an open quote must first have closed a cell, or the reading stops.
    """
    taken: list[bytes] = []
    cells: list[bytes] = []
    at = 0
    while len(cells) < most:
        if quoted := form.quoted.match(line, at):
            cell, at = form.between(quoted[1]), quoted.end()
        elif line.startswith(b'"', at):
            found = _quoted_cell(line, at + 1, lines, taken, form)
            if found is None:
                break
            cell, line, at = found
        else:
            cell, at = form.cell(line, at)
        cells.append(cell)
        if len(cells) == most and form.surplus.fullmatch(line, at):
            return cells
        if not line.startswith(form.delimiter, at):
            if line[at:].strip(_ENDS):
                break
            return cells
        at += 1
    lines.give_back(taken)
    return None


def _quoted_cell(
    line: bytes, at: int, lines: _Lines, taken: list[bytes], form: _Form
) -> tuple[bytes, bytes, int] | None:
    """The text from an opening quote to the closing one, and the line and position after it; None if it is not closed.

    Consumed lines are added to `taken`.
    """
    parts: list[bytes] = []
    room = MAX_FURTHER_BYTES
    while (end := form.closing_quote(line, at)) < 0:
        parts.append(line[at:])
        if (more := next(lines, None)) is None:
            return None
        taken.append(more)
        room -= len(more)
        if room < 0:
            return None
        line, at = more, 0
    parts.append(line[at:end])
    return form.between(b"".join(parts)), line, end + 1


def read_csv(raw: RawFile, reading: Reading) -> Table:
    """Parse a CSV file: comma, semicolon, tab or bar; UTF-8, UTF-16 with its mark, or the declared encoding.

    A first line `sep=X` states the separator, as in Excel; without one, the separator of a .tsv or .tab file is a tab.
    Columns without a name are omitted, with a remark.

    Raises:
        DataError: the file is binary, empty or without rows, or rows do not fit the header.
        ReadingQuestion: as for `TextLines`, `Rows` and `headed`.
    """
    rows = Rows(raw, reading, b"\t" if raw.suffix in _TABS else None)
    check_no_title(_beginning(replace(rows.text, found=Counter()), rows.form), reading)
    return headed(rows.first, rows, reading, rows.remarks(), "tab" if rows.guessed == "\t" else rows.guessed)


def _beginning(text: TextLines, form: _Form) -> list[tuple[int, list[str]]]:
    """The first records with their lines' numbers; none after `sep=X`."""
    lines = list(islice(text.lines(text.line_end()), BEGINNING))
    first = next((line for line in lines if not line.isspace()), b"")
    if _SAYS_SEPARATOR.match(first):
        return []
    if form.delimiter not in first:  # the most common width counts
        form = _forms(max(_DELIMITERS, key=lambda each: sum(each in line for line in lines)), form.backslash)
    found, divided = [], _Lines(iter(lines))
    for line in divided:
        number = divided.number
        cells = _record(line, divided, form, MAX_COLUMNS) or line.split(form.delimiter)
        found.append((number, [cell.decode() for cell in cells]))
    return found


READER = FileFormat(
    "csv", "CSV, TSV", (".csv", *_TABS), read_csv, takes=("header", "encoding", "separator", "escape", "skip")
)
