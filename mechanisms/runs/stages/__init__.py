"""What a run can ask its units for: a stage a file, which is called like its stage and defines it as `STAGE`."""

from __future__ import annotations

import pkgutil
from typing import Any

from mechanisms.discovery import defined


def stage_names() -> list[str]:
    """The names of the files, in alphabetical order; no file is opened for them."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def stages_by_place() -> dict[str, Any]:
    """What the files define, by name: in the order in which a run asks."""
    found = defined(__name__, "STAGE")
    assert {*found} == {*stage_names()}, "a stage's file ends with STAGE = ..., and has the stage's name"
    return {each.name: each for each in sorted(found.values(), key=lambda each: (each.place, each.name))}
