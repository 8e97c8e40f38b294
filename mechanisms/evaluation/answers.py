"""What a set of demonstrations answers, in every way in which a model of this machine can read it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.evaluation.classify import MAX_QUERY_TOKENS, Classifier
from mechanisms.evaluation.reader import CONTEXTUAL, PRIOR, RAW, Arm
from mechanisms.inference import LanguageModel
from mechanisms.noise import Integers
from mechanisms.records import PromptTemplate


@dataclass(frozen=True)
class LocalReader:
    """See `QueryReader`; every answer is the likeliest label.

    Attributes:
        max_query_tokens: public cap on the tokens of a text.
    """

    model: LanguageModel
    max_query_tokens: int = MAX_QUERY_TOKENS

    @property
    def name(self) -> str:
        """See `QueryReader.name`."""
        return self.model.name

    def answers(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Generator[int, None, dict[str, Integers]]:
        """See `QueryReader.answers`: as the model gives it, calibrated and, where one was measured, corrected.

        The engine computes the prompt's keys and values once.
        """
        classifier = Classifier(self.model, template, labels, arm.demonstrations, arm.prior, self.max_query_tokens)
        scores = yield from classifier.reading(texts)
        found = {RAW: scores, CONTEXTUAL: scores + classifier.contextual}
        if arm.prior is not None:
            found[PRIOR] = scores + np.array([arm.prior[label] for label in labels])
        return {reading: np.asarray(each.argmax(axis=1), dtype=np.int64) for reading, each in found.items()}
