"""Flags of described parameters: whatever a mechanism or a transform says about its own."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from mechanisms.parameters import Parameter, parameters


def described(users: Iterable[Any]) -> dict[str, dict[str, Parameter]]:
    """Flag by flag, which of `users` have it, by name, and what it means there."""
    flags: dict[str, dict[str, Parameter]] = {}
    for user in users:
        for each in parameters(user):
            flags.setdefault(each.flag, {})[user.name] = each
    return flags


def add_parameter_options(group: Any, flags: dict[str, dict[str, Parameter]]) -> None:
    """One option a flag, without a default: what is not given keeps the mechanism's own."""
    for flag, users in flags.items():
        [each, *_] = users.values()
        kind: dict[str, Any] = {"type": float}
        if isinstance(each.default, bool):
            kind = {"action": argparse.BooleanOptionalAction}
        elif isinstance(each.default, int):
            kind = {"type": int}
        words = f"{', '.join(users)}: {each.help} ({each.citation})".replace("%", "%%")
        group.add_argument(f"--{flag}", dest=_destination(flag), default=None, help=words, **kind)


def given(options: argparse.Namespace, flags: Iterable[str]) -> dict[str, Any]:
    """The flags that were given, and their values."""
    values = {flag: getattr(options, _destination(flag)) for flag in flags}
    return {flag: value for flag, value in values.items() if value is not None}


def _destination(flag: str) -> str:
    return "parameter_" + flag.replace("-", "_")
