"""Where private rows come from: a file, records, a bundled example."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mechanisms.data.columns import ColumnMapping
from mechanisms.data.file_format import FileFormat, format_of, longest_mark
from mechanisms.data.json_lines import Lines
from mechanisms.data.raw_file import PACKED, RawFile
from mechanisms.data.reading import USUAL, Reading
from mechanisms.data.record_schema import RecordSchema, dumps
from mechanisms.data.table import Table
from mechanisms.errors import DataError
from mechanisms.files import bundled

# Reading a private file of labelled rows; its first bytes tell the format.

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"


def read_table(file: str | Path | RawFile, reading: Reading = USUAL) -> Table:
    """The table in a file, with text cells; `Lines` for JSON Lines.

    The first bytes tell the format. A text file has no such mark: its suffix tells, and without one it is CSV.

    Args:
        file: it may be packed with gzip, if it is text.
        reading: what its owner says of it.

    Raises:
        DataError: not readable in its format, without rows, or too large.
        ReadingAsked: it can be read in more than one way.
    """
    raw = file if isinstance(file, RawFile) else RawFile.at(Path(file))
    found = format_in(raw)
    found.check(reading)
    return replace(found.read(raw, reading), reading=reading)


def format_in(raw: RawFile) -> FileFormat:
    """The format of a file.

    Raises:
        DataError: it is an old or a protected workbook, or one that is not read out of gzip.
    """
    start = raw.start(max(len(_OLD_OFFICE), longest_mark()))
    if start.startswith(_OLD_OFFICE):
        raise DataError(
            "This is an old or a protected Excel file: save it as .xlsx without a password, or as CSV (UTF-8)."
        )
    found = format_of(start, raw.suffix, otherwise="csv")
    if raw.packed and found.starts:
        raise DataError(f"A file of the kind {found.title} is not read out of gzip: unpack it.")
    return found


def name_of(path: str | Path) -> str:
    """The default name in the ledger: a file's stem."""
    return Path(str(path).removesuffix(PACKED)).stem


# Private structured records: objects, or rows with a schema's properties as columns, each turned into a record's text.

RECORD, KIND = " record", " kind"
"""Columns added to the file's, whose names never begin with a space."""
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def as_records(table: Table, schema: RecordSchema, kind: str, user: str | None = None) -> Table:
    """The table with two more columns: `RECORD`, each row's record text, and `KIND`, the same public label everywhere.

    A row without any property of the schema has an empty text.

    Raises:
        DataError: no row has a property of the schema, or the user column is one of them, which no model may read.
    """
    if user in {" ".join(name.split()) for name in schema.document["properties"]}:
        raise DataError("The user column must not reach the model: leave it out of the schema.")
    rows: Iterable[Mapping[str, Any]] = table.objects if isinstance(table, Lines) else _of_cells(table, schema)
    records = [schema.canonical(each) for each in rows]
    if not any(records):
        raise DataError("No row has any of the schema's properties: rename the columns or keys to match the schema.")
    beside = {RECORD: records}
    if isinstance(table, Lines):
        rare = (name for name in schema.document["properties"] if name not in table.columns)
        beside = {name: table.cells(name) for name in rare} | beside
    return of_kind(table.beside(beside), kind)


def of_kind(table: Table, kind: str) -> Table:
    """The table with a column `KIND` that holds the same public label in every row."""
    return table.beside({KIND: [kind] * len(table.frame)})


def read_records(
    path: str | Path, schema: RecordSchema, kind: str, user: str | None = None, reading: Reading = USUAL
) -> Table:
    """Read a file and apply `as_records`.

    Raises:
        DataError: not readable, or see `as_records`.
    """
    return as_records(read_table(path, reading), schema, kind, user)


def as_lines(texts: Iterable[str]) -> str:
    """Records as the text of a file of JSON Lines."""
    return "".join(f"{text}\n" for text in texts)


def _of_cells(table: Table, schema: RecordSchema) -> Iterator[Mapping[str, Any]]:
    properties = schema.document["properties"]
    names = [name for name in table.columns if name in properties]
    for row in table.frame[names].itertuples(index=False, name=None):
        yield {name: _value(cell, properties[name]) for name, cell in zip(names, row, strict=True) if cell.strip()}


def _value(cell: str, schema: Mapping[str, Any]) -> Any:
    """A cell as a value for the schema: parsed as JSON unless the schema expects a string or the cell is no JSON."""
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


# The bundled example data sets, which are fictional.


@dataclass(frozen=True)
class Example:
    """A bundled file and how to read it."""

    title: str
    path: Path
    mapping: ColumnMapping
    fields: tuple[str, str]
    """Names of text and label in prompts."""
    test: Path | None = None
    """Further rows of the same kind, for tests."""


EXAMPLES = (
    Example(
        "Clinic messages by department (fictional)",
        bundled("examples/clinic_messages.csv"),
        ColumnMapping("message", "department", "patient"),
        ("Message", "Department"),
        bundled("examples/clinic_test.csv"),
    ),
    Example(
        "Bank support messages by topic (fictional)",
        bundled("examples/bank_support.csv"),
        ColumnMapping("text", "topic"),
        ("Message", "Topic"),
        bundled("examples/bank_test.csv"),
    ),
)


@dataclass(frozen=True)
class AnsweredExample(Example):
    """A bundled file of texts with answers, which take the label's place in the mapping; `kind` names a row."""

    kind: str = field(kw_only=True)


ANSWERED_EXAMPLES = (
    AnsweredExample(
        "Shop messages and the item that each is about (fictional)",
        bundled("examples/shop_requests.csv"),
        ColumnMapping("message", "item"),
        ("Message", "Item"),
        kind="Shop message",
    ),
)


@dataclass(frozen=True)
class RecordExample:
    """A bundled file of records with its schema; `kind` names a record."""

    title: str
    path: Path
    schema: Path
    kind: str


RECORD_EXAMPLES = (
    RecordExample(
        "Appointment requests as records (fictional)",
        bundled("examples/appointment_requests.jsonl"),
        bundled("examples/appointment_request.schema.json"),
        "Appointment request",
    ),
)
