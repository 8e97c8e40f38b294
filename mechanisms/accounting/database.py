"""The ledger's file: one SQLite database of mode 0600, which several processes may use at once.

A file of an older version is brought up to date when it is opened.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from mechanisms.errors import StudioError, UsageError

_DIGITS = 20

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
    # Older versions stored here which data sets shared rows with a test file, and showed it with a name's marks.
    ("DELETE FROM marks WHERE name <> '' AND content IN (SELECT content FROM marks WHERE name = '')",),
    (
        "ALTER TABLE resumable ADD COLUMN plan TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE resumable ADD COLUMN fixed TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN content TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE runs ADD COLUMN key TEXT NOT NULL DEFAULT ''",
    ),
)
"""For each version of the file the statements that make it from the version before."""


class Database:
    """The ledger's file; it is made on first use, with its folder (mode 0700).

    Raises:
        UsageError: the file cannot be written, or a newer version of this program made it.
        StudioError: the file is damaged, or an older copy of the file that was used here before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
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
        """The database, locked for writing.

        The writes of the `with` block are on the disk when the block ends, and undone if it raises an exception.

        Raises:
            StudioError: the file cannot be used, or is an older copy of the file that was used here before.
        """
        with self._locked() as database:
            [writes] = database.execute("SELECT count FROM writes").fetchone()
            self._check_newest(writes)
            yield database
            if database.total_changes:
                database.execute("UPDATE writes SET count = count + 1")

    def _check_newest(self, writes: int) -> None:
        """Refuse an older copy of the ledger: the largest number of writes is stored in a second file, of mode 0600.

        A copy that is put back, by a restored backup or a synchronised folder, lacks what was spent since. Whoever
        opens the ledger raises the number in the second file to that of the committed writes, under the ledger's lock.
        A crash therefore never makes it too large, and makes it too small by one write at most. This detects
        accidents: nobody who puts back both files, or removes the second one, is detected.
        """
        path = self._path.with_suffix(".count")
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
                f"The ledger's count '{path}' cannot be used: check the folder's permissions and the room on the disk. "
                "Nothing is released meanwhile."
            ) from error
        if seen > writes:
            raise StudioError(
                f"The ledger beside '{path}' is older than the one that was used here last, and does not hold what was "
                "spent since: put the newest copy back. If there is none, count everything that it may have held as "
                "spent, remove that file, and use new names for new people's data alone."
            )

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
    """The current time in the ledger's format."""
    return datetime.now(UTC).isoformat(timespec="seconds")
