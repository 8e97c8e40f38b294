"""All measures of a collection of labelled texts, against real rows that wrote none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.records import Demonstration, Record
from research.measures.diversity import distinct
from research.measures.linear_classifier import LinearClassifier, held_out_accuracy
from research.measures.perplexity import perplexity

Labelled = Demonstration | Record


@dataclass(frozen=True)
class Figures:
    """The measures of a collection of texts.

    Attributes:
        texts: their number.
        label_fidelity: the share that a classifier trained on real rows assigns to their own label.
        trained_on: the accuracy on real rows of a classifier trained on the texts.
        distinct: distinct-1, distinct-2 and distinct-3.
        perplexity: the perplexity under a second model; None without one.
    """

    texts: int
    label_fidelity: Accuracy
    trained_on: Accuracy
    distinct: tuple[float, float, float]
    perplexity: float | None = None


class Measures:
    """Real rows against which texts are measured; `held_out` is their own cross-validated accuracy.

    Args:
        labels: the labels of the task.
        test: real rows; those with other labels are omitted.
        embedder: makes the features of all classifiers.
        reader: a model that wrote none of the texts.

    Raises:
        UsageError: a label has fewer than 5 rows.
    """

    def __init__(
        self, labels: Sequence[str], test: Sequence[Record], embedder: Embedder, reader: LanguageModel | None = None
    ) -> None:
        known = [record for record in test if record.label in labels]
        if missing := set(labels) - {record.label for record in known}:
            raise UsageError(f"The test file has no row of the label '{min(missing)}'.")
        self._embedder, self._reader = embedder, reader
        self._labels = [record.label for record in known]
        self._vectors = embedder.embed([record.text for record in known])
        self.held_out: Accuracy = held_out_accuracy(self._vectors, self._labels)
        self._classifier = LinearClassifier(self._vectors, self._labels)

    @property
    def rows(self) -> int:
        """The number of real rows."""
        return len(self._labels)

    def of(self, texts: Sequence[Labelled]) -> Figures:
        """The measures of texts.

        Raises:
            UsageError: the texts have fewer than two labels.
            ModelUnavailable: the second model's logits are not finite.
        """
        written, labels = [each.text for each in texts], [each.label for each in texts]
        vectors = self._embedder.embed(written)
        return Figures(
            texts=len(texts),
            label_fidelity=self._classifier.accuracy(vectors, labels),
            trained_on=LinearClassifier(vectors, labels).accuracy(self._vectors, self._labels),
            distinct=(distinct(written, 1), distinct(written, 2), distinct(written, 3)),
            perplexity=None if self._reader is None else perplexity(self._reader, written),
        )
