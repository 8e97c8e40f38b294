"""Conversations in OpenAI's format for chat completions and fine-tuning, one per line."""

from __future__ import annotations

from mechanisms.exports.export_format import ExportFormat, Released, json_lines


def _files(released: Released) -> str:
    made = released.demo_set
    lines = []
    for each in made.demonstrations:
        said = [("system", made.prompt.instruction), ("user", each.text), ("assistant", each.label)]
        lines.append({"messages": [{"role": role, "content": content} for role, content in said]})
    return json_lines(lines)


FORMAT = ExportFormat(
    name="openai",
    title="OpenAI messages (JSON Lines)",
    purpose="For fine-tuning, or as earlier turns of a chat: instruction, text and answer, one conversation per line.",
    file_name="messages.jsonl",
    media_type="application/jsonl",
    files=_files,
    keeps_disclosures=False,
)
