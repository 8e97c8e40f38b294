"""What the model makes of private texts: label probabilities under a set, and what units contribute to tallies.

A record's numbers follow from the record, the set and the model alone. Where they are not finite it contributes
nothing, and to a score "wrong": nothing that a record does can stop or alter more than its own contribution.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats
from mechanisms.studio.data.units import Unit
from mechanisms.studio.evaluation.classify import Classifier
from mechanisms.studio.recipes.corrections import probabilities
from mechanisms.studio.recipes.events import CandidateSet
from mechanisms.tallies import mean_contribution


class Reader:
    """A model reading private texts under any of the candidate sets."""

    def __init__(self, model: LanguageModel, labels: Sequence[str], max_record_tokens: int) -> None:
        self._model, self._labels, self._cap = model, labels, max_record_tokens
        self._classifiers: dict[str, Classifier] = {}

    def under(self, candidate: CandidateSet) -> Classifier:
        """The classifier with a set."""
        if candidate.name not in self._classifiers:
            self._classifiers[candidate.name] = Classifier(
                self._model,
                candidate.template,
                self._labels,
                candidate.demonstrations,
                max_query_tokens=self._cap,
            )
        return self._classifiers[candidate.name]

    def truth(self, units: Sequence[Unit]) -> NDArray[np.int64]:
        """Positions of the labels of all records, unit by unit."""
        place = {label: i for i, label in enumerate(self._labels)}
        return np.array([place[record.label] for unit in units for record in unit], dtype=np.int64)

    def read(self, candidate: CandidateSet, units: Sequence[Unit]) -> Generator[int, None, Floats]:
        """Log-probabilities of all records, unit by unit, shape (records, labels); tells how many are done."""
        return self.under(candidate).reading([record.text for unit in units for record in unit])


def of_units(of_records: Floats, units: Sequence[Unit]) -> Floats:
    """Contributions of units, shape (units, k), from those of their records, shape (records, k)."""
    parts, start = [np.empty((0, of_records.shape[1]))], 0
    for unit in units:
        parts.append(mean_contribution(of_records[start : start + len(unit)])[None])
        start += len(unit)
    return np.concatenate(parts)


def preferences(scores: Floats, correction: Floats) -> Floats:
    """For a prior: each record's label probabilities, shape (records, labels); zeros where they are not finite."""
    found = probabilities(scores, correction)
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)


def right(scores: Floats, correction: Floats, truth: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For a choice or a score: whether each record's own label is the likeliest, shape (records,).

    A choice by the label's probability, which is as cheap, was found to choose worse (docs/worth.md).
    """
    finite = np.isfinite(scores).all(axis=1)
    return np.asarray(finite & ((scores + correction).argmax(axis=1) == truth))
