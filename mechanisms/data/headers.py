"""Names of columns: whether the first line has any, what a column contains, and its name in a prompt.

Whether a line looks like a row depends on private rows, but only decides whether the owner is asked: without a question
the line is the header, and after a question the owner's answer holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pandas as pd

from mechanisms.data.label_names import folded
from mechanisms.data.table import MAX_COLUMNS, TOO_MANY_COLUMNS, Reading, ReadingQuestion, Table, column_names, table_of
from mechanisms.errors import DataError, UsageError

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def column_words(name: str) -> list[str]:
    """The words of a column's name, in lower case: "userId", "user_id" and "User ID" all give "user" and "id"."""
    return [word.lower() for word in _WORD.findall(name)]


# Names of a prompt's fields for text and label. A suggestion is a word of the lists below, never a column's own name:
# no text of the file reaches a prompt or an export unless a person types it.

Synonyms = Mapping[str, tuple[str, ...]]
"""Each suggestion, with further words in a column's name that imply it."""
TEXTS: Synonyms = {
    "Message": ("msg", "sms", "chat"), "Review": (), "Question": ("query",), "Tweet": (), "Ticket": (),
    "Email": ("mail",), "Note": ("memo",), "Abstract": (), "Article": (),
    "News item": ("news", "headline", "story"), "Comment": ("feedback", "remark"), "Post": (), "Report": (),
    "Complaint": (), "Letter": (),
    "Sentence": ("utterance",), "Description": ("desc",),
}  # fmt: skip
LABELS: Synonyms = {
    "Topic": ("subject", "theme"), "Department": ("dept", "team"), "Sentiment": ("polarity", "mood"),
    "Intent": ("intention",), "Kind": (), "Category": ("genre",), "Emotion": ("feeling",), "Type": (),
    "Rating": ("star",), "Priority": ("urgency",), "Severity": (), "Language": ("lang",), "Diagnosis": (),
}  # fmt: skip
_LONGEST_COLUMN = 200
LONGEST_FIELD_NAME = 40


