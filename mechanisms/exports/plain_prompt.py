"""A prompt as text, with the words of this app's own prompts."""

from __future__ import annotations

from mechanisms.exports.export_format import ExportFormat, Files, Released, Wording

FILE_NAME = "prompt.txt"


def _files(released: Released) -> Files:
    wording = Wording.of(released.demo_set)
    only = released.demo_set.labels[0] if wording.turned else f"[your {wording.template.text.lower()}]"
    return {FILE_NAME: wording.words().whole(only) + "\n"}


FORMAT = ExportFormat(
    name="prompt",
    title="Plain prompt (text)",
    purpose="To paste into any chat: instruction, demonstrations, and a place for your own text at the end.",
    file_name=FILE_NAME,
    media_type="text/plain",
    files=_files,
    keeps_disclosures=False,
    without_demonstrations=True,
)
