"""In-context classification: local and remote readers of queries under demonstrations, and their corrections."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.directions import Directions
from mechanisms.errors import UsageError
from mechanisms.evaluation.by_directions import joined
from mechanisms.inference import Embedder, LanguageModel, QueryPrompt, QueryWords, Tokens, scores_of
from mechanisms.inference.remote import ChatServer
from mechanisms.noise import Floats, Integers
from mechanisms.records import Demonstration, PromptTemplate

# A reading is a generator that yields its progress (usually the number of finished texts) and returns its result.

_Told = TypeVar("_Told")
_Said = TypeVar("_Said")
_Found = TypeVar("_Found")


def with_progress(
    reading: Generator[_Told, None, _Found], report: Callable[[_Told], _Said]
) -> Generator[_Said, None, _Found]:
    """The same reading, with `report` applied to each yielded number."""
    while True:
        try:
            told = next(reading)
        except StopIteration as ended:
            found: _Found = ended.value
            return found
        yield report(told)


def result_of(reading: Generator[int, None, _Found]) -> _Found:
    """The result of a reading."""
    while True:
        try:
            next(reading)
        except StopIteration as ended:
            found: _Found = ended.value
            return found


# In-context classification: raw, calibrated (Zhao et al. 2021), and with a measured correction.

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Content-free queries, which measure the prompt's own label bias (Zhao et al. 2021, section 5)."""

MAX_QUERY_TOKENS = 96
_BLANK = ""
MOST_ROWS = 32
"""The most rows of a batch; blank rows pad it."""
_BATCHES = (MOST_ROWS, 16, 8, 4, 2, 1)
LENGTHS = 3
"""The number of row lengths (one third, two thirds and all of the cap), to save computation on padding."""


@dataclass(frozen=True)
class Prediction:
    """Probabilities over the labels, each of shape (labels,).

    Attributes:
        raw: the model's own.
        calibrated: by contextual calibration.
        corrected: by the measured correction of the demonstrations; None if there is none.
    """

    raw: Floats
    calibrated: Floats
    corrected: Floats | None = None

    @property
    def answer(self) -> Floats:
        """The corrected probabilities, or the calibrated ones without a measured correction."""
        return self.calibrated if self.corrected is None else self.corrected

    @classmethod
    def by_places(cls, places: Floats) -> Prediction:
        """The prediction from a text's projections on the labels' directions alone, shape (labels,)."""
        found = joined(np.zeros_like(places), places)
        return cls(found, found)

    def joined_with(self, places: Floats) -> Prediction:
        """The same, with each joined with the text's projections on the labels' directions, shape (labels,)."""
        least = np.finfo(np.float64).tiny

        def of(probabilities: Floats) -> Floats:
            return joined(np.log(np.maximum(probabilities, least)), places)

        return Prediction(of(self.raw), of(self.calibrated), None if self.corrected is None else of(self.corrected))


