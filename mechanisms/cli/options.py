"""Options that several commands share: how a file is read, labels and their names, and the settings of a run."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mechanisms.cli.output import progress
from mechanisms.data.headers import suggested_names
from mechanisms.data.label_names import LabelNames, named, read_labels, read_names
from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed
from mechanisms.runs.settings import solved_flag
from mechanisms.runs.spec import FLAGGED, PARAMETERS, Group, RunSpec
from mechanisms.sampling import Compose, EventOfSteps, SamplingPlan
from mechanisms.steps import mechanism_class, mechanism_names, transform_class, transform_names

_SHARED = "parameters of several mechanisms"


# How a private file is read, as its owner says; public.


def add_reading_options(parser: argparse._ActionsContainer) -> None:
    """Add the options of a file's header, encoding, separator and sheet, and of rows that are left out."""
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first line names the columns, or it is a row and columns are called 1, 2, ... (default: it names "
        "them, and one that looks like a row is asked about)",
    )
    parser.add_argument(
        "--skip-lines", type=int, default=0, metavar="N", help="lines above the header, such as a title"
    )
    parser.add_argument(
        "--encoding",
        metavar="NAME[+NAME]",
        help="of the whole file, such as gb18030 or windows-1252; utf-8+windows-1252: each line in the first that fits "
        "(default: UTF-8, or as the file's mark says)",
    )
    parser.add_argument("--separator", metavar="X", help="of cells: one character, or tab (default: as in the header)")
    parser.add_argument("--sheet", metavar="NAME", help="of an Excel file (default: the first)")
    parser.add_argument(
        "--merge-labels",
        action="store_true",
        help="read labels as one of the set that differ from it only in case, spaces or invisible characters",
    )
    parser.add_argument(
        "--allow-left-out", action="store_true", help="go on where more than one row in twenty takes no part"
    )


def reading(options: argparse.Namespace) -> dict[str, Any]:
    """What the options say of how a file is read, by the names of `mechanisms.data.table.Reading`."""
    said = {name: getattr(options, name) for name in ("header", "encoding", "separator", "sheet")}
    return said | {"skip": options.skip_lines}


def of_rows(options: argparse.Namespace) -> dict[str, Any]:
    """What the options say of a file, as arguments of `mechanisms.api.load` and `load_test`."""
    return {
        "label_names": label_names(options),
        "merge_labels": options.merge_labels,
        "allow_left_out": options.allow_left_out,
        "tell": progress,
        **reading(options),
    }


# `--labels`, and `--label-names` with other names for a file's labels.


def add_label_names(parser: argparse._ActionsContainer) -> None:
    """Add the option `--label-names`."""
    parser.add_argument(
        "--label-names",
        metavar="LABEL=NAME,...",
        help="public names for labels of the file: prompts, results and the set know the labels by these alone",
    )


def add_labels(parser: argparse._ActionsContainer, required: bool = True) -> None:
    """Add the options of the label set and of label names."""
    parser.add_argument(
        "--labels",
        required=required,
        metavar="A,B,...",
        help="the public label set: with commas, where a label with a comma stands in quotes, or as a JSON list",
    )
    add_label_names(parser)


