"""Reading an Excel workbook (.xlsx), after a check of its unpacked size, since compressed XML can grow a lot."""

from __future__ import annotations

import lzma
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import IO, Any
from xml.parsers import expat

import openpyxl
from openpyxl.utils.cell import column_index_from_string, range_boundaries

from mechanisms.data.headers import BEGINNING, check_no_title, headed
from mechanisms.data.sources import FileFormat, RawFile
from mechanisms.data.table import EXACT, MAX_COLUMNS, NoRows, Reading, ReadingQuestion, Table, cell_text, plain_name
from mechanisms.errors import DataError

MAX_UNPACKED = 128 * 2**20
"""The most bytes of all parts: fewer than for other files, since reading XML needs many times its size in memory."""
_MAX_ELEMENTS = 2**23
"""The most elements of all parts, since some readers store every element. 128 MiB of ordinary cells have about 7
million."""
_MAX_IN_A_ROW = 2**18
"""The most elements in a row, which is in memory while it is read: Excel allows 16,384 cells."""
_BROKEN = (
    "The Excel file is damaged or protected: open it in Excel, save it again as .xlsx or CSV (UTF-8), and try again."
)
_ROW = 3
"""The depth of a row element: worksheet, its data, a row."""
_BLOCK = 2**16
_MAX_ROWS = 2**20
"""Excel's limit of rows in a sheet; the row numbers in a file may be arbitrary."""
_HEADER_ROWS = 1000
"""The number of rows that are searched for the header."""


_MAX_MERGED = 2**16
_MOST_LOOKED_AT = 1000
"""The most merged ranges that are compared with the rows, since comparing takes long; with more, the owner is asked
about all of them."""
_MOST_SHOWN = 5


@dataclass(frozen=True)
class _Merged:
    """A merged range; rows and columns count from 1."""

    ref: str
    column: int
    row: int
    last_column: int
    last_row: int

    @classmethod
    def at(cls, ref: str) -> _Merged:
        column, row, last_column, last_row = range_boundaries(ref)
        return cls(ref, column, row, last_column, last_row)


class _Seen:
    """Properties of a part that its rows do not contain: merged ranges, and formulas without values.

    Attributes:
        merged: the ranges, as in the file.
        unstored: the number of cells with a formula but no value, by column.
    """

    def __init__(self) -> None:
        self.merged: list[str] = []
        self.unstored: Counter[int] = Counter()
        self._column = 0
        self._may_be_empty = self._lacks_value = False

    def begins(self, name: str, attributes: Mapping[str, str], parser: expat.XMLParserType) -> None:
        if name == "row":
            self._column = 0
        elif name == "c":
            letters = attributes.get("r", "").rstrip("0123456789")
            self._column = column_index_from_string(letters) if letters else self._column + 1
            self._may_be_empty, self._lacks_value = attributes.get("t") == "str", False
        elif name == "f":
            self._lacks_value = not self._may_be_empty
        elif name == "v" and self._lacks_value:
            parser.CharacterDataHandler = self._has_value
        elif name == "mergeCell":
            self.merged.append(attributes.get("ref", ""))
            if len(self.merged) > _MAX_MERGED:
                raise _too_large("this app can read")

    def ends(self, name: str, parser: expat.XMLParserType) -> None:
        if name == "v":
            parser.CharacterDataHandler = None
        elif name == "c" and self._lacks_value:
            self.unstored[self._column] += 1
            self._lacks_value = False

    def _has_value(self, _text: str) -> None:
        self._lacks_value = False


def _check_parts(file: IO[bytes]) -> dict[str, _Seen]:
    """Check that a workbook is within bounds, one block of a part at a time; returns the properties of each part."""
    found = {}
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            if not any(part.filename.startswith("xl/workbook") for part in parts):
                raise DataError("This is a zip archive, not a workbook: unpack it and choose the table in it.")
            if sum(part.file_size for part in parts) > MAX_UNPACKED:
                raise _too_large(f"{MAX_UNPACKED // 2**20} MB")
            counted = 0
            for part in parts:
                with archive.open(part) as opened:  # at most as many bytes as the part states
                    found[part.filename] = _Seen()
                    counted = _counted(opened, counted, found[part.filename])
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(_BROKEN) from error
    return found


