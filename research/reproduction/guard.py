"""Runs of a grid are charged to nobody: rows that are somebody's must not take part."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.sizes import NO_NOISE, SCORED, owners_of
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record


def take_as_public(name: str, rows: Sequence[Record], ledger: PrivacyLedger, train: bool) -> None:
    """Refuse rows of a private data set, and remember what will be known of the others without noise.

    Whoever makes a private data set of these rows later finds it marked.

    Args:
        name: of the public data set.
        rows: of one of its files.
        ledger: the user's.
        train: whether the file plays the private one, or is the one that is scored.

    Raises:
        UsageError: the ledger knows some of the rows.
    """
    known = fingerprint(Dataset(name, (), rows))
    if owners := owners_of(known, ledger):
        raise UsageError(
            f"The files of {name} share rows with your data set '{owners[0]}': a grid is charged to no ledger and "
            "writes rows without noise into prompts. Give it public research data alone."
        )
    ledger.rows.mark_rows(known.rows, NO_NOISE if train else SCORED)
