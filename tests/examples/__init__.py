"""Small fictional files, a sixth of the bundled ones, for tests that read every row with a model."""

from __future__ import annotations

from pathlib import Path

CLINIC, BANK = (Path(__file__).parent / name for name in ("clinic_messages.csv", "bank_support.csv"))
