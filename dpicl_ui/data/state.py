"""The state of step 1: a file, the meaning of its columns, and the confirmed data set."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from dpicl_ui.frame.inputs import whole
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.step_bar import Gate
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.columns import MOST_LABELS, ColumnMapping, Inspection, inspect, label_set
from mechanisms.data.field_names import field_name
from mechanisms.data.label_names import LabelNames, named, proposed_names
from mechanisms.data.left_out import LeftOut
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sizes import MeasuredSizes, measure_sizes
from mechanisms.data.sources import KIND, RECORD, as_records, of_kind
from mechanisms.data.table import Table
from mechanisms.errors import DataError, UsageError
from mechanisms.records import Dataset

# What a row of the private file may be, and what step 1 calls its parts.


class Rows(StrEnum):
    """What rows are."""

    TEXTS = "texts"
    RECORDS = "records"
    ANSWERED = "answered"
    ALONE = "alone"


TITLES = {
    Rows.TEXTS: "A text with a label",
    Rows.RECORDS: "A record of several columns",
    Rows.ANSWERED: "A text with an answer",
    Rows.ALONE: "A text alone",
}

# Step 1's form for a public schema: one line for each column, with what a person says of it, as plain JSON values.
#
# Nothing in it follows from a cell. Types, lengths and lists of values become public with the schema, so they are
# never proposed from what the file says, and neither is a person's word for what its rows are.

_KINDS: dict[str, dict[str, Any]] = {
    "text": {"title": "Text", "limit": "Letters, at most", "usual": 100},
    "number": {"title": "Whole number, 0 or more", "limit": "Digits, at most", "usual": 4},
    "yes-no": {"title": "Yes or no"},
    "choice": {"title": "One of these values", "values": "The values, with commas between them"},
    "texts": {"title": "List of texts", "limit": "Letters of each, at most", "usual": 40},
}
"""What a column may be: its title, and what else is asked about it."""
_MOST_LETTERS, _MOST_DIGITS, _LONGEST_NAME = 1000, 15, 100
_TICKED = 12
"""Columns that are taken in unasked: of a file with more, the first ones."""


@dataclass(frozen=True)
class Records:
    """The schema of the rows and their name; public."""

    kind: str
    schema: RecordSchema

    @property
    def said(self) -> tuple[str, str]:
        """What distinguishes two of these: the order of properties counts."""
        return self.kind, self.schema.text


def blank(names: Iterable[str]) -> dict[str, Any]:
    """The form before anybody said anything: every column is a text.

    Returns:
        kinds (see `_KINDS`), and lines, each with name, taken, owner, kind, limit and values.
    """
    line = {"owner": False, "kind": "text", "limit": _KINDS["text"]["usual"], "values": ""}
    lines = [{"name": name, "taken": place < _TICKED, **line} for place, name in enumerate(names)]
    return {"kinds": _KINDS, "lines": lines}


def with_owner(form: Any, owner: str | None) -> dict[str, Any]:
    """The form as filled in, without the column of users: the model never reads it."""
    lines = []
    for line in _lines(form):
        own = line.get("name") == owner
        again = bool(line.get("owner")) and not own
        lines.append(line | {"owner": own, "taken": not own and (again or bool(line.get("taken")))})
    return {"kinds": _KINDS, "lines": lines}


def schema_of(form: Any) -> RecordSchema:
    """The schema that the filled-in form describes: every column that was taken in is in every record.

    Raises:
        UsageError: it describes none; the message names the column.
    """
    taken = [line for line in _lines(form) if line.get("taken") and not line.get("owner")]
    if not taken:
        raise UsageError("Take in at least one column: it is what records consist of.")
    properties = {_name(line): _value(line) for line in taken}
    return RecordSchema({"type": "object", "properties": properties, "required": list(properties)})


def kind_of(given: object) -> str:
    """A person's name for what rows are.

    Raises:
        UsageError: there is none, or it is too long.
    """
    try:
        return field_name(given)
    except UsageError as error:
        raise UsageError("Say in 1 to 40 characters what one record is, such as Movie.") from error


def _lines(form: Any) -> list[dict[str, Any]]:
    lines = form.get("lines") if isinstance(form, dict) else None
    return [line for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []


def _name(line: dict[str, Any]) -> str:
    name = str(line.get("name"))
    if not (0 < len(name) <= _LONGEST_NAME and name.isprintable()):
        raise UsageError(f"A name of 1 to {_LONGEST_NAME} letters is needed for '{name[:20]}': leave it out.")
    return name


def _value(line: dict[str, Any]) -> dict[str, Any]:
    name, kind = f"'{line.get('name')}'", line.get("kind")
    match kind:
        case "text":
            return {"type": "string", "minLength": 1, "maxLength": _limit(line, _MOST_LETTERS)}
        case "number":
            return {"type": "integer", "minimum": 0, "maximum": 10 ** _limit(line, _MOST_DIGITS) - 1}
        case "yes-no":
            return {"type": "boolean"}
        case "texts":
            item = {"type": "string", "minLength": 1, "maxLength": _limit(line, _MOST_LETTERS)}
            return {"type": "array", "items": item}
        case "choice":
            parts = re.split(r"[,\n]", str(line.get("values") or ""))
            values = list(dict.fromkeys(" ".join(part.split()) for part in parts if part.strip()))
            if len(values) < 2:
                raise UsageError(f"Type the values that {name} may have, at least two, with commas between them.")
            return {"enum": values}
    raise UsageError(f"Say what {name} is: choose its type.")


def _limit(line: dict[str, Any], most: int) -> int:
    words = f"The limit of '{line.get('name')}'"
    limit = whole(words, line.get("limit"))
    if not 1 <= limit <= most:
        raise UsageError(f"{words} must lie between 1 and {most}.")
    return limit


# The state.

_COUNT_DELTA = 1e-6
"""Counting comes before the run's delta is chosen: a thousandth of this is the chance that a measured size is low."""
GO_ON = "Go on without the rows that are left out"
_LOST = "The file is no longer in memory: upload it again."


