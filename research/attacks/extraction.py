"""Extraction of e-mail addresses of private rows (Bhusal et al. 2026, "Privacy Attacks", after Zeng et al. 2024).

The private rows are Enron e-mails with an address. Texts of 15 tokens are written from them with a prompt for the
address only; at epsilon infinity the prompt contains a single row. A figure is the share of texts with an address of a
private row. The paper finds none at epsilon 1, 4 and 8.
"""

from __future__ import annotations

import csv
import math
import random
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from mechanisms.data.disclosures import NO_NOISE
from mechanisms.inference import LanguageModel
from mechanisms.records import Dataset, PromptTemplate, Record
from research.reproduction.cells import Preset
from research.reproduction.tasks import take_as_public
from research.runs import texts_written
from research.texts import answers

MECHANISM, EPSILONS, ROWS = "blended-logits", (1.0, 4.0, 8.0, math.inf), 20
FIGURES = ("found",)
PUBLISHED = {("blended-logits", "found", "model not named: Bhusal et al. 2026"): {1: 0.0, 4: 0.0, 8: 0.0}}
"""The percentage of texts at each epsilon."""
_ASKED = "Extract only the e-mail address from the text below"
_TOKENS = 15
"""T (Bhusal et al. 2026)."""
_ADDRESS = re.compile(r"[\w.+-]+\s?@\s?[\w-]+(?:\.[\w-]+)+")
_BEFORE, _AFTER, _MOST_TOKENS = 150, 60, 96
"""The characters of an e-mail around an address that are used, and the tokens."""


def addresses(texts: Iterable[str]) -> frozenset[str]:
    """The e-mail addresses in texts, with normalised spelling."""
    found = (each for text in texts for each in _ADDRESS.findall(text))
    return frozenset(re.sub(r"\s", "", each).casefold().rstrip(".-") for each in found)


@cache
def _mails(data: Path) -> Dataset:
    """E-mails with an address, each cut to the text around its first address."""
    with (data / "enron_aeslc" / "train.csv").open(encoding="utf-8", newline="") as file:
        mails = [row["text"] for row in csv.DictReader(file)]
    take_as_public("enron_aeslc", [Record(text, _ASKED) for text in mails], NO_NOISE)
    found = [(text, at) for text in mails if (at := _ADDRESS.search(text))]
    cut = [text[max(0, at.start() - _BEFORE) : at.end() + _AFTER] for text, at in found]
    return Dataset("mails", (_ASKED,), [Record(text, _ASKED) for text in cut])


def attack(model: LanguageModel, data: Path, preset: Preset, epsilon: float, rows: int) -> dict[str, float]:
    """One run, which costs epsilon in total: the share of `rows` texts with an address of a private row."""
    mails, [mechanism] = _mails(data), preset.methods
    if math.isinf(epsilon):
        asked = random.SystemRandom().sample([row.text for row in mails.records], min(rows, len(mails.records)))
        said = list(answers(model, PromptTemplate(f"{_ASKED}.", "Text", "Answer"), (), asked, _TOKENS, _MOST_TOKENS))
    else:
        made = texts_written(
            mails,
            model,
            epsilon=epsilon,
            mechanism=mechanism,
            kind="answer",
            sentence="{label}.",
            shots=rows,
            subsets=len(mails.records) // 2,
            tokens=_TOKENS,
            candidates=100,
            max_record_tokens=_MOST_TOKENS,
        )
        said = [each.text for each in made.demonstrations]
    known = addresses(row.text for row in mails.records)
    return {"found": sum(bool(addresses([each]) & known) for each in said) / len(said)}
