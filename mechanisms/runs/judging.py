"""How private rows judge a set: the model's answers on them under the set, and the correction of these answers.

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
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.data.sizes import Unit, units_of
from mechanisms.demos.demo_set import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, Baselines, DemoSet, PublicSet, Score
from mechanisms.evaluation.evaluate import truth_of
from mechanisms.evaluation.reader import Classifier, with_progress
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import Dataset, Demonstration, saying_words
from mechanisms.runs.events import StageProgress
from mechanisms.runs.terms import RunTerms
from mechanisms.tallies import masses, mean_contribution, weights

_LEAST_SHARE = 0.02
"""Of an even share of the probability: noise may leave less than nothing of it, and a logarithm needs something."""


def step(noisy: Floats, target: Floats, deviation: float = 0.0) -> Floats:
    """The change of a correction after a measurement: `log(target) - log(share)`, of mean 0.

    Half a deviation of the noise is added to each sum, in proportion to the target: where rows are few the step is a
    small one, where they are many it changes nothing (research/docs/worth.md).

    Args:
        noisy: sums of label probabilities, shape (labels,), each with noise of that deviation.
        target: mean probabilities to reach, shape (labels,).
    """
    positive = np.maximum(noisy, 0.0) + 0.5 * deviation * len(noisy) * target
    shares = np.maximum(positive / max(float(positive.sum()), 1.0), _LEAST_SHARE / len(noisy))
    found = np.log(target) - np.log(shares / shares.sum())
    return np.asarray(found - found.mean())


def of_units(of_rows: Floats, units: Sequence[Unit]) -> Floats:
    """Contributions of units, shape (units, k), from those of their rows, shape (rows, k)."""
    parts, start = [np.empty((0, of_rows.shape[1]))], 0
    for unit in units:
        parts.append(mean_contribution(of_rows[start : start + len(unit)])[None])
        start += len(unit)
    return np.concatenate(parts)


def preferences(scores: Floats, correction: Floats) -> Floats:
    """Each row's label probabilities under a prior, shape (rows, labels); zeros if they are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.asarray(softmax(scores + correction, axis=1), dtype=np.float64)
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)


def right(scores: Floats, correction: Floats, truth: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row's own label is the likeliest, shape (rows,)."""
    finite = np.isfinite(scores).all(axis=1)
    return np.asarray(finite & ((scores + correction).argmax(axis=1) == truth))


class JudgingState:
    """State of the judging stages of one run: corrections, the score, and readings, so that no unit is read twice.

    Attributes:
        sets: those that rows read under, by name: without demonstrations, with public ones, and the run's own, whose
            prompt says the words of each label.
        corrections: what is added to each label's log-probability under a set, shape (labels,), once it is measured.
    """

    def __init__(
        self,
        plan: RunTerms,
        parts: Mapping[str, Dataset],
        sets: Mapping[str, tuple[Demonstration, ...]],
        model: LanguageModel,
        randomness: Randomness,
        held_out: bool,
        words: Mapping[str, Sequence[str]],
    ) -> None:
        self._template = saying_words(plan.template, words)
        self.plan, self.sets, self.randomness, self.held_out = plan, sets, randomness, held_out
        self._model, self._parts = model, parts
        self._classifiers: dict[str, Classifier] = {}
        self._units: dict[int, Sequence[Unit]] = {}
        self._known: dict[tuple[int, str, int], Floats] = {}
        """Private: log-probabilities of a unit's rows, by part, set and place."""
        self.corrections: dict[str, Floats] = {}
        self.score: Score | None = None
        weighing = plan.spec.weighing
        assert weighing is not None
        by_label, counted = weights(plan.sizes, weighing), masses(plan.sizes, weighing)
        self._weights = np.array([by_label[label] for label in plan.labels])
        mass = np.array([counted[label] for label in plan.labels], dtype=np.float64)
        self.target: Floats = mass / mass.sum()

    def log_probabilities(
        self, stage: str, name: str, chosen: Integers, before: float, share: float
    ) -> Generator[StageProgress, None, Floats]:
        """Log-probabilities of the chosen units' rows, unit by unit; progress rises from `before` by `share`."""
        units, part = self._units_of(stage), id(self._parts[stage])
        missing = [i for i in chosen.tolist() if (part, name, i) not in self._known]
        wanted = [units[i] for i in missing]
        total = max(1, sum(map(len, wanted)))
        reading = self._under(name).reading([record.text for unit in wanted for record in unit])
        scores = yield from with_progress(reading, lambda done: StageProgress(stage, before + share * (done / total)))
        ends = np.cumsum([len(unit) for unit in wanted])[:-1]
        for i, own in zip(missing, np.split(scores, ends) if missing else [], strict=True):
            self._known[part, name, i] = own
        nothing = np.empty((0, scores.shape[1]))
        return np.concatenate([nothing, *(self._known[part, name, i] for i in chosen.tolist())])

    def everyone(self, stage: str) -> tuple[Sequence[Unit], Integers]:
        """The units of a stage, and the positions of all of them."""
        units = self._units_of(stage)
        return units, np.arange(len(units))

    def _units_of(self, stage: str) -> Sequence[Unit]:
        part = self._parts[stage]
        if id(part) not in self._units:
            # One row of a user says as much of how often labels are found as several would, and is read sooner.
            self._units[id(part)] = units_of(part, 1)
        return self._units[id(part)]

    def _under(self, name: str) -> Classifier:
        if name not in self._classifiers:
            self._classifiers[name] = Classifier(
                self._model,
                self._template if name == DEMONSTRATIONS else self.plan.template,
                self.plan.labels,
                self.sets[name],
                max_query_tokens=self.plan.spec.max_record_tokens,
            )
        return self._classifiers[name]

    def of_units(self, of_rows: Floats, units: Sequence[Unit]) -> Floats:
        """Contributions of units from those of their rows, each by the public weight of the row's label."""
        truth = truth_of(self.plan.labels, chain.from_iterable(units))
        return of_units(of_rows * self._weights[truth][:, None], units)

    def correction(self, name: str) -> Floats:
        """The measured correction of a set; contextual calibration where none was measured."""
        known = self.corrections.get(name)
        return self._under(name).contextual if known is None else known

    def with_measurements(self, demo_set: DemoSet) -> DemoSet:
        labels = self.plan.labels
        measured = {name: dict(zip(labels, of.tolist(), strict=True)) for name, of in self.corrections.items()}
        baselines = None
        if ZERO_SHOT in measured:
            read = PublicSet(self.sets[PUBLIC_ONLY], demo_set.template, measured.get(PUBLIC_ONLY))
            baselines = Baselines(measured[ZERO_SHOT], read)
        return replace(demo_set, prior=measured.get(DEMONSTRATIONS), baselines=baselines, score=self.score)
