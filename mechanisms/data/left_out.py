"""Rows of a private file that take no part, counted by reason; private, for the eyes of the file's owner alone.

Whether a row takes part is a function of that row and of public choices.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.data.label_names import folded
from mechanisms.errors import DataError

MOST_SHARE = 0.05
"""The largest share of rows that is left out unasked."""
_LOOKS_EMPTY = re.compile(
    r"#?n/?a|n\.\s?a\.?|<na>|[-+]?nan|nat|[(<\[]?null[)>\]]?|none|nil|undefined|\\n|[(\[](blank|empty|none)[)\]]|\[\]|\{\}"
    r"|#(ref|value|name|num|null|div/0)[!?]?|[-–—_.\s]+",
    re.IGNORECASE,
)
"""Missing values of pandas, R, databases and spreadsheets, empty JSON, and dashes."""
_LONGEST_EMPTY = 20
_BETWEEN_LABELS = re.compile(r"\s*[,;|/\n+&]\s*")
ALLOW = "--allow-left-out leaves them out (in Python allow_left_out=True)"
MERGE = "--merge-labels reads labels as one that differ in nothing else (in Python merge_labels=True)"


class Reason(StrEnum):
    """Why a row takes no part, in the order in which reasons are looked for."""

    UNREAD = "as lines that are no JSON object"
    EMPTY = "with an empty text"
    LOOKS_EMPTY = 'with a text such as "nan", "NULL" or "-"'
    NO_USER = "without a user"
    UNLABELLED = "without a label"
    ALIKE = "with a label that differs from one of the set only in case, spaces or invisible characters"
    SEVERAL = "with several labels in one cell"
    OUTSIDE = "with a label outside the set"


def looks_empty(cell: str) -> bool:
    """Whether a cell says that there is nothing: as programs write missing values, or as a dash."""
    if len(cell) > _LONGEST_EMPTY:
        return False
    return not folded(cell) or _LOOKS_EMPTY.fullmatch(cell.strip()) is not None


def reasons(frame: pd.DataFrame) -> NDArray[np.object_]:
    """For each row of a mapped file why it takes no part under any label set; None if it may.

    Args:
        frame: with the columns text, label and unit; unit is None without users.
    """
    found = np.array([_of_text(text) for text in frame["text"]], dtype=np.object_)
    free = np.array([why is None for why in found], dtype=np.bool_)
    for reason, without in (
        (Reason.NO_USER, frame["unit"] == ""),
        (Reason.UNLABELLED, frame["label"] == ""),
    ):
        here = free & np.asarray(without)
        found[here] = reason
        free &= ~here
    return found


def _is_empty(cell: str) -> bool:
    return not cell or cell.isspace()


def _of_text(cell: str) -> Reason | None:
    if len(cell) > _LONGEST_EMPTY:
        return Reason.EMPTY if cell.isspace() else None
    if _is_empty(cell):
        return Reason.EMPTY
    return Reason.LOOKS_EMPTY if looks_empty(cell) else None


@dataclass(frozen=True, repr=False)
class LeftOut:
    """The rows that take no part.

    Attributes:
        rows: of the file.
        counts: rows for each reason that there is.
    """

    rows: int
    counts: Mapping[Reason, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    @property
    def many(self) -> bool:
        """Whether they are so many that the file's owner is asked."""
        return self.total > MOST_SHARE * self.rows

    @property
    def sentence(self) -> str:
        """How many there are, by reason; empty if there are none."""
        if not self.total:
            return ""
        verb = "is" if self.total == 1 else "are"
        each = ", ".join(f"{count:,} {reason}" for reason, count in self.counts.items())
        return f"{self.total:,} of {self.rows:,} rows {verb} left out: {each}."

    def told(self, allowed: bool) -> Iterator[str]:
        """What the owner is told.

        Raises:
            DataError: they are many, and that was not allowed.
        """
        advice = f" {MERGE}." if self.counts.get(Reason.ALIKE) else ""
        if self.many and not allowed:
            raise DataError(f"{self.sentence}{advice} {ALLOW}.")
        if self.total:
            yield f"{self.sentence}{advice}"


@dataclass(frozen=True, repr=False)
class Breakdown:
    """The rows of a mapped file, before its labels are chosen.

    Attributes:
        unusable: rows that take no part under any label set, by reason.
        labels: the other rows by label.
    """

    unusable: Mapping[Reason, int]
    labels: Mapping[str, int]

    @classmethod
    def of(cls, found: Collection[Reason | None], labels: Iterable[str], unread: int) -> Breakdown:
        """Count rows.

        Args:
            found: of each row, see `reasons`.
            labels: of each row.
            unread: rows of the file that are not among these.
        """
        reached = [why is None for why in found]
        unusable = Counter(why for why in found if why is not None)
        if unread:
            unusable[Reason.UNREAD] = unread
        return cls(unusable, Counter(compress(labels, reached)))

    def left_out(self, labels: Collection[str]) -> LeftOut:
        """The rows that take no part under a label set; without one, any label will do."""
        counts = Counter(self.unusable)
        if labels:
            look = {folded(label) for label in labels}
            for label, count in self.labels.items():
                if label not in labels:
                    counts[_of_label(label, labels, look)] += count
        rows = sum(self.unusable.values()) + sum(self.labels.values())
        return LeftOut(rows, {reason: counts[reason] for reason in Reason if counts[reason]})

    @property
    def looks_like_an_id(self) -> bool:
        """Whether nearly every row has a label of its own."""
        return looks_like_ids(len(self.labels), sum(self.labels.values()))


_FEWEST = 10
_OWN = 0.8


def looks_like_ids(different: int, cells: int) -> bool:
    """Whether a column has so many different values that they tell rows, not kinds of rows."""
    return cells >= _FEWEST and different > _OWN * cells


def _of_label(label: str, labels: Collection[str], look: Collection[str]) -> Reason:
    if looks_empty(label):
        return Reason.UNLABELLED
    if folded(label) in look:
        return Reason.ALIKE
    parts = [folded(part) for part in _BETWEEN_LABELS.split(label.strip("[]{}()"))]
    parts = [part.strip("'\"") for part in parts]
    return Reason.SEVERAL if len(parts) > 1 and {*parts} <= {*look} else Reason.OUTSIDE
