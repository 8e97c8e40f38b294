"""A few-shot prompt template of LangChain, as `load_prompt` reads it.

LangChain formats twice: each example with the example's template, then the whole prompt. Braces in texts of the set are
doubled once for each template that the text is part of.
"""

from __future__ import annotations

from mechanisms.demos.demo_set import to_text
from mechanisms.exports.export_format import ExportFormat, Files, Released, Wording
from mechanisms.exports.provenance import provenance

FILE_NAME = "few_shot_prompt.json"


def literal(text: str) -> str:
    """Escape text for a format string."""
    return text.replace("{", "{{").replace("}", "}}")


def _files(released: Released) -> Files:
    wording = Wording.of(released.demo_set)
    asked, said = literal(wording.template.text), literal(wording.template.label)
    question, answer = f"{{{wording.question}}}", f"{{{wording.answer}}}"
    document = {
        "_type": "few_shot",
        "input_variables": [wording.question],
        "prefix": literal(wording.template.instruction),
        "example_prompt": {
            "_type": "prompt",
            "input_variables": [wording.question, wording.answer],
            "template": f"{literal(asked)}: {question}\n{literal(said)}: {answer}",
        },
        "examples": [
            {wording.question: literal(one), wording.answer: literal(other)} for one, other in wording.on_lines()
        ],
        "suffix": f"{asked}: {question}\n{said}:",
        "example_separator": "\n\n",
        "metadata": {"dpicl": provenance(released)},
    }
    return {FILE_NAME: to_text(document)}


FORMAT = ExportFormat(
    name="langchain",
    title="LangChain few-shot prompt (JSON)",
    purpose="For LangChain: a few-shot prompt template that load_prompt reads.",
    file_name=FILE_NAME,
    media_type="application/json",
    files=_files,
    correction="metadata.dpicl.prior",
    without_demonstrations=True,
)
