"""What a threshold does, on public or bundled text: how many rows would take part in a question, and pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.data.columns import to_records
from mechanisms.data.examples import Example
from mechanisms.data.files import read_table
from mechanisms.inference import Embedder
from mechanisms.queries.similarity import similarities

THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
_QUESTIONS, _ROWS = 20, 200


@dataclass(frozen=True)
class ThresholdEffect:
    """What one threshold does.

    Attributes:
        share: mean share of the rows that a question reaches.
        busiest: share of the questions that reach the row reached most often: times the number of questions, how many
            answers (`queries`) keep that row from falling silent.
        unanswered: share of the questions that reach no row.
    """

    threshold: float
    share: float
    busiest: float
    unanswered: float


def threshold_effect(
    rows: Sequence[str], questions: Sequence[str], embedder: Embedder, thresholds: Sequence[float] = THRESHOLDS
) -> tuple[ThresholdEffect, ...]:
    """Compare questions with rows, both of them public: on private rows the result would be private too."""
    vectors = embedder.embed(rows)
    similar = np.stack([similarities(vectors, question) for question in embedder.embed(questions)])
    return tuple(_effect(threshold, similar >= threshold) for threshold in thresholds)


def threshold_effect_on_example(example: Example, embedder: Embedder) -> tuple[ThresholdEffect, ...]:
    """The same on a bundled file, a few of whose rows stand for questions."""
    texts = [record.text for record in to_records(read_table(example.path), example.mapping)]
    return threshold_effect(texts[_QUESTIONS : _QUESTIONS + _ROWS], texts[:_QUESTIONS], embedder)


def _effect(threshold: float, reached: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> ThresholdEffect:
    return ThresholdEffect(
        threshold=threshold,
        share=float(reached.mean()),
        busiest=float(reached.mean(axis=0).max()),
        unanswered=float((~reached.any(axis=1)).mean()),
    )
