"""Options made from descriptions: the fields of `RunSpec`, and the parameters of mechanisms and transforms."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import UsageError
from mechanisms.runs.plan import solved_flag
from mechanisms.runs.spec import FLAGGED, PARAMETERS, Group, RunSpec
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names

_UNIT_ROWS = "per_subset"
_SHARED = "parameters of several mechanisms"


def add_settings(
    parser: argparse.ArgumentParser,
    names: Collection[str] = RunSpec.model_fields,
    usual: Mapping[str, Any] | None = None,
) -> None:
    """Add an option for each of some settings; without a value the setting is left open.

    Args:
        names: of fields of `RunSpec`.
        usual: what some of them are where nothing is said, if that is not the field's default.
    """
    groups: dict[Group, Any] = {}
    for each in FLAGGED:
        if each.name not in names:
            continue
        group = groups.get(each.group) or groups.setdefault(each.group, parser.add_argument_group(each.group.value))
        help_text = each.help((usual or {}).get(each.name)).replace("%", "%%")
        group.add_argument(
            f"--{each.flag}", dest=each.name, choices=each.choices, metavar=each.placeholder, help=help_text
        )
        if each.name == _UNIT_ROWS:
            words = "each sampled unit is a row (default)"
            group.add_argument("--unit-rows", dest=each.name, action="store_const", const=None, help=words)
    if PARAMETERS in names:
        add_parameter_options(parser, _of_steps())


def spec_of(options: argparse.Namespace, **usual: Any) -> RunSpec:
    """What the options ask for.

    Args:
        options: of a parser with `add_settings`.
        usual: settings where nothing is said of them.

    Raises:
        UsageError: a value is out of range, or does not go with the others.
    """
    values = ((each, getattr(options, each.name, None)) for each in FLAGGED)
    said = {each.name: each.read(value) for each, value in values if value is not None}
    parameters = given(options, _of_steps())
    return RunSpec.of(**usual | said | ({PARAMETERS: parameters} if parameters else {}))


def _of_steps() -> dict[str, dict[str, Parameter]]:
    users = [mechanism_class(name) for name in mechanism_names()]
    return described([*users, *(transform_class(name) for name in transform_names())])


def check_noise(spec: RunSpec, required: bool = False) -> None:
    """Refuse noise that calibration solves for, or its lack where nothing is calibrated.

    Raises:
        UsageError: see above.
    """
    solved = solved_flag(spec.mechanism)
    if solved is not None and required != (solved in spec.parameters):
        wanted = "is not calibrated here: give" if required else "is calibrated: leave out"
        raise UsageError(f"'{spec.mechanism}' {wanted} --{solved}.")


def described(users: Iterable[Any]) -> dict[str, dict[str, Parameter]]:
    """For each flag, the names of those `users` that have it, with the parameter's description."""
    flags: dict[str, dict[str, Parameter]] = {}
    for user in users:
        for each in parameters(user):
            flags.setdefault(each.flag, {})[user.name] = each
    return flags


def add_parameter_options(parser: argparse.ArgumentParser, flags: dict[str, dict[str, Parameter]]) -> None:
    """Add an option for each flag, grouped by user; without a value the mechanism keeps its own default."""
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
        meanings = {name: f"{each.help} ({each.citation})" for name, each in users.items()}
        words = " ".join(told if len(meanings) == 1 else f"{name}: {told}" for name, told in meanings.items())
        groups[title].add_argument(f"--{flag}", dest=_destination(flag), help=words.replace("%", "%%"), **kind)


def given(options: argparse.Namespace, flags: Iterable[str]) -> dict[str, Any]:
    """The given flags and their values."""
    values = {flag: getattr(options, _destination(flag), None) for flag in flags}
    return {flag: value for flag, value in values.items() if value is not None}


def _destination(flag: str) -> str:
    return "parameter_" + flag.replace("-", "_")
