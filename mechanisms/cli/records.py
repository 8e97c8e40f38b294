"""`synthesize --schema`: records of a JSON schema in place of labelled texts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechanisms.cli.output import progress
from mechanisms.data.columns import ColumnMapping as Columns
from mechanisms.data.record_schema import RECORD_TEMPLATE, RecordSchema
from mechanisms.data.sources import KIND, RECORD, as_lines, read_records
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import DemoSet, to_text
from mechanisms.errors import UsageError
from mechanisms.files import check_writable, keep, text_of
from mechanisms.records import PromptTemplate

_LINES = ".jsonl"


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """The option that turns rows into records."""
    parser.add_argument(
        "--schema",
        metavar="FILE|JSON",
        help="JSON schema, in a file or as it is: the data are JSON Lines, or have columns named as properties; "
        f"--labels is one name for its records; --out FILE{_LINES} writes them as lines, with the schema and the "
        "certificate beside them",
    )


def schema_of(options: argparse.Namespace) -> RecordSchema | None:
    """The schema, if records are asked for.

    Raises:
        UsageError: it cannot be read or kept, or does not go with another option.
    """
    if options.schema is None:
        if options.out and Path(options.out).suffix == _LINES:
            raise UsageError(f"--out FILE{_LINES} writes records: it needs --schema.")
        return None
    if "," in options.labels:
        raise UsageError("With --schema all rows are records of one kind: give --labels one name for it.")
    if options.min_tokens:
        raise UsageError("A record ends where its schema says: leave out --min-tokens.")
    for path in beside(options.out).values() if options.out else ():
        check_writable(str(path))
    given = str(options.schema)
    return RecordSchema.read(given if given.startswith("{") else text_of(given))


def read_table_of(options: argparse.Namespace, schema: RecordSchema) -> tuple[Table, Columns]:
    """The private records, and which columns of their table are what."""
    table = read_records(options.csv, schema, options.labels.strip(), options.unit_column)
    return table, Columns(RECORD, KIND, options.unit_column, options.drop_duplicates)


def template_of(options: argparse.Namespace) -> PromptTemplate:
    """How records are put to a model."""
    text, label = options.text_field or RECORD_TEMPLATE.text, options.label_field or RECORD_TEMPLATE.label
    instruction = RECORD_TEMPLATE.instruction if options.instruction is None else options.instruction
    return PromptTemplate(instruction, text, label)


def write_records(path: str, demo_set: DemoSet, document: Mapping[str, Any]) -> bool:
    """Write records as lines, their schema and their demo set with its certificate, where that is asked for."""
    if demo_set.schema is None or Path(path).suffix != _LINES:
        return False
    others = beside(path)
    keep(others["demos"], to_text(dict(document)))  # what is paid for first
    keep(others["schema"], to_text(demo_set.schema.document))
    keep(Path(path), as_lines(each.text for each in demo_set.demonstrations))
    progress(f"The schema is in '{others['schema'].name}', the certificate in '{others['demos'].name}'.")
    return True


def beside(path: str) -> dict[str, Path]:
    """What is written beside records at a path, and where."""
    if Path(path).suffix != _LINES:
        return {}
    return {what: Path(path).with_suffix(f".{what}.json") for what in ("schema", "demos")}
