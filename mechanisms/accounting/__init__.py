"""How much privacy an event costs, how much noise a target needs, and what a data set has spent."""

from mechanisms.accounting.calibration import calibrate_noise
from mechanisms.accounting.claims import Bounds, Claim, PrivacyTarget, claim
from mechanisms.accounting.filter import Cap
from mechanisms.accounting.ledger import BudgetSnapshot, LedgerRun, PrivacyLedger

__all__ = [
    "Bounds",
    "BudgetSnapshot",
    "Cap",
    "Claim",
    "LedgerRun",
    "PrivacyLedger",
    "PrivacyTarget",
    "calibrate_noise",
    "claim",
]
