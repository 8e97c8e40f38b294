"""What a set of demonstrations answers, in every way in which it can be read."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from mechanisms.inference import LanguageModel
from mechanisms.noise import Integers
from mechanisms.records import PromptTemplate
from mechanisms.studio.evaluation.classify import MAX_QUERY_TOKENS, Classifier
from mechanisms.studio.evaluation.evaluate import Arm

READINGS = RAW, CONTEXTUAL, PRIOR = "raw", "contextual", "prior"


def answers(
    model: LanguageModel,
    template: PromptTemplate,
    labels: Sequence[str],
    arm: Arm,
    texts: Sequence[str],
    max_query_tokens: int = MAX_QUERY_TOKENS,
) -> Generator[int, None, dict[str, Integers]]:
    """Classify texts under one prompt, whose keys and values the engine computes once; tells how many are done.

    Returns:
        For each reading the place of the answered label, shape (texts,): as the model gives it, with contextual
        calibration and, where the arm has a measured correction, with that.
    """
    classifier = Classifier(model, template, labels, arm.demonstrations, arm.prior, max_query_tokens)
    scores = yield from classifier.reading(texts)
    found = {RAW: scores, CONTEXTUAL: scores + classifier.contextual}
    if arm.prior is not None:
        found[PRIOR] = scores + np.array([arm.prior[label] for label in labels])
    return {reading: np.asarray(each.argmax(axis=1), dtype=np.int64) for reading, each in found.items()}
