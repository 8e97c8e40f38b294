"""Accuracy of a demo set beside its baselines, on a labelled test file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats
from mechanisms.records import Demonstration, PromptTemplate, Record
from mechanisms.studio.evaluation.classify import Classifier, Prediction
from mechanisms.studio.synthesis.demo_set import DemoSet

ZERO_SHOT, PUBLIC_ONLY, PRIVATE = "zero-shot", "public-only", "private demonstrations"


@dataclass(frozen=True)
class Arm:
    """Demonstrations, and the measured correction that they are read with; None where none was measured for them."""

    name: str
    demonstrations: Sequence[Demonstration]
    prior: Mapping[str, float] | None = None


def arms_of(demo_set: DemoSet, public: Sequence[Demonstration]) -> tuple[Arm, ...]:
    """What a set is compared with, and the set itself as the last one.

    A set without demonstrations is a way to read the zero-shot answer, and its only arm.

    Args:
        public: the set's counterpart, written without the data.
    """
    if not demo_set.demonstrations:
        return (Arm(ZERO_SHOT, (), demo_set.prior),)
    return (
        Arm(ZERO_SHOT, (), demo_set.choice.zero_shot if demo_set.choice else None),
        Arm(PUBLIC_ONLY, public),
        Arm(PRIVATE, demo_set.demonstrations, demo_set.prior),
    )


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
        corrected: with the measured correction; None where there is none.
        confusion: counts, true label by predicted label (corrected, else calibrated), shape (labels, labels).
    """

    name: str
    raw: Accuracy
    calibrated: Accuracy
    corrected: Accuracy | None
    confusion: NDArray[np.int64]

    @property
    def read(self) -> Accuracy:
        """By the correction that the arm is read with."""
        return self.corrected or self.calibrated


@dataclass(frozen=True)
class Progress:
    """Rows done, of all that are to be read."""

    done: int
    total: int


def known_rows(labels: Sequence[str], test: Sequence[Record]) -> list[Record]:
    """The test rows that have one of the labels.

    Raises:
        UsageError: there are none.
    """
    known = [record for record in test if record.label in labels]
    if not known:
        raise UsageError(f"No test row has one of the labels {', '.join(labels)}.")
    return known


def truth_of(labels: Sequence[str], known: Sequence[Record]) -> NDArray[np.int64]:
    """The place of each row's label, shape (rows,)."""
    return np.array([list(labels).index(record.label) for record in known])


def evaluate(
    model: LanguageModel,
    template: PromptTemplate,
    labels: Sequence[str],
    arms: Sequence[Arm],
    test: Sequence[Record],
) -> Iterator[Progress | Scorecard]:
    """Classify the test rows with each set of demonstrations in turn.

    Raises:
        UsageError: no test row has one of the labels.
    """
    known = known_rows(labels, test)
    truth = truth_of(labels, known)
    total, done = len(arms) * len(known), 0
    for arm in arms:
        classifier = Classifier(model, template, labels, arm.demonstrations, arm.prior)
        predictions: list[Prediction] = []
        for prediction in classifier.predict([record.text for record in known]):
            predictions.append(prediction)
            done += 1
            if done % 16 == 0:
                yield Progress(done, total)
        yield _scorecard(arm.name, truth, predictions, len(labels))


def _scorecard(name: str, truth: NDArray[np.int64], predictions: Sequence[Prediction], labels: int) -> Scorecard:
    confusion = np.zeros((labels, labels), dtype=np.int64)
    np.add.at(confusion, (truth, [each.answer.argmax() for each in predictions]), 1)
    corrected = [each.corrected for each in predictions if each.corrected is not None]
    return Scorecard(
        name,
        raw=_accuracy(truth, [each.raw for each in predictions]),
        calibrated=_accuracy(truth, [each.calibrated for each in predictions]),
        corrected=_accuracy(truth, corrected) if corrected else None,
        confusion=confusion,
    )


def _accuracy(truth: NDArray[np.int64], probabilities: Sequence[Floats]) -> Accuracy:
    return Accuracy(int((np.argmax(probabilities, axis=1) == truth).sum()), len(truth))
