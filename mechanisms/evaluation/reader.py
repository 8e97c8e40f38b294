"""In-context classification: what reads queries under demonstrations, and every way in which it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from mechanisms.data.record_schema import RecordSchema
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel, QueryPrompt, Session, Tokens, scores_of
from mechanisms.noise import Floats, Integers
from mechanisms.records import Demonstration, PromptTemplate

# A reading is a generator that tells how many texts are done, and returns what it has found.

_Told = TypeVar("_Told")
_Said = TypeVar("_Said")
_Found = TypeVar("_Found")


def reported(
    reading: Generator[_Told, None, _Found], report: Callable[[_Told], _Said]
) -> Generator[_Said, None, _Found]:
    """The same reading, with what `report` makes of each number that it tells."""
    while True:
        try:
            told = next(reading)
        except StopIteration as ended:
            found: _Found = ended.value
            return found
        yield report(told)


def finished(reading: Generator[_Told, None, _Found], tell: Callable[[_Told], object] | None = None) -> _Found:
    """What a reading finds in the end; `tell` gets each number that it tells."""
    telling = reported(reading, tell or (lambda _: None))
    while True:
        try:
            next(telling)
        except StopIteration as ended:
            found: _Found = ended.value
            return found


# In-context classification: as the model answers, calibrated (Zhao et al. 2021), and with a measured correction.

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Queries without content: what the prompt alone makes the model say (Zhao et al. 2021, section 5)."""

MAX_QUERY_TOKENS = 96
_BLANK = ""
MOST_ROWS = 16
"""Of a batch; blank ones fill it."""
_BATCHES = (MOST_ROWS, 8, 4, 2, 1)
LENGTHS = 2
"""Shapes of rows: of half the cap, and of all of it. Padding is computed like tokens."""


@dataclass(frozen=True)
class Prediction:
    """Probabilities over the labels, each of shape (labels,).

    Attributes:
        raw: as the model gives them.
        calibrated: by contextual calibration.
        corrected: by the measured correction of the demonstrations; None where there is none.
    """

    raw: Floats
    calibrated: Floats
    corrected: Floats | None = None

    @property
    def answer(self) -> Floats:
        """Those that the demonstrations are read with: corrected, else calibrated."""
        return self.calibrated if self.corrected is None else self.corrected


