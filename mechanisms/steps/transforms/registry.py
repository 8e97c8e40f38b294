"""Which transforms there are: whatever modules of this package define `TRANSFORM`."""

from __future__ import annotations

from mechanisms.discovery import defined, pick
from mechanisms.steps.transforms.transform import Transform


def transform_names() -> list[str]:
    """Names of all transforms, "none" first."""
    return sorted(_registered(), key=lambda name: (name != "none", name))


def transform_class(name: str) -> type[Transform]:
    """The transform of that name.

    Raises:
        UsageError: there is none.
    """
    return pick(_registered(), name, "transform", transform_names())


def _registered() -> dict[str, type[Transform]]:
    return defined("mechanisms.steps.transforms", "TRANSFORM")
