"""How a run is resumed after its process has ended: released parts stay, and no part is drawn twice.

The ledger alone decides whether a part may be drawn, and holds what the run was reserved for: a resumed run is built
from the ledger (`mechanisms/accounting/database.py`). Events from a journal are post-processed and shown again; they
decide nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from mechanisms.accounting import BudgetSnapshot, Claim, Fingerprint, LedgerRun, PrivacyLedger, ResumablePlan
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import StudioError, UsageError
from mechanisms.files import keyed_digest
from mechanisms.noise import Randomness
from mechanisms.privacy_events import Composed
from mechanisms.runs.events import DemoCompleted, DemoStarted, RunStarted, TokenReleased

DemonstrationKey = tuple[str, int]
"""The label and the number of a demonstration."""


class Journal(Protocol):
    """The file to which a run writes its releases before anybody sees them.

    Attributes:
        key: the run's key in the ledger.
        replayed: the events before the interruption, in order, without the first one; None for a new run.
    """

    @property
    def key(self) -> str:
        """See the attributes."""

    @property
    def replayed(self) -> Sequence[Any] | None:
        """See the attributes."""

    def head(self, planned: RunStarted) -> str:
        """The file's first line, before anything is charged: the ledger keeps it."""

    def begin(self, started: RunStarted) -> None:
        """Open the file, and write the first line of a new run.

        Raises:
            UsageError: the file cannot be written.
        """

    def lines(self, *events: Any) -> str:
        """The lines that `write` writes."""

    def write(self, *events: Any) -> None:
        """Write events that are yielded together; return when they are in the file.

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
    planned: RunStarted,
) -> LedgerRun:
    """The run in the ledger: a new one, or the journal's.

    Args:
        planned: the run's first event, as it is before anything is charged.

    Raises:
        BudgetRefused, UsageError: see `PrivacyLedger.begin` and `PrivacyLedger.resume`.
    """
    if journal is None:
        return ledger.begin(data, mechanism, event, claimed)
    plan = ResumablePlan(journal.key, journal.head(planned), _fixed(planned.demo_set))
    if journal.replayed is None:
        return ledger.begin(data, mechanism, event, claimed, plan)
    return ledger.resume(data, mechanism, event, claimed, plan)


_OF_ITS_TIME = {"epsilon", "accountants", "shown", "curator_diagnostics_shown", "spent_before", "software", "created"}
"""Fields of a set that may differ when its run is resumed: dates, the ledger's state, last digits of a claim."""


def _fixed(planned: DemoSet) -> str:
    """Keyed digest of everything public that fixes a run: its parameters, certified event, task, stages and model."""
    document = planned.to_json()
    document["privacy"] = {name: value for name, value in document["privacy"].items() if name not in _OF_ITS_TIME}
    document["model"] = document["model"]["sha256"]
    fixed = {name: value for name, value in document.items() if name not in _OF_ITS_TIME}
    return keyed_digest(["plan", json.dumps(fixed, sort_keys=True)])


def begin(journal: Journal | None, started: RunStarted) -> Sequence[Any]:
    """Begin or resume a journal; return the events that it replays."""
    if journal is None:
        return ()
    journal.begin(started)
    return journal.replayed or ()


def mark_released(run: LedgerRun | None, journal: Journal | None, part: str, *events: Any) -> None:
    """Mark a part as released, before its events are yielded."""
    if run is not None and journal is not None:
        run.mark(part, journal.lines(*events))


def at_the_end(run: LedgerRun) -> BudgetSnapshot | None:
    """The ledger's state at the end; None where it cannot be read, so that the finished set is not lost."""
    try:
        return run.snapshot()
    except StudioError:
        return None


def check_journal(journal: Journal | None, randomness: Randomness, private: bool) -> None:
    """Refuse a journal for a run that is for the curator alone, or is not charged.

    Raises:
        UsageError: the run is not private, or reads no row.
    """
    if journal is not None and not (randomness.private and private):
        raise UsageError("Only private runs can be resumed: leave out the journal.")


def part_of(key: DemonstrationKey) -> str:
    """The name of a demonstration's part in the ledger."""
    return f"write {key[0]} {key[1]}"


def demonstration_key(event: DemoStarted | TokenReleased | DemoCompleted) -> DemonstrationKey:
    """The key of the demonstration that an event belongs to."""
    label = event.demonstration.label if isinstance(event, DemoCompleted) else event.label
    return label, event.number


def check_replayed(parts: Iterable[str], run: LedgerRun | None) -> None:
    """Refuse a journal with releases that the ledger never marked.

    Raises:
        UsageError: it does.
    """
    if run is not None and not set(parts) <= run.released:
        raise UsageError(
            "The run's file tells of releases that this ledger does not know: give the file that the run wrote."
        )
