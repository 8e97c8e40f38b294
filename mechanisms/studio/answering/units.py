"""Units that can be searched: who they are, which shard each belongs to, how similar each is to a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.home import keyed_digest, secret_key
from mechanisms.inference import Embedder
from mechanisms.noise import Integers
from mechanisms.queries import Retrieval
from mechanisms.queries.similarity import similarities
from mechanisms.records import Dataset, Record
from mechanisms.sampling import copy_numbers
from mechanisms.studio.answering.request import AnswerRequest


class SearchableUnits:
    """The units of a data set that can answer, in the order of their keyed digests, and their vectors; private."""

    def __init__(self, dataset: Dataset, request: AnswerRequest, embedder: Embedder) -> None:
        records = [record for record in dataset.records if not request.labels or record.label in request.labels]
        units = _by_digest(records, dataset.by_user)
        self.digests = tuple(sorted(units))
        self.shard = np.array([int(digest[:16], 16) % request.shards for digest in self.digests], dtype=np.int64)
        self._records = [record for digest in self.digests for record in units[digest]]
        sizes = [len(units[digest]) for digest in self.digests]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        searched = bool(self._records) and request.retrieval is not Retrieval.POISSON
        self._vectors = embedder.embed([record.text for record in self._records]) if searched else None

    def __len__(self) -> int:
        return len(self.digests)

    def similarities(self, query: NDArray[Any]) -> UnitSimilarities:
        """Every unit's similarity to a question's vector."""
        if self._vectors is None:
            return UnitSimilarities(np.empty(0, dtype=np.float32), np.empty(0, dtype=np.float32), self._starts)
        by_record = similarities(self._vectors, query)
        return UnitSimilarities(np.maximum.reduceat(by_record, self._starts[:-1]), by_record, self._starts)

    def first_record(self, unit: int) -> Record:
        """The unit's first record."""
        return self._records[int(self._starts[unit])]

    def examples(self, units: Iterable[int], similarities: UnitSimilarities) -> list[Record]:
        """The record of each unit that is nearest to the question."""
        return [self._records[similarities.best_record(unit)] for unit in units]


class UnitSimilarities:
    """How similar every unit is to one question: as its nearest record is."""

    def __init__(self, by_unit: NDArray[np.float32], by_record: NDArray[np.float32], starts: Integers) -> None:
        self.by_unit, self._by_record, self._starts = by_unit, by_record, starts

    def best_record(self, unit: int) -> int:
        """Position of the unit's nearest record among all records."""
        first, end = self._starts[unit], self._starts[unit + 1]
        return int(first + self._by_record[first:end].argmax())


def _by_digest(records: Sequence[Record], by_user: bool) -> dict[str, list[Record]]:
    """The units by a keyed digest of who they are: the user's id, or what the row says and which copy of it it is."""
    key = secret_key()
    units: dict[str, list[Record]] = {}
    copies = copy_numbers((record.text, record.label) for record in records)
    for record, copy in zip(records, copies, strict=True):
        identity = ("user", record.unit or "") if by_user else ("record", record.text, record.label, str(copy))
        units.setdefault(keyed_digest(("answer", *identity), key), []).append(record)
    return units
