"""The columns of a private file, its problems, the rows that are left out, and the resulting data set.

Whether a row takes part depends only on that row and on public choices. The number of left-out rows is private, for the
file's owner only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd

from mechanisms.data.headers import guess_columns, guess_person, is_nested, looks_like_ids, quoted
from mechanisms.data.label_names import HOW_TO_WRITE_LABELS, SPELLED, LabelNames, folded, names_of, spellings
from mechanisms.data.table import TEXT, Table, plain_name
from mechanisms.errors import DataError, SeveralErrors
from mechanisms.records import Columns, Dataset

_TEXT, _LABEL = "text", "label"
"""The usual names of the two columns."""
MOST_LABELS = 150
"""The most labels of a task: each label can add a list of events to the certificate."""
_UNLABELLED_CLASS = "-1"
"""The label of a row without one, in a column of numbers for which the file has names."""


@dataclass(frozen=True, repr=False)
class ColumnMapping:
    """The columns of text, label and user id (`unit`), and how their cells are read; public.

    `label_names` replace the file's labels. With `merge_labels` a label is read as the label of the set that is equal
    to it under `folded`. In a column's name any white space is one space.
    """

    text: str
    label: str
    unit: str | None = None
    drop_duplicates: bool = False
    label_names: LabelNames = ()
    merge_labels: bool = False

    def __post_init__(self) -> None:
        for role in ("text", "label", "unit"):
            if (name := getattr(self, role)) is not None:
                object.__setattr__(self, role, plain_name(name))

    @property
    def columns(self) -> list[str]:
        return [name for name in (self.text, self.label, self.unit) if name]


def guess_mapping(table: Table) -> ColumnMapping:
    """The proposed mapping for a file: text, label and, if found, user id."""
    text, label = guess_columns(table)
    return ColumnMapping(text, label, guess_person(table, (text, label)))


def complete_mapping(
    table: Table, mapping: ColumnMapping, labels: Collection[str], tell: Callable[[str], object]
) -> ColumnMapping:
    """The mapping with missing text and label columns filled in: those named "text" and "label", else the proposed
    ones.

    A user column is reported but not used: the privacy unit is in the certificate, and only the file's owner may
    declare it.
    """
    text = mapping.text or (_TEXT if _TEXT in table.columns else "")
    named = {name for name in (mapping.label, mapping.unit) if name}
    text, proposed = guess_columns(table, labels, text or None, named)
    label = mapping.label or (_LABEL if _LABEL in table.columns and text != _LABEL else proposed)
    taken = [
        f"'{name}' is taken as the {role} column"
        for role, name, said, usual in ((_TEXT, text, mapping.text, _TEXT), (_LABEL, label, mapping.label, _LABEL))
        if name and not said and name != usual
    ]
    if taken:
        tell(f"{' and '.join(taken)}: name others by text= and label=.")
        if mapping.unit is None and (person := guess_person(table, (text, label))):
            told = f"'{person}' seems to say whose rows they are, and people have several"
            tell(f"{told}: name it as the user column to protect all rows of a person together.")
    return replace(mapping, text=text, label=label)


def label_set(table: Table, mapping: ColumnMapping) -> list[str]:
    """The distinct labels in the label column, sorted; empty if there is no such column."""
    cells = table.column(mapping.label)
    if cells is None:
        return []
    return sorted({*_called(table, replace(mapping, label_names=()), cells.str.strip(), ()).values()} - {""})


def understood(table: Table, mapping: ColumnMapping, labels: Collection[str]) -> ColumnMapping:
    """The mapping with the file's own names for its labels, as far as the label set contains them.

    The declared label set decides which of these names are used.
    """
    pairs = tuple(
        (str(number), name)
        for number, name in enumerate(table.class_names.get(mapping.label, ()))
        if name in labels and str(number) not in labels
    )
    return mapping if mapping.label_names else replace(mapping, label_names=pairs)


def _column(table: Table, name: str) -> pd.Series:
    if (cells := table.column(name)) is None:
        if fields := _fields_of(table, name):
            raise DataError(f"The file's column '{name}' is nested, or a field of one: name {fields} instead.")
        if any(each == name or each.startswith(f"{name}.") for each in table.nested):
            told = f"The file's column '{name}' has lists or other values that are not texts or labels"
            plain = quoted(table.columns)
            others = f", such as {plain}" if plain else ""
            raise DataError(f"{told}: name another column{others}, or save the file with one value a cell.")
        numbered = table.reading.header is False
        called = "columns are called 1, 2, ..." if numbered else "check how the file writes the name."
        raise DataError(f"The file has no column '{name}' among its {len(table.columns)}: {called}")
    return cells


def _fields_of(table: Table, name: str) -> str:
    """The fields of a nested column, or of all columns with its name, in words for an error.

    It quotes only common names that most rows have, and counts the others: a column's name may be a private cell, and a
    field's name may occur in a single row.
    """
    alike = [each for each in table.columns if each.startswith(f"{name}.") or each.endswith(f".{name}")]
    shared = [each for each in alike if 2 * int((table.frame[each] != "").sum()) > len(table.frame) > 1]
    return quoted(shared) or (f"one of its {len(alike)} fields" if len(alike) > 1 else "its field" if alike else "")


def _mapped(table: Table, mapping: ColumnMapping, labels: Sequence[str] = ()) -> pd.DataFrame:
    """The columns text, label and unit, with labels after renaming and merging; unit is None without users.

    Without a public label set, labels that are equal under `folded` are read as the most frequent of them.
    """
    if not mapping.text:
        raise DataError("Name the text column: nested values are not texts, but their fields can be.")
    if not mapping.label:
        raise DataError(
            "Name the label column: every row needs a label here. It cannot be a column of ids or of nested values."
        )
    cells: dict[str, pd.Series] = {}
    missing: list[DataError] = []
    for name in (names := mapping.columns):
        try:
            cells[name] = _column(table, name)
        except DataError as error:
            missing.append(error)
    if missing:
        raise missing[0] if len(missing) == 1 else SeveralErrors(map(str, missing))
    if len(cells) != len(names):
        raise DataError("Choose different columns for text, label and user id.")
    frame = pd.DataFrame({"text": cells[mapping.text], "label": cells[mapping.label].str.strip()})
    called = _called(table, mapping, frame["label"], labels)
    if any(label != name for label, name in called.items()):
        frame["label"] = pd.Series([called[cell] for cell in frame["label"]], frame.index, dtype=TEXT)
    # With a user column, only rows of the same user count as repetitions: otherwise removing one user would restore
    # rows of others.
    frame["unit"] = cells[mapping.unit].str.strip() if mapping.unit else None
    return frame


def _called(table: Table, mapping: ColumnMapping, cells: pd.Series, labels: Sequence[str]) -> dict[str, str]:
    """For each label of the file the label as which it is read."""
    counts = cells.value_counts()
    names = names_of(labels, mapping.label_names) if labels else mapping.label_names
    known: dict[str, str] = {}
    if mapping.merge_labels and labels:
        known = spellings(labels, names)
    elif mapping.merge_labels:
        known = {folded(label): name for label, name in names}
        for label in sorted(counts.index, key=lambda label: (-counts[label], label)):
            known.setdefault(folded(label), label)
    named = dict(names)
    called = {
        cell: named.get(cell) or (cell if cell in labels else known.get(folded(cell), cell)) for cell in counts.index
    }
    if mapping.label in table.class_names and _UNLABELLED_CLASS not in labels:
        called[_UNLABELLED_CLASS] = ""
    return called


MOST_SHARE = 0.05
"""The largest share of rows that is left out without a question."""
HOW_TO_LEAVE_OUT = "--allow-left-out leaves them out (in Python allow_left_out=True)."
_LOOKS_EMPTY = re.compile(
    r"#?n/?a|n\.\s?a\.?|<na>|[-+]?nan|nat|[(<\[]?null[)>\]]?|none|nil|undefined|\\n|[(\[](blank|empty|none)[)\]]|\[\]|\{\}"
    r"|#(ref|value|name|num|null|div/0)[!?]?|[-–—_.\s]+",
    re.IGNORECASE,
)
"""Missing values of pandas, R, databases and spreadsheets, empty JSON, and dashes."""
_LONGEST_EMPTY = 20
_BETWEEN_LABELS = re.compile(r"\s*[,;|/\n+&]\s*")


class Reason(StrEnum):
    """The reason why a row is left out, in the order of the tests."""

    UNREAD = "that are no JSON object, or have too few or too many cells"
    EMPTY = "with an empty text"
    LOOKS_EMPTY = 'with a text such as "nan", "NULL" or "-"'
    NO_USER = "without a user"
    UNLABELLED = "without a label"
    ALIKE = f"with another spelling of a label of the set ({SPELLED})"
    SEVERAL = "with several labels in one cell"
    OUTSIDE = "with a label outside the set"


def looks_empty(cell: str) -> bool:
    """Whether a cell is a missing value as programs write it, or a dash."""
    if len(cell) > _LONGEST_EMPTY:
        return False
    return not folded(cell) or _LOOKS_EMPTY.fullmatch(cell.strip()) is not None


def _reason(text: str, label: str, unit: str | None) -> Reason | None:
    """The reason why a row is left out under any label set; None if there is none."""
    if not text or text.isspace():
        return Reason.EMPTY
    if looks_empty(text):
        return Reason.LOOKS_EMPTY
    if unit == "":
        return Reason.NO_USER
    return None if label else Reason.UNLABELLED


def _reason_of_label(label: str, look: Collection[str]) -> Reason:
    """The reason why rows with a label outside a set are left out; `look` has the set's labels, folded."""
    if looks_empty(label):
        return Reason.UNLABELLED
    if folded(label) in look:
        return Reason.ALIKE
    parts = [folded(part).strip("'\"") for part in _BETWEEN_LABELS.split(label.strip("[]{}()"))]
    return Reason.SEVERAL if len(parts) > 1 and {*parts} <= {*look} else Reason.OUTSIDE


