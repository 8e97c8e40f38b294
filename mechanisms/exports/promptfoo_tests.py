"""Test cases of promptfoo, one per line: a demonstration's text and the expected label.

promptfoo reads variables and expected values as Nunjucks templates, and loads a value that begins with `file://` or
`package:`, code included. Sets with such texts are refused, so that no text written by a model is run.
"""

from __future__ import annotations

from mechanisms.demos.demo_set import DemoSet
from mechanisms.exports.export_format import ExportFormat, Released, json_lines, provenance

_TEMPLATES = ("{{", "{%", "{#", "file://", "package:")


def _misfit(demo_set: DemoSet) -> str | None:
    if any(mark in text for each in demo_set.demonstrations for text in (each.text, each.label) for mark in _TEMPLATES):
        return f"promptfoo would run a text of this set, which holds {' or '.join(_TEMPLATES)}: choose another format."
    return None


def _files(released: Released) -> str:
    known = {"dpicl": provenance(released)}
    tests = [
        {"vars": {"text": each.text}, "assert": [{"type": "equals", "value": each.label}], "metadata": known}
        for each in released.demo_set.demonstrations
    ]
    return json_lines(tests)


FORMAT = ExportFormat(
    name="promptfoo",
    title="promptfoo tests (JSON Lines)",
    purpose="For promptfoo: test cases that ask a prompt of your own about each text and expect its label.",
    file_name="tests.jsonl",
    media_type="application/jsonl",
    files=_files,
    correction="metadata.dpicl.prior",
    misfit=_misfit,
)
