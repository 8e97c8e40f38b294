"""Class prototypes: classification by the nearest one, without a language model; a separate run in the ledger."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting import Claim, PrivacyLedger, PrivacyTarget, claim
from mechanisms.data.units import charged, units_of
from mechanisms.evaluation.evaluate import Accuracy, Progress, truth_of
from mechanisms.inference import Embedder
from mechanisms.noise import Floats, Integers, Randomness, SecureRandomness
from mechanisms.privacy_events import ALL, Composed
from mechanisms.queries.retrieval import on_grid, similarities
from mechanisms.records import Dataset, Record
from mechanisms.tallies import Prototypes


def one_record_each(dataset: Dataset) -> tuple[list[str], Integers]:
    """One record of each unit, as its text and the index of its label; private.

    A user's record is chosen by the user's own rows alone, whatever its label, so a unit changes one class's sum by one
    embedding.
    """
    records = [unit[0] for unit in units_of(dataset, 1)]
    return [each.text for each in records], truth_of(dataset.labels, records)


def nearest_prototype(vectors: NDArray[np.float32], prototypes: Floats) -> Integers:
    """The index of the prototype nearest to each text (cosine), shape (texts,); the first of equally near ones.

    A text's answer depends on that text and the prototypes alone.

    Args:
        vectors: of the embedded texts, shape (texts, dimensions).
        prototypes: a unit vector for each label, shape (labels, dimensions).
    """
    places = on_grid(prototypes.astype(np.float32))
    near = np.stack([similarities(vectors, place) for place in places], axis=1)
    return np.asarray(near.argmax(axis=1))


_AT_ONCE = 16
"""Texts between two reports of progress: about a tenth of a second."""


@dataclass(frozen=True)
class PrototypesRequest:
    """The public configuration of a release; `labels` is the number of labels."""

    target: PrivacyTarget
    labels: int

    @cached_property
    def tally(self) -> Prototypes:
        """The tally with the least noise that meets the target.

        Raises:
            AccountingError: no noise meets it.
        """
        return Prototypes.costing(self.target, self.labels)

    @property
    def event(self) -> Composed:
        """One list of events, for rows and users: each unit contributes one embedding to one class."""
        return Composed("dataset", ((ALL, (self.tally.event,)),))

    def claim(self) -> Claim:
        """The claim for the release, by both accountants."""
        return claim(self.event, self.target.delta)


@dataclass(frozen=True)
class ClassPrototypes:
    """Released class prototypes; they are public, and their uses are post-processing.

    Attributes:
        labels: one for each direction.
        directions: noisy class means of embeddings, normalised to unit length, shape (labels, dimensions).
        claim, event: the cost.
    """

    labels: tuple[str, ...]
    directions: Floats
    claim: Claim
    event: Composed

    def covers(self, labels: Sequence[str]) -> bool:
        return set(labels) <= set(self.labels)

    def accuracy(self, test: Sequence[Record], labels: Sequence[str], embedder: Embedder) -> Accuracy:
        """The accuracy of the nearest prototype among those of `labels`, on rows with one of these labels."""
        directions = self.directions[[self.labels.index(label) for label in labels]]
        found = nearest_prototype(embedder.embed([row.text for row in test]), directions)
        return Accuracy(sum(labels[i] == row.label for i, row in zip(found, test, strict=True)), len(test))


def release_prototypes(
    dataset: Dataset,
    request: PrototypesRequest,
    embedder: Embedder,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
) -> Generator[Progress | ClassPrototypes]:
    """Charge the run, embed one record of each unit of a private data set, and release the noisy class means.

    The charge stays if the iterator is closed before the release.

    Yields:
        The number of units read, for the curator alone (0 once the run is charged), and last the release.

    Raises:
        BudgetRefused: the data set's cap does not allow it.
        AccountingError: no noise meets the target.
    """
    randomness = randomness or SecureRandomness()
    event, claimed = request.event, request.claim()
    with charged(dataset, "class prototypes", event, claimed, ledger, randomness):
        texts, places = one_record_each(dataset)
        vectors = np.zeros((len(texts), embedder.dimensions))
        yield Progress(0, len(texts))
        for start in range(0, len(texts), _AT_ONCE):
            some = embedder.embed(texts[start : start + _AT_ONCE])
            vectors[start : start + len(some)] = some
            yield Progress(start + len(some), len(texts))
        directions = request.tally.release(Prototypes.contributions(places, vectors), randomness)
        yield ClassPrototypes(dataset.labels, directions, claimed, event)
