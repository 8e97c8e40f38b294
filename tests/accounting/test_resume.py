"""Runs that can be gone on with, as the ledger knows them."""

from __future__ import annotations

import pytest

from mechanisms.accounting import Fingerprint, LedgerRun, PrivacyLedger, claim, new_key
from mechanisms.errors import BudgetRefused
from mechanisms.privacy_events import Composed, Gaussian

EVENT = Composed("label", (("a", (Gaussian(4.0),)),))
PLANNED = ("gaussian", EVENT, claim(EVENT, 1e-6))
ROWS, USERS = (Fingerprint("clinic", unit, "d1") for unit in ("record", "user:patient"))


def begun(ledger: PrivacyLedger, key: str) -> LedgerRun:
    return ledger.begin(ROWS, *PLANNED, key)


def test_a_run_that_charged_nothing_goes_on_only_at_the_unit_that_was_fixed_since():
    ledger, key = PrivacyLedger(), new_key()
    begun(ledger, key).finish()
    ledger.begin(USERS, *PLANNED)
    with pytest.raises(BudgetRefused, match="column 'patient'.*do not add up"):
        ledger.resume(ROWS, *PLANNED, key)
    assert ledger.snapshot("clinic", ROWS.unit).runs == 0
    assert ledger.snapshot("clinic", USERS.unit).runs == 1


def test_a_run_that_was_stopped_goes_on_at_its_own_unit():
    ledger, key = PrivacyLedger(), new_key()
    begun(ledger, key).finish()
    ledger.begin(ROWS, *PLANNED)
    assert ledger.resume(ROWS, *PLANNED, key).released == frozenset()


def test_what_is_told_is_kept_for_who_goes_on_and_forgotten_with_the_run(data_folder):
    ledger, keys = PrivacyLedger(), (new_key(), new_key())
    for key in keys:
        run = begun(ledger, key)
        run.mark("write a 1", f"a text of {key}")
        run.finish()  # one that was stopped by a failure goes on
    ledger.forget(keys[0])
    assert [ledger.newest(key) for key in keys] == ["", f"a text of {keys[1]}"]
    assert ledger.resume(ROWS, *PLANNED, keys[0]).released == {"write a 1"}, "nothing is drawn twice all the same"
    assert not any(f"a text of {keys[0]}".encode() in path.read_bytes() for path in data_folder.rglob("ledger*"))
