"""Noiseless values of a data set: the reasons why some count as known, and rows of it that are in a test file.

The ledger stores the reasons as marks, and certificates list them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechanisms.accounting import Fingerprint, PrivacyLedger, fingerprint, rows_among
from mechanisms.errors import StudioError
from mechanisms.records import Dataset

CLEAN_VALUES = "clean values were on a screen"
NO_NOISE = "a run without noise"
SEEDED = "a run with a test seed, whose noise an observer can predict"
SCORED = "accuracy without noise on rows of it"
COMPARED = "rows of it beside its demonstrations"
UNKNOWN = "not known: the ledger could not be read when the run had ended"
"""Replaces marks that cannot be read; there may be several."""


def owners_of(test: Fingerprint, ledger: PrivacyLedger) -> list[str]:
    """The names of the private data sets that share rows with a test file; private.

    An accuracy has no noise, so one row changes it. If a row belongs to a private data set, the figures are for the
    curator only, and no document with them may be marked private.
    """
    return ledger.rows.names_that_share(test.rows)


def shared_rows(test: Dataset, ledger: PrivacyLedger, own: Fingerprint | None = None) -> list[bool]:
    """For each row of a test file, whether a private data set contains it, too; private."""
    rows = fingerprint(test).rows
    known = ledger.rows.shared(rows)
    if own is not None:
        known = np.union1d(known, np.intersect1d(rows, own.rows))
    return rows_among(test, known)


def without_rows(test: Dataset, left_out: Sequence[bool]) -> Dataset:
    kept = [i for i, out in enumerate(left_out) if not out]
    witnesses = tuple(column[kept] for column in test.witnesses)
    return replace(test, records=[test.records[i] for i in kept], witnesses=witnesses)


def disclosures_at_the_end(data: Fingerprint, ledger: PrivacyLedger) -> tuple[str, ...]:
    """A data set's marks after a run; `UNKNOWN` instead of an error if the ledger cannot be read, so that the paid set
    is not lost."""
    try:
        return ledger.rows.disclosures(data)
    except StudioError:
        return (UNKNOWN,)


def mark_scored(test: Fingerprint, ledger: PrivacyLedger) -> None:
    """Mark rows before their figures are shown; has no effect for public rows."""
    ledger.rows.mark_rows(test.rows, SCORED)