@dataclass(frozen=True, eq=False, repr=False)
class File:
    """A file in memory; private.

    Attributes:
        field_names: what prompts call its texts, and its labels or its answers.
        given: the schema that was uploaded for its records, in place of the form.
        label_names: what its labels are called instead.
        labelled_by: the column whose labels they are of.
        merge_labels: whether labels that look alike are read as one.
        words: how many words a text usually has, as its owner declares; None where that was not said.
    """

    table: Table
    field_names: tuple[str, str]
    given: RecordSchema | None = None
    label_names: LabelNames = ()
    labelled_by: str | None = None
    merge_labels: bool = False
    words: int | None = None

    def called_by(self, label_column: str) -> File:
        """The same file with names for that column's labels, the file's own or proposed ones if the column is new."""
        if self.labelled_by == label_column:
            return self
        names = tuple((str(number), name) for number, name in enumerate(self.table.class_names.get(label_column, ())))
        if not names:
            labels = label_set(self.table, ColumnMapping("", label_column, merge_labels=self.merge_labels))
            names = proposed_names(labels) if len(labels) <= MOST_LABELS else ()
        return replace(self, label_names=names, labelled_by=label_column)


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """A file with what its columns mean, and what was found under that meaning; private.

    Each choice that changes what may be done with the file makes a new one: what was begun with one of these is out of
    date as soon as the state has another.

    Attributes:
        table: what the mapping is of: the file's own, or with its rows as records, or under one name.
        kind: the one public name of all rows, where they have no labels.
        records: the schema that rows are records of, with that name.
        allow_left_out: whether their owner goes on although many rows take no part.
    """

    file: File
    mapping: ColumnMapping
    inspection: Inspection
    table: Table
    kind: str | None = None
    records: Records | None = None
    allow_left_out: bool = False

    def left_out(self, labels: Collection[str]) -> LeftOut:
        """The rows that take no part where these labels do."""
        return self.inspection.rows.left_out((self.kind,) if self.kind else labels)

    def check_left_out(self, labels: Collection[str]) -> None:
        """Refuse to go on without many rows, unless their owner says so.

        Raises:
            DataError: they are many.
        """
        found = self.left_out(labels)
        if found.many and not self.allow_left_out:
            raise DataError(f"{found.sentence} Tick '{GO_ON}' to go on.")

    @property
    def rows(self) -> Rows:
        """What rows are."""
        if self.records:
            return Rows.RECORDS
        if self.kind is None:
            return Rows.TEXTS
        return Rows.ANSWERED if self.mapping.output else Rows.ALONE

    @property
    def by_user(self) -> bool:
        """Whether all rows of one user are the privacy unit."""
        return self.mapping.unit is not None

    @property
    def named(self) -> tuple[str, str]:
        """The columns that prompts have names for: of texts, and of labels or answers."""
        return self.mapping.text, self.mapping.output or self.mapping.label

    @property
    def said(self) -> tuple[Hashable, ...]:
        """What distinguishes two readings of one file: equal ones need not be read again."""
        return self.mapping, self.kind, self.records and self.records.said


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
        """What distinguishes two confirmed data sets of the same columns."""
        sizes = tuple(sorted(self.measured.sizes.items())) if self.measured else None
        return self.dataset.name, self.dataset.labels, sizes

    @property
    def sizes(self) -> dict[str, int]:
        """The public size of each label: as measured, or the true one, which was declared public."""
        return dict(self.measured.sizes if self.measured else self.dataset.counted_sizes())


