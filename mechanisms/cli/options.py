"""Options that several commands share: how a file is read, labels and their names, mechanism, sampling and delta."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from mechanisms.cli.output import progress
from mechanisms.data.field_names import suggested_names
from mechanisms.data.label_names import LabelNames, named, read_labels, read_names
from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed
from mechanisms.runs.defaults import MECHANISM, RECORDS, UNLABELLED
from mechanisms.sampling import Compose, EventOfSteps, SamplingPlan, Scheme
from mechanisms.steps import (
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)

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
    """What the options say of how a file is read, by the names of `mechanisms.data.reading.Reading`."""
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
        metavar="FILE.yaml|LABEL=NAME,...",
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


# What prompts call a text and its label; and texts that say something.

FROM_THE_COLUMN = "(default: a usual word that the column's name suggests, never the name itself)"


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


# Mechanism, sampling and delta.


def add_plan_options(parser: argparse.ArgumentParser, delta_required: bool = True, by_rows: bool = False) -> None:
    """Add the options of mechanism, transform, their parameters, scheme, rows, tokens, shots and delta.

    Args:
        delta_required: whether delta must be given.
        by_rows: M and T default to None, since their values then depend on the rows' kind and label sizes.
    """
    plan = SamplingPlan()
    group = parser.add_argument_group("plan")
    group.add_argument("--mechanism", default=MECHANISM, choices=mechanism_names())
    group.add_argument("--transform", default="none", choices=transform_names())
    group.add_argument(
        "--delta", type=float, required=delta_required, help="failure probability of the claim, well under 1/n"
    )
    group.add_argument("--scheme", default=plan.scheme.value, choices=[s.value for s in Scheme])
    rows = group.add_mutually_exclusive_group()
    rows.add_argument("--unit-rows", action="store_true", help="each sampled unit is a row (default)")
    rows.add_argument("--per-subset", type=int, metavar="N", help="M subsets of N expected records instead")
    most, tokens = f"{plan.subsets}", f"{plan.tokens}"
    if by_rows:
        most += ", or the units of the smallest label where they are fewer"
        tokens += f"; of records {RECORDS.tokens}, with outputs and of texts alone {UNLABELLED.tokens}"
    group.add_argument("--subsets", type=int, metavar="M", help=f"expected rows, or subsets (default: {most})")
    group.add_argument("--tokens", type=int, metavar="T", help=f"tokens of a demonstration (default: {tokens})")
    if not by_rows:
        parser.set_defaults(subsets=plan.subsets, tokens=plan.tokens)
    group.add_argument("--shots-per-label", "--shots", type=int, default=plan.shots, metavar="S")
    add_parameter_options(parser, _described())


def _described() -> dict[str, dict[str, Parameter]]:
    users = [mechanism_class(name) for name in mechanism_names()] + [
        transform_class(name) for name in transform_names()
    ]
    return described(users)


def add_rate_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sampling rate, given directly or through a size."""
    group = parser.add_argument_group("sampling rate")
    group.add_argument("--rate", type=float, metavar="Q", help="probability that a unit joins")
    group.add_argument("--size", type=int, metavar="n", help="units of the largest-rate label, public")
    group.add_argument("--expected-sample", type=float, metavar="m", help="q = m / n (default: M N / n)")


def sampling_plan(options: argparse.Namespace, usual_subsets: int = SamplingPlan.subsets) -> SamplingPlan:
    """The sampling plan of the options.

    Args:
        options: with a T.
        usual_subsets: M if the options have none.

    Raises:
        UsageError: a number is out of range.
    """
    return SamplingPlan(
        scheme=Scheme(options.scheme),
        subsets=usual_subsets if options.subsets is None else options.subsets,
        per_subset=1 if options.per_subset is None else options.per_subset,
        unit_rows=options.per_subset is None,
        tokens=options.tokens,
        shots=options.shots_per_label,
    )


def mechanism(options: argparse.Namespace, plan: SamplingPlan | None = None, required: bool = False) -> TokenMechanism:
    """The mechanism of the options, adapted to the plan if there is one.

    Args:
        required: whether the noise must be given, because it is not calibrated.

    Raises:
        UsageError: a parameter is out of range, belongs to another mechanism, or is missing; or the mechanism has no
            sound accounting under the plan.
    """
    chosen = mechanism_class(options.mechanism)
    own, values = list(parameters(chosen)), given(options, _described())
    _refuse_foreign(options, values)
    # Only the parameter that calibration solves for has no useful default.
    for solved in (each.flag for each in own if each.name == chosen.calibrated):
        if required != (solved in values):
            wanted = "is not calibrated here: give" if required else "is calibrated: leave out"
            raise UsageError(f"'{options.mechanism}' {wanted} --{solved}.")
    made = chosen(**{each.name: values[each.flag] for each in own if each.flag in values})
    return made if plan is None else made.for_plan(plan)


def transform(options: argparse.Namespace) -> Transform:
    """The transform of the options.

    Raises:
        UsageError: a parameter is out of range.
    """
    chosen, values = transform_class(options.transform), given(options, _described())
    return chosen(**{each.name: values[each.flag] for each in parameters(chosen) if each.flag in values})


def check_transform(options: argparse.Namespace) -> None:
    """Refuse a transform that the mechanism cannot take; a transform changes neither noise nor cost.

    Raises:
        UsageError: a parameter is out of range, or the mechanism takes no transform.
    """
    chosen = mechanism_class(options.mechanism)
    if transform(options).name != "none" and not chosen.takes_transform:
        raise UsageError(f"'{options.mechanism}' takes no transform: choose --transform none.")
    if chosen.not_private:
        raise UsageError(f"There is nothing to account: '{options.mechanism}' is {chosen.not_private}.")


def _refuse_foreign(options: argparse.Namespace, values: dict[str, Any]) -> None:
    for flag in values:
        if not {options.mechanism, options.transform} & _described()[flag].keys():
            raise UsageError(f"--{flag} is no parameter of '{options.mechanism}' with transform '{options.transform}'.")


def composition(options: argparse.Namespace, plan: SamplingPlan) -> Compose:
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
        return lambda event: plan.compose(event, {"each label": options.size}, options.delta)
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
    return lambda event: _one_label(plan, event, rate, options.delta)


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
    values = {flag: getattr(options, _destination(flag)) for flag in flags}
    return {flag: value for flag, value in values.items() if value is not None}


def _destination(flag: str) -> str:
    return "parameter_" + flag.replace("-", "_")
