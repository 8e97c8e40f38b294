"""The public schema of a set's records."""

from __future__ import annotations

from mechanisms.demos.demo_set import to_text
from mechanisms.exports.export_format import ExportFormat, Files, Released

FILE_NAME = "demonstrations.schema.json"


def _files(released: Released) -> Files:
    schema = released.demo_set.schema
    return {FILE_NAME: to_text(schema.document)} if schema else {}


FORMAT = ExportFormat(
    name="schema",
    title="Schema of the records (JSON)",
    purpose="The schema of the records, with the bounds that were filled in.",
    file_name=FILE_NAME,
    media_type="application/json",
    files=_files,
    correction="",
    without_demonstrations=True,
    of_records=True,
)
