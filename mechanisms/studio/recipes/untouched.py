"""Whether rows took part in nothing before, as far as the ledger knows: what a score says of its scorers."""

from __future__ import annotations

from mechanisms.accounting import Fingerprint, PrivacyLedger


def earlier_runs(data: Fingerprint, ledger: PrivacyLedger, but: str = "") -> list[dict[str, object]]:
    """The runs that may have read rows of a data set, under whatever name, but to count them; private.

    Args:
        data: private.
        ledger: where they are.
        but: the key of a run that is left out.
    """
    names = dict.fromkeys([data.name, *ledger.rows.names_that_share(data.rows)])
    runs = (run for name in names for run in ledger.history(name, but))
    return [run for run in runs if not str(run["mechanism"]).startswith("label counts")]


def is_new(data: Fingerprint, ledger: PrivacyLedger, but: str = "") -> bool:
    """Whether nothing is known of a data set's rows that a run can have been chosen by, `but` by the run of that key.

    Another run may have given its scorers other roles, and whoever has seen a score may choose by it.
    """
    return not ledger.rows.marks(data) and not earlier_runs(data, ledger, but)
