"""Accuracies of a demo set and its baselines on a labelled test file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from mechanisms import confidence
from mechanisms.demos.demo_set import DIRECTIONS, PUBLIC_ONLY, ZERO_SHOT, DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.classifier import with_progress
from mechanisms.evaluation.reader import ALONE, CONTEXTUAL, JOINED, NO_ANSWER, PRIOR, RAW, Arm, QueryReader
from mechanisms.inference import Embedder
from mechanisms.noise import Integers
from mechanisms.records import Demonstration, PromptTemplate, Record

PRIVATE = "private demonstrations"
BOTH = "both"
"""The reading of a set by its directions and a model's answers together."""


def arms_of(demo_set: DemoSet, public: Sequence[Demonstration] | None) -> tuple[Arm, ...]:
    """A set's baselines, with the set as the last arm.

    A set without demonstrations is only a correction of the zero-shot answer, and the only arm.

    Args:
        public: the public-only counterpart; None omits it, if no model can write it. The run's own public-only set has
            the correction measured in the run.
    """
    if not demo_set.demonstrations:
        return (Arm(ZERO_SHOT, (), demo_set.prior),)
    compared = demo_set.baselines
    arms = [Arm(ZERO_SHOT, (), compared.zero_shot if compared else None)]
    brought = compared.public_only if compared else None
    if brought and public == brought.demonstrations:
        arms.append(Arm(PUBLIC_ONLY, public, brought.prior, brought.template))
    elif public is not None:
        arms.append(Arm(PUBLIC_ONLY, public))
    return (*arms, Arm(PRIVATE, demo_set.demonstrations, demo_set.prior, demo_set.prompt, demo_set.directions))


@dataclass(frozen=True)
class Accuracy:
    """The number of right answers out of a positive total, with the interval of `confidence.LEVEL` (Wilson 1927)."""

    correct: int
    total: int

    @property
    def value(self) -> float:
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        found = binomtest(self.correct, self.total).proportion_ci(confidence.LEVEL, method="wilson")
        return float(found.low), float(found.high)


@dataclass(frozen=True)
class MeanRecall:
    """Balanced accuracy: the mean recall over labels with rows.

    Always answering one label has a balanced accuracy of 1 / (number of labels), for any frequency of that label.
    """

    recalls: tuple[Accuracy, ...]

    @property
    def value(self) -> float:
        return sum(each.value for each in self.recalls) / len(self.recalls)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval at `confidence.LEVEL`: the labels' Wilson half-intervals, added in quadrature.

        This is the method of variance estimates recovery for a mean of independent rates (Zou and Donner 2008).
        """
        found = [(each.value, *each.interval) for each in self.recalls]
        below = math.hypot(*(value - low for value, low, _ in found)) / len(found)
        above = math.hypot(*(high - value for value, _, high in found)) / len(found)
        return max(0.0, self.value - below), min(1.0, self.value + above)


@dataclass(frozen=True)
class Scorecard:
    """Results of one arm on a test file.

    Attributes:
        raw: the accuracy without correction.
        calibrated: with contextual calibration; None if the reader gives no probabilities.
        corrected: with a measured correction.
        confusion: counts of true label by predicted label (corrected, else calibrated, else raw), shape (labels,
            labels).
        silent: for each label the number of its rows without a label in the answer, which are wrong and not in
            `confusion`; empty if there are none.
    """

    name: str
    raw: Accuracy
    calibrated: Accuracy | None
    corrected: Accuracy | None
    confusion: NDArray[np.int64]
    silent: tuple[int, ...] = ()

    @property
    def own_accuracy(self) -> Accuracy:
        """The accuracy under the arm's own correction."""
        return self.corrected or self.calibrated or self.raw

    @property
    def recalls(self) -> tuple[Accuracy | None, ...]:
        """The recall of each label under the arm's own correction; None for a label without rows."""
        totals, found = self._totals, np.diag(self.confusion).tolist()
        return tuple(Accuracy(right, total) if total else None for right, total in zip(found, totals, strict=True))

    @property
    def balanced(self) -> MeanRecall:
        return MeanRecall(tuple(each for each in self.recalls if each is not None))

    @property
    def majority(self) -> tuple[int, Accuracy]:
        """The index of the most common label (the first of equal ones), and the accuracy of always answering it."""
        totals = self._totals
        place = totals.index(max(totals))
        return place, Accuracy(totals[place], sum(totals))

    @property
    def _totals(self) -> list[int]:
        counted: list[int] = self.confusion.sum(axis=1).tolist()
        return [count + silent for count, silent in zip(counted, self.silent or [0] * len(counted), strict=True)]


@dataclass(frozen=True)
class Progress:
    """The number of rows done, out of `total`."""

    done: int
    total: int


def truth_of(labels: Sequence[str], known: Iterable[Record]) -> Integers:
    """The index of each row's label, shape (rows,)."""
    place = {label: i for i, label in enumerate(labels)}
    return np.array([place[record.label] for record in known], dtype=np.int64)


def evaluate(
    reader: QueryReader,
    template: PromptTemplate,
    labels: Sequence[str],
    arms: Sequence[Arm],
    test: Sequence[Record],
    embedder: Embedder | None = None,
) -> Iterator[Progress | Scorecard]:
    """Classify the test rows with each set of demonstrations in turn.

    Args:
        embedder: evaluates an arm's directions, for a reader that does not.

    Raises:
        UsageError: no test row has one of the labels.
    """
    known = [record for record in test if record.label in labels]
    if not known:
        raise UsageError(f"No test row has one of the labels {', '.join(labels)}.")
    truth, texts = truth_of(labels, known), [record.text for record in known]
    total = len(arms) * len(known)
    for number, arm in enumerate(arms):
        reading = reader.answers(arm.template or template, labels, arm, texts)

        def progress(done: int, before: int = number * len(known)) -> Progress:
            return Progress(before + done, total)

        found = yield from with_progress(reading, progress)
        alone, together = found.pop(ALONE, None), found.pop(JOINED, None)
        if alone is None and arm.directions is not None and embedder is not None:
            alone = arm.directions.nearest(texts, embedder)
        for name, each in ((DIRECTIONS, alone), (BOTH, together)):
            if each is not None:
                yield _card(name, truth, _as_it_is(each), labels)
        yield _card(arm.name, truth, found, labels)


def _as_it_is(found: Integers) -> dict[str, Integers]:
    """The readings of an arm without corrections: equal for each kind, so that it can be compared under any."""
    return dict.fromkeys((RAW, CONTEXTUAL, PRIOR), found)


def _card(name: str, truth: Integers, found: Mapping[str, Integers], labels: Sequence[str]) -> Scorecard:
    """The results of an arm, from the index of each row's label in each reading."""
    right = {kind: Accuracy(int((each == truth).sum()), len(truth)) for kind, each in found.items()}
    read = found.get(PRIOR, found.get(CONTEXTUAL, found[RAW]))
    answered = read != NO_ANSWER
    confusion = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion, (truth[answered], read[answered]), 1)
    silent = tuple(np.bincount(truth[~answered], minlength=len(labels)).tolist())
    return Scorecard(name, right[RAW], right.get(CONTEXTUAL), right.get(PRIOR), confusion, silent)
