"""The ledger's file and its tables: known rows, and runs that another process can resume."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil

from mechanisms.accounting.fingerprint import Digests, Fingerprint, share_any
from mechanisms.errors import StudioError, UsageError
from mechanisms.files import keyed_digest
from mechanisms.privacy_events import Composed

# Detects an older copy of a ledger: the number of writes is stored in a second file.
#
# A copy that is put back, by a restored backup or a synchronised folder, lacks what was spent since. Each process that
# opens the ledger raises the number in the second file to the number of committed writes, under the ledger's lock. A
# crash therefore never makes it too large, and makes it too small by one write at most. This detects accidents: nobody
# who puts back both files, or removes the second one, is detected.

_DIGITS = 20


def check_newest(path: Path, writes: int) -> None:
    """Compare a ledger's number of writes with the largest that was ever seen, in the file at `path` (mode 0600), and
    store a larger one. The ledger must be locked for writing.

    Raises:
        UsageError: the file cannot be used.
        StudioError: the ledger had more writes before.
    """
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
            "spent since: put the newest copy back. If there is none, count everything that it may have held as spent, "
            "remove that file, and use new names for new people's data alone."
        )


# The ledger's file: one SQLite database of mode 0600, brought up to date when it is opened, safe to share.

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
"""The changes of each version of the file."""


class Database:
    """The file at `path`, made on first use with its folder (mode 0700).

    Raises:
        UsageError: it cannot be written, or is of a newer version of this program.
        StudioError: it is damaged, or an older copy of the one that was used here before.
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
        """The database, locked for writing. The block's writes are durable when it ends, and undone if it raises.

        Raises:
            StudioError: it cannot be used, or is an older copy of the one that was used here before.
        """
        with self._locked() as database:
            [writes] = database.execute("SELECT count FROM writes").fetchone()
            check_newest(self._path.with_suffix(".count"), writes)
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
    """The current time in the ledger's format."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# Known rows: those of earlier runs, and those whose clean values became known.
#
# Rows are stored as keyed digests, so they are recognised in a file of another name, or in a part of the file.

_NO_NAME = ""
"""The name under which rows of files that are not data sets are marked."""


class KnownRows:
    """The rows that the ledger knows. Its answers are private, for the curator's screen."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, database: sqlite3.Connection, data: Fingerprint) -> None:
        """Store a data set's rows, inside the transaction that reserves their run."""
        for digest, rows in ((data.said, b""), (data.content, data.rows.tobytes())):
            if digest:
                database.execute("INSERT OR REPLACE INTO contents VALUES (?, ?, ?)", (data.name, digest, rows))

    def recognise(self, data: Fingerprint) -> list[str]:
        """Warnings about a data set: other texts or users than in the runs of that name, or known by another name."""
        with self._database.transaction() as database:
            query = "SELECT digest FROM contents WHERE name = ?"
            own = {digest for (digest,) in database.execute(query, (data.name,))} - {""}
            others = [name for name in names_that_share(database, data.rows) if name != data.name]
        warnings = []
        if own and own.isdisjoint({data.content, data.said}):
            warnings.append(
                f"What is read of the file differs from what was read before under the name '{data.name}'. It keeps "
                "that name's ledger: people who were read before have already spent what it shows."
            )
        if others:
            names = ", ".join(f"'{other}'" for other in others)
            warnings.append(f"Rows of this file were used before under {names}: their spend there does not show here.")
        return warnings

    def names_that_share(self, rows: Digests) -> list[str]:
        """The data sets of earlier runs that share a text or a user with `rows`; private."""
        with self._database.transaction() as database:
            return names_that_share(database, rows)

    def shared(self, rows: Digests) -> Digests:
        """Those of `rows` that are also in data sets of earlier runs; private."""
        with self._database.transaction() as database:
            known = database.execute("SELECT rows FROM contents").fetchall()
        found = np.zeros(len(rows), dtype=bool)
        for (other,) in known:
            found |= np.isin(rows, _digests(other), assume_unique=True)
        return rows[found]

    def mark(self, data: Fingerprint, reason: str) -> None:
        """Store that something of a data set became known without noise, under its name and for each of its rows.

        Later choices may then depend on it, and every later certificate says so.
        """
        with self._database.transaction() as database:
            self.record(database, data)
            values = (data.name, reason, data.content, now(), data.rows.tobytes())
            database.execute("INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?, ?)", values)

    def mark_rows(self, rows: Digests, reason: str) -> None:
        """Store the same for rows of a file that is not a data set of this ledger.

        No name is stored: whose rows these are is private, and what is stored under a name is shown in public.
        """
        content = keyed_digest([rows.tobytes().hex()])
        with self._database.transaction() as database:
            values = (_NO_NAME, reason, content, now(), rows.tobytes())
            database.execute("INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?, ?)", values)

    def disclosures(self, data: Fingerprint) -> tuple[str, ...]:
        """Why clean values of a data set count as known; private.

        These are the marks of its name, of its rows, and of the files that were used under its name.
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


def names_that_share(database: sqlite3.Connection, rows: Digests) -> list[str]:
    """`KnownRows.names_that_share`, inside a transaction of the caller."""
    known = database.execute("SELECT name, rows FROM contents ORDER BY rowid").fetchall()
    return list(dict.fromkeys(name for name, other in known if share_any(rows, _digests(other))))


# Runs that another process can resume: their current holder, and the parts that were released.
#
# A part is what is drawn together: the tokens of a demonstration, or one release of a stage. It is charged once, and
# marked here after it is drawn and before it is shown. A part without a mark was therefore never shown and may be drawn
# again; a part with a mark is never drawn again, whatever happened to the run's file. The newest mark also holds the
# lines of its part, so that nothing is lost between the ledger and that file; they are removed with the file.

_CLOCK = 2.0
"""Seconds by which the start of a process may move when the machine's clock is set."""


