"""Token mechanisms that are measured beside the product's: a mechanism a file, as in `mechanisms.steps`."""

import mechanisms.steps
from mechanisms.discovery import defined


def register() -> None:
    """Let runs of this process ask for them by name."""
    if __path__[0] not in mechanisms.steps.__path__:
        mechanisms.steps.__path__.append(__path__[0])
        defined.cache_clear()
