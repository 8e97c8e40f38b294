"""Accuracy of a demo set beside its baselines, on a labelled test file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms import confidence
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import CONTEXTUAL, NO_ANSWER, PRIOR, RAW, Arm, QueryReader
from mechanisms.records import Demonstration, PromptTemplate, Record

Places = NDArray[np.int64]
"""Of labels in the label set, one a row."""

ZERO_SHOT, PUBLIC_ONLY, PRIVATE = "zero-shot", "public-only", "private demonstrations"


def arms_of(demo_set: DemoSet, public: Sequence[Demonstration] | None) -> tuple[Arm, ...]:
    """What a set is compared with, and the set itself as the last one.

    A set without demonstrations is a way to read the zero-shot answer, and its only arm.

    Args:
        public: the set's counterpart, written without the data; None where nothing can write it, which leaves it out.
            Where it is the one that stood in the set's choice, it is read with the correction measured for it there.
    """
    if not demo_set.demonstrations:
        return (Arm(ZERO_SHOT, (), demo_set.prior),)
    choice = demo_set.choice
    arms = [Arm(ZERO_SHOT, (), choice.zero_shot if choice else None)]
    brought = choice.public_only if choice else None
    if brought and public == brought.demonstrations:
        arms.append(Arm(PUBLIC_ONLY, public, brought.prior, brought.template))
    elif public is not None:
        arms.append(Arm(PUBLIC_ONLY, public))
    return (*arms, Arm(PRIVATE, demo_set.demonstrations, demo_set.prior))


@dataclass(frozen=True)
class Accuracy:
    """Correct answers out of a total, with the Wilson interval of `confidence.LEVEL`.

    What is correct in part counts in part. Of all that lies in [0, 1] with one mean, right or wrong varies most, so
    that the interval is then wider than it need be.
    """

    correct: float
    total: int

    @property
    def value(self) -> float:
        """Share of correct answers."""
        return self.correct / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """Of `confidence.LEVEL` (Wilson 1927)."""
        return _wilson_low(self.correct, self.total), 1.0 - _wilson_low(self.total - self.correct, self.total)


def _wilson_low(correct: float, total: int) -> float:
    """The lower end; the upper end is that of what is wrong, taken from 1."""
    if correct == 0:
        return 0.0
    errors = confidence.standard_errors()
    spread = errors * math.sqrt(correct * (total - correct) / total + errors**2 / 4)
    return max(0.0, (correct + errors**2 / 2 - spread) / (total + errors**2))


@dataclass(frozen=True)
class MeanRecall:
    """Balanced accuracy: the mean, over labels that have rows, of the share of a label's rows that are found.

    Naming one label every time has one over the number of labels, however common that label is.
    """

    recalls: tuple[Accuracy, ...]

    @property
    def value(self) -> float:
        """The mean."""
        return sum(each.value for each in self.recalls) / len(self.recalls)

    @property
    def interval(self) -> tuple[float, float]:
        """Of `confidence.LEVEL`: from the labels' own Wilson intervals, whose halves add up as variances do.

        That is the method of variance estimates recovery (Zou and Donner 2008), for a mean of independent rates.
        """
        below = math.hypot(*(each.value - each.interval[0] for each in self.recalls)) / len(self.recalls)
        above = math.hypot(*(each.interval[1] - each.value for each in self.recalls)) / len(self.recalls)
        return max(0.0, self.value - below), min(1.0, self.value + above)


@dataclass(frozen=True)
class Scorecard:
    """How one set of demonstrations does.

    Attributes:
        raw: as the reader answers.
        calibrated: with contextual calibration; None where the reader gives no probabilities.
        corrected: with the measured correction; None where there is none.
        confusion: counts, true label by predicted label (corrected, else calibrated, else raw), shape (labels, labels).
        silent: of each label, rows that were answered with no label: wrong, and not in the counts; empty for none.
    """

    name: str
    raw: Accuracy
    calibrated: Accuracy | None
    corrected: Accuracy | None
    confusion: NDArray[np.int64]
    silent: tuple[int, ...] = ()

    @property
    def read(self) -> Accuracy:
        """By the correction that the arm is read with."""
        return self.corrected or self.calibrated or self.raw

    @property
    def recalls(self) -> tuple[Accuracy | None, ...]:
        """Of each label, how many of its rows are found, read as `read`; None where there is no row of it."""
        totals, found = self._totals, np.diag(self.confusion).tolist()
        return tuple(Accuracy(right, total) if total else None for right, total in zip(found, totals, strict=True))

    @property
    def balanced(self) -> MeanRecall:
        """Balanced accuracy, read as `read`."""
        return MeanRecall(tuple(each for each in self.recalls if each is not None))

    @property
    def majority(self) -> tuple[int, Accuracy]:
        """The commonest label's place, the first of equal ones, and what naming it every time would find."""
        totals = self._totals
        place = totals.index(max(totals))
        return place, Accuracy(totals[place], sum(totals))

    @property
    def _totals(self) -> list[int]:
        """Rows of each label."""
        counted: list[int] = self.confusion.sum(axis=1).tolist()
        return [count + silent for count, silent in zip(counted, self.silent or [0] * len(counted), strict=True)]


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


def truth_of(labels: Sequence[str], known: Sequence[Record]) -> Places:
    """The place of each row's label, shape (rows,)."""
    return np.array([list(labels).index(record.label) for record in known])


def evaluate(
    reader: QueryReader,
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
    truth, texts = truth_of(labels, known), [record.text for record in known]
    for number, arm in enumerate(arms):
        reading = reader.answers(arm.template or template, labels, arm, texts)
        while True:
            try:
                yield Progress(number * len(known) + next(reading), len(arms) * len(known))
            except StopIteration as ended:
                yield _scorecard(arm.name, truth, ended.value, len(labels))
                break


def _scorecard(name: str, truth: Places, found: Mapping[str, Places], labels: int) -> Scorecard:
    right = {reading: Accuracy(int((each == truth).sum()), len(truth)) for reading, each in found.items()}
    read = found.get(PRIOR, found.get(CONTEXTUAL, found[RAW]))
    answered = read != NO_ANSWER
    confusion = np.zeros((labels, labels), dtype=np.int64)
    np.add.at(confusion, (truth[answered], read[answered]), 1)
    silent = np.bincount(truth[~answered], minlength=labels)
    return Scorecard(name, right[RAW], right.get(CONTEXTUAL), right.get(PRIOR), confusion, tuple(silent.tolist()))
