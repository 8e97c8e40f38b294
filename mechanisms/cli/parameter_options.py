"""Flags of described parameters: whatever a mechanism or a transform says about its own."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from mechanisms.discovery import Parameter, parameters

_SHARED = "parameters of several mechanisms"


def described(users: Iterable[Any]) -> dict[str, dict[str, Parameter]]:
    """Flag by flag, which of `users` have it, by name, and what it means there."""
    flags: dict[str, dict[str, Parameter]] = {}
    for user in users:
        for each in parameters(user):
            flags.setdefault(each.flag, {})[user.name] = each
    return flags


def add_parameter_options(parser: argparse.ArgumentParser, flags: dict[str, dict[str, Parameter]]) -> None:
    """One option a flag, grouped by whose it is, without a default: what is not given keeps the mechanism's own."""
    groups: dict[str, Any] = {}
    for flag, users in flags.items():
        title = f"parameters of {next(iter(users))}" if len(users) == 1 else _SHARED
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        [each, *_] = users.values()
        kind: dict[str, Any] = {"type": float, "metavar": "X"}
        if isinstance(each.default, bool):
            kind = {"action": argparse.BooleanOptionalAction}
        elif isinstance(each.default, int):
            kind = {"type": int, "metavar": "N"}
        groups[title].add_argument(f"--{flag}", dest=_destination(flag), default=None, help=_words(users), **kind)


def _words(users: dict[str, Parameter]) -> str:
    """What the flag means to each of its users: no two need mean the same."""
    told = {name: f"{each.help} ({each.citation})" for name, each in users.items()}
    words = " ".join(meaning if len(told) == 1 else f"{name}: {meaning}" for name, meaning in told.items())
    return words.replace("%", "%%")


def given(options: argparse.Namespace, flags: Iterable[str]) -> dict[str, Any]:
    """The flags that were given, and their values."""
    values = {flag: getattr(options, _destination(flag)) for flag in flags}
    return {flag: value for flag, value in values.items() if value is not None}


def _destination(flag: str) -> str:
    return "parameter_" + flag.replace("-", "_")
