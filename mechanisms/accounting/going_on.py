"""Runs that can go on in another process: who works on one now, and which of its parts were ever let out.

A part is what is drawn together: a demonstration's tokens, or what a stage of a recipe releases at once. It is charged
once, whoever asks, and marked here after its draw and before anybody sees it. So a part without a mark was seen by
nobody and may be drawn anew, and one with a mark never is, whatever became of the file that the run writes. The newest
mark holds what is told of its part as well, so that nothing is lost between the ledger and that file; it is forgotten
when that file goes.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3

import psutil

from mechanisms.accounting.fingerprint import Fingerprint
from mechanisms.errors import StudioError, UsageError
from mechanisms.privacy_events import Composed

_CLOCK = 2.0
"""Seconds by which the start of a process may seem to move, where the machine's clock is set."""


def new_key() -> str:
    """A name for a run that can go on: random, so that it says nothing."""
    return secrets.token_hex(16)


def register(database: sqlite3.Connection, run: int, data: Fingerprint, key: str) -> str:
    """Let a run that begins be gone on with under a key; the holder's name, by which it marks parts."""
    holder = _new_holder()
    database.execute("INSERT INTO resumable VALUES (?, ?, ?, ?)", (run, key, data.content, holder))
    return holder


def take_over(
    database: sqlite3.Connection, key: str, data: Fingerprint, mechanism: str, event: Composed
) -> tuple[int, str, frozenset[str]]:
    """Make this process the holder of a run that was cut off: its number, the holder's name, and the marked parts.

    Raises:
        UsageError: the ledger has no such run, it was planned otherwise or for other data, or it is still at work.
    """
    query = (
        "SELECT id, status, name, unit, content, mechanism, event, holder FROM runs JOIN resumable ON run = id "
        "WHERE key = ?"
    )
    found = database.execute(query, (key,)).fetchone()
    if found is None:
        raise UsageError("This ledger has no such run: go on with it where it was begun, and by the same account.")
    run, status, *whose, used, document, holder = found
    if whose != [data.name, data.unit, data.content]:
        raise UsageError("The run was begun on other data: give the same file, columns and name.")
    if (used, json.loads(document)) != (mechanism, event.to_json()):
        raise UsageError("The run was planned otherwise: it goes on with its own settings alone.")
    if status == "running" and _lives(holder):
        raise UsageError("This run is still at work: wait for its end.")
    own = _new_holder()
    database.execute("UPDATE resumable SET holder = ? WHERE run = ?", (own, run))
    database.execute("UPDATE runs SET status = 'running' WHERE id = ?", (run,))
    parts = database.execute("SELECT part FROM released WHERE run = ?", (run,))
    return run, own, frozenset(part for (part,) in parts)


def mark(database: sqlite3.Connection, run: int, part: str, holder: str, told: str) -> None:
    """Mark a part that has been drawn, and is `told` so; nobody may be told before the transaction is durable.

    Raises:
        StudioError: it is marked already, or another process has taken the run over.
    """
    database.execute("UPDATE released SET told = '' WHERE run = ?", (run,))
    query = "INSERT OR IGNORE INTO released SELECT run, ?, ? FROM resumable WHERE run = ? AND holder = ?"
    if database.execute(query, (part, told, run, holder)).rowcount != 1:
        raise StudioError(
            "What comes next was let out before, by this run or another process that goes on with it, and nothing is "
            "drawn twice: the run ends here, with what its file holds."
        )


def newest(database: sqlite3.Connection, key: str) -> str:
    """What is told of the part of a run that was marked last; "" where none was."""
    query = "SELECT told FROM released NATURAL JOIN resumable WHERE key = ? AND told <> ''"
    found = database.execute(query, (key,)).fetchone()
    return str(found[0]) if found else ""


def forget(database: sqlite3.Connection, key: str) -> None:
    """Keep nothing more of what a run has told: nobody goes on with it. That its parts were let out stays."""
    query = "UPDATE released SET told = '' WHERE told <> '' AND run IN (SELECT run FROM resumable WHERE key = ?)"
    database.execute(query, (key,))


def _new_holder() -> str:
    return f"{os.getpid()} {psutil.Process().create_time():.2f} {secrets.token_hex(8)}"


def _lives(holder: str) -> bool:
    """Whether the holder's process is still there."""
    pid, started, _ = holder.split()
    try:
        process = psutil.Process(int(pid))
        same = abs(process.create_time() - float(started)) <= _CLOCK
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
