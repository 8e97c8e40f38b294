"""The persistent ledger: the spending of every named data set.

It holds no private text or length: names chosen by the curator, public events and claims, and keyed digests of rows and
users, whose number stays on this machine: of those that took part, of those whose clean values were shown, and of those
that have paid for private answers (`individual.py`). For a run with a journal it holds the names of the released parts,
and the newest part's release until the run has ended, is left or replaced (`forget`).
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from mechanisms.accounting.account import Account, BudgetSnapshot, RecordedRun
from mechanisms.accounting.claims import Claim, PrivacyTarget
from mechanisms.accounting.database import Database, now
from mechanisms.accounting.filter import Cap, Spend, Usage, repeats, usage
from mechanisms.accounting.known_rows import Fingerprint, KnownRows, names_that_share
from mechanisms.errors import BudgetRefused, StudioError, UsageError
from mechanisms.files import data_folder, keyed_digest
from mechanisms.privacy_events import Composed, PrivacyEvent, from_json
from mechanisms.records import unit_in_words
from mechanisms.rounding import rounded_up

DEFAULT_CAP = PrivacyTarget(epsilon=10.0, delta=1e-4)


@dataclass(frozen=True)
class ResumablePlan:
    """The values for which a resumable run was reserved; public.

    `new_key` makes the key. The run's request is built from the document when the run is resumed. `fixed` is a keyed
    digest of everything public that fixes the run.
    """

    key: str
    document: str
    fixed: str


def new_key() -> str:
    """A random name for a resumable run, independent of everything else."""
    return secrets.token_hex(16)


def dump_events(list_name: str, events: tuple[PrivacyEvent, ...]) -> str:
    """One list of events as text for the database."""
    return json.dumps(Composed("dataset", ((list_name, events),)).to_json())


class PrivacyLedger:
    """The ledger in `folder` (default: the user's data folder), one SQLite file of mode 0600, safe to share.

    The folder is made if it is missing, with mode 0700.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or data_folder()
        database = Database(self.folder / "ledger.sqlite")
        self.transaction = database.transaction
        self.rows = KnownRows(database)

    def snapshot(self, name: str, unit: str) -> BudgetSnapshot:
        """What `name` has spent at the given privacy unit; zero for a new name."""
        with self.transaction() as database:
            return self._snapshot(database, name, unit)

    def _snapshot(self, database: sqlite3.Connection, name: str, unit: str, but: int = 0) -> BudgetSnapshot:
        cap, spends = self._cap(database, name, unit), self._spends(database, name, unit, but)
        used = usage(spends, cap)
        found = database.execute("SELECT DISTINCT reason FROM marks WHERE name = ? ORDER BY reason", (name,))
        return BudgetSnapshot(
            name, unit, used.epsilon, used.delta, used.bound, cap, len(spends), tuple(reason for (reason,) in found)
        )

    def _cap(self, database: sqlite3.Connection, name: str, unit: str) -> Cap:
        query = "SELECT epsilon, delta FROM caps WHERE name = ? AND unit = ? ORDER BY rowid DESC LIMIT 1"
        row = database.execute(query, (name, unit)).fetchone()
        return Cap(*row) if row else DEFAULT_CAP

    def _spends(self, database: sqlite3.Connection, name: str, unit: str, but: int = 0) -> list[Spend]:
        return [run.counted for run in self._runs(database, name, unit, but) if run.counted is not None]

    def _runs(self, database: sqlite3.Connection, name: str, unit: str, but: int = 0) -> list[RecordedRun]:
        query = (
            "SELECT id, started, mechanism, epsilon, delta, event, status FROM runs WHERE name = ? AND unit = ? "
            "AND id <> ? ORDER BY id"
        )
        found = []
        for run, started, mechanism, epsilon, delta, document, status in database.execute(query, (name, unit, but)):
            event = from_json(json.loads(document))
            charges = database.execute("SELECT list, event FROM charges WHERE run = ?", (run,)).fetchall()
            finished, counted = status == "finished", Spend(epsilon, delta, dict(event))
            if finished:  # a run that is active or was interrupted counts with its whole plan
                lists: dict[str, tuple[PrivacyEvent, ...]] = {}
                for charged, charge in charges:
                    [(_, events)] = from_json(json.loads(charge))
                    lists[charged] = lists.get(charged, ()) + events
                counted = replace(counted, lists=lists)
            nothing = finished and not charges
            found.append(RecordedRun(started, mechanism, event, epsilon, delta, finished, None if nothing else counted))
        return found

    def account(self, name: str, unit: str) -> Account:
        """The budget and all runs of a data set at a privacy unit, read in one transaction."""
        with self.transaction() as database:
            return Account(self._snapshot(database, name, unit), tuple(self._runs(database, name, unit)))

    def set_cap(self, name: str, unit: str, cap: Cap) -> None:
        """Set a data set's cap.

        Raises:
            UsageError: more than the new cap has been spent already.
        """
        with self.transaction() as database:
            if not usage(self._spends(database, name, unit), cap).allowed:
                raise UsageError(f"'{name}' has already spent more than that cap: choose a larger one.")
            database.execute("INSERT INTO caps VALUES (?, ?, ?, ?, ?)", (name, unit, cap.epsilon, cap.delta, now()))

    def begin(
        self, data: Fingerprint, mechanism: str, event: Composed, claimed: Claim, plan: ResumablePlan | None = None
    ) -> LedgerRun:
        """Reserve a whole run, or refuse it. With a plan under a new key, the run can be resumed.

        Raises:
            BudgetRefused: the run would exceed the data set's cap, or the data set was used at another privacy unit,
                whose runs do not add up with this one's.
        """
        with self.transaction() as database:
            run = self.admit(database, data, mechanism, event, claimed)
            if plan is None:
                return run
            run = replace(run, holder=_new_holder())
            values = (run.number, plan.key, data.content, run.holder, plan.document, plan.fixed)
            columns = "run, key, content, holder, plan, fixed"
            database.execute(f"INSERT INTO resumable ({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)
            return run

    def resume(
        self, data: Fingerprint, mechanism: str, event: Composed, claimed: Claim, plan: ResumablePlan
    ) -> LedgerRun:
        """Resume an interrupted or stopped run; its remaining charges are reserved again.

        All values must equal those given to `begin`, except the plan's document, which is ignored.

        Raises:
            UsageError: the ledger has no such run, it has another plan or other data, or it is still active.
            BudgetRefused: the cap no longer allows the rest of the run, or runs at another privacy unit were charged.
        """
        query = (
            "SELECT id, status, name, unit, resumable.content, mechanism, event, fixed, holder FROM runs "
            "JOIN resumable ON run = id WHERE resumable.key = ?"
        )
        with self.transaction() as database:
            _document(database, plan.key)
            run, status, *whose, used, planned, fixed, holder = database.execute(query, (plan.key,)).fetchone()
            if whose != [data.name, data.unit, data.content]:
                raise UsageError("The run used other data: give the same file, columns and name.")
            if (used, json.loads(planned), fixed) != (mechanism, event.to_json(), plan.fixed):
                raise UsageError(
                    "The settings or the model are not those for which the ledger reserved this run: resume it with "
                    "its own."
                )
            if status == "running" and _is_alive(holder):
                raise UsageError("This run is still active: wait until it ends.")
            own = _new_holder()
            database.execute("UPDATE resumable SET holder = ? WHERE run = ?", (own, run))
            database.execute("UPDATE runs SET status = 'running' WHERE id = ?", (run,))
            parts = frozenset(part for (part,) in database.execute("SELECT part FROM released WHERE run = ?", (run,)))
            return LedgerRun(self, run, self._room(database, data, event, claimed, but=run), own, parts)

    def _room(
        self, database: sqlite3.Connection, data: Fingerprint, event: Composed, claimed: Claim, but: int = 0
    ) -> BudgetSnapshot:
        """What a data set has spent without the run `but`, if its cap also allows a planned run.

        Raises:
            BudgetRefused: it does not, or the data set was used at another privacy unit.
        """
        name, unit = data.name, data.unit
        self._check_unit(database, name, unit)
        before = self._snapshot(database, name, unit, but)
        planned = Spend(claimed.epsilon, claimed.delta, dict(event))
        after = usage([*self._spends(database, name, unit, but), planned], before.cap)
        if not after.allowed:
            raise BudgetRefused(
                f"The ledger of '{name}' allows epsilon {before.cap.epsilon:g} (delta {before.cap.delta:g}) in all; "
                f"{rounded_up(before.epsilon, 3)} is spent and this run needs {rounded_up(claimed.epsilon, 3)} (delta "
                f"{claimed.delta:g}), {rounded_up(after.epsilon, 3)} together. Lower epsilon, or raise the cap if "
                "everybody in the data can accept that."
            )
        return before

    def admit(
        self, database: sqlite3.Connection, data: Fingerprint, mechanism: str, event: Composed, claimed: Claim
    ) -> LedgerRun:
        """`begin` inside a transaction of the caller."""
        name, unit = data.name, data.unit
        before = self._room(database, data, event, claimed)
        if not database.execute("SELECT 1 FROM caps WHERE name = ? AND unit = ?", (name, unit)).fetchone():
            cap = (name, unit, before.cap.epsilon, before.cap.delta, now())
            database.execute("INSERT INTO caps VALUES (?, ?, ?, ?, ?)", cap)
        self.rows.record(database, data)
        cost = (claimed.epsilon, claimed.delta, json.dumps(event.to_json()))
        cursor = database.execute(
            "INSERT INTO runs (name, unit, started, mechanism, epsilon, delta, event, status, content, key) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 'running', ?, ?)",
            (name, unit, now(), mechanism, *cost, data.content, _key_in_use()),
        )
        return LedgerRun(self, int(cursor.lastrowid or 0), before)

    def _check_unit(self, database: sqlite3.Connection, name: str, unit: str) -> None:
        query = (
            "SELECT DISTINCT unit FROM runs WHERE name = ? AND unit <> ? "
            "AND (status <> 'finished' OR id IN (SELECT run FROM charges))"
        )
        if other := database.execute(query, (name, unit)).fetchone():
            raise BudgetRefused(
                f"'{name}' has runs that protect {unit_in_words(other[0])}, and runs that protect "
                f"{unit_in_words(unit)} cannot be added. Choose the same user column as for "
                "those runs, or none; use another name only for other people's data."
            )

    def check(self, data: Fingerprint, event: Composed, claimed: Claim) -> None:
        """Refuse a run as `begin` would; nothing is reserved.

        Raises:
            BudgetRefused: see `begin`.
        """
        with self.transaction() as database:
            self._room(database, data, event, claimed)

    def forecast(self, name: str, unit: str, event: Composed, claimed: Claim) -> Usage:
        """A data set's spending with one more run, and whether its cap allows that; nothing is reserved.

        Raises:
            BudgetRefused: the data set was used at another privacy unit.
        """
        planned = Spend(claimed.epsilon, claimed.delta, dict(event))
        with self.transaction() as database:
            self._check_unit(database, name, unit)
            return usage([*self._spends(database, name, unit), planned], self._cap(database, name, unit))

    def repeats(self, name: str, unit: str, event: Composed, claimed: Claim) -> int:
        """The number of runs like a planned one that the data set's cap still allows, at most `MOST_REPEATS`; none is
        reserved.

        The number depends on the ledger's present state and is no guarantee: runs under another name on the same rows
        do not count.
        """
        planned = Spend(claimed.epsilon, claimed.delta, dict(event))
        with self.transaction() as database:
            return repeats(self._spends(database, name, unit), planned, self._cap(database, name, unit))

    def reserved_document(self, key: str) -> str:
        """The document of a resumable run's plan.

        Raises:
            UsageError: the ledger has no such run.
        """
        with self.transaction() as database:
            return _document(database, key)

    def name_of(self, key: str) -> str:
        """The data set of a resumable run; "" without such a run."""
        query = "SELECT name FROM runs JOIN resumable ON run = id WHERE resumable.key = ?"
        with self.transaction() as database:
            found = database.execute(query, (key,)).fetchone()
        return str(found[0]) if found else ""

    def newest(self, key: str) -> str:
        """The run-file lines of the part that a run marked last; "" if there is none, or no such run."""
        query = "SELECT told FROM released JOIN resumable USING (run) WHERE key = ? AND told <> ''"
        with self.transaction() as database:
            found = database.execute(query, (key,)).fetchone()
        return str(found[0]) if found else ""

    def forget(self, key: str) -> None:
        """Remove the stored lines of a run, which can then be resumed only from its file. Its marks stay."""
        query = "UPDATE released SET told = '' WHERE told <> '' AND run IN (SELECT run FROM resumable WHERE key = ?)"
        with self.transaction() as database:
            database.execute(query, (key,))

    def names(self) -> list[tuple[str, str]]:
        """Every (data set, unit) that the ledger knows."""
        with self.transaction() as database:
            return list(database.execute("SELECT DISTINCT name, unit FROM caps ORDER BY name, unit"))

    def caps(self, name: str) -> list[dict[str, object]]:
        """All caps that a data set has had, oldest first. A cap only covers the runs after it."""
        columns = ("unit", "epsilon", "delta", "since")
        with self.transaction() as database:
            query = f"SELECT {', '.join(columns)} FROM caps WHERE name = ? ORDER BY rowid"
            return [dict(zip(columns, row, strict=True)) for row in database.execute(query, (name,))]

    def history(self, name: str) -> list[dict[str, object]]:
        """The runs on a data set, oldest first, as values for display."""
        columns = ("started", "unit", "mechanism", "epsilon", "delta", "status", "event")
        with self.transaction() as database:
            query = f"SELECT {', '.join(columns)} FROM runs WHERE name = ? ORDER BY id"
            rows = [dict(zip(columns, row, strict=True)) for row in database.execute(query, (name,))]
        return [row | {"event": json.loads(str(row["event"]))} for row in rows]

    def earlier_runs(self, data: Fingerprint, but: str = "") -> list[EarlierRun]:
        """The runs that may have read rows of a data set, under any name, oldest first; private.

        These are the runs of its name, those of data sets that share rows with it, and all runs that were reserved
        under another key of the installation, whose rows cannot be recognised. `but` is the key of a run to omit.
        """
        with self.transaction() as database:
            names = {data.name, *names_that_share(database, data.rows)}
            query = (
                "SELECT name, mechanism, event, content, key FROM runs "
                "WHERE id NOT IN (SELECT run FROM resumable WHERE key = ?) ORDER BY id"
            )
            same_key = _key_in_use()
            return [
                EarlierRun(mechanism, from_json(json.loads(event)), content == data.content)
                for name, mechanism, event, content, key in database.execute(query, (but,))
                if name in names or key != same_key
            ]


def _document(database: sqlite3.Connection, key: str) -> str:
    found = database.execute("SELECT plan FROM resumable WHERE key = ?", (key,)).fetchone()
    if found is None:
        raise UsageError("This ledger has no such run: resume it on the machine and account that began it.")
    return str(found[0])


def _key_in_use() -> str:
    """A value that identifies the installation's present key without revealing it."""
    return keyed_digest(["ledger"])


def _new_holder() -> str:
    return f"{os.getpid()} {psutil.Process().create_time():.2f} {secrets.token_hex(8)}"


def _is_alive(holder: str) -> bool:
    """Whether the holder's process still exists."""
    pid, started, _ = holder.split()
    try:
        process = psutil.Process(int(pid))
        same = abs(process.create_time() - float(started)) <= 2.0  # it shifts by seconds when the clock is set
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@dataclass(frozen=True)
class EarlierRun:
    """A run that may have read rows of a data set, and whether it was reserved for exactly that content."""

    mechanism: str
    event: Composed
    same_content: bool


@dataclass(frozen=True)
class LedgerRun:
    """A reserved run: charge each part before its first release, and finish the run in `finally`.

    A part is the tokens of a demonstration, or one release of a stage. It is charged once, and marked after it is drawn
    and before it is shown. So a part without a mark was never shown and may be drawn again; a part with a mark is never
    drawn again, even if the run's file is lost. The newest mark also has the run-file lines of its part, so that
    nothing is lost between the ledger and that file; they are removed with the file.

    Attributes:
        holder: the name under which this process marks parts; "" if the run cannot be resumed and has no marks.
        released: the parts that were marked before the run was resumed.
    """

    ledger: PrivacyLedger
    number: int
    before: BudgetSnapshot
    holder: str = ""
    released: frozenset[str] = frozenset()

    def charge(self, list_name: str, events: tuple[PrivacyEvent, ...], part: str = "") -> None:
        """Write a charge; returns when it is durable. A part is charged once."""
        values = (self.number, list_name, dump_events(list_name, events), part)
        with self.ledger.transaction() as database:
            database.execute("INSERT OR IGNORE INTO charges (run, list, event, part) VALUES (?, ?, ?, ?)", values)

    def mark(self, part: str, told: str) -> None:
        """Store that a part was drawn, with its run-file lines `told`, before it is shown; returns when this is
        durable.

        Raises:
            StudioError: the part is marked already, or another process has resumed the run.
        """
        query = "INSERT OR IGNORE INTO released SELECT run, ?, ? FROM resumable WHERE run = ? AND holder = ?"
        with self.ledger.transaction() as database:
            database.execute("UPDATE released SET told = '' WHERE run = ?", (self.number,))
            if database.execute(query, (part, told, self.number, self.holder)).rowcount != 1:
                raise StudioError(
                    "The next part was already released, here or by another process. It is not drawn twice: the run "
                    "ends here, with what its file holds."
                )

    def finish(self) -> None:
        """Close the run, unless another process has resumed it. Its cost is then what was charged."""
        query = (
            "UPDATE runs SET status = 'finished' WHERE id = ? "
            "AND NOT EXISTS (SELECT 1 FROM resumable WHERE run = id AND holder <> ?)"
        )
        with self.ledger.transaction() as database:
            database.execute(query, (self.number, self.holder))

    def snapshot(self) -> BudgetSnapshot:
        """What the data set has spent by now."""
        return self.ledger.snapshot(self.before.name, self.before.unit)
