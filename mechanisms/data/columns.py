"""The columns of a private file: which holds texts, labels or user ids, its problems, and the data set it becomes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.data.label_names import LabelNames, names_of
from mechanisms.data.table import TEXT, Table
from mechanisms.errors import DataError, UsageError
from mechanisms.records import Columns, Dataset

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def column_words(name: str) -> list[str]:
    """The words of a column's name, in lower case: "userId", "user_id" and "User ID" all give "user" and "id"."""
    return [word.lower() for word in _WORD.findall(name)]


# The mapping of columns to text, label and user; the problems, records and data set of a mapped file.

MOST_LABELS = 150
"""The most labels of a task: each label can be a list of events in the certificate."""


_SEVERAL = (
    "A person who appears twice is protected less by a guarantee for single records, and contradictory rows teach a "
    "model little: keep one label for each text."
)
_SEVERAL_OF_A_USER = "Contradictory rows teach a model little: keep one label for each text."
_LABEL_WORDS = (
    "label", "labels", "category", "class", "topic", "intent", "sentiment", "department", "target", "tag", "genre",
)  # fmt: skip
"""Words in a label column's name, the most reliable first."""


def guess_columns(table: Table, labels: Collection[str] = ()) -> tuple[str, str]:
    """Guess the text column and the label column.

    The text column has the longest cells. The label column holds the most of `labels`; without any, it has a name from
    `_LABEL_WORDS` and at least two values, or else the fewest distinct values.

    Args:
        labels: known labels, such as those of a set under test.
    """
    head = table.frame.head(1000)
    text = max(table.columns, key=lambda name: head[name].str.len().mean())
    others = [name for name in table.columns if name != text] or [text]
    known = {name: int(head[name].isin(list(labels)).sum()) for name in others}
    if max(known.values()):
        return text, max(others, key=lambda name: known[name])
    distinct = {name: head[name].nunique() for name in others}
    named = [name for word in _LABEL_WORDS for name in others if word in column_words(name)]
    for name in named:
        if 1 < distinct[name] <= max(2, len(head) // 2):
            return text, name
    return text, min(others, key=lambda name: distinct[name] if distinct[name] > 1 else 10**6)


@dataclass(frozen=True, repr=False)
class ColumnMapping:
    """The columns of text, label, user id (`unit`) and output, and whether repeated rows are dropped.

    `label_names` replaces the file's labels as rows are read; public.
    """

    text: str
    label: str
    unit: str | None = None
    drop_duplicates: bool = False
    output: str | None = None
    label_names: LabelNames = ()

    @property
    def columns(self) -> list[str]:
        """The mapped columns."""
        return [name for name in (self.text, self.label, self.unit, self.output) if name]


@dataclass(frozen=True, repr=False)
class Inspection:
    """Label counts and problems of a mapped file, for the curator alone; private.

    Attributes:
        counts: units of each label (rows, or users where there is a user column), most frequent first; public once
            the curator declares the sizes.
        problems: one line each; `fatal` if one of them prevents a run.
        duplicates: rows whose text and label occurred before.
    """

    counts: dict[str, int]
    problems: tuple[str, ...]
    fatal: bool
    duplicates: int


def asked_column(table: Table, name: str) -> pd.Series:
    """The cells of a named column.

    Raises:
        DataError: no such column. The message quotes no other name: in a file without a header they are private cells.
    """
    if (cells := table.column(name)) is None:
        known = len(table.columns)
        raise DataError(f"The file has no column '{name}' among its {known}: check the name against its first line.")
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


def label_set(table: Table, column: str) -> list[str]:
    """The distinct labels in a column, sorted; empty where there is no such column."""
    cells = table.column(column)
    return [] if cells is None else sorted({*cells.str.strip()} - {""})


def _mapped(table: Table, mapping: ColumnMapping) -> pd.DataFrame:
    if not mapping.label:
        raise DataError("Name the label column: every row needs a label here.")
    names = mapping.columns
    cells = {name: asked_column(table, name) for name in names}
    if len(cells) != len(names):
        raise DataError("Choose different columns for text, label, output and user id.")
    frame = pd.DataFrame({"text": cells[mapping.text], "label": cells[mapping.label].str.strip()})
    if mapping.label_names:
        called = dict(mapping.label_names)
        frame["label"] = pd.Series([called.get(cell, cell) for cell in frame["label"]], frame.index, dtype=TEXT)
    # With a user column, only rows of the same user count as repetitions: otherwise removing one user would restore
    # rows of others.
    frame["unit"] = cells[mapping.unit].str.strip() if mapping.unit else None
    if mapping.output:
        frame["output"] = cells[mapping.output]
    return frame


def _filled(cells: pd.Series) -> NDArray[np.bool_]:
    return np.array([bool(cell) and not cell.isspace() for cell in cells], dtype=np.bool_)


def _usable(frame: pd.DataFrame, mapping: ColumnMapping) -> pd.DataFrame:
    keep = _filled(frame["text"]) & (frame["label"] != "")
    if mapping.output:
        keep &= _filled(frame["output"])
    if mapping.unit:
        keep &= frame["unit"] != ""
    frame = frame[keep]
    return frame.drop_duplicates() if mapping.drop_duplicates else frame


def inspect(table: Table, mapping: ColumnMapping, least: int = 2) -> Inspection:
    """Label counts and problems of a mapped file.

    Args:
        least: the number of labels required.

    Raises:
        DataError: a column is missing or chosen twice.
    """
    frame = _mapped(table, mapping)
    filled = _usable(frame, replace(mapping, drop_duplicates=False))
    repeated = filled.duplicated()
    usable = filled[~repeated] if mapping.drop_duplicates else filled
    units = usable.drop_duplicates(["label", "unit"]) if mapping.unit else usable
    counts = {str(label): int(count) for label, count in units["label"].value_counts().items()}
    duplicates = int(repeated.sum())
    problems = []
    empty = len(frame) - len(filled)
    if empty:
        problems.append(f"{empty} rows with an empty cell are left out.")
    if duplicates and not mapping.drop_duplicates:
        problems.append(
            f"{duplicates} rows repeat an earlier row exactly. A person who appears twice is protected less "
            "by a guarantee for single records: drop the repetitions, or name a user column."
        )
    if several := _under_several(usable):
        problems.append(_told_of_several(several, mapping.unit is not None))
    if len(counts) > MOST_LABELS:
        problems.append(
            f"{len(counts)} different labels: is '{mapping.label}' the label column? At most {MOST_LABELS} take part."
        )
    fatal = len(counts) < least
    if not counts:
        problems.append("No row has both a text and a label.")
    elif fatal:
        problems.append("There is only one label: demonstrations need at least two.")
    return Inspection(counts, tuple(problems), fatal, duplicates)


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
    names = [name for name in ("text", "label", "unit", "output") if name in usable]
    return Columns(*(usable[name].to_numpy(dtype=object) for name in names))


def to_dataset(table: Table, mapping: ColumnMapping, name: str, labels: tuple[str, ...]) -> Dataset:
    """The private data set of a mapped file under a confirmed public label set.

    A label without rows is no error: whether a run starts must not depend on one record.

    Raises:
        DataError: a column is missing.
    """
    if labels:
        mapping = replace(mapping, label_names=names_of(labels, mapping.label_names))
    usable = _usable(_mapped(table, mapping), mapping)
    others = [each for each in table.columns if each not in mapping.columns]
    witnesses = tuple(table.frame.loc[usable.index, each].to_numpy(dtype=object) for each in others)
    return Dataset(name, labels, _columns(usable), mapping.unit, witnesses)


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


# Names of a prompt's fields for text, label and answer, suggested from the names of columns.
#
# A suggestion is a word of the lists below, never a column's own name: text of the file reaches no prompt and no export
# unless a person types it.

Synonyms = Mapping[str, tuple[str, ...]]
"""Each suggestion with further words in a column's name that lead to it."""

NEUTRAL = ("Text", "Label")
"""Field names of text and label where the columns' names suggest none."""
_TEXTS: Synonyms = {
    "Message": ("msg", "sms", "chat"),
    "Review": (),
    "Question": ("query",),
    "Tweet": (),
    "Ticket": (),
    "Email": ("mail",),
    "Note": ("memo",),
    "Abstract": (),
    "Article": ("news", "headline", "story"),
    "Comment": ("feedback", "remark"),
    "Post": (),
    "Report": (),
    "Complaint": (),
    "Letter": (),
    "Sentence": ("utterance",),
    "Description": ("desc",),
}
_LABELS: Synonyms = {
    "Topic": ("subject", "theme"),
    "Department": ("dept", "team"),
    "Sentiment": ("polarity", "mood"),
    "Intent": ("intention",),
    "Kind": (),
    "Category": ("genre",),
    "Emotion": ("feeling",),
    "Type": (),
    "Rating": ("star",),
    "Priority": ("urgency",),
    "Severity": (),
    "Language": ("lang",),
    "Diagnosis": (),
}
_ANSWERS: Synonyms = {
    "Answer": ("response", "output"),
    "Reply": (),
    "Summary": ("abstract",),
    "Title": ("headline",),
    "Translation": (),
    "Item": ("product", "order"),
    "Genre": (),
    "Name": ("person",),
    "Place": ("location", "city"),
    "Reason": ("cause",),
}
_LONGEST_COLUMN = 200
LONGEST_FIELD_NAME = 40


def suggested_names(text_column: str, label_column: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Suggested field names of text and label, the best first; "Text" and "Label" where a column's name suggests none.

    Args:
        text_column, label_column: names of columns; any text.
    """
    return _suggested(text_column, NEUTRAL[0], _TEXTS), _suggested(label_column, NEUTRAL[1], _LABELS)


def suggested_answers(column: str) -> tuple[str, ...]:
    """Suggested field names of an answer in text, the best first; "Answer" where the column's name suggests none."""
    return _suggested(column, "Answer", _ANSWERS)


def _suggested(column: str, neutral: str, known: Synonyms) -> tuple[str, ...]:
    names = {word: name for name, others in known.items() for word in (name.lower(), *others)}
    words = column_words(column[:_LONGEST_COLUMN])
    said = [name for word in words if (name := names.get(word) or names.get(word.removesuffix("s")))]
    # The last word is the head noun: a "ticket_message" is a message.
    return tuple(dict.fromkeys([*said[-1:], neutral, *known]))


def field_name(given: object) -> str:
    """A typed field name with its white space normalised.

    Raises:
        UsageError: empty or too long.
    """
    name = " ".join(given.split()) if isinstance(given, str) else ""
    if not 0 < len(name) <= LONGEST_FIELD_NAME:
        raise UsageError(
            f"Names for a text and for its label or answer must have 1 to {LONGEST_FIELD_NAME} characters."
        )
    return name
