"""Which mechanisms there are: whatever modules of this package define `MECHANISM`."""

from __future__ import annotations

from mechanisms.discovery import defined, pick
from mechanisms.steps.mechanism import TokenMechanism


def mechanism_names() -> list[str]:
    """Names of all mechanisms, private ones first, the one without any privacy last."""
    mechanisms = _registered()
    return sorted(
        mechanisms,
        key=lambda name: (mechanisms[name].not_private is not None, not mechanisms[name].uses_private_rows, name),
    )


def mechanism_class(name: str) -> type[TokenMechanism]:
    """The mechanism of that name.

    Raises:
        UsageError: there is none.
    """
    return pick(_registered(), name, "mechanism", mechanism_names())


def _registered() -> dict[str, type[TokenMechanism]]:
    return defined("mechanisms.steps", "MECHANISM")
