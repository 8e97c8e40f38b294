"""The words everything else uses: records, data sets, prompts and demonstrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from mechanisms.errors import DataError, UsageError


@dataclass(frozen=True, repr=False)
class Record:
    """One row: its text, its label, and the id of the person it belongs to where there is a unit column.

    It has no readable `repr`, so that no log or traceback can show it.
    """

    text: str
    label: str
    unit: str | None = None


@dataclass(frozen=True, repr=False)
class Dataset:
    """A private data set under a public label set; records with other labels do not take part.

    Attributes:
        name: the curator's name for it: what the ledger keeps.
        labels: the public label set, in order.
        records: all rows.
        by_user: the privacy unit is all records of one user, not one record.
    """

    name: str
    labels: tuple[str, ...]
    records: tuple[Record, ...]
    by_user: bool = False

    def __post_init__(self) -> None:
        if len(set(self.labels)) != len(self.labels) or not all(self.labels):
            raise UsageError("Labels must be distinct and not empty.")
        if self.by_user and any(record.unit is None for record in self.records):
            raise DataError("Every row needs a user id when the privacy unit is the user.")

    @property
    def unit(self) -> str:
        """The privacy unit's name: "user" or "record"."""
        return "user" if self.by_user else "record"

    @cached_property
    def units(self) -> Mapping[str, tuple[tuple[Record, ...], ...]]:
        """For each public label the units that have it, each as its records of that label."""
        grouped: dict[str, dict[object, list[Record]]] = {label: {} for label in self.labels}
        for position, record in enumerate(self.records):
            if record.label in grouped:
                unit = record.unit if self.by_user else position
                grouped[record.label].setdefault(unit, []).append(record)
        return {label: tuple(tuple(records) for records in units.values()) for label, units in grouped.items()}

    def counted_sizes(self) -> dict[str, int]:
        """Units of each label as counted in the data: public only if the curator declares it so."""
        return {label: len(units) for label, units in self.units.items()}

    def content(self) -> Iterator[str]:
        """Everything that makes this data set's content, as strings for a keyed digest."""
        for record in self.records:
            yield from (record.text, record.label, record.unit or "")


@dataclass(frozen=True)
class PromptTemplate:
    """How a task is put to a model; public.

    Attributes:
        instruction: what to do with a query, e.g. "Classify the news articles."
        text, label: the fields' names before a record's text and its label, e.g. "Article" and "Answer".
    """

    instruction: str
    text: str = "Text"
    label: str = "Label"

    def __post_init__(self) -> None:
        if not self.text.strip() or not self.label.strip():
            raise UsageError("The names of the text field and of the label field must not be empty.")


@dataclass(frozen=True)
class Demonstration:
    """A synthetic example: what a run releases."""

    text: str
    label: str


def default_template(labels: tuple[str, ...], text: str = "Text", label: str = "Label") -> PromptTemplate:
    """A plain classification instruction over the labels."""
    listed = ", ".join(labels[:-1]) + f" or {labels[-1]}" if len(labels) > 1 else "".join(labels)
    return PromptTemplate(f"Classify each {text.lower()} as {listed}.", text.capitalize(), label.capitalize())
