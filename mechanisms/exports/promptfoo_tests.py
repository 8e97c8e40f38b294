"""Test cases of promptfoo, one per line: a demonstration's text and the expected answer.

promptfoo reads variables and expected values as Nunjucks templates, and loads a value that begins with `file://` or
`package:`, code included. Sets with such texts are refused, so that no text written by a model is run.
"""

from __future__ import annotations

from mechanisms.demos.demo_set import DemoSet
from mechanisms.exports.export_format import ExportFormat, Files, Released, Wording, json_lines
from mechanisms.exports.provenance import provenance

FILE_NAME = "tests.jsonl"
_TEMPLATES = ("{{", "{%", "{#", "file://", "package:")


def _misfit(demo_set: DemoSet) -> str | None:
    if demo_set.schema is not None:
        return "Records of a schema are no questions with one right answer, so they make no tests for promptfoo."
    if demo_set.completes:
        return "Texts alone are no questions with one right answer, so they make no tests for promptfoo."
    if any(mark in text for pair in Wording.of(demo_set).pairs for text in pair for mark in _TEMPLATES):
        return f"promptfoo would run a text of this set, which holds {' or '.join(_TEMPLATES)}: choose another format."
    return None


def _files(released: Released) -> Files:
    wording, known = Wording.of(released.demo_set), {"dpicl": provenance(released)}
    tests = [
        {"vars": {wording.question: one}, "assert": [{"type": "equals", "value": other}], "metadata": known}
        for one, other in wording.pairs
    ]
    return {FILE_NAME: json_lines(tests)}


FORMAT = ExportFormat(
    name="promptfoo",
    title="promptfoo tests (JSON Lines)",
    purpose="For promptfoo: test cases that ask a prompt of your own about each text and expect its answer.",
    file_name=FILE_NAME,
    media_type="application/jsonl",
    files=_files,
    correction="metadata.dpicl.prior",
    misfit=_misfit,
)
