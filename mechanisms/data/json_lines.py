"""Reading a private file of JSON Lines: one object per line, whose names are the columns.

The file has no header, so that its columns follow from the rows. So that no row changes another's cells, a cell is
looked up in its own row under exactly the name asked for, whether or not that name was offered as a column.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mechanisms.data.sources import FileFormat, RawFile
from mechanisms.data.table import MAX_CELLS, MAX_ROWS, TEXT, TOO_MANY_ROWS, Reading, Table, cell_text, table_of
from mechanisms.data.text_lines import TextLines
from mechanisms.errors import DataError

_MOST_IN_LINE = 100_000
"""The most names of one object: a million take many seconds to read."""
_MOST_NAMES = 100
"""The most names offered as columns: objects that use values as names have no limit of their own."""


@dataclass(frozen=True, repr=False)
class Lines(Table):
    """A table of JSON Lines; `objects` are the parsed rows.

    `frame` has the most frequent names as columns; `column` reads any other name too.
    """

    objects: tuple[Mapping[str, Any], ...] = ()

    def column(self, name: str) -> pd.Series | None:
        found = super().column(name)
        if found is None and _is_name(name) and any(name in row for row in self.objects):
            return pd.Series([cell_text(row.get(name)) for row in self.objects], index=self.frame.index, dtype=TEXT)
        return found


def read_json_lines(raw: RawFile, reading: Reading) -> Lines:
    """The lines that are JSON objects; values become text by `cell_text`, and missing names are empty cells.

    A name is no column if it is empty or has white space other than single spaces between words.

    Raises:
        DataError: unreadable, a JSON array, or without an object that has a name.
        ReadingAsked: the encoding has to be said.
    """
    text = TextLines.of(raw, reading.encoding, zeros=True)
    lines = (line for block in text.lines("\n") for line in block.splitlines() if line.strip())
    rows: list[Mapping[str, Any]] = []
    unread = 0
    for number, line in enumerate(lines):
        if number == 0 and line.lstrip().startswith(b"["):
            raise DataError("This is a JSON array: save one object per line (JSON Lines).")
        if number >= MAX_ROWS:  # lines that are left out take time too
            raise DataError(TOO_MANY_ROWS)
        if (row := _object(line)) is None:
            unread += 1
        else:
            rows.append(row)
    names = _offered(rows)
    if not names:
        raise DataError("No line of the file is a JSON object with a name: save the table as JSON Lines in UTF-8.")
    table = table_of(names, ([cell_text(row.get(name)) for name in names] for row in rows))
    remarks = [*text.remarks()]
    others = {name for name in set().union(*rows) if not _is_name(name)}
    if odd := sum(not others.isdisjoint(row) for row in rows):
        remarks.insert(0, f"Lines with names that are not read, since they are empty or have extra white space: {odd}.")
    return Lines(table.frame, tuple(remarks), unread=unread, objects=tuple(rows))


def _object(line: bytes) -> Mapping[str, Any] | None:
    """The object of a line of at most `_MOST_IN_LINE` names, if it is one."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        row = json.loads(line)
        if not isinstance(row, dict) or len(row) > _MOST_IN_LINE:
            return None
        json.dumps(row, ensure_ascii=False).encode()  # raises for lone surrogates
    except (ValueError, RecursionError):
        return None
    return row


def _offered(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names that most rows have, in order of first occurrence; fewer than `_MOST_NAMES` for very many rows."""
    counts = Counter(name for row in rows for name in row)
    named = Counter({name: count for name, count in counts.items() if _is_name(name)})
    kept = dict(named.most_common(min(_MOST_NAMES, MAX_CELLS // max(1, len(rows)))))
    return [name for name in named if name in kept]


def _is_name(name: str) -> bool:
    return bool(name) and name == " ".join(name.split())


READER = FileFormat("json-lines", "JSON Lines", (".jsonl", ".ndjson", ".json"), read_json_lines, takes=("encoding",))