@dataclass(frozen=True)
class ResumablePlan:
    """What a resumable run was reserved for; public.

    Attributes:
        key: by which the run can be resumed, from `new_key`.
        document: the text that the run's request is built from when the run is resumed.
        fixed: keyed digest of everything public that fixes the run.
    """

    key: str
    document: str
    fixed: str


def new_key() -> str:
    """A random name for a run that can be resumed; it carries no information."""
    return secrets.token_hex(16)


def register(database: sqlite3.Connection, run: int, data: Fingerprint, plan: ResumablePlan) -> str:
    """Store that a new run can be resumed; returns the holder's name, by which it marks parts."""
    holder = _new_holder()
    values = (run, plan.key, data.content, holder, plan.document, plan.fixed)
    database.execute("INSERT INTO resumable (run, key, content, holder, plan, fixed) VALUES (?, ?, ?, ?, ?, ?)", values)
    return holder


def reserved_document(database: sqlite3.Connection, key: str) -> str:
    """The document of the run with that key.

    Raises:
        UsageError: the ledger has no such run, or an older version reserved it without a document.
    """
    found = database.execute("SELECT plan FROM resumable WHERE key = ?", (key,)).fetchone()
    if found is None:
        raise UsageError("This ledger has no such run: resume it where it was begun, and by the same account.")
    if not found[0]:
        raise UsageError(
            "An older version of this program began this run, and its ledger does not hold the run's settings: it "
            "cannot be resumed. What it was charged stays charged; begin a new run."
        )
    return str(found[0])


def take_over(
    database: sqlite3.Connection, plan: ResumablePlan, data: Fingerprint, mechanism: str, event: Composed
) -> tuple[int, str, frozenset[str]]:
    """Make this process the holder of a run that was cut off; returns its number, the holder's name and the marked
    parts.

    Raises:
        UsageError: the ledger has no such run, it was planned otherwise or for other data, or it is still at work.
    """
    reserved_document(database, plan.key)
    query = (
        "SELECT id, status, name, unit, resumable.content, mechanism, event, fixed, holder FROM runs "
        "JOIN resumable ON run = id WHERE resumable.key = ?"
    )
    run, status, *whose, used, document, fixed, holder = database.execute(query, (plan.key,)).fetchone()
    if whose != [data.name, data.unit, data.content]:
        raise UsageError("The run was begun on other data: give the same file, columns and name.")
    if (used, json.loads(document), fixed) != (mechanism, event.to_json(), plan.fixed):
        raise UsageError(
            "These are not the settings, or not the model, that the ledger reserved this run for: resume it with its "
            "own."
        )
    if status == "running" and _is_alive(holder):
        raise UsageError("This run is still at work: wait for its end.")
    own = _new_holder()
    database.execute("UPDATE resumable SET holder = ? WHERE run = ?", (own, run))
    database.execute("UPDATE runs SET status = 'running' WHERE id = ?", (run,))
    parts = database.execute("SELECT part FROM released WHERE run = ?", (run,))
    return run, own, frozenset(part for (part,) in parts)


def _new_holder() -> str:
    return f"{os.getpid()} {psutil.Process().create_time():.2f} {secrets.token_hex(8)}"


def _is_alive(holder: str) -> bool:
    """Whether the holder's process still exists."""
    pid, started, _ = holder.split()
    try:
        process = psutil.Process(int(pid))
        same = abs(process.create_time() - float(started)) <= _CLOCK
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
