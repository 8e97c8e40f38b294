"""What reads queries under demonstrations, here or elsewhere, and what it is given."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mechanisms.data.record_schema import RecordSchema
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.classify import Classifier, Prediction
from mechanisms.inference import LanguageModel
from mechanisms.noise import Integers
from mechanisms.records import Demonstration, PromptTemplate

READINGS = RAW, CONTEXTUAL, PRIOR = "raw", "contextual", "prior"
NO_ANSWER = -1


@dataclass(frozen=True)
class Arm:
    """Demonstrations and how they are read.

    Attributes:
        prior: their measured correction; None where none was measured.
        template: the words in which they are put to the model; None: those of the set that is evaluated.
    """

    name: str
    demonstrations: Sequence[Demonstration]
    prior: Mapping[str, float] | None = None
    template: PromptTemplate | None = None


class QueryReader(Protocol):
    """Answers queries with labels. It can do much less than a `LanguageModel`: nothing private is read with it."""

    @property
    def name(self) -> str:
        """The model, and where it is if that is elsewhere."""
        ...

    def answers(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Generator[int, None, dict[str, Integers]]:
        """Classify texts under one prompt; tells how many are done.

        Returns:
            For each reading that it can give, `RAW` at least, the place of the answered label, or `NO_ANSWER`, shape
            (texts,).
        """
        ...


# Who reads a set: the model that wrote it, or another one, for which nothing was measured.

_OTHER = "Written with {writer}, read here by {reader}"
_SAME = "Written with {writer}, and read by it here too"
_DROPPED = (
    ": the measured prior is of the model that wrote the set, so contextual calibration corrects the answers instead"
)


def same_reader(demo_set: DemoSet, model: LanguageModel) -> bool:
    """Whether a model is the one that wrote a set: by its weights, not by its name."""
    return demo_set.model_sha256 == model.sha256


def as_read_by(demo_set: DemoSet, model: LanguageModel) -> DemoSet:
    """A set as a model may read it: another one than its writer reads it without the corrections measured for that."""
    return demo_set if same_reader(demo_set, model) else without_corrections(demo_set)


def without_corrections(demo_set: DemoSet) -> DemoSet:
    """A set as anything may read it that is not the model under which its corrections were measured."""
    choice = demo_set.choice
    if choice is not None:
        public = choice.public_only and replace(choice.public_only, prior=None)
        choice = replace(choice, zero_shot=None, public_only=public)
    return replace(demo_set, prior=None, choice=choice)


def readers_in_words(demo_set: DemoSet, model: LanguageModel) -> str:
    """One line: which model wrote a set, which one reads it, and what follows."""
    same = same_reader(demo_set, model)
    names = (_SAME if same else _OTHER).format(writer=demo_set.model_id, reader=model.name)
    measured = demo_set.prior is not None or (demo_set.choice is not None and demo_set.choice.zero_shot is not None)
    return f"{names}{_DROPPED if measured and not same else ''}."


# Whether a set has labels to find: whatever classifies with it, or counts how often it is right, asks here first.

RECORDS = (
    "The set holds records of a schema: they have no labels to find, so there is nothing to measure or to classify."
)
_ONE_LABEL = "A set needs at least two labels for this: with one there is nothing to tell apart."


def check_labels(labels: Sequence[str], schema: RecordSchema | None) -> None:
    """Refuse a set that every text would get the same label from.

    Args:
        labels: the set's.
        schema: what its demonstrations are records of, if they are.

    Raises:
        UsageError: it holds records, or has a single label.
    """
    if schema is not None:
        raise UsageError(RECORDS)
    if len(labels) < 2:
        raise UsageError(_ONE_LABEL)


# Texts and the labels that a demo set gives them, read with the set's own correction.


def labelled(written: DemoSet, model: LanguageModel, texts: Sequence[str]) -> list[Prediction]:
    """A prediction for each text; a correction that was measured with another model is left out.

    Raises:
        UsageError: see `check_gives_labels`.
    """
    check_gives_labels(written)
    demo_set = as_read_by(written, model)
    classifier = Classifier(model, demo_set.template, demo_set.labels, demo_set.demonstrations, demo_set.prior)
    return list(classifier.predict(texts))


def check_gives_labels(written: DemoSet) -> None:
    """Refuse a set that answers with no label.

    Raises:
        UsageError: it answers with text, or see `check_labels`.
    """
    if written.template.output is not None:
        raise UsageError("The demonstrations of this set have outputs: it answers with text, and gives no label.")
    check_labels(written.labels, written.schema)
