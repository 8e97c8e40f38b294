"""Which mechanisms there are: whatever modules of this package define `MECHANISM`."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from mechanisms.errors import UsageError
from mechanisms.steps.mechanism import TokenMechanism


@functools.cache
def _registered() -> dict[str, type[TokenMechanism]]:
    package = importlib.import_module("mechanisms.steps")
    modules = (importlib.import_module(f"mechanisms.steps.{m.name}") for m in pkgutil.iter_modules(package.__path__))
    found = [module.MECHANISM for module in modules if hasattr(module, "MECHANISM")]
    return {mechanism.name: mechanism for mechanism in found}


def mechanism_names() -> list[str]:
    """Names of all mechanisms, private ones first."""
    return sorted(_registered(), key=lambda name: (not _registered()[name].uses_private_rows, name))


def mechanism_class(name: str) -> type[TokenMechanism]:
    """The mechanism of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in _registered():
        raise UsageError(f"There is no mechanism '{name}': choose one of {', '.join(mechanism_names())}.")
    return _registered()[name]
