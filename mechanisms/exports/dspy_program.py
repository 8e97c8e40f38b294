"""The state of a `dspy.Predict` for its `load`: signature and demonstrations."""

from __future__ import annotations

from mechanisms.demos.demo_set import to_text
from mechanisms.exports.export_format import ExportFormat, ReleasedFile, provenance


def _files(released: ReleasedFile) -> str:
    made = released.demo_set
    names = {"text": made.template.text, "label": made.template.label}
    state = {
        "traces": [],
        "train": [],
        "demos": [{"text": each.text, "label": each.label} for each in made.demonstrations],
        "signature": {
            "instructions": made.prompt.instruction,
            "fields": [{"prefix": f"{shown}:", "description": f"${{{name}}}"} for name, shown in names.items()],
        },
        "lm": None,
        # Without versions, so that `load` has none to compare.
        "metadata": {"dependency_versions": {}, "dpicl": provenance(released)},
    }
    return to_text(state)


FORMAT = ExportFormat(
    name="dspy",
    title="DSPy program (JSON)",
    purpose="For DSPy: a state that dspy.Predict loads, with instruction and demonstrations.",
    file_name="program.json",
    media_type="application/json",
    files=_files,
    correction="metadata.dpicl.prior",
    without_demonstrations=True,
)