class DataState(State):
    """A file, its columns, or the confirmed data set: one value, replaced in one assignment."""

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
        """The confirmed data set; read it once and use that value."""
        at = self._at
        return at if isinstance(at, Confirmed) else None

    def open(self, table: Table, field_names: tuple[str, str]) -> None:
        """Replace the file by another one."""
        with self._lock:
            self._at = File(table, field_names)

    def read(self, mapping: ColumnMapping) -> Columns:
        """The open file under a meaning of its columns, its labels by their names; what is there already, where the
        meaning is the same.

        Raises:
            UsageError: there is no file.
            DataError: the columns make no sense; the file stays.
        """
        with self._lock:
            at, file = self.columns, self._opened().called_by(mapping.label)
            names = mapping.label_names or file.label_names
            mapping = replace(mapping, label_names=names, merge_labels=file.merge_labels)
            if at is not None and at.said == (mapping, None, None):
                return at
            self._at = self._opened()
            self._at = columns = Columns(file, mapping, inspect(file.table, mapping), file.table)
            return columns

    def read_answered(self, kind: str, mapping: ColumnMapping) -> Columns:
        """The open file's rows as texts with answers, under one name; `mapping` has their column as that of labels.

        See `_read_as` for what it gives and raises, here and in the two below.
        """
        return self._read_as(replace(mapping, label=KIND, output=mapping.label), kind)

    def read_alone(self, kind: str, mapping: ColumnMapping) -> Columns:
        """The open file's rows as texts with neither labels nor answers, under one name."""
        return self._read_as(replace(mapping, label=KIND), kind)

    def read_records(self, records: Records, user: str | None, drop_duplicates: bool) -> Columns:
        """The open file's rows as records, each a text under one label."""
        return self._read_as(ColumnMapping(RECORD, KIND, user, drop_duplicates), records.kind, records)

    def _read_as(self, mapping: ColumnMapping, kind: str, records: Records | None = None) -> Columns:
        """The open file's rows under one name.

        Returns:
            What is there already, where nothing else was said of it.

        Raises:
            UsageError: there is no file.
            DataError: the columns make no sense, or do not fit the schema; the file stays.
        """
        with self._lock:
            at, file = self.columns, self._opened()
            if at is not None and at.said == (mapping, kind, records and records.said):
                return at
            self._at = file
            if records is None:
                table = of_kind(file.table, kind)
            else:
                table = as_records(file.table, records.schema, kind, mapping.unit)
            self._at = columns = Columns(file, mapping, inspect(table, mapping, least=1), table, kind, records)
            return columns

    def give(self, schema: RecordSchema | None) -> None:
        """Take a schema in place of the form, or the form again: what was read by the one before is out of date.

        Raises:
            UsageError: there is no file.
        """
        with self._lock:
            self._at = replace(self._opened(), given=schema)

    def name_labels(self, names: LabelNames) -> None:
        """Call labels of the file something else: what was read under the old names is out of date.

        Raises:
            UsageError: there is no file, or a name is another label of it.
        """
        with self._lock:
            file, columns = self._opened(), self.columns
            if columns is not None:
                own = {name: label for label, name in file.label_names}
                named([own.get(label, label) for label in columns.inspection.counts], names)
            self._at = replace(file, label_names=names)

    def merge_labels(self) -> None:
        """Read labels that look alike as one: what was read before is out of date.

        Raises:
            UsageError: there is no file.
        """
        with self._lock:
            self._at = replace(self._opened(), merge_labels=True, labelled_by=None)

    def names_for(self, labels: Collection[str]) -> LabelNames:
        """What a test file's labels are called, for a set that knows labels of the open file by their names."""
        names = self.file.label_names if self.file else ()
        return names if any(name in labels for _, name in names) else ()

    def unread(self) -> None:
        """Keep the file although its columns cannot be read."""
        with self._lock:
            self._at = self.file

    def _opened(self) -> File:
        if (file := self.file) is None:
            raise UsageError(_LOST)
        return file

    def rechoose(self) -> Columns:
        """Other labels take part: nothing is confirmed, and what was begun with the old choice is out of date.

        Raises:
            UsageError: there is no file.
        """
        with self._lock:
            columns = self.columns
            if columns is None:
                raise UsageError(_LOST)
            self._at = columns = replace(columns, allow_left_out=False)
            return columns

    def allow_left_out(self, allowed: bool) -> None:
        """Go on although many rows take no part, or not; a confirmation is withdrawn."""
        with self._lock:
            if (columns := self.columns) is not None:
                self._at = replace(columns, allow_left_out=allowed)

    def call(self, field_names: tuple[str, str]) -> None:
        """Set the names of texts and labels; a confirmation under other names is withdrawn."""
        with self._lock:
            file, columns = self.file, self.columns
            if file is not None and file.field_names != field_names:
                file = replace(file, field_names=field_names)
                self._at = replace(columns, file=file) if columns else file

    def say_length(self, words: int | None) -> None:
        """Declare the usual number of words of a text; a confirmation is withdrawn."""
        with self._lock:
            file, columns = self.file, self.columns
            if file is not None and file.words != words:
                file = replace(file, words=words)
                self._at = replace(columns, file=file) if columns else file

    def withdraw(self) -> None:
        """Withdraw a confirmation, if there is one."""
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
