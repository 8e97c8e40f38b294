"""In-context classification: as the model answers, calibrated (Zhao et al. 2021), and with a measured correction."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel, QueryPrompt, Session, Tokens, scores_of
from mechanisms.noise import Floats
from mechanisms.records import Demonstration, PromptTemplate

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
        reading = self.reading(texts)
        while True:
            try:
                next(reading)
            except StopIteration as ended:
                scores: Floats = ended.value
                return scores

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
