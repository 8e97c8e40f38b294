"""The records of a set, one per line, without the certificate, which is in the demo set."""

from __future__ import annotations

from mechanisms.data.sources import as_lines
from mechanisms.exports.export_format import ExportFormat, Files, Released

FILE_NAME = "demonstrations.jsonl"


def _files(released: Released) -> Files:
    return {FILE_NAME: as_lines(each.text for each in released.demo_set.demonstrations)}


FORMAT = ExportFormat(
    name="records",
    title="Records (JSON Lines)",
    purpose="The records alone, one per line, for programs that read records of your schema.",
    file_name=FILE_NAME,
    media_type="application/jsonl",
    files=_files,
    correction="",
    keeps_disclosures=False,
    of_records=True,
)
