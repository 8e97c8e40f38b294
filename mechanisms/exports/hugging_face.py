"""A data set folder of Hugging Face: the rows, a card, and the demo set with its certificate."""

from __future__ import annotations

import yaml

from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import printable
from mechanisms.exports.certificate_page import label_of_facts
from mechanisms.exports.export_format import ExportFormat, Files, Released, json_lines

ROWS, CARD, WHOLE = "data.jsonl", "README.md", "demos.dpicl.json"
_CARD = """\
---
{header}---

# Synthetic demonstrations with a privacy certificate

A local language model wrote these texts under DP-ICL Studio; nobody checked that they are true. {promise} The whole
certificate is in `{whole}`: `python -m mechanisms account --from {whole}` checks it, and prints the digest below.

No licence is stated here: whoever publishes this chooses one that the model's terms allow.

What the certificate states:

{facts}
"""


def _files(released: Released) -> Files:
    made = released.demo_set
    rows = [{"text": each.text, "label": each.label} for each in made.demonstrations]
    return {ROWS: json_lines(rows), CARD: _card(released), WHOLE: released.text}


def _card(released: Released) -> str:
    made = released.demo_set
    facts = [*(each for part in label_of_facts(made) for each in part.facts), ("Digest", released.digest, "")]
    # Indented, so that names and models from the file are not read as markup.
    lines = ["    " + printable(f"{name}: {value}{f' ({remark})' if remark else ''}") for name, value, remark in facts]
    return _CARD.format(
        header=yaml.safe_dump(_header(made), sort_keys=False),
        promise=_promise(made),
        whole=WHOLE,
        facts="\n".join(lines),
    )


def _promise(made: DemoSet) -> str:
    if not made.certificate.private:
        return "**They are not private**: they may repeat the rows they were written from."
    marked = " The curator has seen values of the data without noise, so that later choices may depend on it."
    return "They are differentially private." + (marked if made.certificate.disclosures else "")


def _header(made: DemoSet) -> dict[str, object]:
    return {
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": ROWS}]}],
        "task_categories": ["text-classification" if len(made.labels) > 1 else "text-generation"],
        "annotations_creators": ["machine-generated"],
        "tags": ["synthetic", *(["differential-privacy"] if made.certificate.private else [])],
    }


FORMAT = ExportFormat(
    name="hugging-face",
    title="Hugging Face data set (folder)",
    purpose="For the datasets library and the hub: rows, a card with the promise, and the certificate.",
    file_name="dataset.zip",
    media_type="application/zip",
    files=_files,
    correction="the demo set beside the rows",
)
