"""Which transforms there are: whatever modules of this package define `TRANSFORM`."""

from __future__ import annotations

from mechanisms.errors import UsageError
from mechanisms.steps.discovery import defined
from mechanisms.steps.transforms.transform import Transform


def transform_names() -> list[str]:
    """Names of all transforms, "none" first."""
    return sorted(_registered(), key=lambda name: (name != "none", name))


def transform_class(name: str) -> type[Transform]:
    """The transform of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in _registered():
        raise UsageError(f"There is no transform '{name}': choose one of {', '.join(transform_names())}.")
    return _registered()[name]


def _registered() -> dict[str, type[Transform]]:
    return defined("mechanisms.steps.transforms", "TRANSFORM")
