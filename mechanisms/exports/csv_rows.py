"""A CSV that is safe to open in a spreadsheet: no cell is read as a formula."""

from __future__ import annotations

import csv
import io

from mechanisms.exports.export_format import ExportFormat, ReleasedFile, in_a_line
from mechanisms.files import safe


def _files(released: ReleasedFile) -> str:
    out = io.StringIO(newline="")
    # All cells are quoted, because a spreadsheet in another language may have a separator that occurs in texts.
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    words = released.demo_set.words
    writer.writerow(["text", "label", "privacy", *([] if words is None else ["label_words"])])
    known = in_a_line(released)
    for each in released.demo_set.demonstrations:
        about = [] if words is None else [", ".join(words.get(each.label, ()))]
        writer.writerow(map(safe, (each.text, each.label, known, *about)))
    return out.getvalue()


FORMAT = ExportFormat(
    name="csv",
    title="CSV",
    purpose="For a spreadsheet: text and label, a column with the promise, and one with the label's words where they "
    "were released. A text that begins like a formula gets a quote in front.",
    file_name="demonstrations.csv",
    media_type="text/csv",
    files=_files,
)
