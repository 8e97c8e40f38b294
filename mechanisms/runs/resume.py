"""How a run goes on after its process has ended: what was told stays, and no part of it is drawn twice.

Whether a part may be drawn is asked of the ledger alone (`mechanisms/accounting/database.py`). What a journal holds is
post-processed and shown again, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from mechanisms.accounting import BudgetSnapshot, Claim, Fingerprint, LedgerRun, PrivacyLedger
from mechanisms.errors import StudioError, UsageError
from mechanisms.noise import Randomness
from mechanisms.privacy_events import Composed
from mechanisms.runs.events import DemoCompleted, DemoStarted, TokenReleased

DemonstrationKey = tuple[str, int]
"""A demonstration: its label and its number."""


class Journal(Protocol):
    """Where a run writes down what it releases, before anybody sees it.

    Attributes:
        key: what the ledger knows the run by.
        replayed: the events before it was cut off, in order, without its first event; None where it only begins.
    """

    @property
    def key(self) -> str:
        """See above."""

    @property
    def replayed(self) -> Sequence[Any] | None:
        """See above."""

    def begin(self, started: Any) -> None:
        """Write down the first event of a run that begins; of one that goes on, hold it against what is there.

        Raises:
            UsageError: the file cannot be written, or is of another run.
        """

    def lines(self, *events: Any) -> str:
        """What `write` writes down."""

    def write(self, *events: Any) -> None:
        """Write down what is told together; returns when it is in the file.

        Raises:
            UsageError: the file cannot be written.
        """


def reserved(
    ledger: PrivacyLedger,
    data: Fingerprint,
    mechanism: str,
    event: Composed,
    claimed: Claim,
    journal: Journal | None,
) -> LedgerRun:
    """The run in the ledger: a new one, or the one that the journal is of."""
    if journal is None:
        return ledger.begin(data, mechanism, event, claimed)
    if journal.replayed is None:
        return ledger.begin(data, mechanism, event, claimed, journal.key)
    return ledger.resume(data, mechanism, event, claimed, journal.key)


def begin(journal: Journal | None, started: Any) -> Sequence[Any]:
    """Begin a journal, or go on with it: what it told before."""
    if journal is None:
        return ()
    journal.begin(started)
    return journal.replayed or ()


def mark_released(run: LedgerRun | None, journal: Journal | None, part: str, *events: Any) -> None:
    """Mark a part that has been drawn, before anybody is told."""
    if run is not None and journal is not None:
        run.mark(part, journal.lines(*events))


def at_the_end(run: LedgerRun) -> BudgetSnapshot | None:
    """The ledger's state when all is written; None where it cannot be read: what is paid for must not be lost then."""
    try:
        return run.snapshot()
    except StudioError:
        return None


def check_journal(journal: Journal | None, randomness: Randomness, private: bool) -> None:
    """Refuse to write down what is for the curator alone, or was not charged.

    Raises:
        UsageError: the run is not private, or reads no row.
    """
    if journal is not None and not (randomness.private and private):
        raise UsageError("Only a private run can be gone on with: leave out its journal.")


def part_of(key: DemonstrationKey) -> str:
    """What the ledger calls a demonstration."""
    return f"write {key[0]} {key[1]}"


def demonstration_key(event: DemoStarted | TokenReleased | DemoCompleted) -> DemonstrationKey:
    """The demonstration that an event is about."""
    label = event.demonstration.label if isinstance(event, DemoCompleted) else event.label
    return label, event.number


def check_replayed(parts: Iterable[str], run: LedgerRun | None) -> None:
    """Refuse a journal that tells of what the ledger never let out.

    Raises:
        UsageError: it does.
    """
    if run is not None and not set(parts) <= run.released:
        raise UsageError(
            "The run's file tells of releases that this ledger does not know: give the file that the run wrote."
        )
