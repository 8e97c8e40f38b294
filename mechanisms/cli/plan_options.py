"""The options that fix mechanism, sampling and delta, shared by several commands."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms.cli.parameter_options import add_parameter_options, described, given
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


def add_plan_options(parser: argparse.ArgumentParser, delta_required: bool = True, by_rows: bool = False) -> None:
    """Mechanism and transform with their parameters, scheme, rows, tokens, shots, delta.

    Args:
        delta_required: else it may be left out.
        by_rows: M and T are None where they are left out: what they are then follows from the rows.
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
    """The sampling rate, given directly or through a size."""
    group = parser.add_argument_group("sampling rate")
    group.add_argument("--rate", type=float, metavar="Q", help="probability that a unit joins")
    group.add_argument("--size", type=int, metavar="n", help="units of the largest-rate label, public")
    group.add_argument("--expected-sample", type=float, metavar="m", help="q = m / n (default: M N / n)")


def sampling_plan(options: argparse.Namespace, usual_subsets: int = SamplingPlan.subsets) -> SamplingPlan:
    """The plan that the options describe.

    Args:
        options: with a T.
        usual_subsets: M where they have none.

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
    """The mechanism with the parameters given, made for the plan where there is one.

    Args:
        required: the noise must be given, since it will not be calibrated.

    Raises:
        UsageError: a parameter is out of range, belongs to another mechanism, or is missing; or the mechanism has no
            sound accounting under the plan.
    """
    chosen = mechanism_class(options.mechanism)
    own, values = list(parameters(chosen)), given(options, _described())
    _refuse_foreign(options, values)
    # The parameters that calibration does not solve for have defaults worth keeping.
    for solved in (each.flag for each in own if each.name == chosen.calibrated):
        if required != (solved in values):
            wanted = "needs" if required else "is calibrated: leave out"
            raise UsageError(f"'{options.mechanism}' {wanted} --{solved}.")
    made = chosen(**{each.name: values[each.flag] for each in own if each.flag in values})
    return made if plan is None else made.for_plan(plan)


def transform(options: argparse.Namespace) -> Transform:
    """The transform with the parameters given.

    Raises:
        UsageError: a parameter is out of range.
    """
    chosen, values = transform_class(options.transform), given(options, _described())
    return chosen(**{each.name: values[each.flag] for each in parameters(chosen) if each.flag in values})


def check_transform(options: argparse.Namespace) -> None:
    """Refuse a transform that could not run; it changes neither noise nor cost.

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
    """How the run composes, from --rate, or --size with --expected-sample; for one label, the unit being a record.

    With --size alone the batch's capacity is known too, and its overflow is part of the event.

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
