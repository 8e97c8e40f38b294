"""A folder of promptfoo: the set as its prompt, and the owner's own labelled texts as its tests.

promptfoo interprets variables and expected values as Nunjucks templates, and loads values that begin with `file://` or
`package:`, including code. Labels with such marks are refused, and test rows with them are left out, so no text is run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from mechanisms.demos.demo_set import DemoSet, to_text
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import check_labels
from mechanisms.exports.chat import inert, template
from mechanisms.exports.export_format import (
    ExportExtras,
    ExportFormat,
    Files,
    ReleasedFile,
    in_a_line,
    json_lines,
    provenance,
)
from mechanisms.records import Record

PROMPT, TESTS, CONFIG = "messages.json", "tests.jsonl", "promptfooconfig.yaml"


def _runs(text: str) -> bool:
    return inert(text) != text or text.startswith("package:")


def _misfit(made: DemoSet) -> str | None:
    if any(map(_runs, made.labels)):
        return "promptfoo would run a label of this set, as a template or a file: choose another format."
    return None


def _of_labels(made: DemoSet, tests: Sequence[Record]) -> list[Record]:
    """The rows that take part; the caller counts rows with other labels when it loads the file."""
    return [each for each in tests if each.label in made.labels]


def _advice(made: DemoSet, added: ExportExtras) -> str | None:
    if added.tests is None:
        return "It has no tests: `export --test FILE` writes those of a labelled file of yours, which took no part."
    rows = _of_labels(made, added.tests)
    left = sum(_runs(each.text) for each in rows)
    return f"{left} of {len(rows)} test rows are left out: promptfoo would run their text." if left else None


def _files(released: ReleasedFile) -> Files:
    made, tests = released.demo_set, released.extras.tests
    # Dumped and parsed again, so that every string, including names of fields, is inert.
    known = json.loads(inert(json.dumps(provenance(released), ensure_ascii=False)))
    config: dict[str, Any] = {
        "description": inert(in_a_line(released)),
        "prompts": [f"file://{PROMPT}"],
        "providers": [{"id": "openai:chat:YOUR-MODEL", "config": {"temperature": 0}}],
        "defaultTest": {"options": {"transform": "output.trim()"}, "metadata": {"dpicl": known}},
    }
    files = {PROMPT: to_text(template(made))}
    if tests is not None:
        check_labels(made.labels)
        rows = [each for each in _of_labels(made, tests) if not _runs(each.text)]
        if not rows:
            raise UsageError("No row of the test file can be a test: give rows with the set's labels.")
        files[TESTS] = json_lines(
            {"vars": {"text": each.text}, "assert": [{"type": "equals", "value": each.label}]} for each in rows
        )
        config["tests"] = f"file://{TESTS}"
    return files | {CONFIG: yaml.safe_dump(config, sort_keys=False)}


FORMAT = ExportFormat(
    name="promptfoo",
    title="promptfoo (folder)",
    purpose="For promptfoo: the set as a prompt, tests from a labelled file of yours, and the configuration.",
    file_name="promptfoo.zip",
    media_type="application/zip",
    files=_files,
    correction="metadata.dpicl.prior",
    without_demonstrations=True,
    takes=("tests",),
    advice=_advice,
    misfit=_misfit,
)
