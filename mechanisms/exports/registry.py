"""Which formats of export there are: whatever modules of this package define `FORMAT`."""

from __future__ import annotations

from mechanisms.discovery import defined, pick
from mechanisms.exports.export_format import ExportFormat


def format_names() -> list[str]:
    """Names of all of them, the certificate first and those for records last."""
    formats = _registered()
    return sorted(formats, key=lambda name: (formats[name].of_records, name != "certificate", name))


def format_named(name: str) -> ExportFormat:
    """The format of that name.

    Raises:
        UsageError: there is none.
    """
    return pick(_registered(), name, "format", format_names())


def _registered() -> dict[str, ExportFormat]:
    return defined("mechanisms.exports", "FORMAT")
