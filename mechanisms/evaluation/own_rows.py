"""Private rows beside demonstrations, for the curator's own screen: a few rows of each label, and the nearest ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.disclosures import COMPARED
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder
from mechanisms.records import Dataset, Record

SHOWN = 3
"""The number of shown rows per label."""
MOST_EMBEDDED = 400
"""The number of rows per label, spread evenly over the file, that are searched for the nearest one."""


@dataclass(frozen=True, repr=False)
class NearestRow:
    """A demonstration's text, the private row nearest to it, and their cosine similarity."""

    text: str
    row: str
    similarity: float


@dataclass(frozen=True, repr=False)
class RowsBeside:
    """Rows of a label and its demonstrations; private.

    Attributes:
        rows: some rows of the label.
        nearest: one for each demonstration of the label.
    """

    label: str
    rows: tuple[str, ...]
    nearest: tuple[NearestRow, ...]


def beside(demo_set: DemoSet, dataset: Dataset, embedder: Embedder, ledger: PrivacyLedger) -> Iterator[RowsBeside]:
    """Rows of each label that has demonstrations, label by label.

    The data set is marked in the ledger before the first row is yielded: later choices may depend on the comparison,
    and later certificates say so.

    Raises:
        UsageError: the set has no demonstrations, or none of the data set's labels.
    """
    labels = [label for label in dataset.labels if any(each.label == label for each in demo_set.demonstrations)]
    if not labels:
        raise UsageError("There is nothing to compare: no demonstration has a label of the data set of step 1.")
    ledger.rows.mark(fingerprint(dataset), COMPARED)
    for label in labels:
        rows = [record for record in dataset.records if record.label == label]
        if rows:
            texts = [each.text for each in demo_set.demonstrations if each.label == label]
            yield RowsBeside(label, tuple(each.text for each in spread(rows, SHOWN)), _nearest(texts, rows, embedder))


def spread(rows: Sequence[Record], count: int) -> list[Record]:
    """At most `count` rows, spread evenly over all of them."""
    return [rows[place] for place in dict.fromkeys(np.linspace(0, len(rows) - 1, count).astype(int).tolist())]


def _nearest(texts: Sequence[str], rows: Sequence[Record], embedder: Embedder) -> tuple[NearestRow, ...]:
    some = spread(rows, min(MOST_EMBEDDED, len(rows)))
    near = embedder.embed(texts) @ embedder.embed([each.text for each in some]).T
    best = near.argmax(axis=1)
    return tuple(
        NearestRow(text, some[place].text, float(near[i, place]))
        for i, (text, place) in enumerate(zip(texts, best, strict=True))
    )