class Classifier:
    """A model with a task and demonstrations; it contains nothing private.

    Args:
        prior: the demonstrations' correction, added to each label's log-probability; None if not measured.
        max_query_tokens: public cap on the tokens of a text.

    Raises:
        UsageError: the correction does not have one number for each label.
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

    @cached_property
    def contextual(self) -> Floats:
        """The correction of contextual calibration to log-probabilities, shape (labels,); computed once."""
        [scores] = self._batches(CONTENT_FREE)
        return np.asarray(np.log(len(CONTENT_FREE)) - logsumexp(scores, axis=0))

    def predict(self, queries: Sequence[str]) -> Iterator[Prediction]:
        """Classify queries in batches; their number is public, and may change the last bits of probabilities."""
        for batch in self._batches(queries):
            for scores in batch:
                corrected = None if self._prior is None else np.asarray(softmax(scores + self._prior))
                yield Prediction(np.asarray(softmax(scores)), np.asarray(softmax(scores + self.contextual)), corrected)

    def log_probabilities(self, texts: Sequence[str]) -> Floats:
        """Log-probabilities of the labels, normalised over the labels, shape (texts, labels).

        A text's row is bitwise independent of the other texts, of their number and of its place; it is not finite if
        the model's logits are not.
        """
        return result_of(self.reading(texts))

    def reading(self, texts: Sequence[str]) -> Generator[int, None, Floats]:
        """The same as `log_probabilities`; yields the number of finished texts after each batch."""
        rows = [self._prompt.row(text) for text in texts]
        # A row's shape depends on its own length alone.
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
        """The shortest length in which a row fits."""
        step = math.ceil(self._prompt.cap / LENGTHS)
        frame = self._prompt.length - self._prompt.cap
        return min(self._prompt.length, frame + step * math.ceil(max(1, len(row) - frame) / step))

    def _batches(self, texts: Sequence[str]) -> Iterator[Floats]:
        """Scores of texts in order, in batches of one shape, with few padding rows."""
        length = self._prompt.length
        size = self._size(1 << max(0, len(texts) - 1).bit_length(), length)
        for start in range(0, len(texts), size):
            yield self._scores([self._prompt.row(text) for text in texts[start : start + size]], size, length)

    def _size(self, most: int, length: int) -> int:
        sizes = (size for size in _BATCHES if size <= most)
        return next((n for n in sizes if self._model.alike(self._prompt.prefix, n, length, self._room)), 1)

    def _scores(self, rows: list[list[int]], size: int, length: int) -> Floats:
        """Scores of at most `size` rows; empty queries pad the batch."""
        filled = [*rows, *[self._prompt.row(_BLANK)] * (size - len(rows))]
        session = self._model.open(self._prompt.prefix, filled, length, self._room)
        # A warning would disclose that a row overflowed.
        with np.errstate(all="ignore"):
            if all(len(label) == 1 for label in self._labels):  # the normalisation over the vocabulary cancels
                scores = session.logits(np.array([label[0] for label in self._labels], dtype=np.int64))
            else:
                scores = scores_of(session, self._labels)
            return np.asarray(log_softmax(scores, axis=1))[: len(rows)]


# The contract of readers, local and remote.

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


# The reading model of a set: its writer, or another model, for which no corrections were measured.

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


# A model on a server, which answers in text, without probabilities.

_SPARE_TOKENS = 8
"""Tokens of an answer in addition to those of the longest label."""


@dataclass(frozen=True)
class RemoteReader:
    """A `QueryReader` that answers with the label named in the server's text; `RAW` is the only reading.

    It is not a `LanguageModel` and shares no method with one, so code that reads private rows cannot use it.
    """

    server: ChatServer

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def leaving(self) -> str:
        """One sentence on what is sent where, to be shown before the first request."""
        return (
            "The demonstrations and the queries (your questions, and the texts of a test file) leave this machine for "
            f"{self.server.host}; rows of data sets that this ledger knows do not."
        )

    def answers(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Generator[int, None, dict[str, Integers]]:
        """Classify by the server's text, without the arm's measured correction.

        Raises:
            ModelUnavailable: the server did not answer.
        """
        found: list[int] = []
        for places in self._places(template, labels, arm, texts):
            found += places
            yield len(found)
        return {RAW: np.array(found, dtype=np.int64)}

    def label(self, template: PromptTemplate, labels: Sequence[str], arm: Arm, text: str) -> str | None:
        """The label named in the answer to one text; None if it names none or several.

        Raises:
            ModelUnavailable: the server did not answer.
        """
        [[place]] = self._places(template, labels, arm, [text])
        return None if place == NO_ANSWER else labels[place]

    def _places(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Iterator[list[int]]:
        words = QueryWords(template, arm.demonstrations)
        # A token has at least one byte.
        tokens = _SPARE_TOKENS + max(len(label.encode("utf-8", "replace")) for label in labels)
        for answers in self.server.answers([words.as_text(text) for text in texts], tokens):
            yield [label_in(answer, labels) for answer in answers]


def refuse_set_without_promise(demo_set: DemoSet) -> None:
    """Refuse to send demonstrations without a privacy guarantee to a server.

    Raises:
        UsageError: the set's certificate says that it is not private.
    """
    if (reason := demo_set.certificate.why_not_private) is not None:
        raise UsageError(
            f"This set has no guarantee ({reason}): its demonstrations may repeat private rows, which never leave this "
            "machine. Use a model on this machine."
        )


def read_remotely_in_words(demo_set: DemoSet, reader: RemoteReader) -> str:
    """One line on the writer and the reader of a set, and on the limits of remote answers."""
    return (
        f"Written with {demo_set.model_id}, read here by {reader.name}, which answers in words: neither contextual "
        "calibration nor a prior can correct them, and an answer that names no label, or several, counts as wrong."
    )


def label_in(answer: str, labels: Sequence[str]) -> int:
    """The index of the label in an answer, ignoring case, or `NO_ANSWER`.

    This is the longest label that the answer begins with, else the only label that occurs in it at the beginning of a
    word. A label inside a longer one does not count.
    """
    rest, folded = answer.strip().casefold(), [label.strip().casefold() for label in labels]
    by_length = sorted(range(len(labels)), key=lambda place: -len(folded[place]))
    begun = [place for place in by_length if rest.startswith(folded[place])]
    if not begun:
        for place in by_length:
            rest, times = re.subn(rf"(?<!\w){re.escape(folded[place])}", " ", rest)
            begun += [place] if times else []
        if len(begun) != 1:
            return NO_ANSWER
    # Labels that differ only in case are ambiguous.
    return begun[0] if folded.count(folded[begun[0]]) == 1 else NO_ANSWER
