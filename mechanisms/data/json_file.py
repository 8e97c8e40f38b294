"""Reading a private JSON file: one object per line (JSON Lines), or one document with a list of objects.

The file has no header, so its columns come from the rows. No row may change another's cells, so a cell is looked up in
its own row under exactly the requested name, even if that name was not offered as a column. A field of a nested value
has a dotted name, as "content.text"; an element of a list is named by its position, from 0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pandas as pd

from mechanisms.data.headers import is_a_row, quoted
from mechanisms.data.sources import FileFormat, RawFile
from mechanisms.data.table import (
    MAX_CELLS,
    MAX_ROWS,
    TEXT,
    TOO_MANY_ROWS,
    Reading,
    ReadingQuestion,
    Table,
    cell_text,
    plain_name,
    table_of,
)  # fmt: skip
from mechanisms.data.text_lines import TextLines
from mechanisms.errors import DataError, UsageError

_MOST_IN_ROW = 100_000
"""The most names of one object: reading a million takes many seconds."""
_MOST_NAMES = 100
"""The most names offered as columns: objects with values as names could have any number."""
_DEEPEST = 8
"""The most parts of an offered dotted name; deeper values stay nested cells."""
_NOT_READ = ""
"""Replaces names of an object that are empty, or that differ from another name only in white space."""
_SPLIT = {"columns", "index", "data"}
"""The names in a table written by pandas with `orient="split"`."""
_SPACE = re.compile(r"\s*")
Row = Mapping[str, Any]
_plain = lru_cache(2**16)(plain_name)


@dataclass(frozen=True, repr=False)
class Objects(Table):
    """A table of JSON objects; `objects` are the parsed rows.

    `frame` has the most frequent names as columns; `column` also reads any other name.
    """

    objects: tuple[Row, ...] = ()

    def column(self, name: str) -> pd.Series | None:
        found = super().column(name)
        if found is None and name:
            cells = [_value(row, name) for row in self.objects]
            if any(cell is not _MISSING for cell in cells):
                texts = ["" if cell is _MISSING else cell_text(cell) for cell in cells]
                return pd.Series(texts, index=self.frame.index, dtype=TEXT)
        return found


_MISSING = object()


def _value(nested: Any, name: str) -> Any:
    """The value under a name, which is dotted for a field of a nested value; a value under the whole name takes
    precedence."""
    fields = _fields(nested)
    if name in fields:
        return fields[name]
    for dot in re.finditer(r"\.", name):
        if (inner := fields.get(name[: dot.start()])) is not None:
            found = _value(inner, name[dot.end() :])
            if found is not _MISSING:
                return found
    return _MISSING


def _fields(nested: Any) -> Row:
    if isinstance(nested, list):
        return {str(place): each for place, each in enumerate(nested)}
    return nested if isinstance(nested, dict) else {}


def _names(nested: Any, depth: int = 1) -> Iterator[str]:
    """The names of an object, with those of the fields of nested objects, and of the first element of lists."""
    fields = nested.items() if isinstance(nested, dict) else [("0", nested[0])]
    for name, value in fields:
        if name == _NOT_READ:
            continue
        if depth < _DEEPEST and value and isinstance(value, dict | list):
            yield from (f"{name}.{inner}" for inner in _names(value, depth + 1))
        else:
            yield name


def read_json(raw: RawFile, reading: Reading) -> Objects:
    """The objects of the file: one for each line, or those of a list if the whole file is one JSON value.

    Values become text by `cell_text`, and missing names are empty cells. In names any white space is one space; of two
    names that differ only in this, the one with single spaces is used.

    Raises:
        DataError: the file is unreadable, or has no object with a name.
        ReadingQuestion: the owner has to declare the encoding, or which list has the rows.
    """
    text = TextLines.of(raw, reading.encoding, zeros=True)
    found, remarks = _found([*text.lines("\n")], reading)
    rows = [row for row in found if isinstance(row, dict) and _is_sound(row)]
    names = _offered(rows)
    if not names:
        raise DataError("Nothing in the file is a JSON object with a name: save the table as JSON Lines in UTF-8.")
    table = table_of(names, (_cells(row, names) for row in rows))
    if odd := sum(_NOT_READ in row for row in rows):
        told = "since they are empty, or differ from another of the row only in white space"
        remarks.append(f"Rows with names that are not read, {told}: {odd}.")
    return Objects(table.frame, (*remarks, *text.remarks()), unread=len(found) - len(rows), objects=tuple(rows))


def _found(blocks: list[bytes], reading: Reading) -> tuple[Sequence[Any], list[str]]:
    """The lines, or the elements of a list, as possible rows (objects or not), and remarks."""
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    document = _document(blocks, lines)
    if isinstance(document, dict):
        return _rows_within(document, reading)
    if reading.rows:
        raise UsageError("The file is no JSON object with lists to choose from: leave out --rows.")
    if document is not None:
        return document, []
    if len(lines) > MAX_ROWS:  # lines that are left out also take time
        raise DataError(TOO_MANY_ROWS)
    return [_object(line) for line in lines], []


def _is_sound(row: Row) -> bool:
    """Whether a row has at most `_MOST_IN_ROW` names, and no lone surrogate."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return len(row) <= _MOST_IN_ROW


def _object(line: bytes) -> Any:
    """The object of a line; None if the line is not an object."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return _parsed(line.decode())
    except (ValueError, RecursionError):
        return None


def _parsed(document: str) -> Any:
    return json.loads(document, object_pairs_hook=_named)


def _named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object under plain names."""
    given = dict(pairs)
    found = {name: value for name, value in given.items() if name and name == _plain(name)}
    if len(found) == len(given):
        return found
    for name, value in given.items():
        if (plain := _plain(name)) != name and plain and plain not in found:
            found[plain] = value
        elif plain != name or not plain:
            found[_NOT_READ] = None
    return found