@dataclass(frozen=True, repr=False)
class LeftOut:
    """The number of left-out rows, by reason, and in a sentence, which is empty if there are none.

    `many` is True if the file's owner has to allow it.
    """

    counts: Mapping[Reason, int]
    many: bool
    sentence: str


@dataclass(frozen=True, repr=False)
class Breakdown:
    """The counts of rows of a mapped file that are left out under any label set, by reason, and of the others, by
    label."""

    unusable: Mapping[Reason, int]
    labels: Mapping[str, int]

    def left_out(self, labels: Collection[str]) -> LeftOut:
        """The left-out rows under a label set; an empty set allows any label."""
        counts = Counter(self.unusable)
        if labels:
            look = {folded(label) for label in labels}
            for label, count in self.labels.items():
                if label not in labels:
                    counts[_reason_of_label(label, look)] += count
        total, rows = counts.total(), sum(self.unusable.values()) + sum(self.labels.values())
        each = ", ".join(f"{counts[reason]:,} {reason}" for reason in Reason if counts[reason])
        said = f"{total:,} of {rows:,} rows {'is' if total == 1 else 'are'} left out: {each}." if total else ""
        return LeftOut({reason: counts[reason] for reason in Reason if counts[reason]}, total > MOST_SHARE * rows, said)

    def odd(self, table: Table, mapping: ColumnMapping) -> Iterator[str]:
        """Signs that a column does not hold texts or labels: nested values, or nearly as many labels as rows."""
        for name in (mapping.text, mapping.label):
            if is_nested(_column(table, name)):
                said = f"'{name}' holds nested values, objects or lists, which are neither texts nor labels"
                fields = _fields_of(table, name)
                yield f"{said}: name {fields} instead." if fields else f"{said}: flatten them."
        parent, _, place = mapping.label.rpartition(".")
        further = table.column(f"{parent}.{int(place) + 1}") if place.isdecimal() else None
        if further is not None and (rows := int((further != "").sum())):
            yield f"Rows with a further label in '{parent}', which is not read: {rows}."
        if so := table.shown_so.get(mapping.label):
            told = "Labels that are numbers are read as the sheet shows them, such as 50% for 0.5 or 1.0 for 1"
            yield f"{told}: {so}. Format the column as General where the plain numbers are meant."
        if otherwise := table.shown_otherwise.get(mapping.label):
            told = "Labels that are numbers, and that the sheet shows in a form of its own, are read as plain numbers"
            yield f"{told}: {otherwise}. Format the column as text where that is not meant."
        if looks_like_ids(len(self.labels), sum(self.labels.values())):
            label = f"'{mapping.label}' looks like an id: nearly every row has a label of its own."
            yield f"{label} Is it the label column?"


