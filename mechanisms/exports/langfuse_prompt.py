"""A chat prompt of Langfuse: the body of the request that creates it."""

from __future__ import annotations

from mechanisms.demos.demo_set import to_text
from mechanisms.exports.chat import response_format, template
from mechanisms.exports.export_format import ExportFormat, ReleasedFile, provenance


def _files(released: ReleasedFile) -> str:
    made = released.demo_set
    return to_text(
        {
            "name": "dpicl-demonstrations",
            "type": "chat",
            "prompt": template(made),
            "config": {**response_format(made), "dpicl": provenance(released)},
            "labels": [],  # a file must not decide which version is in production
            "tags": ["synthetic", *(["differential-privacy"] if made.certificate.private else [])],
        }
    )


FORMAT = ExportFormat(
    name="langfuse",
    title="Langfuse chat prompt (JSON)",
    purpose="For Langfuse: what its API takes to create a chat prompt, with the promise in the prompt's config.",
    file_name="langfuse_prompt.json",
    media_type="application/json",
    files=_files,
    correction="config.dpicl.prior",
    without_demonstrations=True,
)
