"""The rows known to the ledger, as keyed digests, and the rows whose values became known without noise.

The digests can be compared only on this installation. They are private, and no export contains them. They recognise
rows in a file of another name, and in a part of a file.
"""

from __future__ import annotations

import hmac
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.database import Database, now
from mechanisms.files import keyed_digest, secret_key
from mechanisms.records import Dataset

Digests = NDArray[np.uint64]
"""Distinct keyed digests of 64 bits, sorted. Two sets of a million share one by chance with probability 1 / 2e7."""

_NO_LETTER = re.compile(r"[\W_]+")


@dataclass(frozen=True, repr=False, eq=False)
class Fingerprint:
    """The digests by which the ledger identifies a data set; private, except for the name and the unit.

    Attributes:
        content: keyed digest of the whole content.
        unlabelled: keyed digest of the content without labels, because another file may spell or name these
            differently; "" if it is not known.
        rows: keyed digests of the texts, of text-like cells of other columns, and of the users if there is a user
            column. Two files with a common digest share a row or a user, even under other names or as parts of a file.
    """

    name: str
    unit: str
    content: str
    rows: Digests = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    unlabelled: str = ""


_known: WeakKeyDictionary[Dataset, tuple[bytes, Fingerprint]] = WeakKeyDictionary()


def fingerprint(dataset: Dataset) -> Fingerprint:
    """The fingerprint of a data set under the installation's current key.

    It is computed once for each data set and key, because every run needs it and a large file takes seconds.
    """
    key = secret_key()
    if dataset not in _known or _known[dataset][0] != key:
        texts = text_digests((record.text for record in dataset.records), key)
        others = (cell for column in dataset.witnesses for cell in column if cell and _reads_like_a_text(cell))
        users = {record.unit or "" for record in dataset.records} if dataset.by_user else set()
        rows = np.unique(np.concatenate([texts, text_digests(others, key), _digests("user", users, key)]))
        content = keyed_digest(dataset.content(), key)
        unlabelled = keyed_digest(_texts_without_labels(dataset), key)
        _known[dataset] = key, Fingerprint(dataset.name, dataset.unit, content, rows, unlabelled)
    return _known[dataset][1]


def _texts_without_labels(dataset: Dataset) -> Iterator[str]:
    yield "without labels"
    for record in dataset.records:
        yield from (record.text, record.unit or "")


def rows_among(dataset: Dataset, known: Digests) -> list[bool]:
    """For each row, True if the digest of its text, of its user, or of another text-like cell is known."""
    key = secret_key()
    found = []
    for i, record in enumerate(dataset.records):
        cells = [cell for column in dataset.witnesses if (cell := column[i]) and _reads_like_a_text(cell)]
        users = [record.unit or ""] if dataset.by_user else []
        own = np.concatenate([text_digests([record.text, *cells], key), _digests("user", users, key)])
        found.append(share_any(np.unique(own), known))
    return found


def text_digests(texts: Iterable[str], key: bytes | None = None) -> Digests:
    """Keyed digests of the letters and digits of texts, ignoring case, spaces and punctuation.

    Args:
        key: the key of the digests; None selects the installation's.
    """
    return _digests("text", filter(None, map(_letters, texts)), key or secret_key())


def _reads_like_a_text(cell: str) -> bool:
    # Dates, numbers and categories recur in many files. Scripts without spaces are measured in characters.
    return len(cell.split()) >= 4 or (not cell.isascii() and len(cell) >= 12)


def _letters(text: str) -> str:
    plain = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text.casefold())
    return _NO_LETTER.sub("", plain) or plain.strip()


def _digests(kind: str, values: Iterable[str], key: bytes) -> Digests:
    prefix = f"row\x1f{kind}\x1f".encode()
    found = (hmac.digest(key, prefix + value.encode(), "sha256")[:8] for value in values)
    return np.unique(np.frombuffer(b"".join(found), dtype=np.uint64))


