"""In-context classification with contextual calibration (Zhao et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from mechanisms.inference import LanguageModel, QueryPrompt, Session
from mechanisms.noise import Floats
from mechanisms.records import Demonstration, PromptTemplate

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Queries without content: what the prompt alone makes the model say (Zhao et al. 2021, section 5)."""

MAX_QUERY_TOKENS = 96
_BATCH = 16


@dataclass(frozen=True)
class Prediction:
    """Probabilities over the labels, as the model gives them and calibrated, each of shape (labels,)."""

    raw: Floats
    calibrated: Floats


class Classifier:
    """A model with a task and demonstrations; knows nothing private.

    A query's scores do not depend on the other queries: each is padded to the same length.
    """

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        labels: Sequence[str],
        demonstrations: Sequence[Demonstration],
    ) -> None:
        self._model = model
        self._prompt = QueryPrompt(model, template, demonstrations, MAX_QUERY_TOKENS)
        self._labels = [self._prompt.label(label) for label in labels]
        self._bias = logsumexp(self._scores(list(CONTENT_FREE)), axis=0) - np.log(len(CONTENT_FREE))

    def predict(self, queries: Sequence[str]) -> Iterator[Prediction]:
        """Classify queries, a batch at a time."""
        for start in range(0, len(queries), _BATCH):
            for scores in self._scores(list(queries[start : start + _BATCH])):
                yield Prediction(np.asarray(softmax(scores)), np.asarray(softmax(scores - self._bias)))

    def _scores(self, queries: list[str]) -> Floats:
        """Log-probabilities of the labels, normalised over the labels; shape (queries, labels)."""
        room = max(len(label) for label in self._labels)
        rows = [self._prompt.row(query) for query in queries]
        session: Session = self._model.open(self._prompt.prefix, rows, self._prompt.length, room)
        scores = np.stack([session.score(label) for label in self._labels], axis=1)
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))
