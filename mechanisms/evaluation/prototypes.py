"""Classification by the nearest class prototype, without a language model: a baseline for demonstrations."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechanisms.accounting import BudgetSnapshot, Claim, PrivacyLedger, PrivacyTarget, claim
from mechanisms.data.sizes import charged, units_of
from mechanisms.evaluation.evaluate import Accuracy, Progress
from mechanisms.inference import Embedder
from mechanisms.noise import Floats, Integers, Randomness, SecureRandomness
from mechanisms.privacy_events import Composed
from mechanisms.queries.retrieval import on_grid, similarities
from mechanisms.records import Dataset, Record
from mechanisms.tallies import Prototypes


def one_record_each(dataset: Dataset) -> tuple[list[str], Integers]:
    """One record of each unit, as its text and the index of its label; private.

    A user's record is chosen by the user's own rows alone, whatever its label, so that a unit changes one class's sum
    by one embedding.
    """
    place = {label: i for i, label in enumerate(dataset.labels)}
    records = [unit[0] for unit in units_of(dataset, 1)]
    return [each.text for each in records], np.array([place[each.label] for each in records], dtype=np.int64)


def nearest_prototype(texts: Sequence[str], prototypes: Floats, embedder: Embedder) -> Integers:
    """The index of the prototype nearest to each text (cosine), shape (texts,); the first of equally near ones.

    A text's answer depends on that text and the prototypes alone.

    Args:
        prototypes: a unit vector for each label, shape (labels, dimensions).
    """
    vectors, places = embedder.embed(texts), on_grid(prototypes.astype(np.float32))
    near = np.stack([similarities(vectors, place) for place in places], axis=1)
    return np.asarray(near.argmax(axis=1))


# Class prototypes of a whole data set, as a run of its own in the ledger.

_AT_ONCE = 16
"""Texts between two reports of progress: about a tenth of a second."""


@dataclass(frozen=True)
class PrototypesRequest:
    """Public configuration of a release; `labels` is their number."""

    target: PrivacyTarget
    labels: int

    @cached_property
    def tally(self) -> Prototypes:
        """The tally with the least noise that meets the target.

        Raises:
            AccountingError: no noise meets it.
        """
        return Prototypes.costing(self.target, by_user=False, alternatives=self.labels)

    @property
    def event(self) -> Composed:
        """One list of events, for rows and users: each unit contributes one embedding to one class."""
        return Composed("dataset", (("all", (self.tally.event,)),))

    def claim(self) -> Claim:
        """The claim for the release, by both accountants."""
        return claim(self.event, self.target.delta)


@dataclass(frozen=True)
class ClassPrototypes:
    """Released class prototypes, public; uses of them are post-processing.

    Attributes:
        labels: one for each direction.
        directions: noisy class means of embeddings, normalised to unit length, shape (labels, dimensions).
        claim, event: the cost.
        before: the data set's spending before.
        private: False if an observer could predict the noise.
    """

    labels: tuple[str, ...]
    directions: Floats
    claim: Claim
    event: Composed
    before: BudgetSnapshot
    private: bool

    def covers(self, labels: Sequence[str]) -> bool:
        return set(labels) <= set(self.labels)

    def accuracy(self, test: Sequence[Record], labels: Sequence[str], embedder: Embedder) -> Accuracy:
        """The accuracy of the nearest prototype among those of `labels`, on rows that each have one of them."""
        directions = self.directions[[self.labels.index(label) for label in labels]]
        found = nearest_prototype([row.text for row in test], directions, embedder)
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
    with charged(dataset, "class prototypes", event, claimed, ledger, randomness) as before:
        texts, places = one_record_each(dataset)
        vectors = np.zeros((len(texts), embedder.dimensions))
        yield Progress(0, len(texts))
        for start in range(0, len(texts), _AT_ONCE):
            some = embedder.embed(texts[start : start + _AT_ONCE])
            vectors[start : start + len(some)] = some
            yield Progress(start + len(some), len(texts))
        directions = request.tally.release(Prototypes.contributions(places, vectors), randomness)
        yield ClassPrototypes(dataset.labels, directions, claimed, event, before, randomness.private)
