"""The ledger's file: one SQLite database of mode 0600, which several processes may use at once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from mechanisms.errors import StudioError, UsageError

_DIGITS = 20

_VERSION = 6
_TABLES = (
    "CREATE TABLE caps (name TEXT, unit TEXT, epsilon REAL, delta REAL, since TEXT)",
    "CREATE TABLE contents (name TEXT, digest TEXT, rows BLOB NOT NULL, PRIMARY KEY (name, digest))",
    "CREATE TABLE marks (name TEXT, reason TEXT, content TEXT, since TEXT, rows BLOB NOT NULL, "
    "PRIMARY KEY (name, reason, content))",
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT, unit TEXT, started TEXT, mechanism TEXT, epsilon REAL, "
    "delta REAL, event TEXT, status TEXT, content TEXT NOT NULL, key TEXT NOT NULL)",
    "CREATE TABLE charges (run INTEGER, list TEXT, event TEXT, part TEXT NOT NULL DEFAULT '')",
    "CREATE UNIQUE INDEX charged_once ON charges (run, list, part) WHERE part <> ''",
    "CREATE TABLE resumable (run INTEGER PRIMARY KEY, key TEXT UNIQUE, content TEXT, holder TEXT, plan TEXT NOT NULL, "
    "fixed TEXT NOT NULL)",
    "CREATE TABLE released (run INTEGER, part TEXT, told TEXT, PRIMARY KEY (run, part)) WITHOUT ROWID",
    "CREATE TABLE reservations (run INTEGER PRIMARY KEY, digest TEXT, terms TEXT, queries INTEGER, asked INTEGER)",
    "CREATE TABLE paid (run INTEGER, unit TEXT, answers INTEGER, PRIMARY KEY (run, unit)) WITHOUT ROWID",
    "CREATE TABLE writes (count INTEGER)",
    "INSERT INTO writes VALUES (0)",
)


class Database:
    """The ledger's file; first use creates it and its folder (mode 0700).

    Raises:
        UsageError: the file cannot be written, or another version of this program made it.
        StudioError: the file is damaged, or an older copy of the ledger.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._count_path = path, path.with_suffix(".count")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise UsageError(f"The ledger '{self._path}' cannot be written: check the folder's permissions.") from error
        with self._locked() as database:
            self._make_or_check(database)
        with self.transaction():  # refuse an older copy at once
            pass

    def _make_or_check(self, database: sqlite3.Connection) -> None:
        """Create the tables of a new file; refuse a file of another version, which may contain earlier charges."""
        [version] = database.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise UsageError(f"The ledger '{self._path}' was made by a newer version of this program: update this one.")
        if version == 0 and database.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
            for statement in _TABLES:
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {_VERSION}")
        elif version < _VERSION:
            raise UsageError(
                f"The ledger '{self._path}' was made by an older version of this program, and this one cannot read it: "
                f"move it and '{self._count_path.name}' away, and count everything that it may have contained as spent."
            )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The database, locked for writing.

        The writes of the `with` block are on the disk when the block ends, and undone if it raises an exception.

        Raises:
            StudioError: the file cannot be used, or is an older copy of the ledger.
        """
        with self._locked() as database:
            [writes] = database.execute("SELECT count FROM writes").fetchone()
            self._check_newest(writes)
            yield database
            if database.total_changes:
                database.execute("UPDATE writes SET count = count + 1")

    def _check_newest(self, writes: int) -> None:
        """Refuse an older copy of the ledger: the largest number of writes is stored in a second file, of mode 0600.

        A copy restored from a backup or a synchronised folder lacks later charges. Every process that opens the ledger
        raises the number in the second file to that of the committed writes, under the ledger's lock. So a crash never
        makes it too large, and makes it too small by at most one write. This detects accidents, but not a restoration
        of both files or the removal of the second.
        """
        path = self._count_path
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                seen = int(os.pread(file, _DIGITS, 0) or 0)
                if seen < writes:
                    os.pwrite(file, f"{writes:0{_DIGITS}d}".encode(), 0)
            finally:
                os.close(file)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"The ledger's count '{path}' cannot be used: check the folder's permissions and the free disk space. "
                "Nothing is released until then."
            ) from error
        if seen > writes:
            raise StudioError(
                f"The ledger beside '{path}' is older than the one that was used here last, and lacks what was spent "
                "since: restore the newest copy. If there is none, count everything that it may have contained as "
                "spent, remove that file, and use new names only for new people's data."
            )

    @contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        try:
            # One connection a transaction: the app's handlers run in many threads.
            with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode=WAL")
                database.execute("PRAGMA synchronous=FULL")
                database.execute("PRAGMA secure_delete=ON")  # deleted values are overwritten in the file
                database.execute("BEGIN IMMEDIATE")
                yield database
                if database.in_transaction:
                    database.execute("COMMIT")
        except (sqlite3.Error, UnicodeEncodeError) as error:
            # SQLite rolls back when the connection closes.
            raise StudioError(
                f"The ledger '{self._path}' cannot be used ({error}), so nothing more is released. Check the disk "
                "and the folder's permissions."
            ) from error


def now() -> str:
    """The current time in the ledger's format."""
    return datetime.now(UTC).isoformat(timespec="seconds")