def _document(blocks: Sequence[bytes], lines: Sequence[bytes]) -> dict[str, Any] | list[Any] | None:
    """The elements of an array, or the object, if the whole file is one JSON value; None if each line is a value.

    An array is recognised by its first character, an object by parsing the whole file.
    """
    first = lines[0].lstrip() if lines else b""
    if first.startswith(b"["):
        return [*_elements(b"".join(blocks).decode().strip())]
    if not first.startswith(b"{") or (len(lines) > 1 and _object(first) is not None):
        return None
    found: dict[str, Any] | None = _object(b"".join(blocks))
    return found


def _elements(array: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(object_pairs_hook=_named)
    number, at = 0, _behind_space(array, 1)
    try:
        while array[at] != "]":
            number += 1
            element, at = decoder.raw_decode(array, at)
            at = _behind_space(array, at)
            if array[at] == ",":
                at = _behind_space(array, at + 1)
            elif array[at] != "]":
                raise ValueError
            if number > MAX_ROWS:
                raise DataError(TOO_MANY_ROWS)
            yield element
    except (ValueError, RecursionError, IndexError) as error:
        raise DataError(
            f"The file's JSON array is incomplete at element {number}: correct it there, or save one object per line "
            "(JSON Lines)."
        ) from error
    if array[at + 1 :]:
        raise DataError(
            "The file has content after its JSON array: save an array, or one object per line (JSON Lines)."
        )


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _rows_within(document: dict[str, Any], reading: Reading) -> tuple[Sequence[Any], list[str]]:
    """The rows of an object: the declared list, or its only list of objects; or the object itself.

    An object with its own text and label is a row, even if it has lists. A table that pandas split into columns and
    data is joined.
    """
    lists = dict(_lists(document))
    counted = f"{len(lists)} lists of objects{f', such as {named}' if (named := quoted(lists)) else ''}"
    if reading.rows is not None:
        found = _value(document, plain_name(reading.rows))
        if not isinstance(found, list):
            others = f": it has {counted}" if lists else ""
            raise DataError(f"The file's JSON object has no list '{reading.rows}'{others}.")
        return found, []
    if (split := _joined(document)) is not None:
        return split, ['The file is split as pandas splits a table (orient="split"); its index is not read.']
    if _is_by_column(document):
        raise DataError(
            'The file\'s JSON object holds columns, not rows: save it with orient="records" (pandas), as a list of one '
            "object for each row."
        )
    if lists and is_a_row(document, reading.labels):
        told = "The file is one JSON object with a text and a label of its own, and is read as a single row"
        return [document], [f"{told}: --rows NAME selects a list of rows."]
    if len(lists) > 1:
        raise ReadingQuestion(
            f"The file is one JSON object with {counted}.",
            "Give --rows NAME for the list of rows (in Python rows='NAME').",
            replace(reading, rows=max(lists, key=lambda name: len(lists[name]))),
            (*lists,),
        )
    if lists:
        [(name, found)] = lists.items()
        return found, [f"The file is one JSON object, of which the list '{name}' holds the rows."]
    if any(isinstance(value, dict | list) for value in document.values()):
        told = "The file is one JSON object without a list of objects, and is read as a single row"
        return [document], [f"{told}: save its rows as a list, or one a line."]
    return [document], []


def _joined(document: Mapping[str, Any]) -> list[Any] | None:
    """The rows of an object with names in `columns` and a list of cells for each row in `data`; None if it is not such
    a table.

    A list with another number of cells than names is not a row.
    """
    names, rows = document.get("columns"), document.get("data")
    if not isinstance(names, list) or not isinstance(rows, list) or not document.keys() <= _SPLIT:
        return None
    if not all(type(name) in (str, int) for name in names):
        return None
    texts = [*map(str, names)]
    return [
        _named([*zip(texts, row, strict=True)]) if isinstance(row, list) and len(row) == len(texts) else row
        for row in rows
    ]


def _is_by_column(document: Mapping[str, Any]) -> bool:
    """Whether the values of an object are columns: they have the same positions, and at least one has plain cells.

    A single column must have numbers as positions: otherwise it may be a nested row.
    """
    columns = [_fields(value) for value in document.values()]
    if not columns or not columns[0] or any(each.keys() != columns[0].keys() for each in columns):
        return False
    if len(columns) == 1 and not all(place.isdecimal() for place in columns[0]):
        return False
    return any(not any(isinstance(cell, dict | list) for cell in each.values()) for each in columns)


def _lists(document: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[tuple[str, list[Any]]]:
    """The lists of an object that contain objects, by their dotted names, without lists inside other lists."""
    for name, value in document.items():
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            yield before + name, value
        elif isinstance(value, dict) and depth < _DEEPEST:
            yield from _lists(value, f"{before}{name}.", depth + 1)


def _offered(rows: Sequence[Row]) -> list[str]:
    """The names in most rows, in order of first occurrence; fewer than `_MOST_NAMES` for very many rows."""
    counts = Counter(name for row in rows for name in dict.fromkeys(_names(row)))
    kept = dict(counts.most_common(min(_MOST_NAMES, MAX_CELLS // max(1, len(rows)))))
    return [name for name in counts if name in kept]


def _cells(row: Row, names: Sequence[str]) -> list[str]:
    values = (_value(row, name) for name in names)
    return ["" if value is _MISSING else cell_text(value) for value in values]


READER = FileFormat("json", "JSON, JSON Lines", (".json", ".jsonl", ".ndjson"), read_json, takes=("encoding", "rows"))
