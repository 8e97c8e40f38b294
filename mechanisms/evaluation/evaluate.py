"""Accuracies of a demo set and its baselines, including class prototypes, and a one-sentence verdict."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from mechanisms import confidence
from mechanisms.accounting import Claim, PrivacyLedger, PrivacyTarget, claim
from mechanisms.data.units import charged, units_of
from mechanisms.demos.demo_set import DEMONSTRATIONS, DIRECTIONS, PROTOTYPES, PUBLIC_ONLY, ZERO_SHOT, DemoSet, Score
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import (
    ALONE,
    CONTEXTUAL,
    JOINED,
    NO_ANSWER,
    PRIOR,
    RAW,
    Arm,
    QueryReader,
    with_progress,
)
from mechanisms.inference import Embedder
from mechanisms.noise import Floats, Integers, Randomness, SecureRandomness
from mechanisms.privacy_events import Composed
from mechanisms.queries.retrieval import on_grid, similarities
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from mechanisms.tallies import Prototypes
from mechanisms.tallies.tally import LARGE

# Accuracies of a demo set and its baselines on a labelled test file.

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


# The verdict: one sentence on whether a set is better than the model alone, public text, prototypes or one label.
#
# A difference is stated only if its interval excludes zero. Rows that took part in a run favour its set (rates:
# research/docs/worth.md), so for them the sentence says "ahead" instead of "better".

Interval = tuple[float, float]

_NAMING = "naming the largest label every time"
_BETTER = "better than"
_AHEAD = "ahead, on rows that may have taken part in the run, of"
_OTHERS = {
    ZERO_SHOT: "the model alone",
    PUBLIC_ONLY: "public text",
    DIRECTIONS: "the directions of the set",
    PROTOTYPES: "class prototypes",
    _NAMING: _NAMING,
}
_SUBJECTS = {
    DEMONSTRATIONS: "These demonstrations are",
    ZERO_SHOT: "The model without demonstrations is",
    PUBLIC_ONLY: "These public-only demonstrations are",
}


def verdict_of_score(score: Score, without: bool, majority: float | None) -> str:
    """The verdict from a private score; empty if too few rows took part.

    Args:
        score: the released score.
        without: the exported arm has no demonstrations.
        majority: the accuracy of always answering the largest label, with the score's weighing; None if unknown.
    """
    own = score.exported(without)
    if own not in score.arms or score.arms[own].wide:
        return ""
    gains = {name: gain.interval for name, gain in score.gains.items()}
    return _sentence(own, gains, score.arms[own].interval, majority, _BETTER if score.held_out else _AHEAD)


def verdict_of_cards(cards: Sequence[Scorecard]) -> str:
    """The verdict on the last card's set from a test file, with the same kind of correction for all arms.

    It uses balanced accuracy if the most common label has more than twice an even share of the rows.
    """
    *others, own = cards
    figures = [headline(card, cards) for card in cards]
    gains = {card.name: gain(figures[-1], each) for card, each in zip(others, figures, strict=False)}
    name = ZERO_SHOT if own.name == ZERO_SHOT else DEMONSTRATIONS
    for left_out in (name, BOTH):
        gains.pop(left_out, None)
    return _sentence(name, gains, figures[-1].interval, naming_largest(cards))


def by_balanced_accuracy(cards: Sequence[Scorecard]) -> bool:
    """Whether arms are compared by balanced accuracy: the most common label has more than twice an even share.

    Balanced figures use each arm's own reading, which must therefore be the common one.
    """
    own, common = cards[-1], common_reading(cards)
    comparable = all(card.own_accuracy == figure(card, common) for card in cards)
    return comparable and own.majority[1].value * _labels_met(own) > LARGE


def headline(card: Scorecard, cards: Sequence[Scorecard]) -> Accuracy | MeanRecall:
    """An arm's figure in comparisons: balanced accuracy, or accuracy in the common reading."""
    return card.balanced if by_balanced_accuracy(cards) else figure(card, common_reading(cards))


def naming_largest(cards: Sequence[Scorecard]) -> float:
    """The headline figure of always answering the most common label."""
    own = cards[-1]
    return 1 / _labels_met(own) if by_balanced_accuracy(cards) else own.majority[1].value


def _labels_met(card: Scorecard) -> int:
    return sum(each is not None for each in card.recalls)


def common_reading(cards: Sequence[Scorecard]) -> str:
    """The best kind of correction that all arms have: measured, contextual, or none."""
    if all(card.corrected for card in cards):
        return PRIOR
    return CONTEXTUAL if all(card.calibrated for card in cards) else RAW


def figure(card: Scorecard, reading: str) -> Accuracy:
    """An arm's accuracy in a reading, which it must have."""
    found = {PRIOR: card.corrected, CONTEXTUAL: card.calibrated, RAW: card.raw}[reading]
    return found or card.raw


def shares_of_gain(cards: Sequence[Scorecard]) -> tuple[float, float] | None:
    """The gain of the model alone from its measured correction, and the further gain from demonstrations, in [-1, 1].

    None if an arm has no measured correction, or if there are no demonstrations.
    """
    own, alone = cards[-1], next((card for card in cards if card.name == ZERO_SHOT), None)
    if alone is None or alone is own or not (own.corrected and alone.corrected):
        return None
    before = alone.calibrated or alone.raw
    return alone.corrected.value - before.value, own.corrected.value - alone.corrected.value


