"""The state of step 1: a file, the meaning of its columns, and the confirmed data set."""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from typing import Any

from dpicl_ui.frame.services import Session, State, StepStatus
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.asking import Wording
from mechanisms.data.columns import MOST_LABELS, ColumnMapping, Inspection, LeftOut, inspect, label_set
from mechanisms.data.label_names import LabelNames, named, names_in_lines, proposed_names
from mechanisms.data.sizes import MeasuredSizes, measure_sizes
from mechanisms.data.table import Table
from mechanisms.errors import DataError, UsageError
from mechanisms.records import Dataset
from mechanisms.runs.plan import suggested_delta
from mechanisms.runs.spec import RunSpec

_COUNT_DELTA = 1e-6
"""The delta of counting, which comes before the run's delta is chosen.

The probability that a measured size is too low is at most a thousandth of it.
"""
GO_ON = "Go on without the rows that are left out"
NO_DATA = "Choose a data set in step 1 first, then its privacy in step 2."
LOST = "The file is no longer in memory: upload it again."


@dataclass(frozen=True, eq=False, repr=False)
class OpenFile:
    """A file in memory; private.

    Attributes:
        wording: the wording that asks a model for such a text; public.
        label_field: the word for a label in classification prompts; public.
        worded_for: the text column and the label column for which `wording` and `label_field` were proposed.
        label_names: new names of the file's labels.
        labelled_by: the column whose labels `label_names` renames.
        merge_labels: whether labels that are spellings of the same label are merged.
    """

    table: Table
    wording: Wording
    label_field: str
    worded_for: tuple[str, str]
    label_names: LabelNames = ()
    labelled_by: str | None = None
    merge_labels: bool = False

    def called_by(self, label_column: str) -> OpenFile:
        """The same file with names for that column's labels: for a new column, the file's own or proposed names."""
        if self.labelled_by == label_column:
            return self
        names = tuple((str(number), name) for number, name in enumerate(self.table.class_names.get(label_column, ())))
        if not names:
            labels = label_set(self.table, ColumnMapping("", label_column, merge_labels=self.merge_labels))
            names = proposed_names(labels) if len(labels) <= MOST_LABELS else ()
        return replace(self, label_names=names, labelled_by=label_column)


@dataclass(frozen=True, eq=False, repr=False)
class InspectedFile:
    """A file with the meaning of its columns, and the result of inspecting them; private.

    Each choice that changes what may be done with the file makes a new object. Work that began with an older object is
    out of date.

    Attributes:
        allow_left_out: whether the owner accepts that many rows are left out.
    """

    file: OpenFile
    mapping: ColumnMapping
    inspection: Inspection
    allow_left_out: bool = False

    def left_out(self, labels: Collection[str]) -> LeftOut:
        """The rows that are left out if these labels take part."""
        return self.inspection.rows.left_out(labels)

    def check(self, labels: Collection[str]) -> None:
        """Check that the file can become a data set with these labels.

        Raises:
            DataError: the file has a problem, there are too few labels, or many rows are left out and the owner did not
                accept it.
        """
        if self.inspection.fatal:
            raise DataError(self.inspection.problems[-1])
        if len(labels) < 2:
            raise DataError("Demonstrations need at least two labels: choose them above.")
        found = self.left_out(labels)
        if found.many and not self.allow_left_out:
            raise DataError(f"{found.sentence} Tick '{GO_ON}' to go on.")

    @property
    def by_user(self) -> bool:
        return self.mapping.unit is not None

    @property
    def labels(self) -> list[str]:
        """All labels of the file, in their order on the page."""
        return sorted(self.inspection.counts)


@dataclass(frozen=True, eq=False, repr=False)
class ConfirmedData:
    """The confirmed data set for later steps, in one object, so that no step can miss that the sizes were measured.

    Attributes:
        dataset: private, except for its labels.
        measured: the measurement of its label counts; None if the owner declared the counts public.
        warnings: the ledger's remarks about the data set's rows.
    """

    inspected: InspectedFile
    dataset: Dataset
    measured: MeasuredSizes | None = None
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[Hashable, ...]:
        """The values that tell confirmed data sets of the same columns apart."""
        sizes = tuple(sorted(self.measured.sizes.items())) if self.measured else None
        return self.dataset.name, self.dataset.labels, sizes

    @property
    def sizes(self) -> dict[str, int]:
        """The public size of each label: measured, or the true size, which was declared public."""
        return dict(self.measured.sizes if self.measured else self.dataset.counted_sizes())

    @property
    def usual_delta(self) -> float:
        """The delta that is used unless the owner chooses one; it follows from public sizes."""
        return suggested_delta(sum(self.sizes.values()))

    @property
    def wording(self) -> Wording:
        """The wording that asks a model for a text, with words only for the labels that take part."""
        wording = self.inspected.file.wording
        return replace(
            wording, words={each: words for each, words in wording.words.items() if each in self.dataset.labels}
        )

    @property
    def spec_fields(self) -> dict[str, Any]:
        """The fields of `RunSpec` that this step decides."""
        wording = self.wording
        sizes: dict[str, Any] = {"count_epsilon": self.measured.epsilon} if self.measured else {"sizes": "counted"}
        fields = {
            "text_field": wording.kind[:1].upper() + wording.kind[1:],
            "label_field": self.inspected.file.label_field,
        }
        return RunSpec.of_wording(wording) | fields | sizes


