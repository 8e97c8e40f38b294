"""Step 1's form for a public schema: one line for each column, with what a person says of it, as plain JSON values.

Nothing in it follows from a cell. Types, lengths and lists of values become public with the schema, so they are never
proposed from what the file says, and neither is a person's word for what its rows are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dpicl_ui.frame.numbers import whole
from mechanisms.data.columns import field_name
from mechanisms.data.record_schema import RecordSchema
from mechanisms.errors import UsageError

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
    """What rows are: records of a schema, under one name. Public."""

    kind: str
    schema: RecordSchema

    @property
    def said(self) -> tuple[str, str]:
        """What two of them differ by: the order of properties counts."""
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
    """The form as it is filled in, but for the column that says whose row it is: the model never sees it."""
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
