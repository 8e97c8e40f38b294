"""Why clean values of a data set count as known: what the ledger remembers, and later certificates say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechanisms.accounting import Fingerprint, PrivacyLedger, fingerprint, rows_among, share_any
from mechanisms.errors import StudioError
from mechanisms.records import Dataset

CLEAN_VALUES = "clean values were on a screen"
NO_NOISE = "a run without noise"
SEEDED = "a run with a test seed, whose noise an observer can predict"
SCORED = "accuracy without noise on rows of it"
ATTACKED = "figures of attacks on rows of it, which have no noise"

UNKNOWN = "not known: the ledger could not be read when the run had ended"
"""Says less than there may be to say, never more."""

WHETHER_SHOWN = "whether clean values of its rows were shown before"
"""The mark follows from the rows themselves, so that a certificate has to name it among its public inputs."""
WHETHER_MET = "whether its rows took part in runs before"
"""The same of what a score says of its rows."""


def owners_of(test: Fingerprint, ledger: PrivacyLedger, own: Fingerprint | None = None) -> list[str]:
    """Names of the private data sets that share rows with a test file; private.

    An accuracy has no noise: one row more or less changes it. On rows that take part in no private data set that is no
    matter; where one of them does, the figures are the curator's alone, and may stand in no document that says private.

    Args:
        test: the whole file, whichever of its rows are scored.
        ledger: what the rows are compared with.
        own: a data set that is at hand, known to the ledger or not.
    """
    names = ledger.rows.names_that_share(test.rows)
    if own is not None and share_any(test.rows, own.rows):
        names = list(dict.fromkeys([*names, own.name]))
    return names


def shared_rows(test: Dataset, ledger: PrivacyLedger, own: Fingerprint | None = None) -> list[bool]:
    """Of each row of a test file whether private data sets have it as well; private. See `owners_of`."""
    rows = fingerprint(test).rows
    known = ledger.rows.shared(rows)
    if own is not None:
        known = np.union1d(known, np.intersect1d(rows, own.rows))
    return rows_among(test, known)


def without_rows(test: Dataset, left_out: Sequence[bool]) -> Dataset:
    """The file without some of its rows, as if it had never had them."""
    kept = [i for i, out in enumerate(left_out) if not out]
    witnesses = tuple(column[kept] for column in test.witnesses)
    return replace(test, records=[test.records[i] for i in kept], witnesses=witnesses)


def marks_at_the_end(data: Fingerprint, ledger: PrivacyLedger) -> tuple[str, ...]:
    """A data set's marks when a run has ended, whose set is paid for and must not be lost with the ledger."""
    try:
        return ledger.rows.marks(data)
    except StudioError:
        return (UNKNOWN,)


def mark_scored(test: Fingerprint, ledger: PrivacyLedger) -> None:
    """Remember, before they are shown, that there are figures of these rows: of public rows this never matters."""
    ledger.rows.mark_rows(test.rows, SCORED)


def mark_attacked(private: Fingerprint, ledger: PrivacyLedger, held_out: Fingerprint | None = None) -> None:
    """Remember, before they are shown, that there are figures of attacks on these rows.

    Args:
        private: the data set behind what is attacked.
        held_out: rows that it is compared with, which other data sets may share.
    """
    ledger.rows.mark(private, ATTACKED)
    if held_out is not None:
        ledger.rows.mark_rows(held_out.rows, ATTACKED)
