"""A data set folder of Hugging Face: the rows, a card, Croissant metadata, and the demo set with its certificate."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from mechanisms.accounting import cost_in_words
from mechanisms.demos.demo_set import DemoSet, to_text
from mechanisms.errors import UsageError, printable
from mechanisms.exports.certificate_page import label_of_facts
from mechanisms.exports.croissant import described
from mechanisms.exports.export_format import ExportFormat, Files, ReleasedFile, json_lines

ROWS, CARD, WHOLE, CROISSANT = "data.jsonl", "README.md", "demos.dpicl.json", "croissant.json"
_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K"}
"""The hub's size categories, by an upper bound on the number of rows."""
_LARGEST = "100K<n<1M"
_CARD = """\
---
{header}---

# Synthetic demonstrations

A local language model wrote these texts under DP-ICL Studio; nobody checked that they are true. {promise}

The whole certificate is in `{whole}`, under `privacy`: `python -m mechanisms account --from {whole}` checks it, and
prints the digest below.{directions}

{licence}

The instruction that they are shown behind:

{instruction}

What the certificate states:

{facts}
"""
_DIRECTIONS = """

`{whole}` also has, under `directions`, a released vector for each label, along which texts can be classified without a
language model."""
_UNLICENSED = "No licence is stated here: whoever publishes this chooses one that the model's terms allow."
_LICENSED = "Whoever published this chose the licence in the header; the model's terms may say more."


def _files(released: ReleasedFile) -> Files:
    made, words = released.demo_set, released.demo_set.words
    for said in (released.extras.licence, released.extras.language):
        if said is not None and not (said.isascii() and said.replace("-", "").replace(".", "").isalnum()):
            raise UsageError("Give licence and language as the hub names them, such as cc-by-4.0 and en.")
    rows = json_lines(
        {
            "text": each.text,
            "label": each.label,
            **({} if words is None else {"label_words": ", ".join(words.get(each.label, ()))}),
        }
        for each in made.demonstrations
    )
    about = described(released, ROWS, rows)
    return {ROWS: rows, CARD: _card(released), CROISSANT: to_text(about), WHOLE: released.text}


def _card(released: ReleasedFile) -> str:
    made = released.demo_set
    facts = [*(each for part in label_of_facts(made) for each in part.facts), ("Digest", released.digest, "")]
    return _CARD.format(
        header=yaml.safe_dump(_header(released), sort_keys=False),
        promise=_promise(made),
        whole=WHOLE,
        directions=_DIRECTIONS.format(whole=WHOLE) if made.directions else "",
        licence=_LICENSED if released.extras.licence else _UNLICENSED,
        instruction=_as_code(made.prompt.instruction.splitlines()),
        facts=_as_code(f"{name}: {value}{f' ({remark})' if remark else ''}" for name, value, remark in facts),
    )


def _as_code(lines: Iterable[str]) -> str:
    """Lines indented as code, so that text of the file is not interpreted as markup."""
    return "\n".join("    " + printable(each) for each in lines)


def _promise(made: DemoSet) -> str:
    held = made.certificate
    if not held.private:
        return "**They are not private**: they may repeat the rows they were written from."
    cost, unit = (
        cost_in_words(held.claim.epsilon, held.claim.delta),
        "all rows of one user" if held.by_user else "one row",
    )
    marked = " The curator has seen values of the data without noise, so that later choices may depend on it."
    return f"They are differentially private: {cost}, for {unit}." + (marked if held.disclosures else "")


def _header(released: ReleasedFile) -> dict[str, object]:
    made, added = released.demo_set, released.extras
    size = next((name for fewer, name in _SIZES.items() if len(made.demonstrations) < fewer), _LARGEST)
    return {
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": ROWS}]}],
        "pretty_name": f"Synthetic {printable(made.wording.kind)}s",
        **({"license": added.licence} if added.licence else {}),
        **({"language": [added.language]} if added.language else {}),
        "task_categories": ["text-classification" if len(made.labels) > 1 else "text-generation"],
        "size_categories": [size],
        "annotations_creators": ["machine-generated"],
        "tags": ["synthetic", *(["differential-privacy"] if made.certificate.private else [])],
    }


FORMAT = ExportFormat(
    name="hugging-face",
    title="Hugging Face data set (folder)",
    purpose="For the datasets library and the hub: rows, a card and Croissant metadata with the promise, and the "
    "certificate.",
    file_name="dataset.zip",
    media_type="application/zip",
    files=_files,
    correction="the demo set beside the rows",
    takes=("licence", "language"),
)
