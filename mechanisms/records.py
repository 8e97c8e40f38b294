"""The basic values of all other modules: rows, data sets, prompts and demonstrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from mechanisms.errors import DataError, UsageError

Cells = NDArray[np.object_]
"""One column: a string, or None, for each row."""

RECORD = "record"
"""The privacy unit of single rows."""
_USER = "user:"


def privacy_unit(user_column: str | None) -> str:
    """The privacy unit's name: "record", or "user:COLUMN" for all rows with one value in a column.

    The column is part of the name: protection of all rows of a patient is no guarantee for all rows of a doctor, and
    the costs of runs of both kinds do not add up.
    """
    return RECORD if user_column is None else f"{_USER}{user_column}"


def unit_noun(unit: str) -> str:
    """The word for one unit: "row" or "user"."""
    return "row" if unit == RECORD else "user"


def unit_nouns(unit: str) -> str:
    """The word for several units: "rows" or "users"."""
    return f"{unit_noun(unit)}s"


def unit_in_words(unit: str) -> str:
    """The difference between neighbouring data sets, in words, with the user column."""
    if unit == RECORD:
        return "one row"
    column = unit.removeprefix(_USER)
    return f"all rows of one user (column '{column}')" if column != unit else "all rows of one user"


@dataclass(frozen=True, repr=False)
class Record:
    """One row: its text, its label, and, with a user column, the id of its person.

    It has no readable `repr`, so no log or traceback can show it.
    """

    text: str
    label: str
    unit: str | None = None


@dataclass(frozen=True, repr=False, eq=False)
class Columns(Sequence[Record]):
    """Rows stored as columns of equal length; a `Record` is made on access, so a million rows are cheap."""

    texts: Cells
    labels: Cells
    users: Cells

    @classmethod
    def of(cls, records: Sequence[Record]) -> Columns:
        """The columns of some records."""
        if isinstance(records, Columns):
            return records
        rows = [(record.text, record.label, record.unit) for record in records]
        return cls(*np.array(rows, dtype=object).reshape(-1, 3).T)

    def of_rows(self, rows: slice | NDArray[np.bool_]) -> Columns:
        """Some of the rows, in their order."""
        return Columns(self.texts[rows], self.labels[rows], self.users[rows])

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Columns: ...
    def __getitem__(self, index: int | slice) -> Record | Columns:
        if isinstance(index, slice):
            return self.of_rows(index)
        return Record(self.texts[index], self.labels[index], self.users[index])

    def __iter__(self) -> Iterator[Record]:
        return map(Record, self.texts, self.labels, self.users)


@dataclass(frozen=True, repr=False, eq=False)
class _Units(Sequence[tuple[Record, ...]]):
    """Units as positions: unit i has the rows `rows[starts[i]:starts[i + 1]]`."""

    records: Columns
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> tuple[Record, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[Record, ...], ...]: ...
    def __getitem__(self, index: int | slice) -> tuple[Record, ...] | tuple[tuple[Record, ...], ...]:
        chosen = range(len(self))[index]
        if isinstance(chosen, range):
            return tuple(self[i] for i in chosen)
        return tuple(self.records[row] for row in self.rows[self.starts[chosen] : self.starts[chosen + 1]])


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """A private data set under a public label set; records with other labels do not take part.

    Attributes:
        user_column: the file's name of the user column; the privacy unit is then all records of one user, not one
            record.
        witnesses: the file's other columns, only for recognising rows; they are never in a prompt.
    """

    name: str
    labels: tuple[str, ...]
    records: Sequence[Record]
    user_column: str | None = None
    witnesses: tuple[Cells, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.labels)) != len(self.labels) or not all(self.labels):
            raise UsageError("Labels must be distinct and not empty.")
        if self.by_user and any(unit is None for unit in self._columns.users):
            raise DataError("Every row needs a user id when the privacy unit is the user.")

    @property
    def by_user(self) -> bool:
        """Whether the privacy unit is all records of one user."""
        return self.user_column is not None

    @property
    def unit(self) -> str:
        """The privacy unit's name."""
        return privacy_unit(self.user_column)

    @cached_property
    def _columns(self) -> Columns:
        return Columns.of(self.records)

    @cached_property
    def units_by_label(self) -> Mapping[str, Sequence[tuple[Record, ...]]]:
        """For each public label the units that have it, each as its records with that label."""
        columns = self._columns
        of_label = _codes(columns.labels, {label: i for i, label in enumerate(self.labels)})
        return {label: self._grouped(np.flatnonzero(of_label == i)) for i, label in enumerate(self.labels)}

    @cached_property
    def members(self) -> Sequence[tuple[Record, ...]]:
        """The units with a public label, each as all its records with one, in the order of the file."""
        known = _codes(self._columns.labels, dict.fromkeys(self.labels, 1))
        return self._grouped(np.flatnonzero(known > 0))

    def _grouped(self, rows: NDArray[np.int64]) -> _Units:
        if not self.by_user:
            return _Units(self._columns, rows, np.arange(len(rows) + 1))
        users = self._columns.users[rows]
        owner = _codes(users, {user: i for i, user in enumerate(dict.fromkeys(users))})
        return _Units(self._columns, rows[np.argsort(owner, kind="stable")], np.append(0, np.bincount(owner).cumsum()))

    def counted_sizes(self) -> dict[str, int]:
        """The number of units of each label in the data: public only if the curator declares it."""
        return {label: len(units) for label, units in self.units_by_label.items()}

    def content(self) -> Iterator[str]:
        """The content of this data set as strings for a keyed digest."""
        columns = self._columns
        for text, label, unit in zip(columns.texts, columns.labels, columns.users, strict=True):
            yield from (text, label, unit or "")


