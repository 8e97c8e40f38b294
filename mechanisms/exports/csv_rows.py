"""A CSV that is safe to open in a spreadsheet: no cell is read as a formula."""

from __future__ import annotations

import csv
import io

from mechanisms.exports.export_format import ExportFormat, Released, in_a_line
from mechanisms.files import safe


def _files(released: Released) -> str:
    out = io.StringIO(newline="")
    # All cells are quoted: a spreadsheet in another language may have another separator, which texts may contain.
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["text", "label", "privacy"])
    known = in_a_line(released)
    for each in released.demo_set.demonstrations:
        writer.writerow(map(safe, (each.text, each.label, known)))
    return out.getvalue()


FORMAT = ExportFormat(
    name="csv",
    title="CSV",
    purpose="For a spreadsheet: text and label, and a column with the promise. A text that begins like a formula gets "
    "a quote in front.",
    file_name="demonstrations.csv",
    media_type="text/csv",
    files=_files,
)
