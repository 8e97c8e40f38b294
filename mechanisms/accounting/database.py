"""The ledger's file: one SQLite database of mode 0600, brought up to date when it is opened, safe to share."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from mechanisms.accounting.newest import NewestCount
from mechanisms.errors import StudioError, UsageError

_VERSIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE IF NOT EXISTS caps (name TEXT, unit TEXT, epsilon REAL, delta REAL, since TEXT)",
        "CREATE TABLE IF NOT EXISTS shown (name TEXT PRIMARY KEY)",
        "CREATE TABLE IF NOT EXISTS contents (name TEXT, digest TEXT, PRIMARY KEY (name, digest))",
        "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, name TEXT, unit TEXT, started TEXT, mechanism TEXT, "
        "epsilon REAL, delta REAL, event TEXT, status TEXT)",
        "CREATE TABLE IF NOT EXISTS charges (run INTEGER, list TEXT, event TEXT)",
        "CREATE TABLE IF NOT EXISTS reservations (run INTEGER PRIMARY KEY, digest TEXT, terms TEXT, queries INTEGER, "
        "asked INTEGER)",
        "CREATE TABLE IF NOT EXISTS paid (run INTEGER, unit TEXT, answers INTEGER, PRIMARY KEY (run, unit)) "
        "WITHOUT ROWID",
    ),
    (
        "ALTER TABLE contents ADD COLUMN rows BLOB NOT NULL DEFAULT x''",
        "CREATE TABLE marks (name TEXT, reason TEXT, content TEXT, since TEXT, rows BLOB NOT NULL, "
        "PRIMARY KEY (name, reason, content))",
        "INSERT INTO marks SELECT name, 'clean values were on a screen', '', '', x'' FROM shown",
        "DROP TABLE shown",
    ),
    ("CREATE TABLE writes (count INTEGER)", "INSERT INTO writes VALUES (0)"),
    (
        "CREATE TABLE resumable (run INTEGER PRIMARY KEY, key TEXT UNIQUE, content TEXT, holder TEXT)",
        "CREATE TABLE released (run INTEGER, part TEXT, told TEXT, PRIMARY KEY (run, part)) WITHOUT ROWID",
        "ALTER TABLE charges ADD COLUMN part TEXT NOT NULL DEFAULT ''",
        "CREATE UNIQUE INDEX charged_once ON charges (run, list, part) WHERE part <> ''",
    ),
    # Whose rows were among those of a test file stood here, and showed wherever a name's marks are told.
    ("DELETE FROM marks WHERE name <> '' AND content IN (SELECT content FROM marks WHERE name = '')",),
)
"""What each version of the file added to the one before."""


class Database:
    """The file at `path`, made on first use with its folder (mode 0700).

    Raises:
        UsageError: it cannot be written, or is of a newer version of this program.
        StudioError: it is damaged, or an older copy of the one that was used here before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._newest = NewestCount(path.with_suffix(".count"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise UsageError(f"The ledger '{self._path}' cannot be written: check the folder's permissions.") from error
        with self._locked() as database:
            [version] = database.execute("PRAGMA user_version").fetchone()
            if version > len(_VERSIONS):
                raise UsageError(f"The ledger '{self._path}' is of a newer version of this program: update it.")
            for statement in (each for added in _VERSIONS[version:] for each in added):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {len(_VERSIONS)}")
        with self.transaction():  # says at once that it is an older copy
            pass

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The database, locked for writing: what is written is durable when the block ends, or undone if it raises.

        Raises:
            StudioError: it cannot be used, or is an older copy of the one that was used here before.
        """
        with self._locked() as database:
            [writes] = database.execute("SELECT count FROM writes").fetchone()
            self._newest.check(writes)
            yield database
            if database.total_changes:
                database.execute("UPDATE writes SET count = count + 1")

    @contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        try:
            # One connection a transaction: the app's handlers run in many threads.
            with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode=WAL")
                database.execute("PRAGMA synchronous=FULL")
                database.execute("PRAGMA secure_delete=ON")  # what is forgotten is overwritten in the file
                database.execute("BEGIN IMMEDIATE")
                yield database
                if database.in_transaction:
                    database.execute("COMMIT")
        except (sqlite3.Error, UnicodeEncodeError) as error:
            # SQLite rolls back when the connection closes.
            raise StudioError(
                f"The ledger '{self._path}' cannot be used ({error}): nothing is released that it does not hold. Check "
                "the disk and the folder's permissions."
            ) from error


def now() -> str:
    """The time, as the ledger writes it down."""
    return datetime.now(UTC).isoformat(timespec="seconds")
