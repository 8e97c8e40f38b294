"""The contract of readers, local and remote, and the reading model of a set: its writer, or another model."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.directions import Directions
from mechanisms.errors import UsageError
from mechanisms.evaluation.by_directions import joined
from mechanisms.evaluation.classifier import MAX_QUERY_TOKENS, Classifier
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Integers
from mechanisms.records import Demonstration, PromptTemplate

RAW, CONTEXTUAL, PRIOR = "raw", "contextual", "prior"
ALONE, JOINED = "directions alone", "joined"
NO_ANSWER = -1


@dataclass(frozen=True)
class Arm:
    """Demonstrations with their correction and template.

    Attributes:
        prior: the measured correction; None if not measured.
        template: the template of the prompt; None selects that of the evaluated set.
        directions: the directions of the set's labels; None if it has none.
    """

    name: str
    demonstrations: Sequence[Demonstration]
    prior: Mapping[str, float] | None = None
    template: PromptTemplate | None = None
    directions: Directions | None = None


class QueryReader(Protocol):
    """Answers queries with labels. It is not a `LanguageModel`, so it cannot be used on private rows."""

    @property
    def name(self) -> str:
        """The model's name, and its host if it is remote."""
        ...

    def answers(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Generator[int, None, dict[str, Integers]]:
        """Classify texts with one prompt; yields the number of finished texts.

        Returns:
            For each available reading, at least `RAW`, the indices of the answered labels, or `NO_ANSWER`, shape
            (texts,).
        """
        ...


_DROPPED = (
    ": the prior was measured with the model that wrote the set, so contextual calibration corrects the answers instead"
)


def same_reader(demo_set: DemoSet, model: LanguageModel) -> bool:
    """Whether a model's weights are those that wrote a set."""
    return demo_set.model_sha256 == model.sha256


def as_read_by(demo_set: DemoSet, model: LanguageModel) -> DemoSet:
    """The set for a reading model: without measured corrections, unless that model wrote the set."""
    return demo_set if same_reader(demo_set, model) else without_corrections(demo_set)


def without_corrections(demo_set: DemoSet) -> DemoSet:
    """The set without measured corrections, for any reader but its writer."""
    baselines = demo_set.baselines
    if baselines is not None:
        public = baselines.public_only and replace(baselines.public_only, prior=None)
        baselines = replace(baselines, zero_shot=None, public_only=public)
    return replace(demo_set, prior=None, baselines=baselines)


def readers_in_words(demo_set: DemoSet, model: LanguageModel) -> str:
    """One line on the writer and the reader of a set, and on omitted corrections."""
    if same_reader(demo_set, model):
        return f"Written with {demo_set.model_id}, and read by it here too."
    measured = demo_set.prior is not None or (demo_set.baselines and demo_set.baselines.zero_shot is not None)
    return f"Written with {demo_set.model_id}, read here by {model.name}{_DROPPED if measured else ''}."


def check_labels(labels: Sequence[str]) -> None:
    """Refuse a label set with fewer than two labels.

    Raises:
        UsageError: it has a single label.
    """
    if len(labels) < 2:
        raise UsageError(
            "The set has a single label, so there is nothing to classify: choose one with at least two labels."
        )


@dataclass(frozen=True)
class LocalReader:
    """A `QueryReader` with a model on this machine, which gives all readings; every answer is the most likely label.

    Attributes:
        max_query_tokens: public cap on the tokens of a text.
        embedder: for readings that join the model's answer with an arm's directions.
    """

    model: LanguageModel
    max_query_tokens: int = MAX_QUERY_TOKENS
    embedder: Embedder | None = None

    @property
    def name(self) -> str:
        return self.model.name

    def answers(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Generator[int, None, dict[str, Integers]]:
        """The readings raw, calibrated and, if a correction was measured, corrected; with directions also these alone,
        and joined with the best of the others."""
        classifier = Classifier(self.model, template, labels, arm.demonstrations, arm.prior, self.max_query_tokens)
        scores = yield from classifier.reading(texts)
        found = {RAW: scores, CONTEXTUAL: scores + classifier.contextual}
        if arm.prior is not None:
            found[PRIOR] = scores + np.array([arm.prior[label] for label in labels])
        if arm.directions is not None and self.embedder is not None:
            places = arm.directions.places(texts, self.embedder)
            found |= {ALONE: places, JOINED: joined(found.get(PRIOR, found[CONTEXTUAL]), places)}
        return {reading: np.asarray(each.argmax(axis=1), dtype=np.int64) for reading, each in found.items()}
