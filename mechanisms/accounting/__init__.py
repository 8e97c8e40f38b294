"""The cost of privacy events, the noise for a privacy target, and the budget that a data set has spent."""

from mechanisms.accounting.account import Account, BudgetSnapshot
from mechanisms.accounting.claims import (
    Claim,
    PrivacyTarget,
    best_guess,
    best_guess_in_percent,
    calibrate_noise,
    claim,
    cost_in_words,
)
from mechanisms.accounting.filter import MOST_REPEATS, Cap, Usage
from mechanisms.accounting.individual import IndividualFilter, Reservation, reserve
from mechanisms.accounting.known_rows import Fingerprint, fingerprint, rows_among, share_any, text_digests
from mechanisms.accounting.ledger import EarlierRun, LedgerRun, PrivacyLedger, ResumablePlan, new_key
from mechanisms.accounting.normal_form import amplified

__all__ = [
    "MOST_REPEATS", "Account", "BudgetSnapshot", "Cap", "Claim", "EarlierRun", "Fingerprint",
    "IndividualFilter", "LedgerRun", "PrivacyLedger", "PrivacyTarget", "Reservation", "ResumablePlan", "Usage",
    "amplified", "best_guess", "best_guess_in_percent", "calibrate_noise", "claim", "cost_in_words", "fingerprint",
    "new_key", "reserve", "rows_among", "share_any", "text_digests",
]  # fmt: skip
