"""Membership inference: whether a row was used for the demonstration in the prompt (Duan et al. 2023; Tang et al. 2024,
table 15; Gao et al. 2025, table 18; Bhusal et al. 2026, "Privacy Attacks").

A prompt shows one demonstration, written from member rows of a label of DBpedia; at epsilon infinity it is a member row
itself. Members and other rows of that label are scored by the probability of their own label (Duan et al.), and by the
gain in likelihood of their first words due to the demonstration. A figure is the area under the ROC curve, the
probability that a member scores above another row; chance is one half.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from mechanisms.data.disclosures import NO_NOISE, SCORED
from mechanisms.evaluation.classifier import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.embedder import load_embedder
from mechanisms.inference.prompts import QueryPrompt, first_tokens
from mechanisms.noise import Floats
from mechanisms.records import Demonstration, Record
from research.reproduction.cells import Cell, Preset
from research.reproduction.making import Maker
from research.reproduction.tasks import TASKS, rows_of, take_as_public
from research.texts import log_likelihoods

MECHANISM, EPSILONS, ROWS = "gaussian", (1.0, 2.0, 4.0, 8.0, math.inf), 50
FIGURES = ("label", "words")
PUBLISHED = {
    ("gaussian", "label", "GPT-3 Babbage: Tang et al. 2024"): {1: 50.56, 2: 50.58, 4: 50.55, 8: 50.53, math.inf: 81.84},
    ("adadpsyn", "label", "Llama 2 7B: Gao et al. 2025"): {1: 50.52, 2: 51.58, 4: 51.05, 8: 52.63, math.inf: 77.37},
    ("blended-logits", "label", "model not named: Bhusal et al. 2026"): {4: 51.78, math.inf: 94.20},
}
"""Areas in percent at each epsilon."""
_TASK = TASKS["dbpedia"]
_WORDS = 16
"""The number of first tokens of a row that are scored."""


@cache
def _rows(data: Path) -> tuple[Sequence[Record], Sequence[Record]]:
    """Members, and other rows of the same source."""
    both = [rows_of(data / "dbpedia" / f"{name}.csv", _TASK) for name in ("train", "test")]
    for rows, mark in zip(both, (NO_NOISE, SCORED), strict=True):
        take_as_public("dbpedia", rows, mark)
    return both[0], both[1]


def attack(model: LanguageModel, data: Path, preset: Preset, epsilon: float, rows: int) -> dict[str, float]:
    """One run: the areas for a demonstration written at this epsilon, or for real rows at infinity.

    Args:
        preset: gives the setting of DBpedia, and the one method that writes a text.
        rows: the number of scored members, and of other rows; at infinity also of prompts, each with another member.
    """
    pick, (members, others) = random.SystemRandom(), _rows(data)
    shown: Sequence[Demonstration] = ()
    if math.isfinite(epsilon):
        [method] = preset.methods
        maker = Maker(model, load_embedder, replace(preset, seed=pick.getrandbits(32)))
        shown = maker.make(Cell("dbpedia", method, epsilon, 1, 1), members).demonstrations
    label = shown[0].label if shown else pick.choice(_TASK.labels)
    own, strangers = ([row for row in each if row.label == label] for each in (members, others))
    known, unknown = (pick.sample(each, min(rows, len(each))) for each in (own, strangers))
    if not shown:
        found = [areas(scores(model, [Demonstration(row.text, label)], [row, *unknown]), 1) for row in known]
        return {name: float(np.mean([each[name] for each in found])) for name in FIGURES}
    return areas(scores(model, shown, [*known, *unknown]), len(known))


def scores(model: LanguageModel, shown: Sequence[Demonstration], rows: Sequence[Record]) -> dict[str, Floats]:
    """For each attack the rows' scores after the demonstrations, each of shape (rows,)."""
    classifier = Classifier(model, _TASK.reading, _TASK.labels, shown, max_query_tokens=_TASK.max_record_tokens)
    own = [_TASK.labels.index(row.label) for row in rows]
    label = classifier.log_probabilities([row.text for row in rows])[np.arange(len(rows)), own]
    return {"label": label, "words": _words(model, shown, rows) - _words(model, (), rows)}


def _words(model: LanguageModel, shown: Sequence[Demonstration], rows: Sequence[Record]) -> Floats:
    """The log-probability of each row's first words as the text of a query."""
    prompt = QueryPrompt(model, _TASK.reading, shown, _WORDS)
    asked = [[*prompt.head, *first_tokens(model, row.text, _WORDS)] for row in rows]
    return log_likelihoods(model, prompt.prefix, asked, len(prompt.head))


def areas(found: dict[str, Floats], members: int) -> dict[str, float]:
    """For each attack the share of pairs in which one of the first rows, the members, scores higher; ties count half.

    Args:
        found: the scores, each of shape (rows,).
        members: the number of members, which come first.
    """
    gaps = {name: each[:members, None] - each[None, members:] for name, each in found.items()}
    return {name: float((each > 0).mean() + (each == 0).mean() / 2) for name, each in gaps.items()}
