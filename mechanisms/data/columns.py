"""The columns of a private file: which holds texts, labels or user ids, its problems, and the data set it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mechanisms.data.field_names import ANSWERS, LABELS, TEXTS, column_words
from mechanisms.data.label_names import HOW_LABELS_ARE_SAID, LabelNames, folded, names_of, spellings
from mechanisms.data.left_out import Breakdown, Reason, looks_like_ids, reasons
from mechanisms.data.table import TEXT, Table
from mechanisms.errors import DataError
from mechanisms.records import Columns, Dataset

# The mapping of columns to text, label and user; the problems, records and data set of a mapped file.

MOST_LABELS = 150
"""The most labels of a task: each label can be a list of events in the certificate."""


_SEVERAL = (
    "A person who appears twice is protected less by a guarantee for single records, and contradictory rows teach a "
    "model little: keep one label for each text."
)
_LABELS_OUTSIDE = {Reason.ALIKE, Reason.SEVERAL, Reason.OUTSIDE}
LOOKS_LIKE_AN_ID = "'{column}' looks like an id: nearly every row has a label of its own. Is it the label column?"
_SEVERAL_OF_A_USER = "Contradictory rows teach a model little: keep one label for each text."
_LABEL_WORDS = (
    "label", "labels", "category", "class", "topic", "intent", "sentiment", "department", "target", "tag", "genre",
)  # fmt: skip
"""Words in a label column's name, the most reliable first."""
_TEXT_WORDS = (
    "text", "texts", "message", "body", "content", "review", "comment", "sentence", "question", "description", "tweet",
)  # fmt: skip
"""The same of a text column."""
_ID_WORDS = {"id", "ids", "uuid", "guid", "index", "idx", "key", "hash"}
_SEEN = 1000
"""The first rows, from which a column's kind is guessed."""
_SHORT = 3
"""Characters of a cell, on the average: a column of shorter ones holds no texts, whatever it is called."""


