"""A few-shot prompt template of LangChain, as `load_prompt` reads it.

LangChain formats twice: each example with the example's template, then the whole prompt. Braces in texts of the set are
doubled once for each template that the text is part of.
"""

from __future__ import annotations

from mechanisms.demos.demo_set import to_text
from mechanisms.exports.export_format import ExportFormat, Released, on_lines, provenance


def literal(text: str) -> str:
    """Escape text for a format string."""
    return text.replace("{", "{{").replace("}", "}}")


def _files(released: Released) -> str:
    template = released.demo_set.prompt
    text, label = literal(template.text), literal(template.label)
    document = {
        "_type": "few_shot",
        "input_variables": ["text"],
        "prefix": literal(template.instruction),
        "example_prompt": {
            "_type": "prompt",
            "input_variables": ["text", "label"],
            "template": f"{literal(text)}: {{text}}\n{literal(label)}: {{label}}",
        },
        "examples": [
            {"text": literal(each.text), "label": literal(each.label)} for each in on_lines(released.demo_set)
        ],
        "suffix": f"{text}: {{text}}\n{label}:",
        "example_separator": "\n\n",
        "metadata": {"dpicl": provenance(released)},
    }
    return to_text(document)


FORMAT = ExportFormat(
    name="langchain",
    title="LangChain few-shot prompt (JSON)",
    purpose="For LangChain: a few-shot prompt template that load_prompt reads.",
    file_name="few_shot_prompt.json",
    media_type="application/json",
    files=_files,
    correction="metadata.dpicl.prior",
    without_demonstrations=True,
)