class DataState(State):
    """The state of step 1: an open file, an inspected file, or a confirmed data set.

    It is one value, which a single assignment replaces. Each change withdraws a confirmation, and makes work with the
    earlier columns out of date. Methods that need a file raise a UsageError if there is none.
    """

    def __init__(self, session: Session) -> None:
        self._at: OpenFile | InspectedFile | ConfirmedData | None = None
        self._lock = threading.Lock()
        self._measurements: dict[Hashable, MeasuredSizes] = {}

    @property
    def file(self) -> OpenFile | None:
        at = self._at
        inspected = at.inspected if isinstance(at, ConfirmedData) else at
        return inspected.file if isinstance(inspected, InspectedFile) else inspected

    @property
    def inspected(self) -> InspectedFile | None:
        """The open file as it was inspected, if its columns are readable."""
        at = self._at
        if isinstance(at, ConfirmedData):
            return at.inspected
        return at if isinstance(at, InspectedFile) else None

    @property
    def confirmed(self) -> ConfirmedData | None:
        """The confirmed data set. Read it once and use that value, because it may change."""
        at = self._at
        return at if isinstance(at, ConfirmedData) else None

    @property
    def needed(self) -> ConfirmedData:
        """The confirmed data set; raises a `UsageError` if there is none."""
        if (confirmed := self.confirmed) is None:
            raise UsageError(NO_DATA)
        return confirmed

    @property
    def wording(self) -> Wording:
        """The wording that asks a model for a text of the open file."""
        return self.file.wording if self.file else Wording()

    def open(self, table: Table, wording: Wording, label_field: str, worded_for: tuple[str, str]) -> None:
        with self._lock:
            self._at = OpenFile(table, wording, label_field, worded_for)

    def inspect(self, mapping: ColumnMapping) -> InspectedFile:
        """Inspect the open file with a mapping of its columns; an equal mapping changes nothing.

        Raises:
            DataError: the columns cannot be read; the file stays open.
        """
        with self._lock:
            at, file = self.inspected, self._opened().called_by(mapping.label)
            names = mapping.label_names or file.label_names
            mapping = replace(mapping, label_names=names, merge_labels=file.merge_labels)
            if at is not None and at.mapping == mapping:
                return at
            self._at = self._opened()
            self._at = inspected = InspectedFile(file, mapping, inspect(file.table, mapping))
            return inspected

    def keep_uninspected(self) -> None:
        """Keep the file although its columns cannot be read."""
        with self._lock:
            self._at = self.file

    def name_labels(self, lines: str) -> None:
        """Give labels of the file other names.

        Raises:
            UsageError: a line is not a name (`names_in_lines`), or a name is already another label of the file.
        """
        names = names_in_lines(lines)
        with self._lock:
            file, inspected = self._opened(), self.inspected
            if inspected is not None:
                own = {name: label for label, name in file.label_names}
                named([own.get(label, label) for label in inspected.inspection.counts], names)
            self._at = replace(file, label_names=names)

    def merge_labels(self) -> None:
        with self._lock:
            self._at = replace(self._opened(), merge_labels=True, labelled_by=None)

    def rechoose(self) -> InspectedFile:
        """Make a new inspected file after the owner has chosen other labels."""
        with self._lock:
            if (inspected := self.inspected) is None:
                raise UsageError(LOST)
            self._at = inspected = replace(inspected, allow_left_out=False)
            return inspected

    def withdraw(self) -> None:
        with self._lock:
            if (confirmed := self.confirmed) is not None:
                self._at = replace(confirmed.inspected)

    def allow_left_out(self, allowed: bool) -> None:
        with self._lock:
            if (inspected := self.inspected) is not None:
                self._at = replace(inspected, allow_left_out=allowed)

    def set_wording(self, wording: Wording) -> None:
        """Set the wording; equal wording changes nothing.

        Raises:
            UsageError: it gives words to a label that the file does not have.
        """
        with self._lock:
            file, inspected = self.file, self.inspected
            if inspected is not None and (foreign := sorted(set(wording.words) - set(inspected.inspection.counts))):
                raise UsageError(f"There is no label '{foreign[0]}' to give words: name labels of the file.")
            if file is not None and file.wording != wording:
                file = replace(file, wording=wording)
                self._at = replace(inspected, file=file) if inspected else file

    def propose_wording(self, worded_for: tuple[str, str], wording: Wording, label_field: str) -> None:
        with self._lock:
            self._at = replace(self._opened(), wording=wording, label_field=label_field, worded_for=worded_for)

    def _opened(self) -> OpenFile:
        if (file := self.file) is None:
            raise UsageError(LOST)
        return file

    def names_for(self, labels: Collection[str]) -> LabelNames:
        """The open file's label names, for use on a test file; empty if no new name is among a set's `labels`."""
        names = self.file.label_names if self.file else ()
        return names if any(name in labels for _, name in names) else ()

    def confirm(self, confirmed: ConfirmedData) -> None:
        """Accept a data set. If an equal one is already confirmed, that one stays, with the plans that use it.

        Raises:
            UsageError: the file or its labels were changed after the data set was made.
        """
        with self._lock:
            if confirmed.inspected is not self.inspected:
                raise UsageError("The file or its labels were changed meanwhile: look at them, and confirm again.")
            at = self.confirmed
            if at is None or at.key != confirmed.key:
                self._at = confirmed

    def measured_once(self, dataset: Dataset, epsilon: float, ledger: PrivacyLedger) -> MeasuredSizes:
        """The measured label sizes of a data set. The first call in a tab charges the ledger; later calls return the
        same sizes.

        Raises:
            UsageError: epsilon is not a positive number.
            BudgetRefused: the data set's cap does not allow it.
        """
        key = (dataset.name, dataset.unit, dataset.labels, fingerprint(dataset).content)
        if key not in self._measurements:
            self._measurements[key] = measure_sizes(dataset, epsilon, _COUNT_DELTA, ledger)
        return self._measurements[key]


def status(session: Session) -> StepStatus:
    """The status of step 1: always open, and done when a data set was confirmed."""
    return StepStatus(done=session.of(DataState).confirmed is not None)
