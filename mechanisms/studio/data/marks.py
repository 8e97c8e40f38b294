"""Why clean values of a data set count as known: what the ledger remembers, and later certificates say."""

from __future__ import annotations

from mechanisms.accounting import Fingerprint, PrivacyLedger, share_any
from mechanisms.errors import StudioError

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
