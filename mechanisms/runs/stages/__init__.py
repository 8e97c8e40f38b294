"""The stages of a run, one in each file. A file has the name of its stage, and defines the stage as `STAGE`."""

from __future__ import annotations

import pkgutil
from collections.abc import Collection
from typing import Any

from mechanisms.discovery import defined


def stage_names() -> list[str]:
    """The names of the files in alphabetical order, without opening any."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def stages_in_order() -> dict[str, Any]:
    """The stages by name, in the order in which they run."""
    found = defined(__name__, "STAGE")
    assert {*found} == {*stage_names()}, "a stage's file ends with STAGE = ..., and has the stage's name"
    return {each.name: each for each in sorted(found.values(), key=lambda each: (each.order, each.name))}


def in_order(names: Collection[str]) -> list[str]:
    """These stages, in the order in which they run."""
    return [name for name in stages_in_order() if name in names]
