"""Conversations in OpenAI's format for chat completions and fine-tuning, one per line."""

from __future__ import annotations

from mechanisms.exports.export_format import ExportFormat, Files, Released, json_lines

FILE_NAME = "messages.jsonl"


def _files(released: Released) -> Files:
    made = released.demo_set
    lines = []
    for each in made.demonstrations:
        said = [("system", made.template.instruction), ("user", each.text), ("assistant", each.label)]
        lines.append({"messages": [{"role": role, "content": content} for role, content in said]})
    return {FILE_NAME: json_lines(lines)}


FORMAT = ExportFormat(
    name="openai",
    title="OpenAI messages (JSON Lines)",
    purpose="For fine-tuning, or as earlier turns of a chat: instruction, text and answer, one conversation per line.",
    file_name=FILE_NAME,
    media_type="application/jsonl",
    files=_files,
    keeps_disclosures=False,
)
