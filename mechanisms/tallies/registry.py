"""Which tallies there are: whatever modules of this package define `TALLY`."""

from __future__ import annotations

from mechanisms.discovery import defined, pick
from mechanisms.tallies.tally import Tally


def tally_names() -> list[str]:
    """Names of all tallies."""
    return sorted(_registered())


def tally_class(name: str) -> type[Tally]:
    """The tally of that name.

    Raises:
        UsageError: there is none.
    """
    return pick(_registered(), name, "tally", tally_names())


def _registered() -> dict[str, type[Tally]]:
    return defined("mechanisms.tallies", "TALLY")
