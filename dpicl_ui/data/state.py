"""What step 1 remembers: a file, what its columns mean, and what was confirmed of it."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, replace

from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.step_bar import Gate
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.errors import UsageError
from mechanisms.records import Dataset
from mechanisms.studio.data.counts import MeasuredSizes, measure_sizes
from mechanisms.studio.data.csv_file import Inspection, Mapping, Table, inspect

_COUNT_DELTA = 1e-6
"""Counting comes before the run's delta is chosen: a thousandth of this is the chance that a measured size is low."""


@dataclass(frozen=True, eq=False, repr=False)
class File:
    """A file in memory; private. `field_names` are what prompts call its texts and its labels."""

    table: Table
    field_names: tuple[str, str]


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """A file with what its columns mean, and what was found under that meaning; private.

    Each choice that changes what may be done with the file makes a new one: what was begun with one of these is out of
    date as soon as the state has another.
    """

    file: File
    mapping: Mapping
    inspection: Inspection

    @property
    def by_user(self) -> bool:
        """Whether all rows of one user are the privacy unit."""
        return self.mapping.unit is not None


@dataclass(frozen=True, eq=False, repr=False)
class Confirmed:
    """What later steps work on, in one piece: no one can see the data set and miss that its sizes were measured.

    Attributes:
        dataset: private, but for its labels.
        measured: the measurement of its label counts; None where the curator declared the counts public.
        warnings: what the ledger remarked about the data set's content.
    """

    columns: Columns
    dataset: Dataset
    measured: MeasuredSizes | None = None
    warnings: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[Hashable, ...]:
        """All that can differ between two of the same columns."""
        sizes = tuple(sorted(self.measured.sizes.items())) if self.measured else None
        return self.dataset.name, self.dataset.labels, sizes

    @property
    def sizes(self) -> dict[str, int]:
        """The public size of each label: as measured, or the true one, which was declared public."""
        return dict(self.measured.sizes if self.measured else self.dataset.counted_sizes())


class DataState(State):
    """One value at a time, set in one assignment: no file, a file, its columns, or what was confirmed of them."""

    def __init__(self, session: Session) -> None:
        self._at: File | Columns | Confirmed | None = None
        self._lock = threading.Lock()
        self._measurements: dict[Hashable, MeasuredSizes] = {}

    @property
    def file(self) -> File | None:
        """The open file."""
        at = self._at
        columns = at.columns if isinstance(at, Confirmed) else at
        return columns.file if isinstance(columns, Columns) else columns

    @property
    def columns(self) -> Columns | None:
        """The open file's columns, where they make sense."""
        at = self._at
        if isinstance(at, Confirmed):
            return at.columns
        return at if isinstance(at, Columns) else None

    @property
    def confirmed(self) -> Confirmed | None:
        """What was confirmed; to be read once by whoever uses more than one part of it."""
        at = self._at
        return at if isinstance(at, Confirmed) else None

    def open(self, table: Table, field_names: tuple[str, str]) -> None:
        """Another file; the one before is forgotten."""
        with self._lock:
            self._at = File(table, field_names)

    def read(self, mapping: Mapping) -> Columns:
        """The open file under a new meaning of its columns.

        Raises:
            UsageError: there is no file.
            DataError: the columns make no sense; the file stays.
        """
        with self._lock:
            if (file := self.file) is None:
                raise UsageError("The file is no longer in memory: upload it again.")
            self._at = file
            self._at = columns = Columns(file, mapping, inspect(file.table, mapping))
            return columns

    def rechoose(self) -> Columns:
        """Other labels take part: nothing is confirmed, and what was begun with the old choice is out of date.

        Raises:
            UsageError: there is no file.
        """
        with self._lock:
            columns = self.columns
            if columns is None:
                raise UsageError("The file is no longer in memory: upload it again.")
            self._at = columns = replace(columns)
            return columns

    def call(self, field_names: tuple[str, str]) -> None:
        """Prompts call texts and labels something else: what was confirmed under the old names is gone."""
        with self._lock:
            file, columns = self.file, self.columns
            if file is not None and file.field_names != field_names:
                file = replace(file, field_names=field_names)
                self._at = replace(columns, file=file) if columns else file

    def withdraw(self) -> None:
        """What was confirmed no longer holds; nothing changes where nothing was."""
        if self.confirmed is not None:
            self.rechoose()

    def confirm(self, confirmed: Confirmed) -> None:
        """Accept a data set; one that is confirmed already stays as it is, with all that was planned on it.

        Raises:
            UsageError: the file or the choice of its labels is not the one that it was made from any more.
        """
        with self._lock:
            if confirmed.columns is not self.columns:
                raise UsageError("The file or its labels were changed meanwhile: look at them, and confirm again.")
            at = self.confirmed
            if at is None or at.chosen != confirmed.chosen:
                self._at = confirmed

    def measured_once(self, dataset: Dataset, epsilon: float | None, ledger: PrivacyLedger) -> MeasuredSizes:
        """The measured label sizes of a data set: paid for at the first call in a tab, the same ever after.

        Raises:
            UsageError: epsilon is not a positive number.
            BudgetRefused: the data set's cap does not allow it.
        """
        key = (dataset.name, dataset.unit, dataset.labels, fingerprint(dataset).content)
        if key not in self._measurements:
            self._measurements[key] = measure_sizes(dataset, float(epsilon or 0), _COUNT_DELTA, ledger)
        return self._measurements[key]


def gate(session: Session) -> Gate:
    """Always open; done when a data set was confirmed."""
    return Gate(done=session.of(DataState).confirmed is not None)
