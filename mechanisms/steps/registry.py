"""Which mechanisms there are: whatever modules of this package define `MECHANISM`."""

from __future__ import annotations

from mechanisms.errors import UsageError
from mechanisms.steps.discovery import defined
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
    if name not in _registered():
        raise UsageError(f"There is no mechanism '{name}': choose one of {', '.join(mechanism_names())}.")
    return _registered()[name]


def _registered() -> dict[str, type[TokenMechanism]]:
    return defined("mechanisms.steps", "MECHANISM")
