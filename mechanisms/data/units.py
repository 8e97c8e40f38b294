"""Units as tallies see them: each as at most R of its records, whatever its position in the file."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.home import keyed_digest, secret_key
from mechanisms.records import Dataset, Record

Unit = tuple[Record, ...]


def units_of(dataset: Dataset, max_records: int) -> Sequence[Unit]:
    """The units of a data set; private.

    Args:
        dataset: what a stage may read.
        max_records: R. Which records of a user are taken follows from their keyed digests, so from the user alone.
    """
    if not dataset.by_user:
        return dataset.members
    key = secret_key()
    return [_taken(unit, max_records, key) for unit in dataset.members]


def _taken(unit: Unit, most: int, key: bytes) -> Unit:
    if len(unit) <= most:
        return unit
    # Equal records say the same, so that which of them comes first does not matter.
    ordered = sorted(unit, key=lambda record: keyed_digest(("tally", record.text, record.label), key))
    return tuple(ordered[:most])
