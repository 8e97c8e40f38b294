"""The set as a chat's messages in one JSON array, which most prompt tools and all chat servers accept."""

from __future__ import annotations

from mechanisms.demos.demo_set import to_text
from mechanisms.exports.chat import template
from mechanisms.exports.export_format import ExportFormat, ReleasedFile


def _files(released: ReleasedFile) -> str:
    return to_text(template(released.demo_set))


FORMAT = ExportFormat(
    name="messages",
    title="Messages of a chat (JSON)",
    purpose="For any chat model, and for promptfoo, MLflow and LangChain: instruction, demonstrations as turns, and "
    "{{text}} for your own text.",
    file_name="messages.json",
    media_type="application/json",
    files=_files,
    keeps_disclosures=False,
    without_demonstrations=True,
)
