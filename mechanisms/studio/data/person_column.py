"""Which column says whose row it is: the one that is proposed to be protected as a whole, where a file has one.

All rows of a person together is the safer promise, so that it is proposed and left to the curator to take back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mechanisms.studio.data.column_words import column_words
from mechanisms.studio.data.mapping import Mapping, guess_columns
from mechanisms.studio.data.table import Table

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
"""People, below whom it is a role rather than a person, such as "agent" and "customer"."""
_FILLED = 0.9


def guess_mapping(table: Table) -> Mapping:
    """What the columns of a file are, until somebody says otherwise."""
    text, label = guess_columns(table)
    return Mapping(text, label, guess_person(table, (text, label)))


def guess_person(table: Table, taken: Iterable[str]) -> str | None:
    """The first column that is named for people and has several rows of one of them; None where there is none.

    Args:
        taken: columns that are something else.
    """
    others = (name for name in table.columns if name not in taken)
    return next((name for name in others if _names_people(name) and _repeats(table, name)), None)


def _names_people(name: str) -> bool:
    """A word for a person, and beside it only words for what identifies one: "patient", "userId", "customer_no"."""
    words = column_words(name[:_LONGEST])
    people = [word for word in words if _WHOLE.fullmatch(word)]
    return bool(people) and all(word in people or word in _HANDLES for word in words)


def _repeats(table: Table, name: str) -> bool:
    """Rows without a person would be left out, so that few may lack one."""
    cells = table.frame[name].str.strip()
    filled = cells[cells != ""]
    return len(filled) >= _FILLED * len(cells) and _FEWEST <= filled.nunique() < len(filled)