def guess_columns(table: Table, labels: Collection[str] = ()) -> tuple[str, str]:
    """Guess the text column and the label column; "" where no column can hold any.

    The text column has a name that ends with one of `_TEXT_WORDS`, or else the longest cells. The label column holds
    the most of `labels`; without any, it has a name from `_LABEL_WORDS` and at least two values, or else the fewest
    distinct values. Neither has nested cells. A column of ids, by its name or with nearly all values different, is no
    label column.

    Args:
        labels: known labels, such as those of a set under test.
    """
    head = table.frame.head(_SEEN)
    plain = [name for name in table.columns if not _is_nested(head[name])]
    text = _guess_text(head, plain)
    others = [name for name in plain if name != text]
    known = {name: int(head[name].str.strip().isin(list(labels)).sum()) for name in others}
    if max(known.values(), default=0):
        return text, max(others, key=lambda name: known[name])
    distinct = {name: head[name].nunique() for name in others if not _is_id(name, head[name])}
    named = [name for word in _LABEL_WORDS for name in distinct if word in column_words(name)]
    for name in named:
        if 1 < distinct[name] <= max(2, len(head) // 2):
            return text, name
    return text, min(distinct, key=lambda name: distinct[name] if distinct[name] > 1 else 10**6, default="")


def _guess_text(head: pd.DataFrame, names: Sequence[str]) -> str:
    length = {name: head[name].str.len().mean() for name in names}
    texts = [name for name in names if length[name] > _SHORT and not _is_named_id(name)]
    for word in _TEXT_WORDS:
        if named := [name for name in texts if word in column_words(name)[-1:]]:
            return max(named, key=lambda name: length[name])
    return max(texts or [name for name in names if not _is_named_id(name)], key=lambda name: length[name], default="")


def _is_nested(cells: pd.Series) -> bool:
    """Whether most filled cells are JSON objects or lists."""
    filled = [cell for cell in cells if cell.strip()]
    nested = sum(1 for cell in filled if cell.startswith(("{", "[")) and cell.endswith(("}", "]")))
    return 2 * nested > len(filled)


def _is_id(name: str, cells: pd.Series) -> bool:
    filled = cells[cells.str.strip() != ""]
    return _is_named_id(name) or looks_like_ids(filled.nunique(), len(filled))


def _is_named_id(name: str) -> bool:
    return not _ID_WORDS.isdisjoint(column_words(name)[-1:])


@dataclass(frozen=True, repr=False)
class ColumnMapping:
    """The columns of text, label and user id (`unit`), and whether repeated rows are dropped; public.

    Attributes:
        label_names: replaces the file's labels as rows are read.
        merge_labels: a label is read as one of the label set that it is equal to under `folded`.
    """

    text: str
    label: str
    unit: str | None = None
    drop_duplicates: bool = False
    label_names: LabelNames = ()
    merge_labels: bool = False

    @property
    def columns(self) -> list[str]:
        """The mapped columns."""
        return [name for name in (self.text, self.label, self.unit) if name]


@dataclass(frozen=True, repr=False)
class Inspection:
    """Label counts and problems of a mapped file, for the curator alone; private.

    Attributes:
        counts: units of each label (rows, or users where there is a user column), most frequent first; public once
            the curator declares the sizes.
        problems: one line each; `fatal` if one of them prevents a run.
        duplicates: rows whose text and label occurred before.
        rows: which of them may take part.
    """

    counts: dict[str, int]
    problems: tuple[str, ...]
    fatal: bool
    duplicates: int
    rows: Breakdown


def asked_column(table: Table, name: str) -> pd.Series:
    """The cells of a named column.

    Raises:
        DataError: no such column. The message quotes no other name: in a file without a header they are private cells.
    """
    if (cells := table.column(name)) is None:
        known = len(table.columns)
        nested = sum(1 for each in table.columns if _is_nested(table.frame[each].head(_SEEN)))
        flat = f" {nested} of them hold nested values, objects or lists: flatten the file first." if nested else ""
        called = (
            "columns are called 1, 2, ..."
            if table.reading.header is False
            else "check the name against its first line."
        )
        raise DataError(f"The file has no column '{name}' among its {known}: {called}{flat}")
    return cells


def joined(table: Table, names: Sequence[str]) -> tuple[Table, str]:
    """The table with one more column that joins the texts of `names`, and that column's name.

    Raises:
        DataError: a column is missing.
    """
    if len(names) == 1:
        return table, names[0]
    first, *others = (asked_column(table, name) for name in names)
    whole = ",".join(names)
    return replace(table, frame=table.frame.assign(**{whole: first.str.cat(others, sep=" ")})), whole


def label_set(table: Table, mapping: ColumnMapping) -> list[str]:
    """The distinct labels in the label column, sorted; empty where there is no such column."""
    cells = table.column(mapping.label)
    if cells is None:
        return []
    return sorted({*_called(table, replace(mapping, label_names=()), cells.str.strip(), ()).values()} - {""})


def understood(table: Table, mapping: ColumnMapping, labels: Collection[str]) -> ColumnMapping:
    """The mapping with the names that the file itself has for its labels, as far as the label set has them.

    Whoever declares a label set says with it which of these names count.
    """
    pairs = tuple(
        (str(number), name)
        for number, name in enumerate(table.class_names.get(mapping.label, ()))
        if name in labels and str(number) not in labels
    )
    return mapping if mapping.label_names else replace(mapping, label_names=pairs)


def _mapped(table: Table, mapping: ColumnMapping, labels: Sequence[str] = ()) -> pd.DataFrame:
    if not mapping.text:
        raise DataError("Name the text column: nested values, objects and lists, are no texts.")
    if not mapping.label:
        raise DataError(
            "Name the label column: every row needs a label here. A column of ids, or of nested values, is none."
        )
    names = mapping.columns
    cells = {name: asked_column(table, name) for name in names}
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


_UNLABELLED_CLASS = "-1"
"""A row without a label, in a column of numbers that the file has names for."""


def _called(table: Table, mapping: ColumnMapping, cells: pd.Series, labels: Sequence[str]) -> dict[str, str]:
    """What each label of the file is read as; of several that look alike, the most frequent without a label set."""
    counts = cells.value_counts()
    named = dict(mapping.label_names)
    known: dict[str, str] = {}
    if mapping.merge_labels and labels:
        known = spellings(labels, mapping.label_names)
    elif mapping.merge_labels:
        known = {folded(label): name for label, name in mapping.label_names}
        for label in sorted(counts.index, key=lambda label: (-counts[label], label)):
            known.setdefault(folded(label), label)
    called = {
        cell: named.get(cell) or (cell if cell in labels else known.get(folded(cell), cell)) for cell in counts.index
    }
    if mapping.label in table.class_names and _UNLABELLED_CLASS not in labels:
        called[_UNLABELLED_CLASS] = ""
    return called


def _usable(frame: pd.DataFrame, mapping: ColumnMapping) -> pd.DataFrame:
    usable = _without(frame, reasons(frame))
    return usable.drop_duplicates() if mapping.drop_duplicates else usable


def _without(frame: pd.DataFrame, found: Iterable[Reason | None]) -> pd.DataFrame:
    return frame[np.array([why is None for why in found], dtype=np.bool_)]


def breakdown(table: Table, mapping: ColumnMapping, labels: Sequence[str] = ()) -> Breakdown:
    """Which rows of a mapped file may take part, and why others may not; private.

    Args:
        labels: see `to_dataset`.

    Raises:
        DataError: a column is missing or chosen twice.
    """
    frame = _mapped(table, _under(mapping, labels), labels)
    return Breakdown.of(reasons(frame), frame["label"], table.unread)


def _under(mapping: ColumnMapping, labels: Collection[str]) -> ColumnMapping:
    return replace(mapping, label_names=names_of(labels, mapping.label_names)) if labels else mapping


def inspect(table: Table, mapping: ColumnMapping, least: int = 2) -> Inspection:
    """Label counts and problems of a mapped file.

    Args:
        least: the number of labels required.

    Raises:
        DataError: a column is missing or chosen twice.
    """
    frame = _mapped(table, mapping)
    found = reasons(frame)
    rows = Breakdown.of(found, frame["label"], table.unread)
    filled = _without(frame, found)
    repeated = filled.duplicated()
    usable = filled[~repeated] if mapping.drop_duplicates else filled
    units = usable.drop_duplicates(["label", "unit"]) if mapping.unit else usable
    counts = {str(label): int(count) for label, count in units["label"].value_counts().items()}
    duplicates = int(repeated.sum())
    problems = [
        *_nested(table, mapping),
        *_problems(mapping, rows, 0 if mapping.drop_duplicates else duplicates, counts),
    ]
    if several := _under_several(usable):
        problems.append(_told_of_several(several, mapping.unit is not None))
    fatal = len(counts) < least
    if not counts:
        problems.append("No row has both a text and a label.")
    elif fatal:
        problems.append("There is only one label: demonstrations need at least two.")
    return Inspection(counts, tuple(problems), fatal, duplicates, rows)


def _problems(mapping: ColumnMapping, rows: Breakdown, duplicates: int, counts: Collection[str]) -> Iterator[str]:
    if duplicates:
        yield (
            f"{duplicates} rows repeat an earlier row exactly. A person who appears twice is protected less "
            "by a guarantee for single records: drop the repetitions, or name a user column."
        )
    if rows.looks_like_an_id:
        yield LOOKS_LIKE_AN_ID.format(column=mapping.label)
    elif len(counts) > MOST_LABELS:
        yield f"{len(counts)} different labels: is '{mapping.label}' the label column? At most {MOST_LABELS} take part."


def _nested(table: Table, mapping: ColumnMapping) -> Iterator[str]:
    for name in (mapping.text, mapping.label):
        added = name.startswith(" ")  # to the file's own columns
        if not added and _is_nested(asked_column(table, name).head(_SEEN)):
            yield f"'{name}' holds nested values, objects or lists, which are neither texts nor labels: flatten them."


def _under_several(usable: pd.DataFrame) -> int:
    """The number of texts with more than one label."""
    pairs = usable[["text", "label"]].drop_duplicates()
    return int(pairs.loc[pairs["text"].duplicated(), "text"].nunique())


def _told_of_several(texts: int, by_user: bool) -> str:
    told = "1 text has" if texts == 1 else f"{texts} texts have"
    return f"{told} more than one label. {_SEVERAL_OF_A_USER if by_user else _SEVERAL}"


def to_records(table: Table, mapping: ColumnMapping) -> Columns:
    """The usable rows of a mapped file.

    Raises:
        DataError: a column is missing or chosen twice.
    """
    return _columns(_usable(_mapped(table, mapping), mapping))


def _columns(usable: pd.DataFrame) -> Columns:
    return Columns(*(usable[name].to_numpy(dtype=object) for name in ("text", "label", "unit")))


def to_dataset(table: Table, mapping: ColumnMapping, name: str, labels: tuple[str, ...]) -> Dataset:
    """The private data set of a mapped file under a confirmed public label set.

    Rows whose label is outside the set are part of it, and take no part in a run. A label without rows is no error:
    whether a run starts must not depend on one record.

    Raises:
        DataError: a column is missing.
    """
    mapping = _under(mapping, labels)
    usable = _usable(_mapped(table, mapping, labels), mapping)
    others = [each for each in table.columns if each not in mapping.columns]
    witnesses = tuple(table.frame.loc[usable.index, each].to_numpy(dtype=object) for each in others)
    return Dataset(name, labels, _columns(usable), mapping.unit, witnesses)


def checked_dataset(
    table: Table,
    mapping: ColumnMapping,
    name: str,
    labels: tuple[str, ...],
    tell: Callable[[str], object],
    allow_left_out: bool = False,
) -> Dataset:
    """`to_dataset`, after the file's owner was told how the file was read and which of its rows take no part.

    Args:
        tell: gets private facts, for the owner's eyes alone.
        allow_left_out: whether many rows may be left out.

    Raises:
        DataError: many rows are left out, and that was not allowed; or see `to_dataset`.
    """
    for remark in table.remarks:
        tell(remark)
    mapping = understood(table, mapping, labels)
    rows = breakdown(table, mapping, labels)
    for line in _noted(table, mapping, rows, labels):
        tell(line)
    for line in rows.left_out(labels).told(allow_left_out):
        tell(line)
    dataset = to_dataset(table, mapping, name, labels)
    if repeated := sum(rows.labels.values()) - len(dataset.records):
        tell(f"Rows that repeat an earlier one, which are dropped as was asked: {repeated:,}.")
    return dataset


def _noted(table: Table, mapping: ColumnMapping, rows: Breakdown, labels: Sequence[str]) -> Iterator[str]:
    """What is odd about the labels."""
    yield from _nested(table, mapping)
    if rows.looks_like_an_id:
        yield LOOKS_LIKE_AN_ID.format(column=mapping.label)
    classes = [f"{number} is '{name}'" for number, name in enumerate(table.class_names.get(mapping.label, ()))]
    if classes and not mapping.label_names:
        yield f"The file has names for the labels of '{mapping.label}': {', '.join(classes)}. Give these as labels."
    missing = [label for label in labels if label not in rows.labels]
    if missing and _LABELS_OUTSIDE & rows.left_out(labels).counts.keys():
        yield f"No row has the label '{missing[0]}': check its spelling. {HOW_LABELS_ARE_SAID}"


# The column of user ids, if a file has one. It is proposed as the privacy unit, since protecting all rows of a person
# is the safer guarantee; the curator may decline.

_PEOPLE = {
    "account", "applicant", "author", "caller", "citizen", "client", "contact", "customer", "donor", "employee",
    "guest", "learner", "member", "participant", "passenger", "patient", "person", "player", "pupil", "respondent",
    "resident", "reviewer", "sender", "student", "subscriber", "tenant", "user", "visitor", "voter", "worker",
}  # fmt: skip
_HANDLES = {
    "", "code", "e", "email", "guid", "handle", "hash", "id", "identifier", "key", "login", "mail", "name", "no", "nr",
    "num", "number", "ref", "uid", "uuid",
}  # fmt: skip
_WHOLE = re.compile(f"({'|'.join(sorted(_PEOPLE))})s?({'|'.join(sorted(_HANDLES))})")
_OTHER_WORDS = (
    "column", "date", "day", "time", "timestamp", "created", "updated", "year", "country", "city", "source", "url",
    "link", "score", "stars", "count", "value", "title", "name", "status", "split", "row", "line", "records", "who",
    "annotation", "annotations", "annotator", "data", "output", "input", "completion", "prompt", "genres",
)  # fmt: skip
COLUMN_WORDS = frozenset(
    {*_LABEL_WORDS, *_TEXT_WORDS, *_ID_WORDS, *_PEOPLE, *_OTHER_WORDS, *(_HANDLES - {"", "e"})}
    | {word for words in (TEXTS, LABELS, ANSWERS) for name, more in words.items() for word in (name.lower(), *more)}
)
"""Words that columns are often called by, in small letters."""
_LONGEST = 60
_FEWEST = 20
"""The fewest distinct values of a user column: fewer are roles, such as "agent" and "customer"."""
_FILLED = 0.9


def guess_mapping(table: Table) -> ColumnMapping:
    """The mapping proposed for a file: text, label and, where one is found, user id."""
    text, label = guess_columns(table)
    return ColumnMapping(text, label, guess_person(table, (text, label)))


def guess_person(table: Table, taken: Iterable[str]) -> str | None:
    """The first column with a name for people and a repeated value; None if there is none.

    Args:
        taken: columns that already have a role.
    """
    others = (name for name in table.columns if name not in taken)
    return next((name for name in others if _names_people(name) and _repeats(table, name)), None)


def _names_people(name: str) -> bool:
    """Whether a name has a word for a person, and else only words for ids: "patient", "userId", "customer_no"."""
    words = column_words(name[:_LONGEST])
    people = [word for word in words if _WHOLE.fullmatch(word)]
    return bool(people) and all(word in people or word in _HANDLES for word in words)


def _repeats(table: Table, name: str) -> bool:
    """Whether nearly all cells are filled (rows without a user would be left out) and a user has several rows."""
    cells = table.frame[name].str.strip()
    filled = cells[cells != ""]
    return len(filled) >= _FILLED * len(cells) and _FEWEST <= filled.nunique() < len(filled)