def share_any(one: Digests, other: Digests) -> bool:
    """True if two sets of digests intersect: the files share a text or a user."""
    return bool(np.isin(one, other, assume_unique=True).any())


class KnownRows:
    """The rows known to the ledger; all answers are private, for the curator's screen only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, database: sqlite3.Connection, data: Fingerprint) -> None:
        """Store a data set's digests, in the transaction that reserves its run."""
        for digest, rows in ((data.unlabelled, b""), (data.content, data.rows.tobytes())):
            if digest:
                database.execute("INSERT OR REPLACE INTO contents VALUES (?, ?, ?)", (data.name, digest, rows))

    def recognise(self, data: Fingerprint) -> list[str]:
        """Warnings, one sentence each: the data set's texts or users differ from those of earlier runs under its name,
        or its rows were used under another name."""
        with self._database.transaction() as database:
            query = "SELECT digest FROM contents WHERE name = ?"
            own = {digest for (digest,) in database.execute(query, (data.name,))} - {""}
            others = [name for name in names_that_share(database, data.rows) if name != data.name]
        warnings = []
        if own and own.isdisjoint({data.content, data.unlabelled}):
            warnings.append(
                f"Texts or users of this file differ from those of earlier runs under the name '{data.name}'. The "
                "cost of those runs still counts."
            )
        if others:
            names = ", ".join(f"'{other}'" for other in others)
            warnings.append(
                f"Rows of this file were used before under {names}. Their cost there is not counted here: if this is "
                "the same data, use the same name."
            )
        return warnings

    def names_that_share(self, rows: Digests) -> list[str]:
        """The data sets of earlier runs that share a text or a user with `rows`; private."""
        with self._database.transaction() as database:
            return names_that_share(database, rows)

    def shared(self, rows: Digests) -> Digests:
        """Those digests of `rows` that data sets of earlier runs contain, too; private."""
        with self._database.transaction() as database:
            known = [rows for _, rows in _contents(database)]
        return rows[np.isin(rows, np.concatenate([rows[:0], *known]))]

    def mark(self, data: Fingerprint, reason: str) -> None:
        """Record, for a data set's name and each of its rows, that values became known without noise.

        Later choices may depend on these values, and every later certificate says so.
        """
        with self._database.transaction() as database:
            self.record(database, data)
            values = (data.name, reason, data.content, now(), data.rows.tobytes())
            database.execute("INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?, ?)", values)

    def mark_rows(self, rows: Digests, reason: str) -> None:
        """Record that rows became known without noise, for a file that is not a data set of this ledger.

        No name is recorded: certificates show the marks of a name, and whose rows these are is private.
        """
        content = keyed_digest([rows.tobytes().hex()])
        with self._database.transaction() as database:
            values = ("", reason, content, now(), rows.tobytes())
            database.execute("INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?, ?)", values)

    def disclosures(self, data: Fingerprint) -> tuple[str, ...]:
        """The reasons why values of a data set count as known without noise; private.

        They are the marks of its name, of its rows, and of the files that were used under its name.
        """
        with self._database.transaction() as database:
            own = [data.rows, *(rows for name, rows in _contents(database) if name == data.name)]
            marks = database.execute("SELECT name, reason, rows FROM marks").fetchall()
        found = {
            reason
            for name, reason, rows in marks
            if name == data.name or any(share_any(each, np.frombuffer(rows, dtype=np.uint64)) for each in own)
        }
        return tuple(sorted(found))


def _contents(database: sqlite3.Connection) -> list[tuple[str, Digests]]:
    """The names of earlier data sets, each with the digests of its rows."""
    known = database.execute("SELECT name, rows FROM contents ORDER BY rowid")
    return [(name, np.frombuffer(rows, dtype=np.uint64)) for name, rows in known]


def names_that_share(database: sqlite3.Connection, rows: Digests) -> list[str]:
    """`KnownRows.names_that_share`, inside a transaction of the caller."""
    return list(dict.fromkeys(name for name, other in _contents(database) if share_any(rows, other)))
