"""A run that is one release: charged whole before the first row is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mechanisms.accounting import BudgetSnapshot, Claim, PrivacyLedger, fingerprint
from mechanisms.noise import Randomness
from mechanisms.privacy_events import Composed
from mechanisms.records import Dataset
from mechanisms.studio.data.marks import SEEDED


@contextmanager
def charged(
    dataset: Dataset, what: str, event: Composed, claimed: Claim, ledger: PrivacyLedger, randomness: Randomness
) -> Iterator[BudgetSnapshot]:
    """Reserve and charge a run, then let the body read rows; what was charged stays, however the body ends.

    Args:
        dataset: private.
        what: the run's name in the ledger.
        event, claimed: what it costs.
        randomness: where its noise comes from. One that an observer could predict marks the data set.

    Yields:
        What the data set had spent before.

    Raises:
        BudgetRefused: the data set's cap does not allow it.
    """
    data = fingerprint(dataset)
    run = ledger.begin(data, f"{what}{'' if randomness.private else ' with a test seed'}", event, claimed)
    try:
        if not randomness.private:
            ledger.rows.mark(data, SEEDED)
        for name, events in event:
            run.charge(name, events)
        yield run.before
    finally:
        run.finish()
