"""Reading a private file of JSON Lines: an object a line, whose names are the columns.

A file of lines has no header: which columns there are follows from the rows. So that no row decides what another one
says, a cell is found in its own row, under exactly the name that was asked for, whether it was offered or not.
"""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mechanisms.data.csv_file import decoded
from mechanisms.data.file_format import FileFormat
from mechanisms.data.record_schema import dumps
from mechanisms.data.table import (
    MAX_CELLS,
    MAX_ROWS,
    TEXT,
    TOO_MANY_ROWS,
    WINDOWS_1252,
    Table,
    cell_text,
    table_of,
)
from mechanisms.errors import DataError

_ARRAY = "This is a JSON array: save one object a line (JSON Lines)."
_MOST_IN_LINE = 100_000
"""Names of one object: a million keep the reader busy for many seconds."""
_MOST_NAMES = 100
"""So many names are offered as columns, at most: where names are themselves values they have no end."""


@dataclass(frozen=True, repr=False)
class Lines(Table):
    """A table of JSON Lines: its cells are texts, and `objects` its rows as they stand.

    Its `frame` has the names that most rows have, to choose from; `column` reads any other as well.
    """

    objects: tuple[Mapping[str, Any], ...] = ()

    def column(self, name: str) -> pd.Series | None:
        """The cells under a name; None where no row has it, or where it is no name of a column."""
        found = super().column(name)
        if found is None and _is_name(name) and any(name in row for row in self.objects):
            return pd.Series(self.cells(name), index=self.frame.index, dtype=TEXT)
        return found

    def has_only(self, names: Iterable[str | None]) -> bool:
        """Never known: there is no header, and what one line names may not decide how the others are read."""
        return False

    def cells(self, name: str) -> list[str]:
        """What each row says under a name, by `cell_text`; empty where it says nothing."""
        return [cell_text(row.get(name)) for row in self.objects]


def read_json_lines(path: Path) -> Lines:
    """The lines that are objects; each value is text by `cell_text`, and what an object does not name is empty.

    A line is UTF-8, or else Windows-1252, by itself. A name that is empty, or has other white space than single spaces
    between its words, is no column's name.

    Raises:
        DataError: unreadable, without an object that has a name in it, or a JSON array: what a file begins with is its
            format, as where it begins with a header.
    """
    rows: list[Mapping[str, Any]] = []
    left_out = windows_1252 = 0
    for number, line in enumerate(_lines(path)):
        if number == 0 and line.lstrip().startswith(b"["):
            raise DataError(_ARRAY)
        if number >= MAX_ROWS:  # lines that are left out keep the reader busy too
            raise DataError(TOO_MANY_ROWS)
        row, not_utf8 = _object(line)
        if row is None:
            left_out += 1
            continue
        rows.append(row)
        windows_1252 += not_utf8
    names = _offered(rows)
    if not names:
        raise DataError("The file has no line that is a JSON object with a name in it: save JSON Lines, in UTF-8.")
    table = table_of(names, ([cell_text(row.get(name)) for name in names] for row in rows))
    return Lines(table.frame, tuple(_remarks(rows, left_out, windows_1252)), tuple(rows))


def _object(line: bytes) -> tuple[Mapping[str, Any] | None, bool]:
    """What a line says, if that is an object, and whether it was read as Windows-1252."""
    if not line.lstrip().startswith(b"{"):
        return None, False
    [text], windows_1252 = decoded([line])
    try:
        row = json.loads(text)
        if isinstance(row, dict) and len(row) > _MOST_IN_LINE:
            return None, windows_1252
        dumps(row).encode()  # lone surrogates are no text
    except (ValueError, RecursionError):
        row = None
    return row if isinstance(row, dict) else None, windows_1252


def _offered(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names that most rows have, in the order in which they occur first; fewer of them where rows are very many."""
    counts = Counter(name for row in rows for name in row)
    named = Counter({name: count for name, count in counts.items() if _is_name(name)})
    kept = dict(named.most_common(min(_MOST_NAMES, MAX_CELLS // max(1, len(rows)))))
    return [name for name in named if name in kept]


def _is_name(name: str) -> bool:
    return bool(name) and name == " ".join(name.split())


def _remarks(rows: Iterable[Mapping[str, Any]], left_out: int, windows_1252: int) -> Iterator[str]:
    if left_out:
        yield f"Lines that are no JSON object of at most {_MOST_IN_LINE:,} names, and are left out: {left_out}."
    unread = {name for name in set().union(*rows) if not _is_name(name)}
    if unread:
        lines = sum(not unread.isdisjoint(row) for row in rows)
        yield f"Lines with names that are empty or have white space around them, which are not read: {lines}."
    if windows_1252:
        yield WINDOWS_1252


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            for block in file:
                yield from (line for line in block.removeprefix(codecs.BOM_UTF8).splitlines() if line.strip())
    except OSError as error:
        raise DataError(f"The file '{path.name}' cannot be read: check its path and its permissions.") from error


READER = FileFormat("json-lines", "JSON Lines", (".jsonl", ".ndjson"), read_json_lines, doubtful=(".json",))
