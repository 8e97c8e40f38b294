"""Corrections of a model's label probabilities: what is added to each label's log-probability before it is read.

A small model prefers labels. Contextual calibration (Zhao et al. 2021) guesses the preference from three queries
without content; private rows measure it: the mean of their label probabilities, which add up to 1 for each of them. The
correction that is fitted makes that mean the labels' public shares, step by step: each measurement reads with the
correction so far.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.data.sizes import Unit, units_of
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import (
    Choice,
    PublicSet,
    Score,
)
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import Classifier, reported
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import Dataset
from mechanisms.runs.events import (
    CandidateSet,
    PriorsReleased,
    StageProgress,
)
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.sets import NONE
from mechanisms.tallies import LabelBias, Weighing, masses, mean_contribution, weights

_LEAST_SHARE = 0.02
"""Of an even share of the probability: noise may leave less than nothing of it, and a logarithm needs something."""
_SMOOTHING = 0.5


class Correction(StrEnum):
    """How label probabilities are read."""

    NONE = "none"
    CONTEXTUAL = "contextual"
    PRIOR = "prior"
    """Fitted to equal shares of the labels."""
    SHARES = "shares"
    """Fitted to the shares that the labels' public sizes say."""


FITTED = (Correction.PRIOR, Correction.SHARES)


def fitted(sizes: Sequence[float]) -> Correction:
    """The fit that is made where none was chosen, for labels of these public sizes or masses."""
    return Correction.SHARES if len(set(sizes)) > 1 else Correction.PRIOR


def ways(sizes: Mapping[str, int], weighing: Weighing) -> int:
    """In how many ways each set of a choice is read: fitted to the labels' shares only where these are not equal."""
    unequal = len(set(masses(sizes, weighing).values())) > 1
    return len(Correction) - (not unequal)


def among_in_words(arms: int, sets: int) -> str:
    """What a choice is among: each arm is a set that is read in one way."""
    even = sets > 0 and arms % sets == 0
    return f"{arms}: {sets} sets, each read in {arms // sets} ways" if even else f"{arms} ways to read the sets"


def probabilities(scores: Floats, correction: Floats) -> Floats:
    """Label probabilities of rows, shape (rows, labels), under a correction; rows that are not finite stay so."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(softmax(scores + correction, axis=1), dtype=np.float64)


def targets(correction: Correction, sizes: Sequence[float]) -> Floats:
    """The mean probabilities that a fitted correction aims at, in the order of the labels."""
    wanted = np.ones(len(sizes)) if correction is Correction.PRIOR else np.array(sizes, dtype=np.float64)
    return np.asarray(wanted / wanted.sum())


def step(noisy: Floats, target: Floats, deviation: float = 0.0) -> Floats:
    """What a measurement adds to a correction: `log(target) - log(share)`, of mean 0.

    Half a deviation of the noise is added to each sum, in proportion to the target: where rows are few the step is a
    small one, where they are many it changes nothing (research/docs/worth.md).

    Args:
        noisy: noisy sums of label probabilities, shape (labels,); only their shares are used.
        target: mean probabilities to reach, shape (labels,).
        deviation: of the noise on each sum.
    """
    positive = np.maximum(noisy, 0.0) + _SMOOTHING * deviation * len(noisy) * target
    shares = np.maximum(positive / max(float(positive.sum()), 1.0), _LEAST_SHARE / len(noisy))
    found = np.log(target) - np.log(shares / shares.sum())
    return np.asarray(found - found.mean())


# What the model makes of private texts: label probabilities under a set, and what units contribute to tallies.
#
# A record's numbers follow from the record, the set and the model alone. Where they are not finite it contributes
# nothing, and to a score "wrong": nothing that a record does can stop or alter more than its own contribution.


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
    """Each record's label probabilities for a prior, shape (records, labels); zeros where they are not finite."""
    found = probabilities(scores, correction)
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)


