"""In-context classification: raw, calibrated (Zhao et al. 2021), and with a measured correction.

A reading is a generator that yields its progress (usually the number of finished texts) and returns its result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from mechanisms.errors import UsageError
from mechanisms.evaluation.by_directions import joined
from mechanisms.inference import LanguageModel, QueryPrompt, Tokens, scores_of
from mechanisms.noise import Floats
from mechanisms.records import Demonstration, PromptTemplate

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
