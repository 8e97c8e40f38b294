"""Private structured records: objects, or rows whose columns are a schema's properties, each as a record's text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mechanisms.data.json_lines import Lines
from mechanisms.data.record_schema import RecordSchema, dumps
from mechanisms.data.sources import read_source
from mechanisms.data.table import Table
from mechanisms.errors import DataError

RECORD, KIND = " record", " kind"
"""Columns that are put beside the file's; no name of a file's begins with a space."""
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def as_records(table: Table, schema: RecordSchema, kind: str, user: str | None = None) -> Table:
    """A file as a table in which `RECORD` is each row's text by the schema, and `KIND` the same public label.

    The file's own columns, or properties, stay beside them. A row without any property of the schema has no text.

    Raises:
        DataError: it has none of the schema's properties, or the column of the users is one of them, which no model
            is to read.
    """
    if user in {" ".join(name.split()) for name in schema.document["properties"]}:
        raise DataError("The user column says whose row it is: leave it out of the schema.")
    rows: Iterable[Mapping[str, Any]] = table.objects if isinstance(table, Lines) else _of_cells(table, schema)
    records = [schema.canonical(each) for each in rows]
    if not any(records):
        raise DataError("No row has any of the schema's properties: name columns, or keys, as the schema does.")
    beside = {RECORD: records}
    if isinstance(table, Lines):
        rare = (name for name in schema.document["properties"] if name not in table.columns)
        beside = {name: table.cells(name) for name in rare} | beside
    return of_kind(table.beside(beside), kind)


def of_kind(table: Table, kind: str) -> Table:
    """The table of rows without a label: in `KIND` all have the same public one."""
    return table.beside({KIND: [kind] * len(table.frame)})


def read_records(said: str | Path, schema: RecordSchema, kind: str, user: str | None = None) -> Table:
    """A file as `as_records` gives it.

    Raises:
        DataError: it cannot be read, or see `as_records`.
    """
    return as_records(read_source(said), schema, kind, user)


def as_lines(texts: Iterable[str]) -> str:
    """Records as the text of a file of JSON Lines."""
    return "".join(f"{text}\n" for text in texts)


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
