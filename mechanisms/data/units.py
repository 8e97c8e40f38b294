"""The units of a data set for tallies, and runs of a single release, which are charged before they read a unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mechanisms.accounting import BudgetSnapshot, Claim, PrivacyLedger, fingerprint
from mechanisms.data.disclosures import SEEDED
from mechanisms.files import keyed_digest, secret_key
from mechanisms.noise import Randomness
from mechanisms.privacy_events import Composed
from mechanisms.records import Dataset, Record

Unit = tuple[Record, ...]


def units_of(dataset: Dataset, max_records: int) -> Sequence[Unit]:
    """The units of a data set; private. The R records of a user are chosen by keyed digests of the user's own rows
    alone."""
    if not dataset.by_user:
        return dataset.members
    key = secret_key()

    def place(record: Record) -> str:  # equal digests belong to equal records, whose order does not matter
        return keyed_digest(("tally", record.text, record.label), key)

    return [
        unit if len(unit) <= max_records else tuple(sorted(unit, key=place)[:max_records]) for unit in dataset.members
    ]


@contextmanager
def charged(
    dataset: Dataset, what: str, event: Composed, claimed: Claim, ledger: PrivacyLedger, randomness: Randomness
) -> Iterator[BudgetSnapshot]:
    """Reserve and charge a run, then let the body read rows; the charge stays even if the body fails.

    Yields the data set's spending before the run. Predictable `randomness` marks the data set.

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
