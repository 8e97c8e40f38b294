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
    DEMONSTRATIONS,
    PUBLIC_ONLY,
    ZERO_SHOT,
    Choice,
    PublicSet,
    Score,
)
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import Dataset
from mechanisms.runs.events import (
    CandidateSet,
    ChoiceReleased,
    PriorsReleased,
    ScoreReleased,
    StageProgress,
)
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.sets import NONE, PUBLIC
from mechanisms.tallies import Prior, Weighing, masses, mean_contribution, weights

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
    """For a prior: each record's label probabilities, shape (records, labels); zeros where they are not finite."""
    found = probabilities(scores, correction)
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)


def right(scores: Floats, correction: Floats, truth: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For a choice or a score: whether each record's own label is the likeliest, shape (records,).

    A choice by the label's probability, which is as cheap, was found to choose worse (research/docs/worth.md).
    """
    finite = np.isfinite(scores).all(axis=1)
    return np.asarray(finite & ((scores + correction).argmax(axis=1) == truth))


# The stages in which private rows judge whole sets: calibrate, choose, score.

Arm = tuple[CandidateSet, Correction]


class _Readings:
    """What the model made of a stage's units so far, so that none is read twice; private.

    Stages that share all units share the readings as well.
    """

    def __init__(self, units: Sequence[Unit], reader: Reader) -> None:
        self.units, self._reader = units, reader
        self._known: dict[tuple[str, int], Floats] = {}

    def of(self, candidate: CandidateSet, chosen: Integers) -> Generator[float, None, Floats]:
        """Log-probabilities of the chosen units' records, unit by unit; tells the share that is done."""
        missing = [i for i in chosen.tolist() if (candidate.name, i) not in self._known]
        wanted = [self.units[i] for i in missing]
        total = max(1, sum(map(len, wanted)))
        reading, scores = self._reader.read(candidate, wanted), None
        while scores is None:
            try:
                yield next(reading) / total
            except StopIteration as ended:
                scores = ended.value
        ends = np.cumsum([len(unit) for unit in wanted])[:-1]
        for i, part in zip(missing, np.split(scores, ends) if missing else [], strict=True):
            self._known[candidate.name, i] = part
        nothing = np.empty((0, scores.shape[1]))
        return np.concatenate([nothing, *(self._known[candidate.name, i] for i in chosen.tolist())])


Released = PriorsReleased | ChoiceReleased | ScoreReleased
"""What a judging stage lets out."""


class Judges:
    """Calibrators, choosers and scorers of one run; each release is public and what the next ones start from.

    All that follows from a release follows from its event alone (`apply`), so that a run that was cut off goes on from
    the events that it had told.
    """

    def __init__(
        self,
        request: RecipeRequest,
        parts: Mapping[Stage, Dataset],
        sets: Sequence[CandidateSet],
        model: LanguageModel,
        randomness: Randomness,
        untouched: bool,
    ) -> None:
        """No model reads anything yet.

        Args:
            request: public.
            parts: what each stage may read; private.
            sets: all that compete, in a public order.
            model: the language model.
            randomness: of noise and coins.
            untouched: whether the scorers' rows took part in nothing else, this run or another.
        """
        self._request, self._sets, self._randomness, self._untouched = request, sets, randomness, untouched
        self._reader = Reader(model, request.labels, request.max_record_tokens)
        readings = {
            id(part): _Readings(units_of(part, request.max_unit_records), self._reader)
            for stage, part in parts.items()
            if stage in (Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE)
        }
        self._readings = {stage: readings[id(part)] for stage, part in parts.items() if id(part) in readings}
        self._offsets: dict[tuple[str, Correction], Floats] = {}
        # Until there is a choice it is the first set that private rows have made.
        self._arm: Arm = (sets[2], self._fitted)
        self._among = 0
        self._score: Score | None = None
        self._measured: set[Stage] = set()
        by_label = weights(request.sizes, request.recipe.weighing)
        self._weights = np.array([by_label[label] for label in request.labels])

    def events(self, stage: Stage) -> Iterator[StageProgress | Released]:
        """One stage, which has been charged: what of it was not applied yet.

        Whoever gets a release applies it before asking for the next event.
        """
        match stage:
            case Stage.CALIBRATE if stage not in self._measured:
                tally = self._request.comparison
                yield from self._refine() if tally is None else self._compare(tally)
            case Stage.CHOOSE:
                if not self._among:
                    yield from self._choose()
                if stage not in self._measured:
                    yield from self._refine()
            case Stage.SCORE if self._score is None:
                yield from self._scored()

    def apply(self, stage: Stage, event: Released) -> None:
        """Go on from a release of a stage, made now or before the run was cut off.

        Raises:
            UsageError: it is none of this run's.
        """
        match event:
            case PriorsReleased():
                self._measured.add(stage)
                self._fit(stage, event)
            case ChoiceReleased(among, (name, correction)):
                candidate = next((each for each in self._sets if each.name == name), None)
                if candidate is None or (name, correction) not in self._offsets:
                    raise UsageError("The run's file tells of a choice that did not stand in it.")
                self._arm, self._among = (candidate, Correction(correction)), len(among)
            case ScoreReleased(score):
                self._score = score

    def _fit(self, stage: Stage, event: PriorsReleased) -> None:
        noisy, tally = [np.array(each) for each in event.noisy], self._request.comparison
        compared = stage is Stage.CALIBRATE and tally is not None
        shape = len(self._sets) if compared else len(self._request.refinements), len(self._request.labels)
        if [len(noisy), *{len(each) for each in noisy}] != [*shape]:
            raise UsageError("The run's file lacks what was measured of a set.")
        if compared and tally is not None:
            for candidate, prior in zip(self._sets, noisy, strict=True):
                self._offer(candidate, prior, tally)
            return
        offset, correction = self._start
        for prior, each in zip(noisy, self._request.refinements, strict=True):
            offset = offset + self._step(correction, prior, each)
        self._arm = (self._arm[0], correction)
        self._offsets[self._key] = offset

    def _read(
        self, stage: Stage, candidate: CandidateSet, chosen: Integers, before: float, share: float
    ) -> Generator[StageProgress, None, Floats]:
        """Read units for a stage that has come as far as `before`, and will be `share` further."""
        reading = self._readings[stage].of(candidate, chosen)
        while True:
            try:
                yield StageProgress(stage, before + share * next(reading))
            except StopIteration as ended:
                scores: Floats = ended.value
                return scores

    def _everyone(self, stage: Stage) -> tuple[Sequence[Unit], Integers]:
        units = self._readings[stage].units
        return units, np.arange(len(units))

    def _compare(self, tally: Prior) -> Iterator[StageProgress | Released]:
        """Measure the priors of all sets at once: each calibrator judges one of them, by a coin of its own."""
        units, everyone = self._everyone(Stage.CALIBRATE)
        labels, number = len(self._request.labels), len(self._sets)
        judged = np.floor(self._randomness.uniform(len(units)) * number).astype(np.int64)
        cells = np.zeros((len(units), number, labels))
        for k, candidate in enumerate(self._sets):
            mine = everyone[judged == k]
            scores = yield from self._read(Stage.CALIBRATE, candidate, mine, k / number, 1 / number)
            cells[mine, k] = self._of_units(preferences(scores, np.zeros(labels)), [units[i] for i in mine.tolist()])
        noisy = tally.release(cells.reshape(len(units), number * labels), self._randomness)
        priors = noisy.reshape(number, labels)
        shares = tuple((each.name, _shares(of)) for each, of in zip(self._sets, priors, strict=True))
        yield PriorsReleased(shares, _rows(priors))

    def _offer(self, candidate: CandidateSet, prior: Floats, tally: Prior) -> None:
        """The ways to read a set, given its noisy prior."""
        self._offsets[candidate.name, Correction.NONE] = np.zeros(len(prior))
        self._offsets[candidate.name, Correction.CONTEXTUAL] = self._reader.under(candidate).contextual
        for correction in FITTED:
            if correction is Correction.PRIOR or self._unequal:
                self._offsets[candidate.name, correction] = self._step(correction, prior, tally)

    def _step(self, correction: Correction, prior: Floats, tally: Prior) -> Floats:
        return step(prior, targets(correction, self._sizes), tally.deviation)

    def _choose(self) -> Iterator[StageProgress | Released]:
        units, everyone = self._everyone(Stage.CHOOSE)
        truth = self._reader.truth(units)
        arms = [(each, correction) for each in self._sets for correction in Correction if self._known(each, correction)]
        columns = []
        for k, candidate in enumerate(self._sets):
            number = len(self._sets)
            scores = yield from self._read(Stage.CHOOSE, candidate, everyone, k / number, 1 / number)
            columns += [
                right(scores, self._offsets[of.name, correction], truth).astype(np.float64)
                for of, correction in arms
                if of is candidate
            ]
        contributions = self._of_units(np.stack(columns, axis=1), units)
        names = tuple((each.name, str(how)) for each, how in arms)
        yield ChoiceReleased(names, names[self._request.choice.release(contributions, self._randomness)])

    def _known(self, candidate: CandidateSet, correction: Correction) -> bool:
        return (candidate.name, correction) in self._offsets

    @property
    def _start(self) -> tuple[Floats, Correction]:
        """Where the fit of the exported set starts, and what it fits: whichever correction won.

        A set that does best as it is gains from a fit too.
        """
        offset = self._offsets[self._key] if self._among else np.zeros(len(self._request.labels))
        return offset, self._arm[1] if self._arm[1] in FITTED else self._fitted

    def _refine(self) -> Iterator[StageProgress | Released]:
        """Fit the correction of the set that is exported, on all calibrators; paid for with the stage "calibrate"."""
        candidate, (offset, correction) = self._arm[0], self._start
        units, everyone = self._everyone(Stage.CALIBRATE)
        scores = yield from self._read(Stage.CALIBRATE, candidate, everyone, 0.0, 1.0)
        measured = []
        for tally in self._request.refinements:
            noisy = tally.release(self._of_units(preferences(scores, offset), units), self._randomness)
            measured.append(noisy)
            offset = offset + self._step(correction, noisy, tally)
        yield PriorsReleased(((candidate.name, _shares(measured[-1])),), _rows(measured))

    def _of_units(self, of_records: Floats, units: Sequence[Unit]) -> Floats:
        """Contributions of units from those of their records, each by the public weight of the record's label."""
        return of_units(of_records * self._weights[self._reader.truth(units)][:, None], units)

    @property
    def _sizes(self) -> list[float]:
        """What the labels count."""
        counted = masses(self._request.sizes, self._request.recipe.weighing)
        return [counted[label] for label in self._request.labels]

    @property
    def _fitted(self) -> Correction:
        """The fit that is made where none was chosen."""
        return fitted(self._sizes)

    @property
    def _unequal(self) -> bool:
        """Whether equal shares and the labels' own are different aims."""
        return len(set(self._sizes)) > 1

    @property
    def _key(self) -> tuple[str, Correction]:
        return self._arm[0].name, self._arm[1]

    @property
    def _without(self) -> CandidateSet:
        """No demonstrations, in the words of the exported set."""
        return next(each for each in self._sets if not each.demonstrations and each.template == self._arm[0].template)

    def _baseline(self, candidate: CandidateSet) -> Floats:
        """The correction of a set that others are compared with."""
        known = self._offsets.get((candidate.name, self._arm[1]))
        return self._reader.under(candidate).contextual if known is None else known

    def _scored(self) -> Iterator[StageProgress | Released]:
        units, everyone = self._everyone(Stage.SCORE)
        truth, compared = self._reader.truth(units), self._compared()
        columns = []
        for k, (candidate, offset) in enumerate(compared.values()):
            scores = yield from self._read(Stage.SCORE, candidate, everyone, k / len(compared), 1 / len(compared))
            columns.append(right(scores, offset, truth))
        tally = self._request.score
        contributions = self._of_units(tally.cells(np.stack(columns, axis=1)), units)
        cells = tally.release(contributions, self._randomness)
        without, weighing = not self._arm[0].demonstrations, self._request.recipe.weighing
        yield ScoreReleased(Score.of_table(tally, cells, list(compared), without, self._untouched, weighing))

    def _compared(self) -> dict[str, tuple[CandidateSet, Floats]]:
        """The arms of the score; where no demonstrations were chosen, zero-shot is the exported set."""
        arms = {
            name: (each, self._baseline(each))
            for name, each in zip((ZERO_SHOT, PUBLIC_ONLY), (self._without, self._sets[1]), strict=True)
        }
        candidate = self._arm[0]
        if candidate.demonstrations and candidate.name != PUBLIC:
            arms[DEMONSTRATIONS] = (candidate, self._baseline(candidate))
        return arms

    def _named(self, offset: Floats) -> dict[str, float]:
        return dict(zip(self._request.labels, offset.tolist(), strict=True))

    @property
    def _choice(self) -> Choice | None:
        if not self._among:
            return None
        candidate, correction = self._arm
        name = candidate.name if candidate.demonstrations else NONE
        public = self._sets[1]
        read = PublicSet(public.demonstrations, public.template, self._named(self._baseline(public)))
        return Choice(self._among, name, str(correction), self._named(self._baseline(self._without)), read)

    def kept(self, demo_set: DemoSet) -> DemoSet:
        """The set with everything that has been released for it, in the order and the words of what stands."""
        offset = self._offsets.get(self._key)
        return replace(
            demo_set,
            demonstrations=self._arm[0].demonstrations,
            template=self._arm[0].template,
            prior=None if offset is None else self._named(offset),
            choice=self._choice,
            score=self._score,
        )


def _rows(noisy: Iterable[Floats]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(each.tolist()) for each in noisy)


def _shares(noisy: Floats) -> tuple[float, ...]:
    """Noisy sums as shares, for people to see."""
    positive = np.maximum(noisy, 0.0)
    return tuple((positive / max(float(positive.sum()), 1.0)).tolist())
