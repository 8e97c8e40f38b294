"""What a data set has been used for before: only rows that nobody has asked yet can judge without favour."""

from __future__ import annotations

from typing import Any

from mechanisms.accounting import PrivacyLedger


def runs_that_read(ledger: PrivacyLedger, name: str) -> list[dict[str, Any]]:
    """The runs on a data set, oldest first, without those that only counted its rows."""
    return [run for run in ledger.history(name) if not str(run["mechanism"]).startswith("label counts")]