def breakdown(table: Table, mapping: ColumnMapping, labels: Sequence[str] = ()) -> Breakdown:
    """The breakdown of a mapped file's rows under a public label set, if known; private."""
    return _divided(_mapped(table, mapping, labels), table)[1]


def _divided(frame: pd.DataFrame, table: Table) -> tuple[pd.DataFrame, Breakdown]:
    """The rows that may take part, and the breakdown of all rows."""
    found = [_reason(*row) for row in zip(frame["text"], frame["label"], frame["unit"], strict=True)]
    usable = frame[np.array([why is None for why in found], dtype=np.bool_)]
    unusable = Counter(why for why in found if why is not None)
    if table.unread:
        unusable[Reason.UNREAD] = table.unread
    return usable, Breakdown(unusable, Counter(usable["label"]))


_PROTECTED_LESS = "A person who appears twice is protected less by a guarantee for single records"


def _repeated(filled: pd.DataFrame, mapping: ColumnMapping) -> Iterator[str]:
    """Remarks on repeated rows, and on texts with several labels."""
    duplicates = int(filled.duplicated().sum())
    if duplicates and not mapping.drop_duplicates:
        told = "1 row repeats" if duplicates == 1 else f"{duplicates:,} rows repeat"
        yield f"{told} an earlier row exactly. {_PROTECTED_LESS}: leave out repeated rows, or name the column of users."
    pairs = filled[["text", "label"]].drop_duplicates()
    if several := pairs.loc[pairs["text"].duplicated(), "text"].nunique():
        told = "1 text has" if several == 1 else f"{several} texts have"
        why = "Contradictory rows" if mapping.unit else f"{_PROTECTED_LESS}, and contradictory rows"
        yield f"{told} more than one label. {why} teach a model little: keep one label for each text."


