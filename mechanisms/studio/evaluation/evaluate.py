"""Accuracy of a demo set beside its baselines, on a labelled test file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel
from mechanisms.records import Demonstration, PromptTemplate, Record
from mechanisms.studio.evaluation.classify import Classifier, Prediction

ZERO_SHOT, PUBLIC_ONLY, PRIVATE = "zero-shot", "public-only", "private demonstrations"


@dataclass(frozen=True)
class Accuracy:
    """Correct answers out of a total, with the 95% Wilson interval."""

    correct: int
    total: int

    @property
    def value(self) -> float:
        """Share of correct answers."""
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval (Wilson 1927)."""
        interval = binomtest(self.correct, self.total).proportion_ci(0.95, method="wilson")
        return float(interval.low), float(interval.high)


@dataclass(frozen=True)
class Scorecard:
    """How one set of demonstrations does.

    Attributes:
        confusion: counts, true label by predicted label (calibrated), shape (labels, labels).
    """

    name: str
    raw: Accuracy
    calibrated: Accuracy
    confusion: NDArray[np.int64]


@dataclass(frozen=True)
class Progress:
    """Test rows done, of all rows of all arms."""

    done: int
    total: int


def evaluate(
    model: LanguageModel,
    template: PromptTemplate,
    labels: Sequence[str],
    arms: Sequence[tuple[str, Sequence[Demonstration]]],
    test: Sequence[Record],
) -> Iterator[Progress | Scorecard]:
    """Classify the test rows with each set of demonstrations in turn.

    Raises:
        UsageError: no test row has one of the labels.
    """
    known = [record for record in test if record.label in labels]
    if not known:
        raise UsageError(f"No test row has one of the labels {', '.join(labels)}.")
    truth = np.array([list(labels).index(record.label) for record in known])
    total, done = len(arms) * len(known), 0
    for name, demonstrations in arms:
        classifier = Classifier(model, template, labels, demonstrations)
        predictions: list[Prediction] = []
        for prediction in classifier.predict([record.text for record in known]):
            predictions.append(prediction)
            done += 1
            if done % 16 == 0:
                yield Progress(done, total)
        yield _scorecard(name, truth, predictions, len(labels))


def _scorecard(name: str, truth: NDArray[np.int64], predictions: Sequence[Prediction], labels: int) -> Scorecard:
    raw = np.array([prediction.raw.argmax() for prediction in predictions])
    calibrated = np.array([prediction.calibrated.argmax() for prediction in predictions])
    confusion = np.zeros((labels, labels), dtype=np.int64)
    np.add.at(confusion, (truth, calibrated), 1)
    total = len(truth)
    return Scorecard(
        name, Accuracy(int((raw == truth).sum()), total), Accuracy(int((calibrated == truth).sum()), total), confusion
    )