def labels_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The label set, with label names applied; empty if none was given.

    Raises:
        UsageError: not readable, or two labels would have the same name.
    """
    given = read_labels(options.labels) if options.labels else ()
    return named(given, label_names(options))


def label_names(options: argparse.Namespace) -> LabelNames:
    """The label names in the options.

    Raises:
        UsageError: not readable, or not one to one.
    """
    return read_names(options.label_names) if options.label_names else ()


# What prompts call a text and its label, and texts that say something.

FROM_THE_COLUMN = "a usual word that the column's name suggests, never the name itself"


def field_names(options: argparse.Namespace, text_column: str, label_column: str) -> tuple[str, str]:
    """The names of text and label in prompts: as typed, or usual words that the columns' names suggest.

    Without a header a column's name may be a private cell: it is never taken itself.
    """
    texts, labels = suggested_names(text_column, label_column)
    typed = (getattr(options, "text_field", None), getattr(options, "label_field", None))
    return typed[0] or texts[0], typed[1] or labels[0]


def check_says_something(text: str) -> None:
    """Refuse a text of nothing but white space.

    Raises:
        UsageError: it is one.
    """
    if not text.strip():
        raise UsageError("The text is empty: give one that says something.")


# The settings of a run: one option for each field of `RunSpec`, or for some of them.

_UNIT_ROWS = "per_subset"


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
        add_parameter_options(parser, _described())


def spec_of(options: argparse.Namespace, **usual: Any) -> RunSpec:
    """What the options ask for.

    Args:
        options: of a parser with `add_settings`.
        usual: settings where nothing is said of them.

    Raises:
        UsageError: a value is out of range, or does not go with the others.
    """
    said = {each.name: value for each in FLAGGED if (value := getattr(options, each.name, None)) is not None}
    read = {each.name: each.read(said[each.name]) for each in FLAGGED if each.name in said}
    parameters = given(options, _described())
    return RunSpec.of(**usual | read | ({PARAMETERS: parameters} if parameters else {}))


def _described() -> dict[str, dict[str, Parameter]]:
    users = [mechanism_class(name) for name in mechanism_names()] + [
        transform_class(name) for name in transform_names()
    ]
    return described(users)


def check_noise(spec: RunSpec, required: bool = False) -> None:
    """Refuse noise that calibration solves for, or its lack where nothing is calibrated.

    Raises:
        UsageError: see above.
    """
    solved = solved_flag(spec.mechanism)
    if solved is not None and required != (solved in spec.parameters):
        wanted = "is not calibrated here: give" if required else "is calibrated: leave out"
        raise UsageError(f"'{spec.mechanism}' {wanted} --{solved}.")


# Noise for a rate, or its cost: no rows, and one label.


_OF_A_PLAN = ("delta", "mechanism", "transform", PARAMETERS, "scheme", "subsets", "per_subset", "tokens", "shots")
_USUAL = {"subsets": SamplingPlan.subsets, "tokens": SamplingPlan.tokens, "shots": SamplingPlan.shots}


def add_plan_options(parser: argparse.ArgumentParser, *more: str) -> None:
    """Add the options of mechanism, transform, sampling and rate, and those of `more` settings."""
    add_settings(parser, (*more, *_OF_A_PLAN), _USUAL)
    group = parser.add_argument_group("sampling rate")
    group.add_argument("--rate", type=float, metavar="Q", help="probability that a unit joins")
    group.add_argument("--size", type=int, metavar="n", help="units of the largest-rate label, public")
    group.add_argument("--expected-sample", type=float, metavar="m", help="q = m / n (default: M N / n)")


def planned(options: argparse.Namespace) -> tuple[RunSpec, SamplingPlan]:
    """What the options of `add_plan_options` ask for.

    Raises:
        UsageError: a value is out of range, or the mechanism has no noise.
    """
    spec = spec_of(options, **_USUAL)
    if reason := mechanism_class(spec.mechanism).not_private:
        raise UsageError(f"There is nothing to account: '{spec.mechanism}' is {reason}.")
    return spec, spec.with_(written=spec.shots).sampling()


def composition(options: argparse.Namespace, plan: SamplingPlan, delta: float) -> Compose:
    """The composition of a run of one label with records as units, from --rate, or --size with --expected-sample.

    With --size alone the batch's capacity is known, and its overflow is part of the event.

    Raises:
        UsageError: no rate is given, or two that disagree.
    """
    if options.size is not None and options.size < 1:
        raise UsageError("--size must be at least 1.")
    if options.expected_sample is not None and not options.expected_sample > 0:
        raise UsageError("--expected-sample must be a positive number.")
    rate = options.rate
    if options.size is not None and rate is None and options.expected_sample is None:
        return lambda event: plan.compose(event, {"each label": options.size}, delta)
    if options.size is not None:
        expected = plan.expected_sample if options.expected_sample is None else options.expected_sample
        implied = min(1.0, expected / options.size)
        if rate is not None and abs(rate - implied) > 1e-9:
            raise UsageError(f"--rate {rate:g} disagrees with --size and --expected-sample, which give {implied:g}.")
        rate = implied
    elif options.expected_sample is not None:
        raise UsageError("--expected-sample needs --size.")
    if rate is None:
        raise UsageError("Give the sampling rate: --rate Q, or --size n (with --expected-sample m).")
    if not 0 < rate <= 1:
        raise UsageError("--rate must lie in (0, 1].")
    return lambda event: _one_label(plan, event, rate, delta)


def _one_label(plan: SamplingPlan, event: EventOfSteps, rate: float, delta: float) -> Composed:
    return Composed("label", (("each label", plan.label_events(event, rate) + plan.overflow_allowed(rate, delta)),))


# Flags for the described parameters of mechanisms and transforms.


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
        groups[title].add_argument(f"--{flag}", dest=_destination(flag), default=None, help=_words(users), **kind)


def _words(users: dict[str, Parameter]) -> str:
    """The help text of a flag, with each meaning if its users differ."""
    told = {name: f"{each.help} ({each.citation})" for name, each in users.items()}
    words = " ".join(meaning if len(told) == 1 else f"{name}: {meaning}" for name, meaning in told.items())
    return words.replace("%", "%%")


def given(options: argparse.Namespace, flags: Iterable[str]) -> dict[str, Any]:
    """The given flags and their values."""
    values = {flag: getattr(options, _destination(flag), None) for flag in flags}
    return {flag: value for flag, value in values.items() if value is not None}


def _destination(flag: str) -> str:
    return "parameter_" + flag.replace("-", "_")