@dataclass(frozen=True, repr=False)
class Inspection:
    """Label counts and problems of a mapped file, for the curator only; private.

    Attributes:
        counts: the units of each label (rows, or users if there is a user column), most frequent first; public once the
            curator declares the sizes.
        problems: one line each; `fatal` if one of them prevents a run.
    """

    counts: dict[str, int]
    problems: tuple[str, ...]
    fatal: bool
    duplicates: int
    rows: Breakdown


def inspect(table: Table, mapping: ColumnMapping) -> Inspection:
    filled, rows = _divided(_mapped(table, mapping), table)
    repeated = filled.duplicated()
    usable = filled[~repeated] if mapping.drop_duplicates else filled
    units = usable.drop_duplicates(["label", "unit"]) if mapping.unit else usable
    counts = {str(label): int(count) for label, count in units["label"].value_counts().items()}
    duplicates = int(repeated.sum())
    problems = [*rows.odd(table, mapping)]
    problems += _repeated(filled, mapping)
    if len(counts) > MOST_LABELS and not looks_like_ids(len(rows.labels), sum(rows.labels.values())):
        problems.append(
            f"{len(counts)} different labels: is '{mapping.label}' the label column? At most {MOST_LABELS} take part."
        )
    if not counts:
        problems.append("No row has both a text and a label.")
    elif len(counts) < 2:
        problems.append("There is only one label: demonstrations need at least two.")
    return Inspection(counts, tuple(problems), len(counts) < 2, duplicates, rows)