def _counted(file: IO[bytes], before: int, seen: _Seen) -> int:
    """`before` plus the number of elements of a part, up to the first invalid XML."""
    depth = in_row = 0
    count = before

    def begins(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth, in_row, count
        depth += 1
        count += 1
        in_row = in_row + 1 if depth > _ROW else 0
        if count > _MAX_ELEMENTS or in_row > _MAX_IN_A_ROW:
            raise _too_large("this app can read")
        seen.begins(name.rpartition(":")[2], attributes, parser)

    def ends(name: str) -> None:
        nonlocal depth
        depth -= 1
        seen.ends(name.rpartition(":")[2], parser)

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
    """Refuse declared entities, which can expand without bound and occur in no workbook."""
    raise DataError(_BROKEN)


def _too_large(most: str) -> DataError:
    return DataError(f"The Excel file has more than {most} when it is unpacked: save the sheet as CSV (UTF-8).")


def read_excel(raw: RawFile, reading: Reading) -> Table:
    """The table of a visible sheet, by default the first; its first non-empty row names the columns.

    Empty rows, and cells outside the named columns, are omitted, with a remark on unnamed columns before or between
    named ones. Cells become text by `cell_text`; numbers with a format of digits become text as displayed. A formula
    has its saved value, and a remark counts formulas without one.

    Raises:
        DataError: not a workbook, damaged, empty, without rows, or too large when it is unpacked.
        ReadingQuestion: the first sheet has no rows, and there are others; merged cells span rows; or as for `headed`.
    """
    with raw.opened() as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"openpyxl\.")  # some messages quote cells, which must not reach a log
        seen = _check_parts(file)
        try:
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            return _sheet_of(workbook, reading, seen)
        except DataError:
            raise
        except Exception as error:  # openpyxl documents no errors for broken parts, and some errors quote a cell
            raise DataError(_BROKEN) from error


