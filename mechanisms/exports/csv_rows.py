"""A CSV, safe to open in a spreadsheet: no cell begins as a formula does."""

from __future__ import annotations

import csv
import io

from mechanisms.exports.export_format import ExportFormat, Files, Released
from mechanisms.exports.provenance import in_a_line
from mechanisms.files import safe

FILE_NAME = "demonstrations.csv"


def _files(released: Released) -> Files:
    answered = released.demo_set.template.output is not None
    out = io.StringIO(newline="")
    # All quoted: no separator of a spreadsheet in another language can begin a cell inside a text.
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["text", "label", *(["output"] if answered else []), "privacy"])
    known = in_a_line(released)
    for each in released.demo_set.demonstrations:
        row = [each.text, each.label, *([each.output or ""] if answered else []), known]
        writer.writerow(map(safe, row))
    return {FILE_NAME: out.getvalue()}


FORMAT = ExportFormat(
    name="csv",
    title="CSV",
    purpose="For a spreadsheet: text and label, and a column that says what is promised. A text that begins like a "
    "formula gets a quote before it.",
    file_name=FILE_NAME,
    media_type="text/csv",
    files=_files,
)