def gain(one: Accuracy | MeanRecall, other: Accuracy | MeanRecall) -> Interval:
    """The interval of the difference of two figures (Zou and Donner 2008).

    For figures of the same rows, which correlate, it is conservative.
    """
    (low, high), (other_low, other_high) = one.interval, other.interval
    apart = one.value - other.value
    below = math.hypot(one.value - low, other_high - other.value)
    above = math.hypot(high - one.value, other.value - other_low)
    return max(-1.0, apart - below), min(1.0, apart + above)


def _sentence(
    own: str, gains: Mapping[str, Interval], interval: Interval, majority: float | None, ahead: str = _BETTER
) -> str:
    against = dict(gains)
    if majority is not None:
        against[_NAMING] = (interval[0] - majority, interval[1] - majority)
    found = {
        ahead: [name for name, (low, _) in against.items() if low > 0],
        "worse than": [name for name, (_, high) in against.items() if high < 0],
        "not shown to differ from": [name for name, (low, high) in against.items() if low <= 0 <= high],
    }
    clauses = [f"{words} {_joined([_OTHERS[name] for name in names])}" for words, names in found.items() if names]
    return f"{_SUBJECTS[own]} {'; '.join(clauses)}." if clauses else ""


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# Class prototypes: classification by the nearest prototype, without a language model; a separate run in the ledger.


def one_record_each(dataset: Dataset) -> tuple[list[str], Integers]:
    """One record of each unit, as its text and the index of its label; private.

    A user's record is chosen by the user's own rows alone, whatever its label, so a unit changes one class's sum by one
    embedding.
    """
    records = [unit[0] for unit in units_of(dataset, 1)]
    return [each.text for each in records], truth_of(dataset.labels, records)


def nearest_prototype(vectors: NDArray[np.float32], prototypes: Floats) -> Integers:
    """The index of the prototype nearest to each text (cosine), shape (texts,); the first of equally near ones.

    A text's answer depends on that text and the prototypes alone.

    Args:
        vectors: of the embedded texts, shape (texts, dimensions).
        prototypes: a unit vector for each label, shape (labels, dimensions).
    """
    places = on_grid(prototypes.astype(np.float32))
    near = np.stack([similarities(vectors, place) for place in places], axis=1)
    return np.asarray(near.argmax(axis=1))


_AT_ONCE = 16
"""Texts between two reports of progress: about a tenth of a second."""


@dataclass(frozen=True)
class PrototypesRequest:
    """The public configuration of a release; `labels` is the number of labels."""

    target: PrivacyTarget
    labels: int

    @cached_property
    def tally(self) -> Prototypes:
        """The tally with the least noise that meets the target.

        Raises:
            AccountingError: no noise meets it.
        """
        return Prototypes.costing(self.target, self.labels)

    @property
    def event(self) -> Composed:
        """One list of events, for rows and users: each unit contributes one embedding to one class."""
        return Composed("dataset", (("all", (self.tally.event,)),))

    def claim(self) -> Claim:
        """The claim for the release, by both accountants."""
        return claim(self.event, self.target.delta)


@dataclass(frozen=True)
class ClassPrototypes:
    """Released class prototypes; they are public, and their uses are post-processing.

    Attributes:
        labels: one for each direction.
        directions: noisy class means of embeddings, normalised to unit length, shape (labels, dimensions).
        claim, event: the cost.
    """

    labels: tuple[str, ...]
    directions: Floats
    claim: Claim
    event: Composed

    def covers(self, labels: Sequence[str]) -> bool:
        return set(labels) <= set(self.labels)

    def accuracy(self, test: Sequence[Record], labels: Sequence[str], embedder: Embedder) -> Accuracy:
        """The accuracy of the nearest prototype among those of `labels`, on rows with one of these labels."""
        directions = self.directions[[self.labels.index(label) for label in labels]]
        found = nearest_prototype(embedder.embed([row.text for row in test]), directions)
        return Accuracy(sum(labels[i] == row.label for i, row in zip(found, test, strict=True)), len(test))


def release_prototypes(
    dataset: Dataset,
    request: PrototypesRequest,
    embedder: Embedder,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
) -> Generator[Progress | ClassPrototypes]:
    """Charge the run, embed one record of each unit of a private data set, and release the noisy class means.

    The charge stays if the iterator is closed before the release.

    Yields:
        The number of units read, for the curator alone (0 once the run is charged), and last the release.

    Raises:
        BudgetRefused: the data set's cap does not allow it.
        AccountingError: no noise meets the target.
    """
    randomness = randomness or SecureRandomness()
    event, claimed = request.event, request.claim()
    with charged(dataset, "class prototypes", event, claimed, ledger, randomness):
        texts, places = one_record_each(dataset)
        vectors = np.zeros((len(texts), embedder.dimensions))
        yield Progress(0, len(texts))
        for start in range(0, len(texts), _AT_ONCE):
            some = embedder.embed(texts[start : start + _AT_ONCE])
            vectors[start : start + len(some)] = some
            yield Progress(start + len(some), len(texts))
        directions = request.tally.release(Prototypes.contributions(places, vectors), randomness)
        yield ClassPrototypes(dataset.labels, directions, claimed, event)