def to_dataset(table: Table, mapping: ColumnMapping, name: str, labels: tuple[str, ...]) -> Dataset:
    """The private data set of a mapped file under a confirmed public label set.

    Rows with a label outside the set are part of the data set, but take no part in a run. A label without rows is not
    an error: whether a run starts must not depend on one record.
    """
    usable, _ = _divided(_mapped(table, mapping, labels), table)
    return _dataset(usable, table, mapping, name, labels)


def _dataset(usable: pd.DataFrame, table: Table, mapping: ColumnMapping, name: str, labels: tuple[str, ...]) -> Dataset:
    if mapping.drop_duplicates:
        usable = usable.drop_duplicates()
    others = [each for each in table.columns if each not in mapping.columns]
    witnesses = tuple(table.frame.loc[usable.index, each].to_numpy(dtype=object) for each in others)
    columns = Columns(*(usable[each].to_numpy(dtype=object) for each in ("text", "label", "unit")))
    return Dataset(name, labels, columns, mapping.unit, witnesses)


def checked_dataset(
    table: Table,
    mapping: ColumnMapping,
    name: str,
    labels: tuple[str, ...],
    tell: Callable[[str], object],
    allow_left_out: bool = False,
) -> Dataset:
    """Like `to_dataset`, but first tells the file's owner how the file was read and which rows are left out.

    `tell` receives private remarks.

    Raises:
        DataError: many rows would be left out without permission, or a column is missing.
    """
    for line in table.remarks:
        tell(line)
    if any(name and table.column(name) is None for name in (mapping.text, mapping.label)):
        text, label = guess_columns(table, labels, taken={mapping.unit} if mapping.unit else ())
        if text and label:
            tell(f"The columns of texts and labels seem to be '{text}' and '{label}'.")
    mapping = understood(table, mapping, labels)
    usable, rows = _divided(_mapped(table, mapping, labels), table)
    left_out = rows.left_out(labels)
    taking_part = usable[usable["label"].isin(labels)]
    for line in (*rows.odd(table, mapping), *_repeated(taking_part, mapping)):
        tell(line)
    classes = [f"{number} is '{name}'" for number, name in enumerate(table.class_names.get(mapping.label, ()))]
    if classes and not mapping.label_names:
        tell(f"The file has names for the labels of '{mapping.label}': {', '.join(classes)}. Give these as labels.")
    missing = [label for label in labels if label not in rows.labels]
    if missing and {Reason.ALIKE, Reason.SEVERAL, Reason.OUTSIDE} & left_out.counts.keys():
        tell(f"No row has the label '{missing[0]}': check its spelling. {HOW_TO_WRITE_LABELS}")
    sentence = left_out.sentence
    if left_out.counts.get(Reason.ALIKE):
        sentence += " --merge-labels reads another spelling as the label itself (in Python merge_labels=True)."
    if left_out.many and not allow_left_out:
        raise DataError(f"{sentence} {HOW_TO_LEAVE_OUT}")
    if sentence:
        tell(sentence)
    dataset = _dataset(usable, table, mapping, name, labels)
    if repeated := sum(rows.labels.values()) - len(dataset.records):
        tell(f"Rows that repeat an earlier one, dropped as requested: {repeated:,}.")
    return dataset
