"""How a new file registers itself: by what it defines."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from mechanisms.errors import UsageError

_Registered = TypeVar("_Registered")


@functools.cache
def defined(package: str, constant: str) -> dict[str, Any]:
    """What the modules of `package` define under the name `constant`, by its own `name`."""
    path = importlib.import_module(package).__path__
    modules = (importlib.import_module(f"{package}.{module.name}") for module in pkgutil.iter_modules(path))
    found = [getattr(module, constant) for module in modules if hasattr(module, constant)]
    return {each.name: each for each in found}


def pick(registered: Mapping[str, _Registered], name: str, kind: str, names: Iterable[str]) -> _Registered:
    """What is registered under a name.

    Raises:
        UsageError: nothing is; the message lists `names`.
    """
    if name not in registered:
        raise UsageError(f"There is no {kind} '{name}': choose one of {', '.join(names)}.")
    return registered[name]
