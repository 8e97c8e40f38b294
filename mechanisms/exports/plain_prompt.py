"""A prompt as text, equal to this app's own prompts."""

from __future__ import annotations

from mechanisms.exports.export_format import ExportFormat, ReleasedFile, on_lines
from mechanisms.inference import QueryWords


def _files(released: ReleasedFile) -> str:
    template = released.demo_set.prompt
    words = QueryWords(template, on_lines(released.demo_set))
    return words.as_text(f"[your {template.text.lower()}]") + "\n"


FORMAT = ExportFormat(
    name="prompt",
    title="Plain prompt (text)",
    purpose="To paste into any chat: instruction, demonstrations, and a place for your own text at the end.",
    file_name="prompt.txt",
    media_type="text/plain",
    files=_files,
    keeps_disclosures=False,
    without_demonstrations=True,
)
