"""Numbers as people type them into a form."""

from __future__ import annotations

import math
from typing import Any

from mechanisms.errors import UsageError


def number(name: str, value: Any) -> float:
    """A component's value as a number.

    Raises:
        UsageError: it is none.
    """
    try:
        given = float(value)
    except (TypeError, ValueError, OverflowError):
        given = math.nan
    if not math.isfinite(given):
        raise UsageError(f"{name} needs a number.")
    return given


def whole(name: str, value: Any) -> int:
    """A component's value as a whole number.

    Raises:
        UsageError: it is none.
    """
    given = number(name, value)
    if given != int(given):
        raise UsageError(f"{name} must be a whole number.")
    return int(given)