def _sheet_of(workbook: Any, reading: Reading, seen: Mapping[str, _Seen]) -> Table:
    shown = {str(sheet.title): sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"}
    if not shown:
        raise DataError("All sheets of the Excel file are hidden: unhide the one to read.")
    names = ", ".join(f"'{name}'" for name in shown)
    chosen = next(iter(shown)) if reading.sheet is None else reading.sheet
    if chosen not in shown:
        raise DataError(f"The Excel file has no visible sheet '{chosen}': choose one of {names}.")
    several = len(shown) > 1 and reading.sheet is None
    remarks = [f"Read the sheet '{chosen}', the first of {names}: --sheet names another."] if several else []
    sheet = shown[chosen]
    try:
        return replace(_read(sheet, reading, remarks, seen[sheet._worksheet_path]), sheets=tuple(shown))
    except ReadingQuestion as unsure:
        unsure.parts = tuple(shown)
        raise
    except NoRows as error:
        if not several:
            raise
        question = f"The sheet '{chosen}' has no rows, and the file has others: {names}."
        way = "Give --sheet NAME (in Python sheet='NAME')."
        raise ReadingQuestion(question, way, replace(reading, sheet=[*shown][1]), tuple(shown)) from error


def _read(sheet: Any, reading: Reading, remarks: list[str], seen: _Seen) -> Table:
    sheet.reset_dimensions()  # a file's stated dimensions may be wrong
    beginning = enumerate(sheet.iter_rows(max_row=BEGINNING, max_col=MAX_COLUMNS, values_only=True), start=1)
    check_no_title([(number, [*map(cell_text, row)]) for number, row in beginning], reading)
    try:
        at, header = _header(sheet, reading.skip)
        names = None if reading.header is False else [*map(cell_text, header)]
        rows = _Rows(sheet, at if names is None else at + 1, names, seen, reading)
        first, others = rows.divided() if names is None else (names, rows)
        table = headed(first, others, reading, [*remarks, *rows.remarks()])
    except NoRows as error:
        if told := _unstored(seen.unstored.total()):
            raise DataError(told) from error
        raise
    called = [str(place + 1) for place in range(len(first))] if names is None else [*map(plain_name, first)]
    so, otherwise = (
        {name: counts[place] for place, name in enumerate(called) if name} for counts in (rows.so, rows.otherwise)
    )
    return replace(table, shown_so=so, shown_otherwise=otherwise)


def _header(sheet: Any, skip: int) -> tuple[int, Sequence[Any]]:
    """The number of the first non-empty row, and its cells up to the last non-empty one."""
    rows = sheet.iter_rows(min_row=skip + 1, max_row=skip + _HEADER_ROWS, max_col=MAX_COLUMNS + 1, values_only=True)
    for number, row in enumerate(rows, start=skip + 1):
        if filled := _filled(row):
            return number, row[: filled[-1] + 1]
    raise NoRows("The sheet is empty: it needs a header line and one row for each record.")


def _filled(row: Sequence[Any]) -> list[int]:
    return [place for place, cell in enumerate(row) if cell not in (None, "")]


class _Rows:
    """The rows of a sheet as texts: those with a value in a named column or, without names, with any value.

    Attributes:
        so: by column position, how many numbers are read as displayed, if that is not the plain number.
        otherwise: by column position, how many numbers are displayed in another form than they are read.

    Raises:
        ReadingQuestion: merged cells span several rows, and the owner has not declared whether each row has their
            value.
    """

    def __init__(self, sheet: Any, first: int, names: Sequence[str] | None, seen: _Seen, reading: Reading) -> None:
        self.so: Counter[int] = Counter()
        self.otherwise: Counter[int] = Counter()
        self._sheet, self._first, self._names, self._seen = sheet, first, names, seen
        self._columns = {place + 1 for place, name in enumerate(names or ()) if name.strip()}
        here = [each for each in map(_Merged.at, seen.merged) if each.last_row >= first and self._holds(each)]
        tall = [each for each in here if each.row >= first and each.last_row > each.row]
        self._tall = self._beside_values(tall)
        self._flat = [each for each in here if each.last_row == each.row]
        self._from_above = self._beside_values([each for each in here if each.row < first])
        if self._tall and reading.fill_merged is None:
            raise ReadingQuestion(
                f"The sheet has merged cells that span rows: {_listed(self._tall)}.",
                "Give --fill-merged if each of the rows has the value (in Python fill_merged=True), or "
                "--no-fill-merged if only the first has it.",
                replace(reading, fill_merged=True),
            )
        self._spans = {(each.row, each.column - 1): each.last_row for each in self._tall if reading.fill_merged}

    def _holds(self, merged: _Merged) -> bool:
        return self._names is None or any(merged.column <= each <= merged.last_column for each in self._columns)

    def _beside_values(self, tall: Sequence[_Merged]) -> list[_Merged]:
        """The ranges in which a row after the first has a value in another column, about which the owner is asked."""
        if not 0 < len(tall) <= _MOST_LOOKED_AT:
            return [*tall]
        width = MAX_COLUMNS + 1 if self._names is None else len(self._names)
        cells = self._sheet.iter_rows(
            min_row=self._first,
            max_row=min(_MAX_ROWS, max(each.last_row for each in tall)),
            max_col=width,
            values_only=True,
        )
        below: dict[int, list[_Merged]] = {}
        for each in tall:
            below.setdefault(max(each.row + 1, self._first), []).append(each)
        found, open_ones = [], list[_Merged]()
        for number, row in enumerate(cells, start=self._first):
            open_ones = [each for each in open_ones if each.last_row >= number] + below.get(number, [])
            if not open_ones:
                continue
            columns = [place + 1 for place in _filled(row) if self._names is None or place + 1 in self._columns]
            beside = {each for each in open_ones if any(not each.column <= it <= each.last_column for it in columns)}
            found += [each for each in open_ones if each in beside]
            open_ones = [each for each in open_ones if each not in beside]
        return found

    def __iter__(self) -> Iterator[list[str]]:
        width = MAX_COLUMNS + 1 if self._names is None else len(self._names)
        named = [column - 1 for column in self._columns]
        places = sorted({place for _, place in self._spans if place < width})
        above: dict[int, tuple[str, int]] = {}
        for number, row in enumerate(self._sheet.iter_rows(min_row=self._first, max_col=width), start=self._first):
            if number - self._first >= _MAX_ROWS:
                raise DataError(_BROKEN)
            texts = [self._text(place, cell) for place, cell in enumerate(row)]
            has_value = any(texts[place] for place in (range(len(texts)) if self._names is None else named))
            for place in places:
                if last := self._spans.get((number, place)):
                    above[place] = texts[place], last
                elif place in above and not texts[place] and number <= above[place][1]:
                    texts[place] = above[place][0]
            if has_value:
                yield texts

    def divided(self) -> tuple[list[str], list[list[str]]]:
        """The first row and the others, padded to the width of the widest."""
        rows = [row[: _filled(row)[-1] + 1] for row in self]
        width = max(map(len, rows))
        first, *others = ([*row, *[""] * (width - len(row))] for row in rows)
        return first, others

    def _text(self, place: int, cell: Any) -> str:
        value = cell.value
        if not isinstance(value, int | float) or isinstance(value, bool) or not cell.has_style:
            return cell_text(value)
        plain, shown = cell_text(value), _shown(value, cell.number_format)
        self.otherwise[place] += shown is None
        self.so[place] += shown not in (None, plain)
        return plain if shown is None else shown

    def remarks(self) -> Iterator[str]:
        """Remarks for the owner on cells that contain less than the sheet displays."""
        columns = self._columns or self._seen.unstored
        if told := _unstored(sum(self._seen.unstored[column] for column in columns)):
            yield told
        if self._flat:
            yield f"Merged cells, of which only the first has the value: {_listed(self._flat)}."
        if self._from_above:
            told = "Merged cells that begin above the rows, and have no value in the rows that they span"
            yield f"{told}: {_listed(self._from_above)}. Give the sheet a header of one row."


def _listed(merged: Sequence[_Merged]) -> str:
    first = sorted(merged, key=lambda each: (each.row, each.column))[:_MOST_SHOWN]
    return ", ".join(each.ref for each in first) + (", ..." if len(merged) > len(first) else "")


def _unstored(cells: int) -> str | None:
    if not cells:
        return None
    told = (
        "1 cell holds a formula whose value was" if cells == 1 else f"{cells:,} cells hold formulas whose values were"
    )
    return f"{told} not stored: open and save the file in a spreadsheet program."


_DIGITS = re.compile(r'(?:"([^"]*)")?(#,##)?(0+)(?:\.(0+))?(%?)(?:"([^"]*)")?')
"""A number format of digits, with surrounding words."""
_AS_IT_IS = {"General", "@", ""}
_GROUPED = 1000


def _shown(value: float, number_format: str) -> str | None:
    """A number as its format displays it; None if the format is of another kind, depends on the country or rounds
    digits."""
    if number_format in _AS_IT_IS:
        return cell_text(value)
    if not (found := _DIGITS.fullmatch(number_format)):
        return None
    before, grouped, whole, decimals, percent, behind = found.groups("")
    if not abs(value) < EXACT:
        return None
    number = Decimal(repr(value)) * (100 if percent else 1)
    if grouped and abs(number) >= _GROUPED:
        return None
    places = len(decimals)
    try:
        rounded = abs(number).quantize(Decimal(1).scaleb(-places))
    except InvalidOperation:  # more digits than a decimal has
        return None
    if rounded != abs(number):
        return None
    digits = str(rounded)
    least = len(whole) + (places + 1 if places else 0)
    return f"{'-' if number < 0 else ''}{before}{digits.zfill(least)}{percent}{behind}"


READER = FileFormat(
    "excel",
    "Excel (.xlsx)",
    (".xlsx",),
    read_excel,
    takes=("header", "sheet", "skip", "fill_merged"),
    starts=b"PK\x03\x04",
)
