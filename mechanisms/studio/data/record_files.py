"""Private structured records: JSON Lines, or a CSV whose columns are a schema's properties, each as a record's text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from mechanisms.errors import DataError
from mechanisms.studio.data.csv_file import MAX_BYTES, Table, read_table
from mechanisms.studio.data.record_schema import RecordSchema, dumps

RECORD, KIND = " record", " kind"
"""Columns that are put beside the file's; no name of a file's begins with a space."""
_JSON_LINES = (".jsonl", ".ndjson")
_MOST_NAMES = 100
"""So many names become columns, at most: where names are themselves values they have no end."""
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, repr=False)
class Lines(Table):
    """A table of JSON Lines: its cells are texts, and `objects` its rows as they stand.

    Attributes:
        names: the objects' own names for the columns, which are these names in one line.
    """

    objects: tuple[Mapping[str, Any], ...] = ()
    names: tuple[str, ...] = ()


def read_rows(path: Path) -> Table:
    """JSON Lines by the file's name (`Lines`), and else a CSV.

    Raises:
        DataError: it cannot be read, or has no rows.
    """
    return _json_lines(path) if path.suffix.lower() in _JSON_LINES else read_table(path)


def names_of(table: Table) -> list[str]:
    """What a schema may call the columns of a file."""
    return list(table.names) if isinstance(table, Lines) else table.columns


def as_records(table: Table, schema: RecordSchema, kind: str) -> Table:
    """A file as a table in which `RECORD` is each row's text by the schema, and `KIND` the same public label.

    The file's own columns, or properties, stay beside them. A row without any property of the schema has no text.

    Raises:
        DataError: it has none of the schema's properties.
    """
    rows: Iterable[Mapping[str, Any]] = table.objects if isinstance(table, Lines) else _of_cells(table, schema)
    records = [schema.canonical(each) for each in rows]
    if not any(records):
        raise DataError("No row has any of the schema's properties: name columns, or keys, as the schema does.")
    beside = {RECORD: records}
    if isinstance(table, Lines):
        rare = (name for name in schema.document["properties"] if name not in table.names)
        beside = _columns(table.objects, rare) | beside
    return of_kind(Table(table.frame.assign(**beside), table.remarks), kind)


def of_kind(table: Table, kind: str) -> Table:
    """The table of rows without a label: in `KIND` all have the same public one."""
    return Table(table.frame.assign(**{KIND: kind}), table.remarks)


def read_records(path: Path, schema: RecordSchema, kind: str) -> Table:
    """A file as `as_records` gives it.

    Raises:
        DataError: it cannot be read, or has none of the schema's properties.
    """
    return as_records(read_rows(path), schema, kind)


def as_lines(texts: Iterable[str]) -> str:
    """Records as the text of a file of JSON Lines."""
    return "".join(f"{text}\n" for text in texts)


def _json_lines(path: Path) -> Lines:
    rows: list[Mapping[str, Any]] = []
    left_out = 0
    for line in _lines(path):
        try:
            row = json.loads(line)
            dumps(row).encode()  # lone surrogates are no text
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            left_out += 1
    names = tuple(islice(dict.fromkeys(name for row in rows for name in row), _MOST_NAMES))
    if not names:
        raise DataError("The file has no line that is a JSON object with a name in it.")
    remarks = (f"Lines that are no JSON object, and are left out: {left_out}.",) if left_out else ()
    return Lines(pd.DataFrame(_columns(rows, names), dtype=str), remarks, tuple(rows), names)


def _columns(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    return {" ".join(name.split()): [_cell(row.get(name, "")) for row in rows] for name in names}


def _lines(path: Path) -> Iterator[str]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"The file is larger than {MAX_BYTES // 2**20} MB: split it.")
        with path.open(encoding="utf-8-sig") as file:
            yield from (line for line in file if not line.isspace())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The file '{path.name}' cannot be read as UTF-8: check its path and its encoding.") from error


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def _of_cells(table: Table, schema: RecordSchema) -> Iterator[Mapping[str, Any]]:
    properties = schema.document["properties"]
    names = [name for name in table.columns if name in properties]
    for row in table.frame[names].itertuples(index=False, name=None):
        yield {name: _value(cell, properties[name]) for name, cell in zip(names, row, strict=True) if cell.strip()}


def _value(cell: str, schema: Mapping[str, Any]) -> Any:
    """A cell as the schema would have it: as JSON where that is no text, and as it stands where it is none."""
    if schema.get("type") == "string" or (set(map(type, schema.get("enum", ()))) == {str}):
        return cell
    if schema.get("type") == "boolean" and (said := _WORDS.get(cell.strip().lower())) is not None:
        return said
    try:
        value = json.loads(cell)
        dumps(value).encode()
    except (ValueError, RecursionError):
        return cell
    return value