def suggested_names(text_column: str, label_column: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Suggested names of the fields, the best first; "Text" and "Label" if a column's name suggests none."""
    return _suggested(text_column, "Text", TEXTS), _suggested(label_column, "Label", LABELS)


def _suggested(column: str, neutral: str, known: Synonyms) -> tuple[str, ...]:
    names = {word: name for name, others in known.items() for word in (name.lower(), *others)}
    words = column_words(column[:_LONGEST_COLUMN])
    said = [name for word in words if (name := names.get(word) or names.get(word.removesuffix("s")))]
    # The last word is the head noun: a "ticket_message" is a message.
    return tuple(dict.fromkeys([*said[-1:], neutral, *known]))


def field_name(given: object) -> str:
    """A typed field name with its white space normalised; a `UsageError` if it is empty or too long."""
    name = " ".join(given.split()) if isinstance(given, str) else ""
    if not 0 < len(name) <= LONGEST_FIELD_NAME:
        raise UsageError(f"Names for a text and for its label must have 1 to {LONGEST_FIELD_NAME} characters.")
    return name


_LABEL_WORDS = (
    "label", "labels", "category", "class", "topic", "intent", "sentiment", "department", "target", "tag", "genre",
)  # fmt: skip
"""Words in a label column's name, the most reliable first."""
_TEXT_WORDS = (
    "text", "texts", "message", "body", "content", "review", "comment", "sentence", "question", "description", "tweet",
)  # fmt: skip
_ID_WORDS = {"id", "ids", "uuid", "guid", "index", "idx", "key", "hash"}
_PEOPLE = {
    "account", "applicant", "author", "caller", "citizen", "client", "contact", "customer", "donor", "employee",
    "guest", "learner", "member", "participant", "passenger", "patient", "person", "player", "pupil", "respondent",
    "resident", "reviewer", "sender", "student", "subscriber", "tenant", "user", "visitor", "voter", "worker",
}  # fmt: skip
_HANDLES = {
    "", "code", "e", "email", "guid", "handle", "hash", "id", "identifier", "key", "login", "mail", "name", "no", "nr",
    "num", "number", "ref", "uid", "uuid",
}  # fmt: skip
_PERSON = re.compile(f"({'|'.join(sorted(_PEOPLE))})s?({'|'.join(sorted(_HANDLES))})")
_OTHER_WORDS = (
    "column", "date", "day", "time", "timestamp", "created", "updated", "year", "country", "city", "source", "url",
    "link", "score", "stars", "count", "value", "title", "name", "status", "split", "row", "line", "records", "who",
    "annotation", "annotations", "annotator", "data", "output", "input", "completion", "prompt", "genres", "answer",
    "response", "reply", "summary", "translation", "item", "product", "order", "place", "location", "reason", "cause",
)  # fmt: skip
_COLUMN_WORDS = frozenset(
    {*_LABEL_WORDS, *_TEXT_WORDS, *_ID_WORDS, *_PEOPLE, *_OTHER_WORDS, *(_HANDLES - {"", "e"})}
    | {word for words in (TEXTS, LABELS) for name, more in words.items() for word in (name.lower(), *more)}
)
_PUBLIC = re.compile(r"0|[A-Za-z _-]+")
_MOST_SHOWN = 5
_SEEN = 1000
"""The number of first rows from which a column's kind is guessed."""
_SHORT = 3
"""The least mean number of characters of a cell in a text column, whatever the column's name."""
_LONGEST_PERSON = 60
_FEWEST_USERS = 20
"""The fewest distinct values of a user column: fewer values are roles, such as "agent" and "customer"."""
_FILLED = 0.9
_FEWEST_IDS, _OWN_ID = 10, 0.8


def guess_columns(
    table: Table, labels: Collection[str] = (), text: str | None = None, taken: Collection[str] = ()
) -> tuple[str, str]:
    """Guess the text column, unless it is given, and the label column; "" if no column qualifies.

    The text column has a name that ends with one of `_TEXT_WORDS`, else the longest cells. The label column has the
    most of the known `labels`; without known labels, it has a name from `_LABEL_WORDS` and at least two values, else
    the fewest distinct values. Neither has nested cells or is one of the columns `taken` for something else. A column
    of ids, by its name or with nearly all values distinct, is not a label column.
    """
    head = table.frame.head(_SEEN)
    plain = [name for name in table.columns if name not in taken and not is_nested(head[name])]
    text = text or _guess_text(head, plain)
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
    length = {name: head[name].str.len().mean() for name in names if not _is_named_id(name)}
    texts = [name for name in length if length[name] > _SHORT]
    for word in _TEXT_WORDS:
        if named := [name for name in texts if word in column_words(name)[-1:]]:
            return max(named, key=lambda name: length[name])
    return max(texts or length, key=lambda name: length[name], default="")


def is_nested(cells: pd.Series) -> bool:
    """Whether most non-empty cells among the first are JSON objects or lists."""
    filled = [cell for cell in cells.head(_SEEN) if cell.strip()]
    nested = sum(1 for cell in filled if cell.startswith(("{", "[")) and cell.endswith(("}", "]")))
    return 2 * nested > len(filled)


def is_a_row(fields: Mapping[str, Any], labels: Collection[str] = ()) -> bool:
    """Whether an object has its own text and label, by their names or because a value is a known label."""
    texts = {name for name, value in fields.items() if isinstance(value, str) and _is_named_text(name)}
    plain = {name: str(value) for name, value in fields.items() if type(value) in (str, int, float)}
    return bool(texts) and any(
        value in labels or not {*_LABEL_WORDS}.isdisjoint(column_words(name))
        for name, value in plain.items()
        if name not in texts
    )


def _is_id(name: str, cells: pd.Series) -> bool:
    filled = cells[cells.str.strip() != ""]
    return _is_named_id(name) or looks_like_ids(filled.nunique(), len(filled))


def _is_named_text(name: str) -> bool:
    return not {*_TEXT_WORDS}.isdisjoint(column_words(name)[-1:])


def _is_named_id(name: str) -> bool:
    return not _ID_WORDS.isdisjoint(column_words(name)[-1:])


def looks_like_ids(different: int, cells: int) -> bool:
    """Whether a column has so many distinct values that they identify rows instead of kinds of rows."""
    return cells >= _FEWEST_IDS and different > _OWN_ID * cells


def guess_person(table: Table, taken: Iterable[str]) -> str | None:
    """The first column with a name that denotes people and with repeated values; None if there is none.

    It is proposed as the privacy unit, because protecting all rows of a person is the stronger guarantee.
    """
    for name in table.columns:
        words = column_words(name[:_LONGEST_PERSON])
        people = [word for word in words if _PERSON.fullmatch(word)]
        if name in taken or not people or not all(word in people or word in _HANDLES for word in words):
            continue
        cells = table.frame[name].str.strip()
        filled = cells[cells != ""]  # rows without a user would be left out
        if len(filled) >= _FILLED * len(cells) and _FEWEST_USERS <= filled.nunique() < len(filled):
            return name
    return None


# If it is in doubt whether the first line names the columns, the owner is asked.
BEGINNING = 20
"""The number of first lines by which a title above the header is recognised."""
_LOOKED_AT, _FEWEST_ROWS = 100_000, 100
"""The number of cells below that are searched for a repeated name, and the least number of searched rows."""
_MOST_WORDS, _SEVERAL_WORDS, _TWO_WORDS = 4, 3, 2
_LONGEST, _LONGEST_WITHOUT_SPACES = 50, 12
_NUMBER = re.compile(r"[-+~<>$€£¥]?\s*\d[\d\s.,:/\\%+TZ-]*(e[-+]?\d+)?", re.IGNORECASE)
"""A number, a date or a time."""
_SENTENCE = re.compile(r".+([.!?…。！？]|, .+)")


def headed(
    first: Sequence[str],
    rows: Iterable[Sequence[str]],
    reading: Reading,
    remarks: Iterable[str] = (),
    separator: str | None = None,
) -> Table:
    """The table of a first line and the rows below it, which have as many cells.

    `remarks` are consumed after all rows. `separator` is the one read from the first line; if that line is a row, the
    owner has to declare it.

    Raises:
        ReadingQuestion: the first line looks like a row, and the owner has not declared whether it is.
    """
    if reading.header is False:
        if len(first) > MAX_COLUMNS:
            raise DataError(TOO_MANY_COLUMNS)
        return table_of([str(number + 1) for number in range(len(first))], chain([first], rows), remarks)
    said = f" with --separator '{separator}'" if separator else ""
    way = (
        f"Give --no-header{said} if it is a row (in Python header=False; columns are then called 1, 2, ...), or "
        "--header if it does name the columns."
    )
    proposed = replace(reading, separator=reading.separator or separator)
    try:
        names = column_names(first)
    except DataError as error:
        if reading.header or len(first) > MAX_COLUMNS:
            raise
        raise ReadingQuestion(str(error), way, proposed) from error
    table = table_of(names, rows, remarks)
    if reading.header is None and (reason := _doubt(first, table, reading.labels)):
        raise ReadingQuestion(f"The first line looks like a row, not like names of columns: {reason}.", way, proposed)
    return table


def check_no_title(lines: Sequence[tuple[int, Sequence[str]]], reading: Reading) -> None:
    """Ask about a title above the header, unless the owner declared `header` or `skip`.

    `lines` are the first ones of the file, each with its number and its cells, empty ones included.
    """
    if reading.header is not None or reading.skip:
        return
    filled = [[place for place, cell in enumerate(cells) if cell.strip()] for _, cells in lines]
    above = next((number for number, places in enumerate(filled) if len(places) > 1), 0)
    below = filled[above:]
    title = [cells[0] for (_, cells), places in zip(lines[:above], filled, strict=False) if places == [0]]
    if not all(map(_is_a_name, title)) and 2 * sum(len(places) > 1 for places in below) > len(below):
        skip = lines[above][0] - 1
        raise ReadingQuestion(
            "The first line looks like a title above the header: only one cell of it is filled.",
            f"Give --skip-lines {skip} to leave out what stands above the header (in Python skip={skip}), --no-header "
            "if it is a row, or --header if it does name the columns.",
            replace(reading, skip=skip),
        )


def _doubt(first: Sequence[str], table: Table, labels: Sequence[str]) -> str | None:
    """The reason why the first line may be a row; None if there is none, or if most of its cells are common names."""
    cells = [" ".join(cell.split()) for cell in first if cell.strip()]
    unusual = [cell for cell in cells if not _is_a_name(cell)]
    if 2 * len(unusual) < len(cells):
        return None
    if any(_NUMBER.fullmatch(cell) for cell in cells):
        return "a cell of it is a number or a date"
    if len(labels) > 1 and not {*map(folded, unusual)}.isdisjoint(map(folded, labels)):
        return "a cell of it is one of the labels"
    below = table.frame.head(max(_FEWEST_ROWS, _LOOKED_AT // len(table.columns)))
    for name in table.columns:
        if folded(name) in {folded(cell) for cell in below[name].unique() if len(cell) <= 2 * len(name) + BEGINNING}:
            return "a value of it occurs again below, in the same column"
    if any(_is_long(cell) for cell in cells):
        return "a cell of it is as long as a text"
    words = _TWO_WORDS if len(table.columns) == 1 else _SEVERAL_WORDS
    if unusual == cells and any(len(cell.split()) >= words or _SENTENCE.fullmatch(cell) for cell in cells):
        return "a cell of it has several words, and none is a usual name of a column"
    return None


def _is_long(cell: str) -> bool:
    words = len(cell.split())
    dense = words == 1 and not cell.isascii() and len(cell) > _LONGEST_WITHOUT_SPACES
    return words > _MOST_WORDS or len(cell) > _LONGEST or dense


def _is_a_name(cell: str) -> bool:
    """Whether all words of a cell are common in names of columns."""
    return bool(words := column_words(cell)) and _COLUMN_WORDS.issuperset(words)


def quoted(names: Iterable[str]) -> str:
    """The first names that an error may quote: only those of common words, because any other may be private.

    Each part of such a dotted name has common words, or is the first position of a list.
    """

    def is_usual(part: str) -> bool:
        return _PUBLIC.fullmatch(part) is not None and (part == "0" or _is_a_name(part))

    usual = [name for name in names if all(map(is_usual, name.split(".")))]
    return ", ".join(f"'{name}'" for name in usual[:_MOST_SHOWN])