def right(scores: Floats, correction: Floats, truth: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each record's own label is the likeliest, for a choice or a score; shape (records,).

    A choice by the label's probability, which is as cheap, was found to choose worse (research/docs/worth.md).
    """
    finite = np.isfinite(scores).all(axis=1)
    return np.asarray(finite & ((scores + correction).argmax(axis=1) == truth))


# The stages in which private rows judge whole sets: calibrate, choose, score.

Arm = tuple[CandidateSet, Correction]


class _Readings:
    """Cached readings of a stage's units, so that none is read twice; private."""

    def __init__(self, units: Sequence[Unit], reader: Reader) -> None:
        self.units, self._reader = units, reader
        self._known: dict[tuple[str, int], Floats] = {}

    def of(self, candidate: CandidateSet, chosen: Integers) -> Generator[float, None, Floats]:
        """Log-probabilities of the chosen units' records, unit by unit; tells the share that is done."""
        missing = [i for i in chosen.tolist() if (candidate.name, i) not in self._known]
        wanted = [self.units[i] for i in missing]
        total = max(1, sum(map(len, wanted)))
        scores = yield from reported(self._reader.read(candidate, wanted), lambda done: done / total)
        ends = np.cumsum([len(unit) for unit in wanted])[:-1]
        for i, part in zip(missing, np.split(scores, ends) if missing else [], strict=True):
            self._known[candidate.name, i] = part
        nothing = np.empty((0, scores.shape[1]))
        return np.concatenate([nothing, *(self._known[candidate.name, i] for i in chosen.tolist())])


class Judging:
    """State of the judging stages of one run: readings, corrections, and the exported arm.

    Attributes:
        request: public.
        sets: the sets in the choice, in a public order.
        reader: the model reading private texts under any of them.
        randomness: of noise and coins.
        held_out: whether the scorers' rows took part in nothing else, in this run or another.
        offsets: the correction of a set that is read in one way, shape (labels,).
        arm: the set that is exported and how it is read; until there is a choice the first that private rows have made.
        among: arms of the choice; 0 before it.
        score: once it is released.
    """

    def __init__(
        self,
        request: RecipeRequest,
        parts: Mapping[Stage, Dataset],
        sets: Sequence[CandidateSet],
        model: LanguageModel,
        randomness: Randomness,
        held_out: bool,
    ) -> None:
        """Prepare; no model reads anything yet.

        Args:
            parts: the rows that each stage may read; private.
        """
        self.request, self.sets, self.randomness, self.held_out = request, sets, randomness, held_out
        self.reader = Reader(model, request.labels, request.max_record_tokens)
        self._parts, self._readings = parts, dict[int, _Readings]()
        self.offsets: dict[tuple[str, Correction], Floats] = {}
        self.arm: Arm = (sets[2], self.fitted)
        self.among = 0
        self.score: Score | None = None
        by_label = weights(request.sizes, request.recipe.weighing)
        self._weights = np.array([by_label[label] for label in request.labels])

    def read(
        self, stage: Stage, candidate: CandidateSet, chosen: Integers, before: float, share: float
    ) -> Generator[StageProgress, None, Floats]:
        """Read units for a stage; its progress goes from `before` to `before + share`."""
        reading = self._of_stage(stage).of(candidate, chosen)
        return (yield from reported(reading, lambda done: StageProgress(stage, before + share * done)))

    def everyone(self, stage: Stage) -> tuple[Sequence[Unit], Integers]:
        """The units of a stage, and the positions of all of them."""
        units = self._of_stage(stage).units
        return units, np.arange(len(units))

    def _of_stage(self, stage: Stage) -> _Readings:
        """The readings of a stage; stages with the same units share them."""
        part = self._parts[stage]
        if id(part) not in self._readings:
            units = units_of(part, self.request.max_unit_records)
            self._readings[id(part)] = _Readings(units, self.reader)
        return self._readings[id(part)]

    def step(self, correction: Correction, prior: Floats, tally: LabelBias) -> Floats:
        """The change of a correction by a noisy prior, shape (labels,)."""
        return step(prior, targets(correction, self.sizes), tally.deviation)

    @property
    def _start(self) -> tuple[Floats, Correction]:
        """Where the fit of the exported set starts, and what it fits: whichever correction won.

        A set that does best as it is gains from a fit too.
        """
        offset = self.offsets[self._key] if self.among else np.zeros(len(self.request.labels))
        return offset, self.arm[1] if self.arm[1] in FITTED else self.fitted

    def refine(self, tallies: Sequence[LabelBias]) -> Iterator[StageProgress | PriorsReleased]:
        """Fit the exported set's correction on all calibrators; the stage "calibrate" has been charged for it."""
        candidate, (offset, correction) = self.arm[0], self._start
        units, everyone = self.everyone(Stage.CALIBRATE)
        scores = yield from self.read(Stage.CALIBRATE, candidate, everyone, 0.0, 1.0)
        measured = []
        for tally in tallies:
            noisy = tally.release(self.of_units(preferences(scores, offset), units), self.randomness)
            measured.append(noisy)
            offset = offset + self.step(correction, noisy, tally)
        yield PriorsReleased(((candidate.name, shares_of(measured[-1])),), rows_of(measured))

    def fit(self, event: PriorsReleased, tallies: Sequence[LabelBias]) -> None:
        """Correct the exported set by the release of `refine`, new or replayed.

        Raises:
            UsageError: the event cannot be of this run.
        """
        noisy = measured(event, len(tallies), len(self.request.labels))
        offset, correction = self._start
        for prior, each in zip(noisy, tallies, strict=True):
            offset = offset + self.step(correction, prior, each)
        self.arm = (self.arm[0], correction)
        self.offsets[self._key] = offset

    def of_units(self, of_records: Floats, units: Sequence[Unit]) -> Floats:
        """Contributions of units from those of their records, each by the public weight of the record's label."""
        return of_units(of_records * self._weights[self.reader.truth(units)][:, None], units)

    @property
    def sizes(self) -> list[float]:
        """The mass of each label; see `Weighing`."""
        counted = masses(self.request.sizes, self.request.recipe.weighing)
        return [counted[label] for label in self.request.labels]

    @property
    def fitted(self) -> Correction:
        """The default fit."""
        return fitted(self.sizes)

    @property
    def unequal(self) -> bool:
        """Whether a fit to equal shares differs from one to the labels' own."""
        return len(set(self.sizes)) > 1

    @property
    def _key(self) -> tuple[str, Correction]:
        return self.arm[0].name, self.arm[1]

    @property
    def without(self) -> CandidateSet:
        """The set without demonstrations in the wording of the exported set."""
        return next(each for each in self.sets if not each.demonstrations and each.template == self.arm[0].template)

    def baseline(self, candidate: CandidateSet) -> Floats:
        """The correction of a baseline set."""
        known = self.offsets.get((candidate.name, self.arm[1]))
        return self.reader.under(candidate).contextual if known is None else known

    def _named(self, offset: Floats) -> dict[str, float]:
        return dict(zip(self.request.labels, offset.tolist(), strict=True))

    @property
    def _choice(self) -> Choice | None:
        if not self.among:
            return None
        candidate, correction = self.arm
        name = candidate.name if candidate.demonstrations else NONE
        public = self.sets[1]
        read = PublicSet(public.demonstrations, public.template, self._named(self.baseline(public)))
        return Choice(self.among, name, str(correction), self._named(self.baseline(self.without)), read)

    def kept(self, demo_set: DemoSet) -> DemoSet:
        """The set with everything that has been released for it, in the order and the words of what stands."""
        offset = self.offsets.get(self._key)
        return replace(
            demo_set,
            demonstrations=self.arm[0].demonstrations,
            template=self.arm[0].template,
            prior=None if offset is None else self._named(offset),
            choice=self._choice,
            score=self.score,
        )


def rows_of(noisy: Iterable[Floats]) -> tuple[tuple[float, ...], ...]:
    """Noisy sums as an event holds them."""
    return tuple(tuple(each.tolist()) for each in noisy)


def shares_of(noisy: Floats) -> tuple[float, ...]:
    """Noisy sums as shares, for people to see."""
    positive = np.maximum(noisy, 0.0)
    return tuple((positive / max(float(positive.sum()), 1.0)).tolist())


def measured(event: PriorsReleased, rows: int, labels: int) -> Sequence[Floats]:
    """The noisy sums of a release, each of shape (labels,).

    Raises:
        UsageError: they are not so many.
    """
    noisy = [np.array(each) for each in event.noisy]
    if [len(noisy), *{len(each) for each in noisy}] != [rows, labels]:
        raise UsageError("The run's file lacks what was measured of a set.")
    return noisy
