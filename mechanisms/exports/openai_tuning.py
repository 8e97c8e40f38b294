"""Conversations in OpenAI's format for fine-tuning, one per line."""

from __future__ import annotations

from mechanisms.demos.demo_set import DemoSet
from mechanisms.exports.chat import conversation
from mechanisms.exports.export_format import ExportExtras, ExportFormat, ReleasedFile, json_lines

_FEWEST = 10
"""The least number of examples that OpenAI's fine-tuning accepts."""


def _files(released: ReleasedFile) -> str:
    made = released.demo_set
    return json_lines({"messages": conversation(made, [each])} for each in made.demonstrations)


def _advice(made: DemoSet, _: ExportExtras) -> str | None:
    if (count := len(made.demonstrations)) >= _FEWEST:
        return None
    return (
        f"OpenAI's fine-tuning wants at least {_FEWEST} examples, and this set has {count}: write more, or take the "
        "messages, which a model only reads."
    )


FORMAT = ExportFormat(
    name="openai",
    title="OpenAI fine-tuning (JSON Lines)",
    purpose="For fine-tuning: instruction, text and answer, one conversation per line.",
    file_name="messages.jsonl",
    media_type="application/jsonl",
    files=_files,
    keeps_disclosures=False,
    advice=_advice,
)
