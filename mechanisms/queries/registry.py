"""Which pay-per-query mechanisms there are: whatever modules of this package define `MECHANISM`."""

from __future__ import annotations

from mechanisms.discovery import defined, pick
from mechanisms.queries.mechanism import QueryMechanism


def query_mechanism_names() -> list[str]:
    """Names of all of them, those that answer with a label first."""
    mechanisms = _registered()
    return sorted(mechanisms, key=lambda name: (mechanisms[name].open_answers, name))


def query_mechanism_class(name: str) -> type[QueryMechanism]:
    """The mechanism of that name.

    Raises:
        UsageError: there is none.
    """
    return pick(_registered(), name, "pay-per-query mechanism", query_mechanism_names())


def _registered() -> dict[str, type[QueryMechanism]]:
    return defined("mechanisms.queries", "MECHANISM")
