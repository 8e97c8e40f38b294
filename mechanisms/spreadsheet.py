"""Cells that a spreadsheet shows and does not compute."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell may not begin with (OWASP, "CSV injection"); the last four are the wide forms of the first four."""


def safe(cell: str) -> str:
    """A cell with a quote before what a spreadsheet would compute."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