def _codes(cells: Cells, codes: Mapping[str, int]) -> NDArray[np.int64]:
    """Each cell's code; -1 if it has none."""
    return np.fromiter((codes.get(cell, -1) for cell in cells), np.int64, len(cells))


@dataclass(frozen=True)
class PromptTemplate:
    """The words of the classification prompt; public.

    Attributes:
        instruction: the task, e.g. "Classify the news articles."
        text, label: the fields' names before a row's text and its label, e.g. "Article" and "Answer".
    """

    instruction: str
    text: str = "Text"
    label: str = "Label"

    def __post_init__(self) -> None:
        if not self.text.strip() or not self.label.strip():
            raise UsageError("The names of the text field and of the label field must not be empty.")


_WORDS_SAID = 5
"""The most released words of a label in a prompt."""


def saying_words(template: PromptTemplate, words: Mapping[str, Sequence[str]]) -> PromptTemplate:
    """A template whose instruction lists, on one line for each label, its released words, if there are any."""
    kind = template.text.lower()
    lines = [f"{label}: {kind}s about {', '.join(of[:_WORDS_SAID])}" for label, of in words.items() if of]
    return replace(template, instruction="\n".join([template.instruction, *(" ".join(each.split()) for each in lines)]))


@dataclass(frozen=True)
class Demonstration:
    """A synthetic example, released by a run."""

    text: str
    label: str


def default_template(
    labels: tuple[str, ...], text: str = "Text", label: str = "Label", instruction: str | None = None
) -> PromptTemplate:
    """A template with `instruction`, or with a plain one: to classify; with a single label, to read texts of a kind;
    without labels, to answer."""
    if not labels:
        usual = f"Give a short {label.lower()} to each {text.lower()}."
    elif len(labels) == 1:
        usual = f"Here are texts of one kind: {labels[0]}."
    else:
        usual = f"Classify each {text.lower()} as {', '.join(labels[:-1])} or {labels[-1]}."
    return PromptTemplate(usual if instruction is None else instruction, text, label)
