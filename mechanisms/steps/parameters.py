"""A mechanism's public parameters: one description serves validation, the form, the command line and the docs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from mechanisms.errors import UsageError


@dataclass(frozen=True)
class Parameter:
    """One public parameter: its name in code, its words for people, its range, and its source."""

    name: str
    label: str
    help: str
    low: float
    high: float
    citation: str


def parameter(default: float, *, label: str, help: str, low: float, high: float, citation: str) -> Any:
    """A dataclass field that carries its own description."""
    words = {"label": label, "help": help, "low": low, "high": high, "citation": citation}
    return field(default=default, metadata=words)


def parameters(config: Any) -> Iterator[Parameter]:
    """The described parameters of a mechanism (class or instance)."""
    for each in fields(config):
        if each.metadata:
            yield Parameter(each.name, **each.metadata)


def validate(config: Any) -> None:
    """Check every described parameter against its range.

    Raises:
        UsageError: names the parameter, its range and the value given.
    """
    for each in parameters(config):
        value = getattr(config, each.name)
        if not (math.isfinite(value) and each.low <= value <= each.high):
            flag = each.name.replace("_", "-")
            raise UsageError(f"--{flag} must lie between {each.low:g} and {each.high:g}, not {value:g}.")
