"""Private structured records: JSON Lines, or a CSV whose columns are a schema's properties, each as a record's text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mechanisms.errors import DataError
from mechanisms.studio.data.csv_file import MAX_BYTES, Table, read_table
from mechanisms.studio.data.record_schema import RecordSchema, dumps

RECORD, KIND = " record", " kind"
"""Columns that are put beside the file's; no name of a file's begins with a space."""
_JSON_LINES = (".jsonl", ".ndjson")


def read_records(path: Path, schema: RecordSchema, kind: str) -> Table:
    """A file as a table in which `RECORD` is each row's text by the schema, and `KIND` the same public label.

    The file's own columns, or properties, stay beside them. A row without any property of the schema has no text.

    Raises:
        DataError: it cannot be read, or has none of the schema's properties.
    """
    own = _json_lines(path, schema) if path.suffix.lower() in _JSON_LINES else _csv(path, schema)
    records = [schema.canonical(each) for each in own.rows]
    if not any(records):
        raise DataError("No row has any of the schema's properties: name columns, or keys, as the schema does.")
    return Table(own.table.frame.assign(**{RECORD: records, KIND: kind}), own.table.remarks)


class _Rows:
    """A file's rows as mappings, and as a table of texts."""

    def __init__(self, rows: list[Mapping[str, Any]], table: Table) -> None:
        self.rows, self.table = rows, table


def _json_lines(path: Path, schema: RecordSchema) -> _Rows:
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
    if not rows:
        raise DataError("The file has no line that is a JSON object.")
    names = dict.fromkeys((*schema.document["properties"], *rows[0]))  # as many as there are could be any number
    cells = {" ".join(name.split()): [_cell(row.get(name, "")) for row in rows] for name in names}
    remarks = (f"Lines that are no JSON object, and are left out: {left_out}.",) if left_out else ()
    return _Rows(rows, Table(pd.DataFrame(cells, dtype=str), remarks))


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


def _csv(path: Path, schema: RecordSchema) -> _Rows:
    table = read_table(path)
    properties = schema.document["properties"]
    names = [name for name in table.columns if name in properties]
    cells = zip(*(table.frame[name] for name in names), strict=True)
    rows: list[Mapping[str, Any]] = [
        {name: _value(cell, properties[name]) for name, cell in zip(names, row, strict=True) if cell.strip()}
        for row in cells
    ]
    return _Rows(rows or [{}] * len(table.frame), table)


def _value(cell: str, schema: Mapping[str, Any]) -> Any:
    """A cell as the schema would have it: as JSON where that is no text, and as it stands where it is none."""
    if schema.get("type") == "string" or (set(map(type, schema.get("enum", ()))) == {str}):
        return cell
    try:
        value = json.loads(cell)
        dumps(value).encode()
    except (ValueError, RecursionError):
        return cell
    return value
