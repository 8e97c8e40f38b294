"""Which rows the ledger has met: those that took part in runs, and those whose clean values became known.

Rows are known by keyed digests, so that another name for a file, or another cut of it, does not make them strangers.
"""

from __future__ import annotations

import sqlite3

import numpy as np

from mechanisms.accounting.database import Database, now
from mechanisms.accounting.fingerprint import Digests, Fingerprint, share_any
from mechanisms.home import keyed_digest

_NO_NAME = ""
"""Under which rows are marked that are no data set here."""


class KnownRows:
    """The rows in a ledger's file; what it says is private, for the curator's screen."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, database: sqlite3.Connection, data: Fingerprint) -> None:
        """Remember a data set's rows, inside the transaction that lets them take part."""
        values = (data.name, data.content, data.rows.tobytes())
        database.execute("INSERT OR REPLACE INTO contents VALUES (?, ?, ?)", values)

    def recognise(self, data: Fingerprint) -> list[str]:
        """Warnings about a data set's content: edited since the last run under this name, or known under another."""
        with self._database.transaction() as database:
            query = "SELECT digest FROM contents WHERE name = ?"
            own = {digest for (digest,) in database.execute(query, (data.name,))}
            others = [name for name in _names_that_share(database, data.rows) if name != data.name]
        warnings = []
        if own and data.content not in own:
            warnings.append(
                f"The file differs from the one used before under the name '{data.name}'. It keeps that name's ledger: "
                "people who are in both files have already spent what it shows."
            )
        if others:
            names = ", ".join(f"'{other}'" for other in others)
            warnings.append(f"Rows of this file were used before under {names}: their spend there does not show here.")
        return warnings

    def names_that_share(self, rows: Digests) -> list[str]:
        """The data sets of earlier runs that have a text or a user in common with `rows`; private."""
        with self._database.transaction() as database:
            return _names_that_share(database, rows)

    def shared(self, rows: Digests) -> Digests:
        """Those of `rows` that data sets of earlier runs have as well; private."""
        with self._database.transaction() as database:
            known = database.execute("SELECT rows FROM contents").fetchall()
        found = np.zeros(len(rows), dtype=bool)
        for (other,) in known:
            found |= np.isin(rows, _digests(other), assume_unique=True)
        return rows[found]

    def mark(self, data: Fingerprint, reason: str) -> None:
        """Remember that something of a data set became known without noise, under its name and for each of its rows.

        Later choices are then no longer independent of it, and every later certificate says so.
        """
        with self._database.transaction() as database:
            self.record(database, data)
            values = (data.name, reason, data.content, now(), data.rows.tobytes())
            database.execute("INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?, ?)", values)

    def mark_rows(self, rows: Digests, reason: str) -> None:
        """The same for rows of a file that is no data set here.

        No name is noted: whose rows are among these is private, and what stands under a name is told in public.
        """
        content = keyed_digest([rows.tobytes().hex()])
        with self._database.transaction() as database:
            values = (_NO_NAME, reason, content, now(), rows.tobytes())
            database.execute("INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?, ?)", values)

    def marks(self, data: Fingerprint) -> tuple[str, ...]:
        """Why clean values of a data set count as known; private.

        That is what is marked under its name, or on rows of it, or of any file that was used under its name.
        """
        with self._database.transaction() as database:
            used = database.execute("SELECT rows FROM contents WHERE name = ?", (data.name,))
            own = [data.rows, *(_digests(rows) for (rows,) in used)]
            found = {
                reason
                for name, reason, rows in database.execute("SELECT name, reason, rows FROM marks")
                if name == data.name or any(share_any(each, _digests(rows)) for each in own)
            }
        return tuple(sorted(found))


def _digests(rows: bytes) -> Digests:
    return np.frombuffer(rows, dtype=np.uint64)


def _names_that_share(database: sqlite3.Connection, rows: Digests) -> list[str]:
    known = database.execute("SELECT name, rows FROM contents ORDER BY rowid").fetchall()
    return list(dict.fromkeys(name for name, other in known if share_any(rows, _digests(other))))
