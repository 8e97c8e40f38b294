"""The judging of a set on private rows: the model's answers with the set in its prompt, and their correction.

A small model prefers some labels. Contextual calibration (Zhao et al. 2021) estimates this preference from three
queries without content. Private rows measure it, as the mean of their label probabilities, which add up to 1 for each
row. The fitted correction brings that mean to the labels' public shares, step by step: each measurement applies the
correction so far.

A row's numbers depend only on the row, the set and the model. If they are not finite, the row contributes nothing to a
measurement, and a wrong answer to a score. So a row can neither stop a stage nor change more than its own contribution.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.data.units import Unit, units_of
from mechanisms.demos.demo_set import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, Baselines, DemoSet, PublicSet, Score
from mechanisms.evaluation.classifier import Classifier, with_progress
from mechanisms.evaluation.evaluate import truth_of
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import Dataset, Demonstration, saying_words
from mechanisms.runs.events import StageProgress
from mechanisms.runs.terms import RunTerms
from mechanisms.tallies import masses, mean_contribution, weights

_LEAST_SHARE = 0.02
"""The least share of a label, as a part of an even share: noise can make a sum negative, which has no logarithm."""


def step(noisy: Floats, target: Floats, deviation: float = 0.0) -> Floats:
    """The change of a correction after a measurement: `log(target) - log(share)`, with mean 0, shape (labels,).

    Half a standard deviation of the noise is added to the sums on average, in proportion to the target: it makes the
    step small if there are few rows, and changes little if there are many (research/docs/worth.md).

    Args:
        noisy: sums of label probabilities with noise, shape (labels,).
        target: mean probabilities to reach, shape (labels,).
        deviation: the standard deviation of the noise on each sum.
    """
    positive = np.maximum(noisy, 0.0) + 0.5 * deviation * len(noisy) * target
    shares = np.maximum(positive / max(float(positive.sum()), 1.0), _LEAST_SHARE / len(noisy))
    found = np.log(target) - np.log(shares / shares.sum())
    return np.asarray(found - found.mean())


def of_units(of_rows: Floats, units: Sequence[Unit]) -> Floats:
    """The contributions of units, shape (units, k), from those of their rows, shape (rows, k), in the units' order."""
    parts, start = [np.empty((0, of_rows.shape[1]))], 0
    for unit in units:
        parts.append(mean_contribution(of_rows[start : start + len(unit)])[None])
        start += len(unit)
    return np.concatenate(parts)


def preferences(scores: Floats, correction: Floats) -> Floats:
    """Each row's label probabilities with a correction, shape (rows, labels); zeros if they are not finite.

    Args:
        scores: the rows' log-probabilities of the labels, shape (rows, labels).
        correction: what is added to each label's log-probability, shape (labels,).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.asarray(softmax(scores + correction, axis=1), dtype=np.float64)
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)


def right(scores: Floats, correction: Floats, truth: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row's own label is the likeliest, shape (rows,).

    Args:
        scores: the rows' log-probabilities of the labels, shape (rows, labels).
        correction: what is added to each label's log-probability, shape (labels,).
        truth: the index of each row's label, shape (rows,).
    """
    finite = np.isfinite(scores).all(axis=1)
    return np.asarray(finite & ((scores + correction).argmax(axis=1) == truth))


class JudgingState:
    """The state of one run's judging stages: corrections, the score, and readings, so that no unit is read twice.

    Attributes:
        sets: the demonstrations of each set, by name: none, public ones, and the run's own. The prompt with the run's
            own set also has the words of each label.
        corrections: for each measured set, what is added to each label's log-probability, shape (labels,).
        score: the released score; None until it is released.
        target: the public share of each label, weighted, shape (labels,).
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
        """The log-probabilities of each unit's rows, by part, set and the unit's position; private."""
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
        """Compute the log-probabilities of the labels for the rows of some units of a stage.

        Args:
            stage: the stage whose units are read.
            name: the name of the set in the prompt.
            chosen: the positions of the units, shape (units,).
            before: the progress before the reading, 0 to 1; the reading advances it by `share`.

        Returns:
            The log-probabilities, unit by unit, shape (rows, labels).
        """
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
            # One row of each user estimates the accuracy as well as several rows would, and takes less time.
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
        """The contributions of units, shape (units, k), from those of their rows, shape (rows, k), each multiplied by
        the public weight of the row's label."""
        truth = truth_of(self.plan.labels, chain.from_iterable(units))
        return of_units(of_rows * self._weights[truth][:, None], units)

    def correction(self, name: str) -> Floats:
        """The measured correction of a set, or contextual calibration if none was measured; shape (labels,)."""
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
