"""Whether a set has labels to find: whatever classifies with it, or counts how often it is right, asks here first."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.errors import UsageError
from mechanisms.studio.data.record_schema import RecordSchema

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
