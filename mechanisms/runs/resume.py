"""How a run is resumed after its process has ended: released parts stay, and no part is drawn twice.

The ledger alone decides whether a part may be drawn, and holds what the run was reserved for: a resumed run is built
from the ledger (`mechanisms/accounting/database.py`). Events from a journal are post-processed and shown again; they
decide nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from mechanisms.accounting import Claim, Fingerprint, LedgerRun, PrivacyLedger, ResumablePlan
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.files import keyed_digest
from mechanisms.noise import Randomness
from mechanisms.privacy_events import Composed


class Journal(Protocol):
    """What a run knows of `mechanisms.runs.journal.RunJournal`, which knows plans and stands above."""

    @property
    def key(self) -> str: ...

    @property
    def replayed(self) -> Sequence[Any] | None: ...

    def head(self, planned: DemoSet) -> str: ...

    def begin(self, started: Any) -> None: ...

    def lines(self, *events: Any) -> str: ...

    def write(self, *events: Any) -> None: ...


def reserved(
    ledger: PrivacyLedger,
    data: Fingerprint,
    mechanism: str,
    event: Composed,
    claimed: Claim,
    journal: Journal | None,
    planned: DemoSet,
) -> LedgerRun:
    """The run in the ledger: a new one, or the journal's.

    Args:
        planned: the set before its first demonstration and before its charge.

    Raises:
        BudgetRefused, UsageError: see `PrivacyLedger.begin` and `PrivacyLedger.resume`.
    """
    if journal is None:
        return ledger.begin(data, mechanism, event, claimed)
    plan = ResumablePlan(journal.key, journal.head(planned), _fixed(planned))
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


def mark_released(run: LedgerRun | None, journal: Journal | None, part: str, *events: Any) -> None:
    """Mark a part as released, before its events are yielded."""
    if run is not None and journal is not None:
        run.mark(part, journal.lines(*events))


def check_journal(journal: Journal | None, randomness: Randomness, private: bool) -> None:
    """Refuse a journal for a run that is for the curator alone, or is not charged.

    Raises:
        UsageError: the run is not private, or reads no row.
    """
    if journal is not None and not (randomness.private and private):
        raise UsageError("Only private runs can be resumed: leave out the journal.")


def check_replayed(parts: Iterable[str], run: LedgerRun | None) -> None:
    """Refuse a journal with releases that the ledger never marked.

    Raises:
        UsageError: it does.
    """
    if run is not None and not set(parts) <= run.released:
        raise UsageError(
            "The run's file tells of releases that this ledger does not know: give the file that the run wrote."
        )