class Classifier:
    """A model with a task and demonstrations; knows nothing private.

    Args:
        prior: the correction of the demonstrations, added to each label's log-probability; None where not measured.
        max_query_tokens: public cap on the tokens of a text.

    Raises:
        UsageError: the correction is not one of these labels.
    """

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        labels: Sequence[str],
        demonstrations: Sequence[Demonstration],
        prior: Mapping[str, float] | None = None,
        max_query_tokens: int = MAX_QUERY_TOKENS,
    ) -> None:
        if prior is not None and set(prior) != set(labels):
            raise UsageError("The correction of the demonstrations must have one number for each label.")
        self._model = model
        self._prompt = QueryPrompt(model, template, demonstrations, max_query_tokens)
        self._labels = [self._prompt.label(label) for label in labels]
        self._room = max(len(label) for label in self._labels)
        self._prior = None if prior is None else np.array([prior[label] for label in labels])

    @property
    def prompt(self) -> tuple[int, ...]:
        """What stands before every query."""
        return tuple(self._prompt.prefix)

    @cached_property
    def contextual(self) -> Floats:
        """What contextual calibration adds to each label's log-probability, shape (labels,); costs a pass once."""
        [scores] = self._batches(CONTENT_FREE, _enough(len(CONTENT_FREE)))
        return np.asarray(np.log(len(CONTENT_FREE)) - logsumexp(scores, axis=0))

    def predict(self, queries: Sequence[str]) -> Iterator[Prediction]:
        """Classify queries, a batch at a time; how many there are is public, and may change bits."""
        for batch in self._batches(queries, _enough(len(queries))):
            for scores in batch:
                corrected = None if self._prior is None else np.asarray(softmax(scores + self._prior))
                yield Prediction(np.asarray(softmax(scores)), np.asarray(softmax(scores + self.contextual)), corrected)

    def log_probabilities(self, texts: Sequence[str]) -> Floats:
        """Log-probabilities of the labels, normalised over the labels, shape (texts, labels).

        A text's row does not depend, to the bit, on the other texts, on how many there are, or on its place. It is not
        finite where the model's logits are not.
        """
        return finished(self.reading(texts))

    def reading(self, texts: Sequence[str]) -> Generator[int, None, Floats]:
        """The same as `log_probabilities`, and tells after each batch how many texts are done."""
        rows = [self._prompt.row(text) for text in texts]
        # A row's own length alone says in which shape it is computed.
        lengths = np.array([self._length(row) for row in rows], dtype=np.int64)
        found, done = np.empty((len(rows), len(self._labels))), 0
        for length in np.unique(lengths).tolist():
            places = np.flatnonzero(lengths == length)
            size = self._size(MOST_ROWS, length)
            for start in range(0, len(places), size):
                batch = places[start : start + size]
                found[batch] = self._scores([rows[i] for i in batch.tolist()], size, length)
                done += len(batch)
                yield done
        return found

    def _length(self, row: Tokens) -> int:
        """The shortest shape that a row fits in."""
        step = math.ceil(self._prompt.cap / LENGTHS)
        frame = self._prompt.length - self._prompt.cap
        return min(self._prompt.length, frame + step * math.ceil(max(1, len(row) - frame) / step))

    def _batches(self, texts: Sequence[str], most: int) -> Iterator[Floats]:
        """Scores of texts in their order, a batch at a time; all batches have one shape, of at most so many rows."""
        length = self._prompt.length
        size = self._size(most, length)
        for start in range(0, len(texts), size):
            yield self._scores([self._prompt.row(text) for text in texts[start : start + size]], size, length)

    def _size(self, most: int, length: int) -> int:
        sizes = (size for size in _BATCHES if size <= most)
        return next((n for n in sizes if self._model.alike(self._prompt.prefix, n, length, self._room)), 1)

    def _scores(self, rows: list[list[int]], size: int, length: int) -> Floats:
        """Of at most `size` rows; empty queries fill the batch."""
        filled = [*rows, *[self._prompt.row(_BLANK)] * (size - len(rows))]
        session = self._model.open(self._prompt.prefix, filled, length, self._room)
        # A row's overflow is its own affair: a warning would tell of it.
        with np.errstate(all="ignore"):
            return np.asarray(log_softmax(_label_scores(session, self._labels), axis=1))[: len(rows)]


def _label_scores(session: Session, labels: Sequence[Tokens]) -> Floats:
    """Log-probability of each label after each row, up to a constant of the row, shape (rows, labels)."""
    if all(len(label) == 1 for label in labels):  # the rest of the vocabulary cancels
        return session.logits(np.array([label[0] for label in labels], dtype=np.int64))
    return scores_of(session, labels)


def _enough(texts: int) -> int:
    """Rows of a batch that so many texts fill."""
    return min(MOST_ROWS, 1 << max(0, texts - 1).bit_length())


# What reads queries under demonstrations, here or elsewhere, and what it is given.

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


# What a set of demonstrations answers, in every way in which a model of this machine can read it.


@dataclass(frozen=True)
class LocalReader:
    """See `QueryReader`; every answer is the likeliest label.

    Attributes:
        max_query_tokens: public cap on the tokens of a text.
    """

    model: LanguageModel
    max_query_tokens: int = MAX_QUERY_TOKENS

    @property
    def name(self) -> str:
        """See `QueryReader.name`."""
        return self.model.name

    def answers(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Generator[int, None, dict[str, Integers]]:
        """See `QueryReader.answers`: as the model gives it, calibrated and, where one was measured, corrected.

        The engine computes the prompt's keys and values once.
        """
        classifier = Classifier(self.model, template, labels, arm.demonstrations, arm.prior, self.max_query_tokens)
        scores = yield from classifier.reading(texts)
        found = {RAW: scores, CONTEXTUAL: scores + classifier.contextual}
        if arm.prior is not None:
            found[PRIOR] = scores + np.array([arm.prior[label] for label in labels])
        return {reading: np.asarray(each.argmax(axis=1), dtype=np.int64) for reading, each in found.items()}
