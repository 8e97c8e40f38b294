"""How private rows judge a set: what the model makes of their texts under it, and what is added to its answers.

A small model prefers labels. Contextual calibration (Zhao et al. 2021) guesses the preference from three queries
without content; private rows measure it: the mean of their label probabilities, which add up to 1 for each of them. The
correction that is fitted makes that mean the labels' public shares, step by step: each measurement reads with the
correction so far.

A row's numbers follow from the row, the set and the model alone. Where they are not finite it contributes nothing, and
to a score "wrong": nothing that a row does can stop or alter more than its own contribution.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.data.sizes import Unit, units_of
from mechanisms.demos.demo_set import Baselines, DemoSet, PublicSet, Score
from mechanisms.evaluation.reader import Classifier, reported
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import Dataset, PromptTemplate
from mechanisms.runs.events import CandidateSet, StageProgress
from mechanisms.tallies import masses, mean_contribution, weights

if TYPE_CHECKING:
    from mechanisms.runs.plan import Plan

_LEAST_SHARE = 0.02
"""Of an even share of the probability: noise may leave less than nothing of it, and a logarithm needs something."""
_SMOOTHING = 0.5


def step(noisy: Floats, target: Floats, deviation: float = 0.0) -> Floats:
    """What a measurement adds to a correction: `log(target) - log(share)`, of mean 0.

    Half a deviation of the noise is added to each sum, in proportion to the target: where rows are few the step is a
    small one, where they are many it changes nothing (research/docs/worth.md).

    Args:
        noisy: sums of label probabilities, shape (labels,), each with noise of that deviation.
        target: mean probabilities to reach, shape (labels,).
    """
    positive = np.maximum(noisy, 0.0) + _SMOOTHING * deviation * len(noisy) * target
    shares = np.maximum(positive / max(float(positive.sum()), 1.0), _LEAST_SHARE / len(noisy))
    found = np.log(target) - np.log(shares / shares.sum())
    return np.asarray(found - found.mean())


class Reader:
    """A model reading private texts under any of some sets."""

    def __init__(
        self, model: LanguageModel, template: PromptTemplate, labels: Sequence[str], max_record_tokens: int
    ) -> None:
        self._model, self._template, self._labels, self._cap = model, template, labels, max_record_tokens
        self._classifiers: dict[str, Classifier] = {}

    def under(self, candidate: CandidateSet) -> Classifier:
        """The classifier with a set."""
        if candidate.name not in self._classifiers:
            self._classifiers[candidate.name] = Classifier(
                self._model, self._template, self._labels, candidate.demonstrations, max_query_tokens=self._cap
            )
        return self._classifiers[candidate.name]

    def truth(self, units: Sequence[Unit]) -> NDArray[np.int64]:
        """Positions of the labels of all rows, unit by unit."""
        place = {label: i for i, label in enumerate(self._labels)}
        return np.array([place[record.label] for unit in units for record in unit], dtype=np.int64)

    def read(self, candidate: CandidateSet, units: Sequence[Unit]) -> Generator[int, None, Floats]:
        """Log-probabilities of all rows, unit by unit, shape (rows, labels); tells how many are done."""
        return self.under(candidate).reading([record.text for unit in units for record in unit])


def of_units(of_rows: Floats, units: Sequence[Unit]) -> Floats:
    """Contributions of units, shape (units, k), from those of their rows, shape (rows, k)."""
    parts, start = [np.empty((0, of_rows.shape[1]))], 0
    for unit in units:
        parts.append(mean_contribution(of_rows[start : start + len(unit)])[None])
        start += len(unit)
    return np.concatenate(parts)


def preferences(scores: Floats, correction: Floats) -> Floats:
    """Each row's label probabilities for a prior, shape (rows, labels); zeros where they are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.asarray(softmax(scores + correction, axis=1), dtype=np.float64)
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)


def right(scores: Floats, correction: Floats, truth: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row's own label is the likeliest; shape (rows,)."""
    finite = np.isfinite(scores).all(axis=1)
    return np.asarray(finite & ((scores + correction).argmax(axis=1) == truth))


class _Readings:
    """Cached readings of a stage's units, so that none is read twice; private."""

    def __init__(self, units: Sequence[Unit], reader: Reader) -> None:
        self.units, self._reader = units, reader
        self._known: dict[tuple[str, int], Floats] = {}

    def of(self, candidate: CandidateSet, chosen: Integers) -> Generator[float, None, Floats]:
        """Log-probabilities of the chosen units' rows, unit by unit; tells the share that is done."""
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
    """State of the judging stages of one run: readings, corrections, and the score.

    Attributes:
        sets: zero-shot, public only, and the run's own.
        corrections: what is added to each label's log-probability under a set, shape (labels,), once it is measured.
    """

    def __init__(
        self,
        plan: Plan,
        parts: Mapping[str, Dataset],
        sets: tuple[CandidateSet, CandidateSet, CandidateSet],
        model: LanguageModel,
        randomness: Randomness,
        held_out: bool,
    ) -> None:
        self.plan, self.sets, self.randomness, self.held_out = plan, sets, randomness, held_out
        self.reader = Reader(model, plan.template, plan.labels, plan.spec.max_record_tokens)
        self._parts, self._readings = parts, dict[int, _Readings]()
        self.corrections: dict[str, Floats] = {}
        self.score: Score | None = None
        weighing = plan.spec.weighing
        assert weighing is not None
        by_label, counted = weights(plan.sizes, weighing), masses(plan.sizes, weighing)
        self._weights = np.array([by_label[label] for label in plan.labels])
        mass = np.array([counted[label] for label in plan.labels], dtype=np.float64)
        self.target: Floats = mass / mass.sum()

    def read(
        self, stage: str, candidate: CandidateSet, chosen: Integers, before: float, share: float
    ) -> Generator[StageProgress, None, Floats]:
        """Read units for a stage; its progress goes from `before` to `before + share`."""
        reading = self._of_stage(stage).of(candidate, chosen)
        return (yield from reported(reading, lambda done: StageProgress(stage, before + share * done)))

    def everyone(self, stage: str) -> tuple[Sequence[Unit], Integers]:
        """The units of a stage, and the positions of all of them."""
        units = self._of_stage(stage).units
        return units, np.arange(len(units))

    def _of_stage(self, stage: str) -> _Readings:
        """The readings of a stage; stages with the same units share them."""
        part = self._parts[stage]
        if id(part) not in self._readings:
            self._readings[id(part)] = _Readings(units_of(part, self.plan.spec.max_unit_records), self.reader)
        return self._readings[id(part)]

    def of_units(self, of_rows: Floats, units: Sequence[Unit]) -> Floats:
        """Contributions of units from those of their rows, each by the public weight of the row's label."""
        return of_units(of_rows * self._weights[self.reader.truth(units)][:, None], units)

    def correction(self, candidate: CandidateSet) -> Floats:
        """The measured correction of a set; contextual calibration where none was measured."""
        known = self.corrections.get(candidate.name)
        return self.reader.under(candidate).contextual if known is None else known

    def kept(self, demo_set: DemoSet) -> DemoSet:
        """The set with everything that has been released for it."""
        zero_shot, public, own = self.sets
        labels = self.plan.labels
        measured = {name: dict(zip(labels, of.tolist(), strict=True)) for name, of in self.corrections.items()}
        baselines = None
        if zero_shot.name in measured:
            read = PublicSet(public.demonstrations, demo_set.template, measured.get(public.name))
            baselines = Baselines(measured[zero_shot.name], read)
        return replace(demo_set, prior=measured.get(own.name), baselines=baselines, score=self.score)
